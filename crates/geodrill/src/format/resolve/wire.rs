//! Hosts, rules and answers: what the wire is to do.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::uri::Authority;
use tower_geo::fault::Rule;

use super::{Checked, demand, each, header_name, headers, inside, method};
use crate::format::maybe::Maybe;
use crate::format::{Answer, BodyEnd, Fault, What, raw};
use crate::problem::Problem;

/// A host as rules see it: lower case, with the port where it is not the scheme's own.
pub(super) fn authority(text: &str) -> Result<String, String> {
    let refusal = || format!("`{text}` is not a host, or a host and a port");
    if text.contains('@') {
        return Err(refusal());
    }
    text.parse::<Authority>()
        .map(|authority| authority.as_str().to_ascii_lowercase())
        .map_err(|_| refusal())
}

pub(super) fn host(raw: raw::Host, path: &str) -> Checked<Answer> {
    let mut answer = match raw.answer {
        None => Answer {
            latency: Duration::ZERO,
            what: What::Response {
                status: StatusCode::OK,
                headers: Vec::new(),
                body: Bytes::new(),
                end: BodyEnd::Whole,
            },
            applied: false,
        },
        Some(raw) => {
            let path = format!("{path}.answer");
            demand(
                !raw.times.is_on(),
                &path,
                "times",
                "a host answers for ever; use a rule",
            )?;
            demand(!raw.applied.is_on(), &path, "applied", "only in a rule")?;
            answer(raw, &path)?
        }
    };
    if let Some(latency) = raw.latency {
        answer.latency = latency.duration();
    }
    Ok(answer)
}

/// `stores` says whether there are any, so that an answer can be one that was applied.
pub(super) fn rule(raw: raw::Rule, path: &str, stores: bool) -> Checked<Rule<Arc<Answer>>> {
    // With a star it is no authority that could be parsed; an empty one matches nothing.
    let host = if raw.host.contains('*') {
        raw.host.to_ascii_lowercase()
    } else {
        authority(&raw.host).map_err(|message| inside(path, "host", message))?
    };
    let mut rule = Rule::host(host);
    match raw.method.value() {
        Some(text) if text != "*" => rule = rule.method(method(&text, path)?),
        _ => {}
    }
    for (name, pattern) in raw.headers {
        rule = rule.header(header_name(&name, &format!("{path}.headers"))?, pattern);
    }
    let rate = raw.rate.unwrap_or(1.0);
    demand(
        (0.0..=1.0).contains(&rate),
        path,
        "rate",
        "must be between 0 and 1",
    )?;
    let from = raw.from.value().unwrap_or_default();
    rule = rule.rate(rate).from(from.duration());
    if let Some(until) = raw.until.value() {
        demand(until > from, path, "until", "must be later than from")?;
        rule = rule.until(until.duration());
    }
    if let Some(pattern) = raw.path.value() {
        rule = rule.path(pattern);
    }
    demand(!raw.answers.is_empty(), path, "answers", "at least one")?;
    let answers = each(raw.answers, &format!("{path}.answers"), |raw, path| {
        let times = match raw.times {
            Maybe::On(times) => Some(times),
            Maybe::Absent | Maybe::Off => None,
        };
        demand(times != Some(0), path, "times", "must be at least 1")?;
        demand(
            stores || !raw.applied.is_on(),
            path,
            "applied",
            "there are no stores",
        )?;
        Ok((Arc::new(answer(raw, path)?), times))
    })?;
    Ok(answers
        .into_iter()
        .fold(rule, |rule, (answer, times)| match times {
            Some(times) => rule.answer_times(times, answer),
            None => rule.answer(answer),
        }))
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
            let never_arrives = matches!(
                fault,
                raw::Fault::Connect | raw::Fault::Dns | raw::Fault::Tls
            );
            demand(
                !(never_arrives && raw.applied.is_on()),
                path,
                "applied",
                "what never arrives is not applied",
            )?;
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
        applied: raw.applied.is_on(),
    })
}
