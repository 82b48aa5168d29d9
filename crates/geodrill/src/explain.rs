//! What the stack makes of one request, or of one endpoint, without playing anything.

use std::str::FromStr;

use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use serde::Serialize;
use tower_geo_policy::azure_storage::{AccountEndpoint, AzureStorage, DeriveError, StorageService};
use tower_geo_policy::cosmos::Cosmos;
use tower_geo_policy::intent::{Intent, Ruling};
use tower_geo_policy::provider::Provider;
use tower_geo_policy::region::{Region, Regions};

use crate::problem::Problem;

/// What a request does, and what follows.
#[derive(Debug, Serialize)]
pub(crate) struct Explained {
    service: &'static str,
    intent: &'static str,
    gated: bool,
    redirectable: bool,
    why: &'static str,
}

/// Which service it is, where its endpoint does not tell.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asked {
    Storage(StorageService),
    Cosmos,
}

/// A request as it is written on the command line.
pub(crate) struct Question<'a> {
    pub(crate) endpoint: &'a str,
    /// For endpoints that do not tell.
    pub(crate) service: Option<Asked>,
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    /// `name: value`
    pub(crate) headers: &'a [String],
}

/// Rules on a request as the layers would.
pub(crate) fn explain(question: &Question<'_>) -> Result<Explained, Problem> {
    let account = AccountEndpoint::parse(question.endpoint)
        .map_err(|error| refuse("--endpoint", &error.to_string()))?;
    let (method, uri, headers) = request(question)?;
    let is_cosmos = match question.service {
        Some(asked) => matches!(asked, Asked::Cosmos),
        None => is_cosmos_host(account.endpoint().host()),
    };
    if is_cosmos {
        let ruling = Cosmos::new().intent(&method, &uri, &headers);
        return Ok(Explained::new("cosmos", &ruling));
    }
    let asked = match question.service {
        Some(Asked::Storage(service)) => Some(service),
        Some(Asked::Cosmos) | None => account.service(),
    };
    let service = asked.ok_or_else(|| {
        refuse(
            "--endpoint",
            "does not tell which service it is; say so with --service",
        )
    })?;
    if !is_of(&account, &uri) {
        return Ok(Explained {
            service: service.as_str(),
            intent: word(Intent::NEUTRAL),
            gated: false,
            redirectable: false,
            why: "not one of the service's endpoints: passes untouched (I8)",
        });
    }
    let provider = AzureStorage::at(service, account.endpoint());
    let ruling = provider.intent(&method, &uri, &headers);
    Ok(Explained::new(service.as_str(), &ruling))
}

fn refuse(what: &str, message: &str) -> Problem {
    Problem::at(what, message)
}

/// The hosts of Cosmos accounts, global and regional, in all clouds: `NAME.documents.azure.com`.
fn is_cosmos_host(host: &str) -> bool {
    host.split('.').nth(1) == Some("documents")
}

/// The request that the question is about.
fn request(question: &Question<'_>) -> Result<(Method, Uri, HeaderMap), Problem> {
    let method =
        Method::from_str(question.method).map_err(|_| refuse("METHOD", "not a method of HTTP"))?;
    let uri = if question.path.starts_with('/') {
        Uri::from_str(question.path).ok()
    } else {
        None
    };
    let uri =
        uri.ok_or_else(|| refuse("PATH", "must be a path, and a query, that begin with /"))?;
    let mut headers = HeaderMap::new();
    for header in question.headers {
        // The value is not repeated: it may be a secret.
        let (name, value) = header
            .split_once(':')
            .ok_or_else(|| refuse("--header", "must be `name: value`"))?;
        let name = HeaderName::from_str(name.trim())
            .map_err(|_| refuse("--header", "the name is not one of a header"))?;
        let value = HeaderValue::from_str(value.trim())
            .map_err(|_| refuse("--header", "the value is not one of a header"))?;
        headers.append(name, value);
    }
    Ok((method, uri, headers))
}

/// Whether a path on the endpoint's host is one of the service's own (I8): path style says the
/// account in its first segment, the primary's or the secondary's.
fn is_of(account: &AccountEndpoint, path: &Uri) -> bool {
    let endpoints = [
        Some(account.endpoint().clone()),
        account.derive_secondary().ok(),
    ];
    let regions: Vec<Region> = endpoints
        .into_iter()
        .flatten()
        .zip(["primary", "secondary"])
        .map(|(endpoint, name)| Region::new(name, endpoint).writable(name == "primary"))
        .collect();
    let Ok(regions) = Regions::new(regions) else {
        return true;
    };
    let mut parts = path.clone().into_parts();
    parts.scheme = account.endpoint().scheme().parse().ok();
    parts.authority = account.endpoint().authority().parse().ok();
    Uri::from_parts(parts).is_ok_and(|uri| regions.region_of(&uri).is_some())
}

const fn word(intent: Intent) -> &'static str {
    if intent.is_read() {
        "read"
    } else if intent.is_write() {
        "write"
    } else {
        "neutral"
    }
}

impl Explained {
    const fn new(service: &'static str, ruling: &Ruling) -> Self {
        Self {
            service,
            intent: word(ruling.intent),
            gated: ruling.intent.is_write(),
            redirectable: ruling.intent.is_redirectable(),
            why: ruling.why,
        }
    }

    pub(crate) fn text(&self) -> String {
        let gated = match (self.gated, self.intent) {
            (true, _) => "yes: while read-only it is refused",
            (false, "read") => "no: reads pass",
            (false, _) => "no: it passes in every state",
        };
        let redirectable = if self.redirectable {
            "yes: another region may answer it"
        } else {
            "no: it stays where it belongs"
        };
        format!(
            "service       {}\nintent        {}\ngated         {gated}\nredirectable  {redirectable}\nwhy           {}\n",
            self.service, self.intent, self.why
        )
    }
}

/// The two endpoints of a service.
#[derive(Debug, Serialize)]
pub(crate) struct Endpoints {
    service: Option<&'static str>,
    account: String,
    primary: String,
    secondary: String,
}

/// Why there are not two.
#[derive(Debug, Serialize)]
pub(crate) struct NoEndpoints {
    pub(crate) error: Reason,
}

#[derive(Debug, Serialize)]
pub(crate) struct Reason {
    kind: &'static str,
    pub(crate) message: String,
}

impl From<DeriveError> for NoEndpoints {
    fn from(error: DeriveError) -> Self {
        Self {
            error: Reason {
                kind: error.kind().as_str(),
                message: error.to_string(),
            },
        }
    }
}

/// Derives the secondary of an endpoint (R11).
pub(crate) fn endpoints(url: &str) -> Result<Endpoints, NoEndpoints> {
    let account = AccountEndpoint::parse(url)?;
    if is_cosmos_host(account.endpoint().host()) {
        let message = "an account of Cosmos DB has no secondary to derive: its account document \
                       lists its regions";
        return Err(NoEndpoints {
            error: Reason {
                kind: "not-derivable",
                message: message.to_owned(),
            },
        });
    }
    let secondary = account.derive_secondary()?;
    Ok(Endpoints {
        service: account.service().map(StorageService::as_str),
        account: account.account().unwrap_or_default().to_owned(),
        primary: account.endpoint().to_string(),
        secondary: secondary.to_string(),
    })
}

impl Endpoints {
    pub(crate) fn text(&self) -> String {
        format!(
            "service    {}\naccount    {}\nprimary    {}\nsecondary  {}\n",
            self.service.unwrap_or("not told by the URL"),
            self.account,
            self.primary,
            self.secondary
        )
    }
}
