//! Services, their retries and their circuits: defaults and sense.

use std::time::Duration;

use std::collections::HashMap;

use tower_geo_policy::region::Endpoint;

use super::{Checked, cosmos, demand, each, inside, method, no_service};
use crate::format::maybe::Maybe;
use crate::format::{
    Breaker, Defaults, Jitter, Millis, Mode, Monitor, Pace, Rate, Region, Retry, RetryMode,
    Secondary, Service, ServiceKind, Slow, raw,
};
use crate::problem::Problem;

pub(super) fn service(
    name: String,
    mut raw: raw::Service,
    path: &str,
    defaults: Defaults,
    names: &HashMap<String, usize>,
) -> Checked<Service> {
    let exact = defaults == Defaults::Exact;
    cosmos::keys_fit(&raw, path)?;
    let kind = match raw.provider {
        raw::Provider::Cosmos => cosmos::kind(&mut raw, path, exact)?,
        raw::Provider::AzureStorage => {
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
    let hedge = raw.hedge.value().map(|hedge| hedge.after.duration());
    let retry = raw
        .retry
        .or_default(Some(raw::Retry::default()))
        .map(|raw| retry(raw, hedge, &format!("{path}.retry"), defaults))
        .transpose()?;
    demand(
        hedge.is_none() || retry.is_some(),
        path,
        "hedge",
        "needs the retry layer, which makes the second send",
    )?;
    let breaker = raw
        .breaker
        .or_default(Some(raw::Breaker::default()))
        .map(|raw| breaker(raw, &format!("{path}.breaker"), defaults))
        .transpose()?;
    let positive = "must be longer than nothing; null means none";
    let last_sync = raw.last_sync.value();
    if let Some(last_sync) = &last_sync {
        demand(last_sync.every.0 > 0, path, "last_sync.every", positive)?;
    }
    let max_staleness = raw.max_staleness.value();
    demand(
        max_staleness != Some(Millis(0)),
        path,
        "max_staleness",
        positive,
    )?;
    let monitor = raw.monitor.value();
    let monitor = monitor.map(|raw| monitor_of(raw, &format!("{path}.monitor"), exact));
    Ok(Service {
        monitor: monitor.transpose()?,
        last_sync: last_sync.map(|poll| Pace {
            every: poll.every.duration(),
            exact,
        }),
        max_staleness: max_staleness.map(Millis::duration),
        read_your_writes: raw.read_your_writes.is_on(),
        name,
        kind,
        mode: raw.location_mode.unwrap_or(Mode::PrimaryOnly),
        shares_with,
        retry,
        breaker,
        read_only_while_open: raw.read_only != Some(raw::ReadOnly::Manual),
    })
}

fn monitor_of(raw: raw::Monitor, path: &str, exact: bool) -> Checked<Monitor> {
    let positive = "must be longer than nothing";
    let timeout = raw.timeout.unwrap_or(Millis(2_000));
    demand(raw.every.0 > 0, path, "every", positive)?;
    demand(timeout.0 > 0, path, "timeout", positive)?;
    Ok(Monitor {
        method: method(raw.method.as_deref().unwrap_or("GET"), path)?,
        path: raw.path,
        timeout: timeout.duration(),
        pace: Pace {
            every: raw.every.duration(),
            exact,
        },
    })
}

pub(super) fn endpoint(url: &str, path: &str, key: &str) -> Checked<Endpoint> {
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

/// A chain of sharing must end at a service that shares with nobody.
pub(super) fn sharing_ends(services: &[Service]) -> Checked<()> {
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

fn retry(
    raw: raw::Retry,
    hedge: Option<Duration>,
    path: &str,
    defaults: Defaults,
) -> Checked<Retry> {
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
    let delay = raw.delay.unwrap_or(Millis(800));
    Ok(Retry {
        mode: raw.mode.unwrap_or(RetryMode::Exponential),
        max_retries: raw.max_retries.unwrap_or(5),
        delay: delay.duration(),
        // As `max_open_for`: a longer one is its own limit, unless the file names one.
        max_delay: raw
            .max_delay
            .unwrap_or_else(|| Millis(60_000).max(delay))
            .duration(),
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
        resume: raw.resume.value() == Some(true),
        hedge,
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
