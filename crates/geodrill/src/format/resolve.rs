//! From the file as written to a drill that can be played: defaults, names, sense.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::uri::Authority;
use http::{HeaderName, HeaderValue, Method, StatusCode, Uri};
use indexmap::IndexMap;
use tower_geo_policy::region::Endpoint;

use super::maybe::Maybe;
use super::{
    Act, Answer, BodyEnd, Breaker, Deed, Defaults, Drill, Expect, Fault, Jitter, Millis, Mode,
    Rate, Region, Request, RequestOptions, Retry, RetryMode, Rule, Secondary, Service, ServiceKind,
    Slow, What, Wish, raw, unsupported,
};
use crate::glob::Glob;
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
        services.push(self::service(name, service, &path, defaults, &names)?);
    }
    sharing_ends(&services)?;
    let mut hosts = IndexMap::new();
    for (host, raw) in raw.hosts {
        let path = format!("hosts.{host}");
        let key = authority(&host).map_err(|message| Problem::at(&path, message))?;
        hosts.insert(key, self::host(raw, &path)?);
    }
    let rules = each(raw.rules, "rules", rule)?;
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
    let operator = each(raw.operator, "operator", |raw, path| {
        act(raw, path, &names, &services)
    })?;
    Ok(Drill {
        name: raw.name.unwrap_or_default(),
        seed: raw.seed.unwrap_or(0),
        start,
        services,
        hosts,
        rules,
        requests,
        operator,
        expect: each(raw.expect, "expect", expect)?,
    })
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

fn service(
    name: String,
    raw: raw::Service,
    path: &str,
    defaults: Defaults,
    names: &HashMap<String, usize>,
) -> Checked<Service> {
    for (key, there) in [
        ("preferred", raw.preferred.is_on()),
        ("excluded", raw.excluded.is_on()),
        ("multi_write", raw.multi_write.is_some()),
        ("discovery", raw.discovery.is_some()),
        ("refresh", raw.refresh.is_on()),
        ("refresh_jitter", raw.refresh_jitter.is_on()),
        ("mark_for", raw.mark_for.is_some()),
    ] {
        demand(!there, path, key, "only for the provider cosmos")?;
    }
    let kind = match raw.provider {
        // Cosmos was refused by the table of what is not built.
        raw::Provider::AzureStorage | raw::Provider::Cosmos => {
            let only_static = "only for the provider static";
            demand(raw.regions.is_none(), path, "regions", only_static)?;
            ServiceKind::AzureStorage {
                endpoint: match raw.endpoint {
                    Some(url) => endpoint(&url, path, "endpoint")?,
                    None => return Err(inside(path, "endpoint", "missing")),
                },
                secondary: match raw.secondary {
                    Maybe::Absent => Secondary::Derive,
                    Maybe::Off => Secondary::None,
                    Maybe::On(text) if text == "derive" => Secondary::Derive,
                    Maybe::On(url) => Secondary::At(endpoint(&url, path, "secondary")?),
                },
            }
        }
        raw::Provider::Static => {
            let not_static = "not for the provider static, which has regions";
            demand(raw.endpoint.is_none(), path, "endpoint", not_static)?;
            demand(!raw.secondary.is_on(), path, "secondary", not_static)?;
            let regions = raw
                .regions
                .ok_or_else(|| inside(path, "regions", "missing"))?;
            demand(!regions.is_empty(), path, "regions", "at least one")?;
            ServiceKind::Static {
                regions: each(regions, &format!("{path}.regions"), region)?,
            }
        }
    };
    let shares_with = match raw.share_state_with.value() {
        None => None,
        Some(other) => {
            let key = "share_state_with";
            demand(
                other != name,
                path,
                key,
                "a service cannot share with itself",
            )?;
            let index = names.get(&other).copied();
            Some(index.ok_or_else(|| inside(path, key, no_service(&other)))?)
        }
    };
    let retry = raw
        .retry
        .or_default(Some(raw::Retry::default()))
        .map(|raw| retry(raw, &format!("{path}.retry"), defaults))
        .transpose()?;
    let breaker = raw
        .breaker
        .or_default(Some(raw::Breaker::default()))
        .map(|raw| breaker(raw, &format!("{path}.breaker"), defaults))
        .transpose()?;
    Ok(Service {
        name,
        kind,
        mode: raw.location_mode.unwrap_or(Mode::PrimaryOnly),
        shares_with,
        retry,
        breaker,
        read_only_while_open: raw.read_only != Some(raw::ReadOnly::Manual),
    })
}

