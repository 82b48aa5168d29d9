//! Which versions were measured: those of the lock file, so that nobody has to type them.

use std::collections::BTreeMap;

const LOCK: &str = include_str!("../../Cargo.lock");

/// What is measured beside our own.
const PEERS: [&str; 6] = [
    "failsafe",
    "hyper",
    "recloser",
    "tower",
    "tower-resilience-circuitbreaker",
    "tower-resilience-retry",
];

/// Names and versions.
pub(crate) fn versions() -> BTreeMap<&'static str, &'static str> {
    let mut versions = BTreeMap::new();
    let mut name = "";
    for line in LOCK.lines() {
        if let Some(value) = value(line, "name = ") {
            name = value;
        } else if let Some(version) = value(line, "version = ")
            && PEERS.contains(&name)
        {
            versions.insert(name, version);
        }
    }
    versions
}

fn value<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.strip_prefix(key)?.strip_prefix('"')?.strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_has_a_version() {
        let versions = versions();
        assert_eq!(versions.len(), PEERS.len(), "{versions:?}");
    }
}
