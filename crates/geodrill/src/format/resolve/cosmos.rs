//! Cosmos: the keys of a service, and what accounts say of themselves.

use std::net::Ipv4Addr;
use std::time::Duration;

use indexmap::IndexMap;
use tower_geo_policy::cosmos::{RegionName, regional_host};

use super::services::endpoint;
use super::{Checked, demand, inside, wire};
use crate::format::maybe::Maybe;
use crate::format::{Account, Cosmos, Document, Millis, ServiceKind, raw};
use crate::problem::Problem;

/// Why a location mode is refused.
pub(super) const HAS_NO_MODE: &str =
    "not for the provider cosmos: `preferred` and `excluded` say where its requests go";

/// Refuses keys of Cosmos elsewhere, and keys of others for Cosmos.
pub(super) fn keys_fit(raw: &raw::Service, path: &str) -> Checked<()> {
    if raw.provider != raw::Provider::Cosmos {
        for (key, there) in [
            ("preferred", raw.preferred.is_on()),
            ("excluded", raw.excluded.is_on()),
            ("multi_write", raw.multi_write.is_some()),
            ("discovery", raw.discovery.is_some()),
            ("refresh", raw.refresh.is_some()),
            ("refresh_jitter", raw.refresh_jitter.is_on()),
            ("mark_for", raw.mark_for.is_some()),
        ] {
            demand(!there, path, key, "only for the provider cosmos")?;
        }
        return Ok(());
    }
    let by_document = "not for the provider cosmos: its account document lists the regions";
    let of_storage = "only for the provider azure-storage";
    for (key, there, message) in [
        ("regions", raw.regions.is_some(), by_document),
        ("secondary", raw.secondary.is_on(), by_document),
        ("location_mode", raw.location_mode.is_some(), HAS_NO_MODE),
        ("last_sync", raw.last_sync.is_on(), of_storage),
        ("max_staleness", raw.max_staleness.is_on(), of_storage),
        (
            "read_your_writes",
            matches!(raw.read_your_writes, Maybe::On(true)),
            of_storage,
        ),
    ] {
        demand(!there, path, key, message)?;
    }
    Ok(())
}

/// Takes the keys of Cosmos out of a service.
pub(super) fn kind(raw: &mut raw::Service, path: &str, exact: bool) -> Checked<ServiceKind> {
    let url = raw.endpoint.take();
    let url = url.ok_or_else(|| inside(path, "endpoint", "missing"))?;
    let endpoint = endpoint(&url, path, "endpoint")?;
    demand(
        endpoint.account_segment().is_none(),
        path,
        "endpoint",
        "must not have a path: a Cosmos account is named by its host",
    )?;
    let names = |names: Maybe<Vec<String>>, key: &str| {
        let names = names.value().unwrap_or_default();
        names_are_names(&names, &format!("{path}.{key}"))?;
        Ok::<_, Problem>(names)
    };
    let refresh = raw.refresh.unwrap_or(Millis(300_000));
    let mark_for = raw.mark_for.unwrap_or(Millis(300_000));
    let positive = "must be longer than nothing";
    demand(refresh.0 > 0, path, "refresh", positive)?;
    demand(mark_for.0 > 0, path, "mark_for", positive)?;
    let refresh_jitter = match std::mem::take(&mut raw.refresh_jitter) {
        Maybe::Absent if exact => Millis(0),
        Maybe::Absent => Millis(15_000),
        Maybe::Off => Millis(0),
        Maybe::On(text) if text == "none" => Millis(0),
        Maybe::On(text) => Millis::parse(&text)
            .map_err(|message| inside(path, "refresh_jitter", format!("{message}, or \"none\"")))?,
    };
    Ok(ServiceKind::Cosmos {
        endpoint,
        settings: Cosmos {
            preferred: names(std::mem::take(&mut raw.preferred), "preferred")?,
            excluded: names(std::mem::take(&mut raw.excluded), "excluded")?,
            multi_write: raw.multi_write.unwrap_or(true),
            discovery: raw.discovery.unwrap_or(true),
            refresh: refresh.duration(),
            refresh_jitter: refresh_jitter.duration(),
            mark_for: mark_for.duration(),
        },
    })
}

