//! From the file as written to a drill that can be played: defaults, names, sense.

mod cosmos;
mod services;
mod wire;

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use http::{HeaderName, HeaderValue, Method, Uri};
use indexmap::IndexMap;
use tower_geo::fault::Rules;

use super::{
    Act, Deed, Defaults, Drill, Expect, Millis, Request, RequestOptions, Service, ServiceKind,
    Wish, raw, unsupported,
};
use crate::problem::Problem;

type Checked<T> = Result<T, Problem>;

/// More operations than this are a slip of the pen (an interval in milliseconds, say).
const MOST_OPERATIONS: u64 = 100_000_000;

pub(super) fn resolve(raw: raw::Drill) -> Checked<Drill> {
    unsupported::check(&raw)?;
    let defaults = raw.defaults.unwrap_or(Defaults::Exact);
    let start = match &raw.start {
        None => SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600),
        Some(text) => humantime::parse_rfc3339(text)
            .map_err(|_| Problem::at("start", "not a date such as \"2026-01-01T00:00:00Z\""))?,
    };
    if raw.services.is_empty() {
        return Err(Problem::at("services", "a drill needs a service"));
    }
    let names: HashMap<String, usize> = raw.services.keys().cloned().zip(0..).collect();
    let mut services = Vec::with_capacity(raw.services.len());
    for (name, service) in raw.services {
        let path = format!("services.{name}");
        services.push(services::service(name, service, &path, defaults, &names)?);
    }
    services::sharing_ends(&services)?;
    let mut hosts = IndexMap::new();
    for (host, raw) in raw.hosts {
        let path = format!("hosts.{host}");
        let key = wire::authority(&host).map_err(|message| Problem::at(&path, message))?;
        hosts.insert(key, wire::host(raw, &path)?);
    }
    let accounts = cosmos::accounts(raw.accounts.value().unwrap_or_default())?;
    let mut stores = IndexMap::new();
    for (host, raw) in raw.stores {
        let path = format!("stores.{host}");
        let key = wire::authority(&host).map_err(|message| Problem::at(&path, message))?;
        stores.insert(key, raw.secondary_lag.unwrap_or(Millis(10_000)).duration());
    }
    let rules = each(raw.rules, "rules", |raw, path| {
        wire::rule(raw, path, !stores.is_empty())
    })?;
    // What a rule may say was checked with the path of each key; this is for what is left.
    let rules = Rules::new(rules).map_err(|error| Problem::at("rules", error.to_string()))?;
    let requests = each(raw.requests, "requests", |raw, path| {
        request(raw, path, &names, &services)
    })?;
    if requests
        .iter()
        .fold(0_u64, |sum, request| sum.saturating_add(request.count()))
        > MOST_OPERATIONS
    {
        return Err(Problem::at(
            "requests",
            format!("more than {MOST_OPERATIONS} operations"),
        ));
    }
    ids_differ(&requests)?;
    let operator = each(raw.operator, "operator", |raw, path| {
        act(raw, path, &names, &services)
    })?;
    Ok(Drill {
        name: raw.name.unwrap_or_default(),
        seed: raw.seed.unwrap_or(0),
        start,
        services,
        hosts,
        accounts,
        stores,
        rules,
        requests,
        operator,
        expect: each(raw.expect, "expect", expect)?,
    })
}

/// Every operation has an id of its own: those of a series are `id#0`, `id#1` and so on.
fn ids_differ(requests: &[Request]) -> Checked<()> {
    // A series and a single request of one name are told apart by the number.
    let mut seen: HashMap<(&str, bool), u64> = HashMap::with_capacity(requests.len());
    for (index, request) in requests.iter().enumerate() {
        let key = (request.id.as_str(), request.every.is_some());
        if seen.insert(key, request.count()).is_some() {
            let message = format!("there is another request `{}`", request.id);
            return Err(inside(&format!("requests[{index}]"), "id", message));
        }
    }
    for (index, request) in requests.iter().enumerate() {
        if request.every.is_some() {
            continue;
        }
        let Some((series, number)) = request.id.rsplit_once('#') else {
            continue;
        };
        let taken = seen.get(&(series, true)).is_some_and(|count| {
            let number = number.parse::<u64>().ok();
            let number = number.filter(|number| request.id == format!("{series}#{number}"));
            number.is_some_and(|number| number < *count)
        });
        if taken {
            let message = format!("is also that of an operation of the series `{series}`");
            return Err(inside(&format!("requests[{index}]"), "id", message));
        }
    }
    Ok(())
}

