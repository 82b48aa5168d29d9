//! Which requests are for the account: a signature is given to nobody else.

use std::net::Ipv4Addr;

use http::{HeaderMap, Uri};
use tower_geo_policy::azure_storage::StorageService;

use crate::signing::{GivenHosts, host_of};

const SECONDARY: &str = "-secondary";

/// Whether a request is for the account, or for one of the hosts that were named.
pub(super) fn are_asked(given: &GivenHosts, account: &str, uri: &Uri, headers: &HeaderMap) -> bool {
    host_of(uri, headers, |host| {
        is_in_host(account, host) || is_in_path(account, host, uri.path()) || given.contain(host)
    })
}

/// `ACCOUNT.SERVICE.SUFFIX`, with or without a zone, and with what may stand behind the account.
fn is_in_host(account: &str, host: &str) -> bool {
    let mut labels = host.split('.');
    let Some(suffix) = labels
        .next()
        .and_then(|first| first.split_at_checked(account.len()))
        .and_then(|(name, suffix)| name.eq_ignore_ascii_case(account).then_some(suffix))
    else {
        return false;
    };
    let is_zone = |label: &str| {
        matches!(label.as_bytes(), [b'z' | b'Z', one, two]
            if one.is_ascii_digit() && two.is_ascii_digit())
    };
    let mut label = labels.next();
    if label.is_some_and(is_zone) {
        label = labels.next();
    }
    let is_service = label.is_some_and(|label| {
        StorageService::ALL
            .iter()
            .any(|service| service.as_str().eq_ignore_ascii_case(label))
    });
    let feature = match suffix.split_at_checked(SECONDARY.len()) {
        Some((secondary, feature)) if secondary.eq_ignore_ascii_case(SECONDARY) => feature,
        _ => suffix,
    };
    is_service
        && ["", "-ipv6", "-dualstack"]
            .iter()
            .any(|known| known.eq_ignore_ascii_case(feature))
}

/// `/ACCOUNT/…` on an IP address or a name without dots, as of the emulator.
fn is_in_path(account: &str, host: &str, path: &str) -> bool {
    let is_local = !host.contains('.') || host.starts_with('[') || host.parse::<Ipv4Addr>().is_ok();
    let segment = path.strip_prefix('/').unwrap_or(path);
    let segment = segment.split('/').next().unwrap_or_default();
    is_local
        && segment
            .strip_prefix(account)
            .is_some_and(|rest| rest.is_empty() || rest == SECONDARY)
}
