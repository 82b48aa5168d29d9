//! Cosmos accounts that the drill serves: the account document on the global and every regional
//! host (`accounts` of a drill).

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use indexmap::IndexMap;
use serde_json::{Value, json};
use tower_geo_policy::cosmos::{GLOBAL, RegionName, regional_host};

use crate::format::{self, Answer, BodyEnd, What};

/// The accounts of a drill, by the authority of their global hosts.
#[derive(Debug, Default)]
pub(crate) struct Accounts(IndexMap<String, Account>);

#[derive(Debug)]
struct Account {
    documents: Vec<format::Document>,
    /// What its URLs begin with.
    scheme: String,
    /// By authority: the name of the region, or that of the global host.
    hosts: IndexMap<String, String>,
    used: bool,
}

impl Accounts {
    /// `scheme_of` says which scheme the users of a host speak.
    pub(crate) fn new(
        accounts: IndexMap<String, format::Account>,
        scheme_of: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let accounts = accounts.into_iter().map(|(global, account)| {
            let mut hosts: IndexMap<String, String> = IndexMap::new();
            for name in account.regions() {
                // A region keeps the writing in which it was named first.
                let host = regional_host(&global, &RegionName::new(name));
                hosts.entry(host).or_insert_with(|| name.to_owned());
            }
            hosts.insert(global.clone(), GLOBAL.to_owned());
            let scheme = hosts.keys().find_map(|host| scheme_of(host));
            let account = Account {
                documents: account.documents,
                scheme: scheme.unwrap_or_else(|| "https".to_owned()),
                hosts,
                used: false,
            };
            (global, account)
        });
        Self(accounts.collect())
    }

    /// The names of all regions that the account of a host ever lists, in the account's order.
    pub(crate) fn regions_beside(&self, host: &str) -> Vec<String> {
        let account = self.0.values().find(|it| it.hosts.contains_key(host));
        let names = account.map(|account| account.hosts.values());
        let names = names.into_iter().flatten();
        names.filter(|name| *name != GLOBAL).cloned().collect()
    }

    /// The name of the region that a host is, also before anybody has read the account.
    pub(crate) fn name_of(&self, host: &str) -> Option<&str> {
        let mut names = self.0.values().filter_map(|it| it.hosts.get(host));
        names.next().map(String::as_str)
    }

    /// The account document, if that is what a host of an account was asked for.
    pub(crate) fn answer(
        &mut self,
        host: &str,
        method: &Method,
        path: &str,
        at: Duration,
    ) -> Option<Answer> {
        if *method != Method::GET || path != "/" {
            return None;
        }
        let (global, account) = self
            .0
            .iter_mut()
            .find(|(_, account)| account.hosts.contains_key(host))?;
        account.used = true;
        let body = account.document(global, host, at).to_string();
        let json = HeaderValue::from_static("application/json");
        // As the service marks its own answers.
        let activity = HeaderValue::from_str(&format!("{:08x}", at.as_millis()));
        let id = HeaderName::from_static("x-ms-activity-id");
        let headers = [Some((CONTENT_TYPE, json)), activity.ok().map(|it| (id, it))];
        Some(Answer {
            latency: Duration::ZERO,
            what: What::Response {
                status: StatusCode::OK,
                headers: headers.into_iter().flatten().collect(),
                body: Bytes::from(body),
                end: BodyEnd::Whole,
            },
            applied: false,
        })
    }

    /// Accounts that nobody ever read.
    pub(crate) fn unused(&self) -> impl Iterator<Item = &str> {
        let unused = self.0.iter().filter(|(_, account)| !account.used);
        unused.map(|(global, _)| global.as_str())
    }
}

impl Account {
    fn document(&self, global: &str, asked: &str, at: Duration) -> Value {
        // The first is from time 0 on.
        let now = self.documents.iter().rfind(|document| document.from <= at);
        let locations = |names: &[String]| -> Vec<Value> {
            let one = |name: &String| {
                let host = regional_host(global, &RegionName::new(name));
                // The service names its port; another one is part of the host already.
                let port = if self.scheme == "https" && !host.contains(':') {
                    ":443"
                } else {
                    ""
                };
                let url = format!("{}://{host}{port}/", self.scheme);
                json!({"name": name, "databaseAccountEndpoint": url})
            };
            names.iter().map(one).collect()
        };
        let (readable, writable, multi_write) = now.map_or_else(Default::default, |now| {
            (
                locations(&now.readable),
                locations(&now.writable),
                now.multi_write,
            )
        });
        let id = asked.split(['.', ':']).next().unwrap_or(asked);
        json!({
            // It repeats the host that was asked, as the service does.
            "id": id,
            "writableLocations": writable,
            "readableLocations": readable,
            "enableMultipleWriteLocations": multi_write,
            "userConsistencyPolicy": {"defaultConsistencyLevel": "Session"},
        })
    }
}