fn endpoint(url: &str, path: &str, key: &str) -> Checked<Endpoint> {
    Endpoint::parse(url).map_err(|error| inside(path, key, error.to_string()))
}

fn region(raw: raw::Region, path: &str) -> Checked<Region> {
    Ok(Region {
        endpoint: endpoint(&raw.endpoint, path, "endpoint")?,
        // The first region of the list is the writer, unless regions say so themselves.
        writable: raw.writable.unwrap_or_else(|| path.ends_with("[0]")),
        name: raw.name,
    })
}

fn no_service(name: &str) -> String {
    format!("there is no service `{name}`")
}

/// A chain of sharing must end at a service that shares with nobody.
fn sharing_ends(services: &[Service]) -> Checked<()> {
    for service in services {
        let mut at = service.shares_with;
        let mut steps = 0;
        while let Some(next) = at {
            steps += 1;
            if steps > services.len() {
                return Err(inside(
                    &format!("services.{}", service.name),
                    "share_state_with",
                    "the services share in a circle",
                ));
            }
            at = services.get(next).and_then(|next| next.shares_with);
        }
    }
    Ok(())
}

fn retry(raw: raw::Retry, path: &str, defaults: Defaults) -> Checked<Retry> {
    let positive = "must be longer than nothing; null means none";
    let timeout = |value: Maybe<Millis>, default: u64, key: &str| {
        let value = value.or_default(Some(Millis(default)));
        demand(value != Some(Millis(0)), path, key, positive)?;
        Ok::<_, Problem>(value.map(Millis::duration))
    };
    let budget = match raw.budget.or_default(Some(raw::Budget { capacity: None })) {
        None => None,
        Some(budget) => {
            let capacity = budget.capacity.unwrap_or(500);
            demand(
                capacity > 0,
                path,
                "budget.capacity",
                "must be at least 1; null means no budget",
            )?;
            Some(capacity)
        }
    };
    Ok(Retry {
        mode: raw.mode.unwrap_or(RetryMode::Exponential),
        max_retries: raw.max_retries.unwrap_or(5),
        delay: raw.delay.unwrap_or(Millis(800)).duration(),
        max_delay: raw.max_delay.unwrap_or(Millis(60_000)).duration(),
        jitter: raw.jitter.unwrap_or(match defaults {
            Defaults::Exact => Jitter::None,
            Defaults::Product => Jitter::Equal,
        }),
        attempt_timeout: timeout(raw.attempt_timeout, 10_000, "attempt_timeout")?,
        deadline: timeout(raw.deadline, 60_000, "deadline")?,
        budget,
        replay_all: raw.replay == Some(raw::Replay::All),
        buffer: raw.buffer.value(),
        body_idle: timeout(raw.body_idle, 30_000, "body_idle")?,
    })
}