fn each<R, T>(
    raw: Vec<R>,
    name: &str,
    mut one: impl FnMut(R, &str) -> Checked<T>,
) -> Checked<Vec<T>> {
    raw.into_iter()
        .enumerate()
        .map(|(index, raw)| one(raw, &format!("{name}[{index}]")))
        .collect()
}

/// A problem at a key inside of `path`.
fn inside(path: &str, key: &str, message: impl Into<String>) -> Problem {
    Problem::at(format!("{path}.{key}"), message)
}

fn demand(holds: bool, path: &str, key: &str, message: &str) -> Checked<()> {
    if holds {
        Ok(())
    } else {
        Err(inside(path, key, message))
    }
}

fn no_service(name: &str) -> String {
    format!("there is no service `{name}`")
}

fn method(text: &str, path: &str) -> Checked<Method> {
    text.parse()
        .map_err(|_| inside(path, "method", format!("`{text}` is not a method")))
}

fn header_name(text: &str, path: &str) -> Checked<HeaderName> {
    text.parse()
        .map_err(|_| Problem::at(path, format!("`{text}` is not a header name")))
}

fn headers(raw: IndexMap<String, String>, path: &str) -> Checked<Vec<(HeaderName, HeaderValue)>> {
    let mut list = Vec::with_capacity(raw.len());
    for (name, value) in raw {
        let value = HeaderValue::from_bytes(value.as_bytes())
            .map_err(|_| inside(path, &name, "not a header value"))?;
        list.push((header_name(&name, path)?, value));
    }
    Ok(list)
}

fn service_index(name: &str, path: &str, names: &HashMap<String, usize>) -> Checked<usize> {
    names
        .get(name)
        .copied()
        .ok_or_else(|| inside(path, "service", no_service(name)))
}

/// Whether the service has, or may come to have, a region of that name.
fn has_region(service: &Service, region: &str) -> bool {
    match &service.kind {
        ServiceKind::AzureStorage { .. } => region == "primary" || region == "secondary",
        ServiceKind::Static { regions } => regions.iter().any(|known| known.name == region),
        // Which regions there are is for the account to say, and it may say otherwise later.
        ServiceKind::Cosmos { .. } => true,
    }
}

fn known_region(
    region: Option<String>,
    service: Option<&Service>,
    path: &str,
    key: &str,
) -> Checked<Option<String>> {
    match (region, service) {
        (Some(region), Some(service)) if !has_region(service, &region) => {
            let message = format!("the service `{}` has no region `{region}`", service.name);
            Err(inside(path, key, message))
        }
        (region, _) => Ok(region),
    }
}

