//! Which requests are for the account: a signature is given to nobody else.

use crate::signing::{GivenHosts, SigningError, host_of};
use http::{HeaderMap, Uri};
use std::net::Ipv4Addr;
use std::sync::Arc;
use tower_geo_policy::region::Endpoint;

/// The hosts of an account.
#[derive(Clone, Debug)]
pub(super) struct AccountHosts {
    /// The global host.
    global: Arc<str>,
    given: GivenHosts,
}

impl AccountHosts {
    /// The hosts of the account with this endpoint.
    pub(super) fn of(endpoint: &str) -> Result<Self, SigningError> {
        let endpoint = Endpoint::parse(endpoint).map_err(|_| {
            SigningError::account(
                "endpoint to sign for must be a URL with a host, such as \
                 https://ACCOUNT.documents.azure.com",
            )
        })?;
        if endpoint.account_segment().is_some() {
            return Err(SigningError::account(
                "endpoint to sign for must have no path: the account is in the host",
            ));
        }
        Ok(Self {
            global: endpoint.host().trim_end_matches('.').into(),
            given: GivenHosts::default(),
        })
    }

    /// These hosts and `host`, which says nothing of the account.
    pub(super) fn with(&self, host: &str) -> Result<Self, SigningError> {
        let given = self.given.with(host).ok_or_else(SigningError::host)?;
        Ok(Self {
            global: Arc::clone(&self.global),
            given,
        })
    }

    /// Whether a request is for the account.
    pub(super) fn are_asked(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        host_of(uri, headers, |host| {
            self.global.eq_ignore_ascii_case(host)
                || is_region_of(&self.global, host)
                || self.given.contain(host)
        })
    }
}

/// `ACCOUNT-REGION.SUFFIX` for `ACCOUNT.SUFFIX`.
///
/// No name of a region has a hyphen in a host. Another account can still be named like a region of
/// this one (`contoso-test`): nothing tells them apart here.
fn is_region_of(global: &str, host: &str) -> bool {
    let Some((account, suffix)) = global.split_once('.') else {
        return false;
    };
    let Some((label, host_suffix)) = host.split_once('.') else {
        return false;
    };
    // An address has dots too, but no regions.
    if global.starts_with('[') || global.parse::<Ipv4Addr>().is_ok() {
        return false;
    }
    if !suffix.eq_ignore_ascii_case(host_suffix) {
        return false;
    }
    label
        .split_at_checked(account.len())
        .filter(|(name, _)| name.eq_ignore_ascii_case(account))
        .and_then(|(_, rest)| rest.strip_prefix('-'))
        .is_some_and(|region| {
            !region.is_empty() && region.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
}