fn breaker(raw: raw::Breaker, path: &str, defaults: Defaults) -> Checked<Breaker> {
    let streak = raw.streak.or_default(Some(10));
    demand(
        streak != Some(0),
        path,
        "streak",
        "must be at least 1; null switches it off",
    )?;
    let rate_of = |threshold: Option<f64>, standard, window: Option<Millis>, minimum, key: &str| {
        let rate = Rate {
            threshold: threshold.unwrap_or(standard),
            window: window.unwrap_or(Millis(120_000)).duration(),
            minimum: Option::unwrap_or(minimum, 20),
        };
        let share = rate.threshold > 0.0 && rate.threshold <= 1.0;
        demand(
            share,
            path,
            &format!("{key}.threshold"),
            "must be above 0, and at most 1",
        )?;
        let long = !rate.window.is_zero();
        demand(
            long,
            path,
            &format!("{key}.window"),
            "must be longer than nothing",
        )?;
        demand(
            rate.minimum > 0,
            path,
            &format!("{key}.minimum"),
            "must be at least 1",
        )?;
        Ok::<_, Problem>(rate)
    };
    let rate = match raw.rate {
        Maybe::Off => None,
        Maybe::Absent => Some(rate_of(None, 0.9, None, None, "rate")?),
        Maybe::On(rate) => Some(rate_of(
            rate.threshold,
            0.9,
            rate.window,
            rate.minimum,
            "rate",
        )?),
    };
    let slow = match raw.slow.value() {
        None => None,
        Some(slow) => {
            demand(
                slow.after.0 > 0,
                path,
                "slow.after",
                "must be longer than nothing",
            )?;
            Some(Slow {
                after: slow.after.duration(),
                rate: rate_of(slow.threshold, 0.8, slow.window, slow.minimum, "slow")?,
            })
        }
    };
    let open_for = raw.open_for.unwrap_or(Millis(30_000));
    demand(
        open_for.0 > 0,
        path,
        "open_for",
        "must be longer than nothing",
    )?;
    // A wait above the usual limit is its own limit, unless the file names one.
    let max_open_for = raw
        .max_open_for
        .unwrap_or_else(|| Millis(300_000).max(open_for));
    demand(
        max_open_for >= open_for,
        path,
        "max_open_for",
        "is shorter than open_for",
    )?;
    let open_for_calls = raw.open_for_calls.value();
    demand(
        open_for_calls != Some(0),
        path,
        "open_for_calls",
        "must be at least 1; null means none",
    )?;
    let probes = raw.probes.unwrap_or(1);
    demand(
        probes > 0,
        path,
        "probes",
        "must be at least 1, else nothing ever closes it",
    )?;
    let probe_deadline = raw.probe_deadline.unwrap_or(Millis(10_000));
    demand(
        probe_deadline.0 > 0,
        path,
        "probe_deadline",
        "must be longer than nothing",
    )?;
    let close_after = raw.close_after.unwrap_or(1);
    demand(close_after > 0, path, "close_after", "must be at least 1")?;
    let jitter = raw.jitter.unwrap_or(match defaults {
        Defaults::Exact => Jitter::None,
        Defaults::Product => Jitter::Equal,
    });
    let ramp = match (raw.ramp, defaults) {
        (Maybe::On(ramp), _) => ramp,
        (Maybe::Absent, Defaults::Product) => vec![0.05, 0.25],
        (Maybe::Absent, Defaults::Exact) | (Maybe::Off, _) => Vec::new(),
    };
    let shares = ramp.iter().all(|share| *share > 0.0 && *share <= 1.0);
    demand(
        shares,
        path,
        "ramp",
        "each step must be above 0, and at most 1",
    )?;
    let rises = ramp.windows(2).all(|pair| pair[0] <= pair[1]);
    demand(rises, path, "ramp", "a ramp does not fall")?;
    let ramp_step = raw.ramp_step.unwrap_or(Millis(3_000));
    demand(
        ramp_step.0 > 0,
        path,
        "ramp_step",
        "must be longer than nothing",
    )?;
    Ok(Breaker {
        streak,
        rate,
        slow,
        open_for: open_for.duration(),
        max_open_for: max_open_for.duration(),
        open_for_calls,
        suspect_after: raw.suspect_after.unwrap_or(Millis(1_000)).duration(),
        jitter,
        probes,
        probe_deadline: probe_deadline.duration(),
        close_after,
        ramp,
        ramp_step: ramp_step.duration(),
    })
}

/// A host as rules see it: lower case, with the port where it is not the scheme's own.
fn authority(text: &str) -> Result<String, String> {
    let refusal = || format!("`{text}` is not a host, or a host and a port");
    if text.contains('@') {
        return Err(refusal());
    }
    text.parse::<Authority>()
        .map(|authority| authority.as_str().to_ascii_lowercase())
        .map_err(|_| refusal())
}

fn host(raw: raw::Host, path: &str) -> Checked<Answer> {
    let mut answer = match raw.answer {
        None => Answer {
            latency: Duration::ZERO,
            what: What::Response {
                status: StatusCode::OK,
                headers: Vec::new(),
                body: Bytes::new(),
                end: BodyEnd::Whole,
            },
        },
        Some(raw) => {
            let path = format!("{path}.answer");
            demand(
                !raw.times.is_on(),
                &path,
                "times",
                "a host answers for ever; use a rule",
            )?;
            answer(raw, &path)?
        }
    };
    if let Some(latency) = raw.latency {
        answer.latency = latency.duration();
    }
    Ok(answer)
}