fn request(
    raw: raw::Request,
    path: &str,
    names: &HashMap<String, usize>,
    services: &[Service],
) -> Checked<Request> {
    let service = service_index(&raw.service, path, names)?;
    let at = raw.at.unwrap_or_default();
    let every = match (raw.every.value(), raw.until.value()) {
        (None, None) => None,
        (Some(every), Some(until)) => {
            demand(every.0 > 0, path, "every", "must be longer than nothing")?;
            demand(until > at, path, "until", "must be later than at")?;
            Some((every, until))
        }
        (Some(_), None) => return Err(inside(path, "until", "missing: a series has an end")),
        (None, Some(_)) => return Err(inside(path, "every", "missing: until ends a series")),
    };
    let bad_path = |message: &str| inside(path, "path", message);
    let absolute = if raw.path.starts_with('/') {
        let relative = raw.path.parse::<Uri>();
        relative.map_err(|_| bad_path("not a path and query of a URL"))?;
        None
    } else {
        let uri = raw.path.parse::<Uri>().ok();
        let uri = uri.filter(|uri| {
            uri.authority().is_some() && matches!(uri.scheme_str(), Some("http" | "https"))
        });
        Some(uri.ok_or_else(|| bad_path("neither a path that begins with / nor an http(s) URL"))?)
    };
    let shown = raw.show.value().unwrap_or_default();
    let mode = raw.location_mode.value();
    let excluded = raw.excluded.value();
    let is_cosmos = services.get(service).is_some_and(Service::is_cosmos);
    demand(
        !is_cosmos || mode.is_none(),
        path,
        "location_mode",
        cosmos::HAS_NO_MODE,
    )?;
    if let Some(excluded) = &excluded {
        demand(is_cosmos, path, "excluded", "only for the provider cosmos")?;
        cosmos::names_are_names(excluded, &format!("{path}.excluded"))?;
    }
    Ok(Request {
        id: raw.id.ok_or_else(|| inside(path, "id", "missing"))?,
        at,
        every,
        service,
        method: method(raw.method.as_deref().unwrap_or("GET"), path)?,
        path: raw.path,
        absolute,
        headers: headers(raw.headers, &format!("{path}.headers"))?,
        body: raw.body.value().unwrap_or_default().into(),
        streaming: raw.streaming.is_on(),
        options: RequestOptions {
            replayable: raw.replayable.is_on(),
            mode,
            pin: known_region(raw.pin.value(), services.get(service), path, "pin")?,
            excluded,
        },
        show: shown
            .iter()
            .map(|name| header_name(name, &format!("{path}.show")))
            .collect::<Checked<_>>()?,
        cancel_after: raw.cancel_after.value().map(Millis::duration),
    })
}

fn act(
    raw: raw::Act,
    path: &str,
    names: &HashMap<String, usize>,
    services: &[Service],
) -> Checked<Act> {
    let service = service_index(&raw.service, path, names)?;
    let of_a_region = matches!(
        raw.deed,
        raw::Deed::ForceOpen | raw::Deed::ForceClosed | raw::Deed::Automatic | raw::Deed::Reset
    );
    let message = "only for force-open, force-closed, automatic and reset";
    demand(of_a_region || !raw.region.is_on(), path, "region", message)?;
    let region = known_region(raw.region.value(), services.get(service), path, "region")?;
    let to = raw.to.value();
    let is_mode = raw.deed == raw::Deed::LocationMode;
    demand(
        is_mode || to.is_none(),
        path,
        "to",
        "only for location-mode",
    )?;
    let is_cosmos = services.get(service).is_some_and(Service::is_cosmos);
    demand(!(is_mode && is_cosmos), path, "do", cosmos::HAS_NO_MODE)?;
    let deed = match raw.deed {
        raw::Deed::ReadOnly => Deed::ReadOnly,
        raw::Deed::ReadWrite => Deed::ReadWrite,
        raw::Deed::Maintenance => Deed::Maintenance,
        raw::Deed::EndMaintenance => Deed::EndMaintenance,
        raw::Deed::ForceOpen => Deed::ForceOpen(region),
        raw::Deed::ForceClosed => Deed::ForceClosed(region),
        raw::Deed::Automatic => Deed::Automatic(region),
        raw::Deed::Reset => Deed::Reset(region),
        raw::Deed::LocationMode => {
            Deed::LocationMode(to.ok_or_else(|| inside(path, "to", "missing"))?)
        }
    };
    Ok(Act {
        at: raw.at.unwrap_or_default(),
        service,
        deed,
    })
}

fn expect(raw: raw::Expect, path: &str) -> Checked<Expect> {
    let pointer = raw.at.is_empty() || raw.at.starts_with('/');
    demand(pointer, path, "at", "a JSON pointer begins with /")?;
    let wishes: Vec<Wish> = [
        raw.is.map(Wish::Is),
        raw.is_not.map(Wish::IsNot),
        raw.at_least.map(Wish::AtLeast),
        raw.at_most.map(Wish::AtMost),
        raw.contains.map(Wish::Contains),
        raw.absent.is_on().then_some(Wish::Absent),
    ]
    .into_iter()
    .flatten()
    .collect();
    if wishes.is_empty() {
        let message = "needs one of is, is_not, at_least, at_most, contains, absent: true";
        return Err(Problem::at(path, message));
    }
    Ok(Expect { at: raw.at, wishes })
}
