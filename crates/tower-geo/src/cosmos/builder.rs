//! Builds the service of an account.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tower_geo_policy::breaker::BreakerSettings;
use tower_geo_policy::config_error::ConfigError;
use tower_geo_policy::cosmos::AccountSettings;
use tower_geo_policy::events::Listener;
use tower_geo_policy::gate::GateMode;
use tower_geo_policy::group::GroupHandle;
use tower_geo_policy::operation::Advice;
use tower_geo_policy::retry_settings::RetrySettings;

use crate::account::Account;
use crate::faults::ClassifyFault;
use crate::service_builder::GeoServiceBuilder;
use crate::service_handle::GeoService;

impl Account {
    /// An account of Azure Cosmos DB, by its own host: `https://contoso.documents.azure.com`.
    /// Feature `cosmos`; see [`cosmos`](crate::cosmos).
    ///
    /// It is one service, so there is no [`Account`] of it: the builder gives the
    /// [`GeoService`].
    pub fn cosmos(endpoint: impl Into<String>) -> CosmosBuilder {
        CosmosBuilder::new(endpoint.into())
    }
}

/// Builds a [`GeoService`] for an account of Cosmos DB.
///
/// | setting | default |
/// |---|---|
/// | `preferred`, `excluded` | no region |
/// | `discovery`, `multi_write` | yes |
/// | `refresh`, `refresh_jitter`, `mark_for` | 5 min, 15 s, 5 min |
/// | `named` | `cosmos` |
/// | `retry` | [`RetrySettings::new`]: time-outs, deadline, budget, replay and hedge; the rest does not count here (C15) |
/// | `breaker` | [`BreakerSettings::new`] |
/// | `gate` | read-only while a circuit of each region that takes writes is open |
#[derive(Clone, Debug)]
#[must_use]
pub struct CosmosBuilder {
    service: GeoServiceBuilder,
    settings: AccountSettings,
}

impl CosmosBuilder {
    fn new(endpoint: String) -> Self {
        Self {
            service: GeoServiceBuilder::cosmos(endpoint),
            settings: AccountSettings::new(),
        }
    }

    /// All that is said of the account at once, instead of what was said before.
    pub fn account(mut self, settings: AccountSettings) -> Self {
        self.settings = settings;
        self
    }

    /// The regions to prefer, best first (C1). Those that the account does not have are ignored
    /// until it has them.
    pub fn preferred<I>(mut self, regions: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        self.settings = self.settings.preferred(regions);
        self
    }

    /// The regions to leave out (C11), by requests that do not say
    /// [otherwise](crate::RequestOptions::excluded).
    pub fn excluded<I>(mut self, regions: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        self.settings = self.settings.excluded(regions);
        self
    }

    /// Whether to ask the account for its regions; otherwise only the given host is used, ever (C4).
    pub fn discovery(mut self, on: bool) -> Self {
        self.settings = self.settings.discovery(on);
        self
    }

    /// Whether to make use of an account that takes writes in several regions (C2).
    pub fn multi_write(mut self, on: bool) -> Self {
        self.settings = self.settings.multi_write(on);
        self
    }

    /// The time between two reads of the account when nothing happens (C3).
    pub fn refresh(mut self, every: Duration) -> Self {
        self.settings = self.settings.refresh(every);
        self
    }

    /// The most that chance adds to [`refresh`](Self::refresh).
    pub fn refresh_jitter(mut self, jitter: Duration) -> Self {
        self.settings = self.settings.refresh_jitter(jitter);
        self
    }

    /// How long a region that refused, or could not be reached, is left for last (C10).
    pub fn mark_for(mut self, time: Duration) -> Self {
        self.settings = self.settings.mark_for(time);
        self
    }

    /// The name in events and errors: letters, digits, `.`, `_` and `-`.
    pub fn named(self, name: impl Into<String>) -> Self {
        self.change(|service| service.named(name))
    }

    /// Time-outs, deadline, budget, replay and hedge. How often and after which waits a send is
    /// repeated follows from the rules of Cosmos DB instead (C15).
    pub fn retry(self, settings: RetrySettings) -> Self {
        self.change(|service| service.retry(settings))
    }

    /// When regions are trusted; `None` for no circuits.
    pub fn breaker(self, settings: impl Into<Option<BreakerSettings>>) -> Self {
        self.change(|service| service.breaker(settings))
    }

    /// What makes the service read-only by itself (G1).
    pub fn gate(self, mode: GateMode) -> Self {
        self.change(|service| service.gate(mode))
    }

    /// Shares the circuits' states with other services (B12), by the number of a region. Numbers
    /// follow from the document of the account and from the preferred regions: give a group only to
    /// services of one account with the same settings.
    pub fn group(self, group: GroupHandle) -> Self {
        self.change(|service| service.group(group))
    }

    /// Tells this listener what happens (B10). May be called several times.
    pub fn listener(self, listener: Arc<dyn Listener>) -> Self {
        self.change(|service| service.listener(listener))
    }

    /// Asks this advice before every further send (T9).
    pub fn advice(self, advice: Arc<dyn Advice>) -> Self {
        self.change(|service| service.advice(advice))
    }

    /// Tells what the errors of your client mean.
    pub fn classify_faults(self, faults: Arc<dyn ClassifyFault>) -> Self {
        self.change(|service| service.classify_faults(faults))
    }

    /// The time on the wall, for headers that carry dates. Default: the system's.
    pub fn wall_clock(self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.change(|service| service.wall_clock(clock))
    }

    /// Numbers from `0.0..1.0` for jitter and ramps. Default: a seeded generator.
    pub fn random(self, random: impl Fn() -> f64 + Send + Sync + 'static) -> Self {
        self.change(|service| service.random(random))
    }

    /// How many threads call the service at once without meeting on one counter: 1 to 64.
    pub fn threads(self, threads: u8) -> Self {
        self.change(|service| service.threads(threads))
    }

    fn change(mut self, change: impl FnOnce(GeoServiceBuilder) -> GeoServiceBuilder) -> Self {
        self.service = change(self.service);
        self
    }

    /// Builds the service.
    ///
    /// # Errors
    ///
    /// Names the setting that is malformed or senseless, and says what to do.
    pub fn build(self) -> Result<GeoService, ConfigError> {
        self.service.account_settings(self.settings).build()
    }
}
