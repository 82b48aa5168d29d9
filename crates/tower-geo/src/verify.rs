//! Can the secondary be read? Asked before an outage does (F6).

use std::fmt;
use std::time::Duration;

use http::{Request, Response};
use http_body::Body;
use tower_geo_policy::config_error::ConfigError;
use tower_geo_policy::fault::Fault;
use tower_geo_policy::verdict::FromCopy;
use tower_service::Service;

use crate::background::NoAnswer;
use crate::error::{BoxError, Error};
use crate::last_sync::{LastSyncState, Poll, stats_uri};
use crate::service_handle::GeoService;

const TIMEOUT: Duration = Duration::from_secs(10);

/// What asking the secondary has shown. See [`GeoService::verify`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verified {
    /// It can be read.
    Readable(LastSyncState),
    /// It is there, but the account does not let it be read: turn on read access to the secondary
    /// (RA-GRS or RA-GZRS).
    NotEnabled,
    /// There is no host of this name: the account is not replicated to a second region, or its name
    /// is misspelt.
    NoSuchHost,
    /// Nothing can be said. The text says what happened: the credentials may be wrong, or the
    /// secondary down.
    Other(String),
}

impl Verified {
    /// Whether reads can fall over.
    #[must_use]
    pub const fn is_readable(&self) -> bool {
        matches!(self, Self::Readable(_))
    }
}

impl fmt::Display for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Readable(_) => f.write_str("the secondary can be read"),
            Self::NotEnabled => f.write_str(
                "the secondary cannot be read: turn on read access to it (RA-GRS or RA-GZRS)",
            ),
            Self::NoSuchHost => f.write_str(
                "the secondary's host does not exist: is the account replicated to a second region?",
            ),
            Self::Other(what) => write!(f, "the secondary did not tell: {what}"),
        }
    }
}

impl GeoService {
    /// Asks the secondary once whether it can be read, at start: so that it is not the outage that
    /// tells (F6). Feature `last-sync`.
    ///
    /// Nothing is changed by what comes back, except that a Last Sync Time is recorded. Takes 10 s
    /// at most.
    ///
    /// ```
    /// # async fn run<C>(blob: tower_geo::GeoService, signing_client: C) -> Result<(), tower_geo::ConfigError>
    /// # where
    /// #     C: tower_service::Service<http::Request<String>, Response = http::Response<String>> + Clone,
    /// #     C::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    /// # {
    /// let verified = blob.verify(&signing_client).await?;
    /// if !verified.is_readable() {
    ///     eprintln!("{}: {verified}", blob.name());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// When there is nobody to ask: the service is none of Azure Storage, is `file`, or has no
    /// secondary.
    pub async fn verify<C, B, RB>(&self, client: &C) -> Result<Verified, ConfigError>
    where
        C: Service<Request<B>, Response = Response<RB>> + Clone,
        C::Error: Into<BoxError>,
        B: Default,
        RB: Body,
    {
        let uri = stats_uri(self, None)?;
        let poll = Poll::of(self, "verify", &uri, TIMEOUT, client).await;
        if poll.stats.is_some() {
            return Ok(Verified::Readable(self.last_sync()));
        }
        let state = self.state_ref();
        Ok(match poll.answer {
            Ok(exchange) => {
                let (status, headers) = (exchange.head.status, &exchange.head.headers);
                match state.provider().judge_copy(status, headers) {
                    FromCopy::MayNotBeRead => Verified::NotEnabled,
                    _ if status.is_success() => {
                        Verified::Other("its answer is not what a storage service says".to_owned())
                    }
                    _ => Verified::Other(format!("it answered {}", status.as_u16())),
                }
            }
            Err(NoAnswer::Failed(error)) => {
                let error = Error::of_client(state, error);
                match error.fault(&*state.extra().faults) {
                    Some(Fault::Dns) => Verified::NoSuchHost,
                    Some(fault) => Verified::Other(fault.to_string()),
                    None => Verified::Other(error.to_string()),
                }
            }
            Err(no_answer) => Verified::Other(format!("{no_answer:?}")),
        })
    }
}

#[cfg(test)]
mod tests;
