//! Which answer the wire gives to a send: the rules of a drill, and what its hosts do otherwise.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};

use crate::format::{Answer, BodyEnd, Drill, Rule, What};
use crate::random::{Purpose, Stream};

/// The rules and hosts of a drill, with what has been used of them.
#[derive(Debug)]
pub(crate) struct Script {
    hosts: HashMap<String, Arc<Answer>>,
    /// A host without an entry: 200, at once.
    otherwise: Arc<Answer>,
    rules: Vec<Progress>,
}

/// A rule, and how far its answers have been taken.
#[derive(Debug)]
struct Progress {
    rule: Rule,
    answers: Vec<Arc<Answer>>,
    draws: Stream,
    matched: bool,
    /// The answer that is next, and how often it was given.
    next: usize,
    given: u64,
}

/// A send, as far as rules look at it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent<'a> {
    pub(crate) at_ms: u64,
    /// Lower case, with the port where it is not the scheme's own.
    pub(crate) host: &'a str,
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
    pub(crate) headers: &'a HeaderMap,
}

impl Script {
    pub(crate) fn new(drill: &mut Drill) -> Self {
        let seed = drill.seed;
        let rules = std::mem::take(&mut drill.rules);
        Self {
            hosts: std::mem::take(&mut drill.hosts)
                .into_iter()
                .map(|(host, answer)| (host, Arc::new(answer)))
                .collect(),
            otherwise: Arc::new(Answer {
                latency: Duration::ZERO,
                what: What::Response {
                    status: StatusCode::OK,
                    headers: Vec::new(),
                    body: Bytes::new(),
                    end: BodyEnd::Whole,
                },
                applied: false,
            }),
            rules: rules
                .into_iter()
                .enumerate()
                .map(|(index, rule)| Progress {
                    answers: rule
                        .answers
                        .iter()
                        .map(|(answer, _)| Arc::new(answer.clone()))
                        .collect(),
                    rule,
                    draws: Stream::new(seed, Purpose::Rule(index)),
                    matched: false,
                    next: 0,
                    given: 0,
                })
                .collect(),
        }
    }

    /// The answer to a send that a rule gives: the first that matches and has one left.
    pub(crate) fn answer_of_rule(&mut self, sent: Sent<'_>) -> Option<Arc<Answer>> {
        self.rules.iter_mut().find_map(|rule| rule.answer(sent))
    }

    /// What a host does when no rule matches.
    pub(crate) fn answer_of_host(&self, host: &str) -> Arc<Answer> {
        Arc::clone(self.hosts.get(host).unwrap_or(&self.otherwise))
    }

    /// The indices of rules that no send ever matched, with what they asked for.
    pub(crate) fn unmatched(&self) -> impl Iterator<Item = (usize, &str)> {
        self.rules
            .iter()
            .enumerate()
            .filter(|(_, progress)| !progress.matched)
            .map(|(index, progress)| (index, progress.rule.host.as_str()))
    }
}

impl Progress {
    fn answer(&mut self, sent: Sent<'_>) -> Option<Arc<Answer>> {
        // A rule that is used up has matched before, so nothing is lost by not looking.
        let answer = self.answers.get(self.next)?;
        if !self.rule.matches(sent) {
            return None;
        }
        self.matched = true;
        // No draw for a rule that always applies: nothing random is in it.
        if self.rule.rate < 1.0 && self.draws.unit() >= self.rule.rate {
            return None;
        }
        let answer = Arc::clone(answer);
        self.given += 1;
        let times = self
            .rule
            .answers
            .get(self.next)
            .and_then(|(_, times)| *times);
        let is_last = self.next + 1 == self.answers.len();
        let enough = match times {
            Some(times) => self.given >= times,
            None => !is_last,
        };
        if enough {
            self.next += 1;
            self.given = 0;
        }
        Some(answer)
    }
}

impl Rule {
    fn matches(&self, sent: Sent<'_>) -> bool {
        sent.at_ms >= self.from.0
            && self.until.is_none_or(|until| sent.at_ms < until.0)
            && self.host.matches(sent.host.as_bytes())
            && self
                .method
                .as_ref()
                .is_none_or(|method| method == sent.method)
            && self
                .path
                .as_ref()
                .is_none_or(|path| path.matches(sent.path.as_bytes()))
            && self.headers.iter().all(|(name, pattern)| {
                let mut values = sent.headers.get_all(name).iter();
                values.any(|value| pattern.matches(value.as_bytes()))
            })
    }
}

#[cfg(test)]
mod tests;
