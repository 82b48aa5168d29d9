//! Azure Storage: what its requests do, what its answers mean, and where its secondary is.
//!
//! | question | file | rules |
//! |---|---|---|
//! | is a request a read or a write, and may it be repeated? | `intents.rs` | I1 to I6, V1 |
//! | what does an answer mean? | `verdicts.rs` | verdict table, V3, R4, R6 |
//! | how is the secondary's host derived? | `endpoints.rs` | R11 |
//! | what does a connection string say? | `connection_string.rs` | |
//! | when was an object changed? | `object_time.rs` | F2 |
//! | does a write change more than its path names? | `scope.rs` | F5 |
//! | how far is the secondary? | `stats.rs` (feature `stats`) | F1 |
//!
//! ```
//! use http::{HeaderMap, Method};
//! use tower_geo_policy::azure_storage::{AccountEndpoint, AzureStorage, StorageService};
//! use tower_geo_policy::intent::Intent;
//! use tower_geo_policy::provider::Provider;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let account = AccountEndpoint::parse("https://contoso.queue.core.windows.net")?;
//! assert_eq!(account.service(), Some(StorageService::Queue));
//! assert_eq!(
//!     account.derive_secondary()?.to_string(),
//!     "https://contoso-secondary.queue.core.windows.net"
//! );
//!
//! // A GET that takes messages off the queue is no read.
//! let queue = AzureStorage::new(StorageService::Queue);
//! let uri = "https://contoso.queue.core.windows.net/orders/messages".parse()?;
//! let ruling = queue.intent(&Method::GET, &uri, &HeaderMap::new());
//! assert_eq!(ruling.intent, Intent::WRITE_ONCE);
//! # Ok(())
//! # }
//! ```

mod connection_string;
mod endpoints;
mod intents;
mod object_time;
mod scope;
#[cfg(feature = "stats")]
mod stats;
mod verdicts;

use std::time::SystemTime;

use http::{HeaderMap, Method, StatusCode, Uri};

use crate::intent::{Intent, Ruling};
use crate::provider::Provider;
use crate::region::Endpoint;
use crate::verdict::{FromCopy, Verdict};

pub use self::connection_string::{ConnectionString, DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY, Secret};
pub use self::endpoints::{
    AccountEndpoint, DEFAULT_SUFFIX, DeriveError, DeriveErrorKind, StorageService,
};
pub use self::object_time::parse_timestamp;
#[cfg(feature = "stats")]
pub use self::stats::{STATS_LIMIT, STATS_QUERY, StatsError, parse_stats};

/// The [`Provider`] of one service of a storage account.
///
/// | option | default | meaning |
/// |---|---|---|
/// | [`path_style`](Self::path_style) | no | the first segment of a path is the account |
///
/// The module has an [example](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AzureStorage {
    service: StorageService,
    path_style: bool,
}

impl AzureStorage {
    /// The provider of a service whose account is in the host name.
    #[must_use]
    pub const fn new(service: StorageService) -> Self {
        Self {
            service,
            path_style: false,
        }
    }

    /// The provider of a service at `endpoint`, path style if the endpoint is.
    #[must_use]
    pub fn at(service: StorageService, endpoint: &Endpoint) -> Self {
        Self::new(service).path_style(endpoint.account_segment().is_some())
    }

    /// Says whether the first segment of every path is the account, as with the emulator.
    ///
    /// Without it such requests are understood as well, but some writes are not known to be
    /// harmless, and a queue called `messages` cannot be read.
    #[must_use]
    pub const fn path_style(mut self, path_style: bool) -> Self {
        self.path_style = path_style;
        self
    }

    /// Which service of the account this is.
    #[must_use]
    pub const fn service(&self) -> StorageService {
        self.service
    }
}

impl Provider for AzureStorage {
    fn intent(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Ruling {
        intents::intent(self.service, self.path_style, method, uri, headers)
    }

    fn verdict(&self, intent: Intent, status: StatusCode, headers: &HeaderMap) -> Verdict {
        verdicts::verdict(intent, status, headers)
    }

    fn judge_copy(&self, status: StatusCode, headers: &HeaderMap) -> FromCopy {
        verdicts::from_copy(status, headers)
    }

    fn object_time(&self, headers: &HeaderMap) -> Option<SystemTime> {
        object_time::object_time(headers)
    }

    fn writes_many(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> bool {
        scope::writes_many(self.service, self.path_style, method, uri, headers)
    }

    fn object_path<'u>(&self, path: &'u str) -> &'u str {
        scope::object_path(self.service, path)
    }
}