#[cfg(test)]
mod tests {
    use tower_geo_policy::cosmos::AccountDocument;

    use super::*;
    use crate::format::Syntax;

    const DRILL: &str = r#"{
        "services": {"docs": {"provider": "cosmos", "endpoint": "https://acct.documents.azure.com"}},
        "accounts": {
            "Acct.documents.azure.com": {
                "readable": ["East US", "West US 2"], "writable": ["East US"],
                "changes": [
                    {"at": "10s", "readable": ["westus2"], "writable": ["West US 2", "Central US"]},
                    {"at": "20s", "multi_write": true}]},
            "plain.test:8081": {"readable": ["A"], "writable": ["A"]}}}"#;

    fn accounts() -> Accounts {
        let drill = format::read(DRILL, Syntax::Json).unwrap();
        Accounts::new(drill.accounts, |host| {
            host.starts_with("plain-a").then(|| "http".to_owned())
        })
    }

    fn document(accounts: &mut Accounts, host: &str, at: u64) -> AccountDocument {
        let at = Duration::from_secs(at);
        let answer = accounts.answer(host, &Method::GET, "/", at).unwrap();
        let What::Response { status, body, .. } = answer.what else {
            panic!("{answer:?}");
        };
        AccountDocument::of_answer(status, &body).unwrap()
    }

    /// A change holds from its instant on, and changes only what it names.
    #[test]
    fn the_document_says_what_it_says_at_that_time() {
        let mut accounts = accounts();
        let global = "acct.documents.azure.com";
        let told = |document: &AccountDocument| {
            let names = |locations: &[tower_geo_policy::cosmos::Location]| {
                let names = locations.iter().map(|location| location.name().to_owned());
                names.collect::<Vec<_>>().join(" + ")
            };
            let (read, write) = (names(document.readable()), names(document.writable()));
            (read, write, document.is_multi_write())
        };
        let said = |read: &str, write: &str, multi| (read.to_owned(), write.to_owned(), multi);
        let first = document(&mut accounts, global, 0);
        assert_eq!(told(&first), said("East US + West US 2", "East US", false));
        let hosts: Vec<_> = first
            .readable()
            .iter()
            .map(|it| it.endpoint().to_string())
            .collect();
        let wanted =
            ["acct-eastus", "acct-westus2"].map(|it| format!("https://{it}.documents.azure.com"));
        assert_eq!(hosts, wanted);
        let both = "West US 2 + Central US";
        let second = document(&mut accounts, global, 10);
        assert_eq!(told(&second), said("westus2", both, false));
        // Every regional host says the same, also one that has left.
        for host in ["acct-eastus", "acct-westus2", "acct-centralus"] {
            let host = format!("{host}.documents.azure.com");
            let third = document(&mut accounts, &host, 25);
            assert_eq!(told(&third), said("westus2", both, true));
        }
        assert_eq!(accounts.unused().collect::<Vec<_>>(), ["plain.test:8081"]);
    }

    #[test]
    fn only_a_get_of_the_root_is_an_account_read() {
        let mut accounts = accounts();
        for (host, method, path) in [
            ("acct.documents.azure.com", Method::GET, "/dbs"),
            ("acct.documents.azure.com", Method::GET, "/?x"),
            ("acct.documents.azure.com", Method::HEAD, "/"),
            ("acct-northus.documents.azure.com", Method::GET, "/"),
            ("other.test", Method::GET, "/"),
        ] {
            let answer = accounts.answer(host, &method, path, Duration::ZERO);
            assert!(answer.is_none(), "{host} {method} {path}");
        }
        assert_eq!(accounts.unused().count(), 2);
    }

    #[test]
    fn regions_are_known_by_host_and_in_order() {
        let mut accounts = accounts();
        let names = accounts.regions_beside("acct-westus2.documents.azure.com");
        assert_eq!(names, ["East US", "West US 2", "Central US"]);
        assert_eq!(
            accounts.name_of("acct-westus2.documents.azure.com"),
            Some("West US 2")
        );
        assert_eq!(accounts.name_of("acct.documents.azure.com"), Some(GLOBAL));
        assert!(accounts.regions_beside("other.test").is_empty());
        assert_eq!(accounts.name_of("other.test"), None);
        // The port stays, and the scheme is that of who asks.
        let plain = document(&mut accounts, "plain.test:8081", 0);
        let url = plain.readable()[0].endpoint().to_string();
        assert_eq!(url, "http://plain-a.test:8081");
    }
}