/// Names of regions become labels of hosts, so there is not much that they may have.
pub(super) fn names_are_names(names: &[String], path: &str) -> Checked<()> {
    for (index, name) in names.iter().enumerate() {
        let key = RegionName::new(name);
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        let message = if key.is_empty() {
            "is blank; a region has a name such as \"West US 2\""
        } else if !key.as_str().chars().all(is_plain) {
            "is no name of a region, which has letters, digits and blanks: \"West US 2\""
        } else {
            continue;
        };
        return Err(Problem::at(format!("{path}[{index}]"), message));
    }
    Ok(())
}

/// What the accounts say of themselves, by the authority of the global host.
pub(super) fn accounts(raw: IndexMap<String, raw::Account>) -> Checked<IndexMap<String, Account>> {
    let mut accounts = IndexMap::new();
    // Which account a host belongs to, so that no host would have to serve two documents.
    let mut hosts: IndexMap<String, String> = IndexMap::new();
    for (global, raw) in raw {
        let path = format!("accounts.{global}");
        let key = wire::authority(&global).map_err(|message| Problem::at(&path, message))?;
        // As endpoints of accounts are usually written; it is the port of the scheme anyway.
        let key = key.strip_suffix(":443").unwrap_or(&key).to_owned();
        let host = key.rsplit_once(':').map_or(&*key, |(host, _)| host);
        if host.starts_with('[') || host.parse::<Ipv4Addr>().is_ok() {
            let message = "is an address; the hosts of regions are made from a name";
            return Err(Problem::at(path, message));
        }
        let account = account(raw, &path)?;
        let mut own = vec![key.clone()];
        own.extend(
            account
                .regions()
                .map(|name| regional_host(&key, &RegionName::new(name))),
        );
        own.sort_unstable();
        own.dedup();
        for host in own {
            if let Some(other) = hosts.insert(host.clone(), global.clone()) {
                let message = format!("its host `{host}` is also one of the account `{other}`");
                return Err(Problem::at(&path, message));
            }
        }
        accounts.insert(key, account);
    }
    Ok(accounts)
}

fn account(raw: raw::Account, path: &str) -> Checked<Account> {
    let mut now = Document {
        from: Duration::ZERO,
        readable: raw.readable,
        writable: raw.writable,
        multi_write: raw.multi_write.unwrap_or(false),
    };
    list_fits(&now.readable, path, "readable")?;
    list_fits(&now.writable, path, "writable")?;
    let mut documents = vec![now.clone()];
    for (index, change) in raw.changes.into_iter().enumerate() {
        let path = format!("{path}.changes[{index}]");
        let at = change.at.duration();
        demand(
            index == 0 || at >= now.from,
            &path,
            "at",
            "is earlier than the change before it",
        )?;
        if change.readable.is_none() && change.writable.is_none() && change.multi_write.is_none() {
            let message = "changes nothing; it needs one of readable, writable, multi_write";
            return Err(Problem::at(path, message));
        }
        now.from = at;
        if let Some(readable) = change.readable {
            list_fits(&readable, &path, "readable")?;
            now.readable = readable;
        }
        if let Some(writable) = change.writable {
            list_fits(&writable, &path, "writable")?;
            now.writable = writable;
        }
        now.multi_write = change.multi_write.unwrap_or(now.multi_write);
        documents.push(now.clone());
    }
    Ok(Account { documents })
}

/// A list of regions as an account has it: some, and each once.
fn list_fits(names: &[String], path: &str, key: &str) -> Checked<()> {
    demand(
        !names.is_empty(),
        path,
        key,
        "at least one: a document without is none, which takes a rule to show",
    )?;
    let path = format!("{path}.{key}");
    names_are_names(names, &path)?;
    for (index, name) in names.iter().enumerate() {
        let known = RegionName::new(name);
        let earlier = names.iter().take(index);
        if earlier.into_iter().any(|other| known.is(other)) {
            let message = format!("`{name}` is there twice");
            return Err(Problem::at(format!("{path}[{index}]"), message));
        }
    }
    Ok(())
}

impl Account {
    /// Every name that it ever lists, in order; a region may be there in several writings.
    pub(crate) fn regions(&self) -> impl Iterator<Item = &str> {
        self.documents
            .iter()
            .flat_map(|document| document.readable.iter().chain(&document.writable))
            .map(String::as_str)
    }
}
