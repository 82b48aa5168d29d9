//! Tower middleware that keeps an application working through the loss of a cloud region.
//!
//! An application talks to a geo-redundant storage account: a primary region that takes reads and
//! writes, a secondary that has a copy, a little behind, for reading. When the primary fails, reads
//! move to the secondary at once, writes are refused at once instead of timing out, the application
//! is told what it got, and when the primary is back all returns by itself, without a stampede.
//!
//! ```text
//!  your code ──► ReadOnlyGate ──► Retry ──► GeoRedirect ──► CircuitBreaker ──► client
//!                may it write?    again?    where?           is it trusted?
//!                     └──────────────┴────┬─────┴─────────────────┘
//!                                         ▼
//!                          GeoService: shared by all clients of one storage service
//! ```
//!
//! ```
//! use http::Request;
//! use tower::{Service, ServiceBuilder, ServiceExt};
//! use tower_geo::{Account, LocationMode};
//!
//! # async fn run<C>(http_client: C) -> Result<(), Box<dyn std::error::Error + Send + Sync>>
//! # where
//! #     C: Service<Request<String>, Response = http::Response<String>> + Clone,
//! #     C::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
//! # {
//! let account = Account::azure_storage("contoso")
//!     .location_mode(LocationMode::PrimaryThenSecondary)
//!     .build()?;
//! let blob = ServiceBuilder::new()
//!     .layer(account.blob().layer().clone_bodies())
//!     .service(http_client);
//! let get = Request::get("https://contoso.blob.core.windows.net/photos/1").body(String::new())?;
//! let photo = blob.oneshot(get).await?; // from the secondary while the primary is down
//! # Ok(())
//! # }
//! ```
//!
//! # The four layers
//!
//! | layer | question | module |
//! |---|---|---|
//! | [`ReadOnlyGateLayer`] | are writes allowed? | [`read_only_gate`] |
//! | [`RetryLayer`] | when is a send repeated? | [`retry`] |
//! | [`GeoRedirectLayer`] | where does it go? | [`geo_redirect`] |
//! | [`CircuitBreakerLayer`] | is the region trusted? | [`circuit_breaker`] |
//!
//! [`GeoLayer`] is all four in order. Each also works alone and among foreign layers. A
//! [`ResumeLayer`] above them fetches the rest of a download that breaks off. A
//! [`FreshConnectionsLayer`] below them keeps pooled connections from outliving a failover.
//!
//! # What it does not do
//!
//! It does not replicate, does not fail an account over, and never sends a write to a region that
//! takes none. It signs nothing unless asked to (features `shared-key` and `cosmos-key`).
//!
//! # Features
//!
//! | feature | what |
//! |---|---|
//! | `cosmos` | accounts of Azure Cosmos DB: see `cosmos` |
//! | `cosmos-key` | a signer for the key of an Azure Cosmos DB account, as a layer |
//! | `fault` | faults by rules, between the stack and the client, to see what an application does |
//! | `hyper-util` | tells the connect, DNS and TLS errors of hyper-util's client from others, so that writes which surely did not leave are sent again; [`HyperClients`](fresh_connections) makes clients |
//! | `last-sync` | asks the secondary of a storage account how old it is, in the background |
//! | `metrics` | metrics through the API of OpenTelemetry: see [`telemetry`] |
//! | `shared-key` | a signer for Azure Storage's Shared Key, as a layer |

pub mod body;
pub mod circuit_breaker;
#[cfg(feature = "cosmos")]
pub mod cosmos;
#[cfg(feature = "cosmos-key")]
pub mod cosmos_key;
#[cfg(feature = "fault")]
pub mod fault;
pub mod fresh_connections;
pub mod geo_redirect;
pub mod read_only_gate;
pub mod resume;
pub mod retry;
#[cfg(feature = "shared-key")]
pub mod shared_key;
#[cfg(any(feature = "cosmos-key", feature = "shared-key"))]
pub mod signing;
pub mod telemetry;

mod account;
mod background;
mod checks;
mod driver;
mod error;
mod faults;
mod gate_followers;
mod handoff;
mod known;
mod last_sync;
mod monitor;
mod not_sent;
mod operator;
mod redact;
mod redirect;
mod runtime;
mod scope;
mod served;
mod service_builder;
mod service_handle;
mod stack;
mod tally;
#[cfg(test)]
mod test_wire;
#[cfg(feature = "last-sync")]
mod verify;
mod wakers;
mod watch;

pub use account::{Account, AccountBuilder};
pub use background::{BackgroundSend, BackgroundTask};
pub use circuit_breaker::CircuitBreakerLayer;
pub use error::{BoxError, Error, ErrorKind};
pub use faults::{ClassifyFault, StandardFaults};
#[cfg(feature = "hyper-util")]
pub use fresh_connections::HyperClients;
pub use fresh_connections::{FreshConnectionsLayer, MakeClient, Probe};
pub use geo_redirect::GeoRedirectLayer;
#[cfg(feature = "last-sync")]
pub use last_sync::LastSyncSettings;
pub use last_sync::{LastSyncState, LastSyncWatch};
pub use monitor::MonitorSettings;
pub use not_sent::NotSent;
pub use operator::Operator;
pub use read_only_gate::ReadOnlyGateLayer;
pub use resume::ResumeLayer;
pub use retry::RetryLayer;
pub use served::Served;
pub use service_builder::GeoServiceBuilder;
pub use service_handle::GeoService;
pub use stack::{GeoLayer, GeoStack};
pub use telemetry::LogEvents;
#[cfg(feature = "last-sync")]
pub use verify::Verified;
pub use watch::{GateView, GateWatch};

pub use tower_geo_policy as policy;
pub use tower_geo_policy::azure_storage::StorageService;
pub use tower_geo_policy::backoff::{BackoffMode, Jitter};
pub use tower_geo_policy::breaker::{
    BreakerSettings, Circuit, CircuitPhase, OpenJitter, RateRule, SlowRule,
};
pub use tower_geo_policy::config_error::ConfigError;
pub use tower_geo_policy::events::{Event, EventKind, Listener, Resend};
pub use tower_geo_policy::fault::Fault;
pub use tower_geo_policy::freshness::{Freshness, ReplicationStats, ReplicationStatus};
pub use tower_geo_policy::gate::{GateMode, GateStatus, ReadOnlyWhy};
pub use tower_geo_policy::group::GroupHandle;
pub use tower_geo_policy::operation::{Advice, Advised, Planned, RegionRef, RequestOptions};
pub use tower_geo_policy::provider::Provider;
pub use tower_geo_policy::region::{LocationMode, Region, RegionId, Regions};
pub use tower_geo_policy::retry_settings::{Replay, RetrySettings};
pub use tower_geo_policy::service_state::CircuitState;
pub use tower_geo_policy::trail::{Ending, SendKind, Trail};