fn rule(raw: raw::Rule, path: &str) -> Checked<Rule> {
    // With a star it is no authority that could be parsed; an empty one matches nothing.
    let host = if raw.host.contains('*') {
        raw.host.to_ascii_lowercase()
    } else {
        authority(&raw.host).map_err(|message| inside(path, "host", message))?
    };
    let method = match raw.method.value() {
        None => None,
        Some(text) if text == "*" => None,
        Some(text) => Some(method(&text, path)?),
    };
    let mut headers = Vec::with_capacity(raw.headers.len());
    for (name, pattern) in raw.headers {
        headers.push((
            header_name(&name, &format!("{path}.headers"))?,
            Glob::new(pattern),
        ));
    }
    let rate = raw.rate.unwrap_or(1.0);
    demand(
        (0.0..=1.0).contains(&rate),
        path,
        "rate",
        "must be between 0 and 1",
    )?;
    let from = raw.from.value().unwrap_or_default();
    let until = raw.until.value();
    demand(
        until.is_none_or(|until| until > from),
        path,
        "until",
        "must be later than from",
    )?;
    demand(!raw.answers.is_empty(), path, "answers", "at least one")?;
    let answers = each(raw.answers, &format!("{path}.answers"), |raw, path| {
        let times = match raw.times {
            Maybe::On(times) => Some(times),
            Maybe::Absent | Maybe::Off => None,
        };
        demand(times != Some(0), path, "times", "must be at least 1")?;
        Ok((answer(raw, path)?, times))
    })?;
    Ok(Rule {
        host: Glob::new(host),
        method,
        path: raw.path.value().map(Glob::new),
        headers,
        from,
        until,
        rate,
        answers,
    })
}

fn answer(raw: raw::Answer, path: &str) -> Checked<Answer> {
    let what = match (raw.status.value(), raw.fault.value()) {
        (Some(status), None) => {
            // An informational status ends nothing, so no client hands it over.
            let status = StatusCode::from_u16(status)
                .ok()
                .filter(|status| !status.is_informational())
                .ok_or_else(|| inside(path, "status", "must be between 200 and 999"))?;
            let body = raw.body.value().unwrap_or_default();
            let within = |count: usize, key: &str| {
                let message = "is longer than the body";
                demand(count <= body.len(), path, key, message)?;
                Ok::<_, Problem>(count)
            };
            let end = match (raw.cut_after.value(), raw.stall_after.value()) {
                (None, None) => BodyEnd::Whole,
                (Some(count), None) => BodyEnd::CutAfter(within(count, "cut_after")?),
                (None, Some(count)) => BodyEnd::StallAfter(within(count, "stall_after")?),
                (Some(_), Some(_)) => {
                    return Err(inside(path, "stall_after", "not together with cut_after"));
                }
            };
            What::Response {
                status,
                headers: headers(raw.headers, &format!("{path}.headers"))?,
                body: body.into(),
                end,
            }
        }
        (None, Some(fault)) => {
            for (key, there) in [
                ("headers", !raw.headers.is_empty()),
                ("body", raw.body.is_on()),
                ("cut_after", raw.cut_after.is_on()),
                ("stall_after", raw.stall_after.is_on()),
            ] {
                demand(!there, path, key, "a fault has no answer")?;
            }
            What::Fault(match fault {
                raw::Fault::Connect => Fault::Connect,
                raw::Fault::Dns => Fault::Dns,
                raw::Fault::Tls => Fault::Tls,
                raw::Fault::Reset => Fault::Reset,
                raw::Fault::Hang => Fault::Hang,
            })
        }
        (Some(_), Some(_)) => return Err(inside(path, "fault", "not together with status")),
        (None, None) => return Err(Problem::at(path, "needs a status or a fault")),
    };
    Ok(Answer {
        latency: raw.latency.value().unwrap_or_default().duration(),
        what,
    })
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
            mode: raw.location_mode.value(),
            pin: known_region(raw.pin.value(), services.get(service), path, "pin")?,
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
