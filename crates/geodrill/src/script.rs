//! Which answer the wire gives to a send: the rules of a drill, and what its hosts do otherwise.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use tower_geo::fault::{Rules, Sent};

use crate::format::{Answer, BodyEnd, Drill, What};
use crate::random::{Purpose, Stream};

/// The rules and hosts of a drill, with what has been used of them.
#[derive(Debug)]
pub(crate) struct Script {
    hosts: HashMap<String, Arc<Answer>>,
    /// A host without an entry: 200, at once.
    otherwise: Arc<Answer>,
    rules: Rules<Arc<Answer>>,
    /// One stream for each rule.
    draws: Vec<Stream>,
}

impl Script {
    pub(crate) fn new(drill: &mut Drill) -> Self {
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
            draws: (0..rules.uses().count())
                .map(|rule| Stream::new(drill.seed, Purpose::Rule(rule)))
                .collect(),
            rules,
        }
    }

    /// The answer to a send that a rule gives: the first that matches and has one left.
    pub(crate) fn answer_of_rule(&mut self, sent: &Sent<'_>) -> Option<Arc<Answer>> {
        let draws = &mut self.draws;
        self.rules
            .answer(sent, |rule| draws[rule].unit())
            .map(Arc::clone)
    }

    /// What a host does when no rule matches.
    pub(crate) fn answer_of_host(&self, host: &str) -> Arc<Answer> {
        Arc::clone(self.hosts.get(host).unwrap_or(&self.otherwise))
    }

    /// The indices of rules that no send ever matched, with the hosts that they asked for.
    pub(crate) fn unmatched(&self) -> impl Iterator<Item = (usize, &str)> {
        self.rules
            .uses()
            .enumerate()
            .filter(|(_, (_, used))| used.matched == 0)
            .map(|(index, (rule, _))| (index, rule.host_pattern()))
    }
}

#[cfg(test)]
mod tests;
