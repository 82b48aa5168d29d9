//! Hosts that were named, since they do not tell by themselves that they are the account's.

use http::uri::Authority;
use http::{HeaderMap, Uri, header::HOST};
use std::sync::Arc;

/// The hosts that were named.
#[derive(Clone, Debug, Default)]
pub(crate) struct GivenHosts(Arc<[Box<str>]>);

impl GivenHosts {
    /// Adds a host; `None` if it is none.
    pub(crate) fn with(&self, host: &str) -> Option<Self> {
        let authority: Authority = host.parse().ok()?;
        if authority.as_str() != authority.host() || authority.host().is_empty() {
            return None;
        }
        let added = without_final_dot(host).into();
        let all = self.0.iter().cloned().chain([added]);
        Some(Self(all.collect()))
    }

    /// Whether `host`, without its final dot, is among them. Ports do not matter.
    pub(crate) fn contain(&self, host: &str) -> bool {
        self.0.iter().any(|given| given.eq_ignore_ascii_case(host))
    }
}

/// Calls `ask` with the host that a request is for, which a client may have moved from the URI into
/// the header already. False where there is none.
pub(crate) fn host_of(uri: &Uri, headers: &HeaderMap, ask: impl Fn(&str) -> bool) -> bool {
    match uri.host() {
        Some(host) => ask(without_final_dot(host)),
        None => headers
            .get(HOST)
            .and_then(|host| Authority::try_from(host.as_bytes()).ok())
            .is_some_and(|host| ask(without_final_dot(host.host()))),
    }
}

fn without_final_dot(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}
