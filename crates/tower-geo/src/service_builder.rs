//! Builds the state of one service. Bad configuration ends here, with an error that names it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tower_geo_policy::azure_storage::{AccountEndpoint, AzureStorage, StorageService};
use tower_geo_policy::breaker::BreakerSettings;
use tower_geo_policy::budget::{RETURN, RETURN_AFTER_THROTTLING};
use tower_geo_policy::config_error::ConfigError;
#[cfg(feature = "cosmos")]
use tower_geo_policy::cosmos::{AccountSettings, AccountState, Cosmos};
use tower_geo_policy::events::Listener;
use tower_geo_policy::gate::{AccountSwitch, GateMode};
use tower_geo_policy::group::GroupHandle;
use tower_geo_policy::operation::Advice;
use tower_geo_policy::provider::Provider;
use tower_geo_policy::region::{Endpoint, LocationMode, Region, Regions};
use tower_geo_policy::retry_settings::RetrySettings;
use tower_geo_policy::service_state::{ServiceConfig, ServiceRoot};
use tower_geo_policy::static_service::StaticService;

use crate::checks;
use crate::faults::{ClassifyFault, StandardFaults};
use crate::last_sync::{Age, SameData};
use crate::redact::Redacted;
use crate::runtime::{self, Random, Runtime, WallClock};
use crate::service_handle::GeoService;

/// Builds a [`GeoService`].
///
/// | setting | default |
/// |---|---|
/// | `name` | the storage service: `blob`, `queue`, … |
/// | `location_mode` | primary only |
/// | `secondary` | derived from the endpoint (Azure Storage) |
/// | `retry` | [`RetrySettings::new`] |
/// | `breaker` | [`BreakerSettings::new`] |
/// | `gate` | read-only while a circuit of the primary is open |
/// | `max_staleness` | any age |
/// | `read_your_writes` | no |
/// | `threads` | the parallelism of the machine, at most 16 |
#[derive(Clone)]
#[must_use]
pub struct GeoServiceBuilder {
    name: Option<String>,
    /// The first call that makes no sense for this kind of service: what `build` ends with.
    misuse: Option<ConfigError>,
    source: Source,
    location_mode: LocationMode,
    retry: RetrySettings,
    breaker: Option<BreakerSettings>,
    gate: GateMode,
    group: Option<GroupHandle>,
    switch: Option<Arc<AccountSwitch>>,
    listeners: Vec<Arc<dyn Listener>>,
    advice: Option<Arc<dyn Advice>>,
    faults: Arc<dyn ClassifyFault>,
    wall_clock: WallClock,
    random: Random,
    threads: Option<u8>,
    max_staleness: Option<Duration>,
    read_your_writes: bool,
    same_data: Option<Arc<SameData>>,
}

#[derive(Clone, Debug)]
enum Source {
    Unknown,
    Azure {
        service: Option<StorageService>,
        primary: String,
        secondary: Secondary,
    },
    Custom {
        provider: Arc<dyn Provider>,
        regions: Vec<(String, String, Option<bool>)>,
    },
    #[cfg(feature = "cosmos")]
    Cosmos {
        endpoint: String,
        settings: AccountSettings,
    },
}

#[derive(Clone, Debug)]
enum Secondary {
    Derived,
    Given(String),
    None,
}

impl fmt::Debug for GeoServiceBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GeoServiceBuilder")
            .field("name", &self.name)
            // As it was given, so it may still have a query.
            .field("source", &Redacted(&self.source))
            .field("location_mode", &self.location_mode)
            .field("retry", &self.retry)
            .field("breaker", &self.breaker)
            .field("gate", &self.gate)
            .finish_non_exhaustive()
    }
}

impl GeoServiceBuilder {
    pub(crate) fn unnamed() -> Self {
        Self {
            name: None,
            misuse: None,
            source: Source::Unknown,
            location_mode: LocationMode::default(),
            retry: RetrySettings::new(),
            breaker: Some(BreakerSettings::new()),
            gate: GateMode::default(),
            group: None,
            switch: None,
            listeners: Vec::new(),
            advice: None,
            faults: Arc::new(StandardFaults::default()),
            wall_clock: Arc::new(runtime::system_time),
            random: Arc::new(fastrand::f64),
            threads: None,
            max_staleness: None,
            read_your_writes: false,
            same_data: None,
        }
    }

    pub(crate) fn azure_storage(endpoint: impl Into<String>) -> Self {
        Self {
            source: Source::Azure {
                service: None,
                primary: endpoint.into(),
                secondary: Secondary::Derived,
            },
            ..Self::unnamed()
        }
    }

    pub(crate) fn azure_endpoint(mut self, service: StorageService, endpoint: &str) -> Self {
        self.source = Source::Azure {
            service: Some(service),
            primary: endpoint.to_owned(),
            secondary: Secondary::Derived,
        };
        self
    }

    pub(crate) fn static_copies(name: impl Into<String>) -> Self {
        Self::custom(name, Arc::new(StaticService::new()))
    }

    #[cfg(feature = "cosmos")]
    pub(crate) fn cosmos(endpoint: String) -> Self {
        Self {
            source: Source::Cosmos {
                endpoint,
                settings: AccountSettings::new(),
            },
            ..Self::unnamed()
        }
    }

    #[cfg(feature = "cosmos")]
    pub(crate) fn account_settings(mut self, said: AccountSettings) -> Self {
        if let Source::Cosmos { settings, .. } = &mut self.source {
            *settings = said;
        }
        self
    }

    /// A service of a kind of your own: see [`Provider`].
    pub fn custom(name: impl Into<String>, provider: Arc<dyn Provider>) -> Self {
        Self {
            name: Some(name.into()),
            source: Source::Custom {
                provider,
                regions: Vec::new(),
            },
            ..Self::unnamed()
        }
    }

    /// The name in events and errors: letters, digits, `.`, `_` and `-`.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Says which storage service a custom domain or a path-style endpoint is. For Azure Storage
    /// only.
    pub fn storage_service(mut self, kind: StorageService) -> Self {
        if let Source::Azure { service, .. } = &mut self.source {
            *service = Some(kind);
            return self;
        }
        self.misused("storage_service")
    }

    /// The endpoint of the secondary, instead of the derived one. For Azure Storage only; other
    /// services have [regions](Self::region).
    pub fn secondary(self, endpoint: impl Into<String>) -> Self {
        self.set_secondary("secondary", Secondary::Given(endpoint.into()))
    }

    /// Says that there is no secondary. For Azure Storage only.
    pub fn no_secondary(self) -> Self {
        self.set_secondary("no_secondary", Secondary::None)
    }

    fn set_secondary(mut self, setting: &'static str, value: Secondary) -> Self {
        if let Source::Azure { secondary, .. } = &mut self.source {
            *secondary = value;
            return self;
        }
        self.misused(setting)
    }

    /// Keeps the first setting that another kind of service has, for `build` to name it.
    fn misused(mut self, setting: &'static str) -> Self {
        let message = match &self.source {
            Source::Unknown => {
                "is not the same for all services of an account; give the endpoints of each with \
                 `endpoint` or `endpoint_pair`"
            }
            Source::Azure { .. } => {
                "is for services other than Azure Storage, whose second region is its `secondary`"
            }
            Source::Custom { .. } => "is for Azure Storage only; give the copies with `region`",
            #[cfg(feature = "cosmos")]
            Source::Cosmos { .. } => "is not for accounts of Cosmos DB",
        };
        self.misuse
            .get_or_insert_with(|| ConfigError::new(setting, message));
        self
    }

    /// Refuses what an account says of each service by itself, and what cannot be the same for all.
    pub(crate) fn check_for_account(&self) -> Result<(), ConfigError> {
        if let Some(misuse) = &self.misuse {
            return Err(misuse.clone());
        }
        if !matches!(self.source, Source::Unknown) {
            return Err(ConfigError::new(
                "each",
                "must give back the builder that it was given",
            ));
        }
        if self.name.is_some() {
            return Err(ConfigError::new(
                "name",
                "cannot be the same for all services of an account, which are named `blob`, \
                 `queue` and so on",
            ));
        }
        Ok(())
    }

    pub(crate) const fn has_group(&self) -> bool {
        self.group.is_some()
    }

    /// For a service that has no copy whatever the account's mode is: with nothing to read there,
    /// there is nothing to hedge with either.
    pub(crate) fn primary_alone(mut self) -> Self {
        self.location_mode = LocationMode::PrimaryOnly;
        self.retry = self.retry.hedge(None);
        self
    }

    /// Adds a copy to a service that is not Azure Storage. The first takes the writes, unless
    /// others are said to with [`region_that_writes`](Self::region_that_writes).
    pub fn region(self, name: impl Into<String>, endpoint: impl Into<String>) -> Self {
        self.add_region(name.into(), endpoint.into(), None)
    }

    /// Adds a copy and says whether it takes writes.
    pub fn region_that_writes(
        self,
        name: impl Into<String>,
        endpoint: impl Into<String>,
        writes: bool,
    ) -> Self {
        self.add_region(name.into(), endpoint.into(), Some(writes))
    }

    fn add_region(mut self, name: String, endpoint: String, writes: Option<bool>) -> Self {
        if let Source::Custom { regions, .. } = &mut self.source {
            regions.push((name, endpoint, writes));
            return self;
        }
        self.misused("region")
    }

    /// Where reads go (R2).
    pub const fn location_mode(mut self, mode: LocationMode) -> Self {
        self.location_mode = mode;
        self
    }

    /// How sends are repeated.
    pub fn retry(mut self, settings: RetrySettings) -> Self {
        self.retry = settings;
        self
    }

    /// When regions are trusted; `None` for no circuits.
    pub fn breaker(mut self, settings: impl Into<Option<BreakerSettings>>) -> Self {
        self.breaker = settings.into();
        self
    }

    /// What makes the service read-only by itself (G1).
    pub const fn gate(mut self, mode: GateMode) -> Self {
        self.gate = mode;
        self
    }

    /// Shares the circuits' states with the other services of this group (B12).
    pub fn group(mut self, group: GroupHandle) -> Self {
        self.group = Some(group);
        self
    }

    pub(crate) fn account_switch(mut self, switch: Arc<AccountSwitch>) -> Self {
        self.switch = Some(switch);
        self
    }

    /// Tells this listener what happens (B10). May be called several times.
    pub fn listener(mut self, listener: Arc<dyn Listener>) -> Self {
        self.listeners.push(listener);
        self
    }

    /// Asks this advice before every further send (T9).
    pub fn advice(mut self, advice: Arc<dyn Advice>) -> Self {
        self.advice = Some(advice);
        self
    }

    /// Tells what the errors of your client mean. Default: [`StandardFaults`].
    pub fn classify_faults(mut self, faults: Arc<dyn ClassifyFault>) -> Self {
        self.faults = faults;
        self
    }

    /// The time on the wall, for headers that carry dates. Default: the system's.
    pub fn wall_clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.wall_clock = Arc::new(clock);
        self
    }

    /// Numbers from `0.0..1.0` for jitter and ramps; others are taken for the nearest of them, and what
    /// is no number for 0. Default: a seeded generator.
    pub fn random(mut self, random: impl Fn() -> f64 + Send + Sync + 'static) -> Self {
        self.random = Arc::new(move || match random() {
            draw if draw.is_nan() => 0.0,
            draw => draw.clamp(0.0, 1.0 - f64::EPSILON),
        });
        self
    }

    /// How many threads call the service at once without meeting on one counter: 1 to 64.
    pub const fn threads(mut self, threads: u8) -> Self {
        self.threads = Some(threads);
        self
    }

    /// How far a copy may be behind when it answers a read: an answer of a copy whose Last Sync
    /// Time is older, or not known, is not handed over. The primary is asked instead, and if that
    /// gives no answer the error is [`ErrorKind::Stale`](crate::ErrorKind::Stale) (F3). Default:
    /// any age.
    ///
    /// The age is known only while it is asked for: see
    /// [`GeoService::record_last_sync`] and, with the feature `last-sync`,
    /// `GeoService::spawn_last_sync`.
    pub fn max_staleness(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.max_staleness = limit.into();
        self
    }

    /// Whether reads see the writes that were acknowledged through this service: what was written
    /// is not read from a copy until the Last Sync Time says that it has it (F5). Default: no.
    ///
    /// What counts is the path. A listing has another path than the objects in it, so it may lack
    /// them, and `/` of a web site has another than `/index.html`. Takes 64 KiB, however much is
    /// written.
    pub const fn read_your_writes(mut self, on: bool) -> Self {
        self.read_your_writes = on;
        self
    }

    /// Shares what is known of the copy with other services of the account that hold the same
    /// data, or take its age from there (F1).
    pub(crate) fn same_data(mut self, data: Arc<SameData>) -> Self {
        self.same_data = Some(data);
        self
    }

    /// Builds the service.
    ///
    /// # Errors
    ///
    /// Names the setting that is missing, malformed or senseless, and says what to do.
    pub fn build(self) -> Result<GeoService, ConfigError> {
        if let Some(misuse) = &self.misuse {
            return Err(misuse.clone());
        }
        self.retry.validate()?;
        if self.max_staleness.is_some_and(|limit| limit.is_zero()) {
            return Err(ConfigError::new(
                "max_staleness",
                "must be longer than nothing; to read the primary only, say so by the location mode",
            ));
        }
        let kind = self.resolve()?;
        checks::threads(self.threads)?;
        checks::one_writer(&kind.regions)?;
        let age = Age::new(self.max_staleness, self.read_your_writes, self.same_data);
        let has_account = kind.has_account();
        let changing_regions = kind.has_changing_regions();
        let name = self.name.clone().unwrap_or(kind.name);
        check_name(&name)?;
        if self.location_mode.needs_secondary() && kind.regions.len() < 2 {
            return Err(kind.no_copy.unwrap_or_else(|| {
                ConfigError::new(
                    "location_mode",
                    format!(
                        "{} needs a second region; add one, or use primary-only",
                        self.location_mode
                    ),
                )
            }));
        }
        let falls_over = matches!(
            self.location_mode,
            LocationMode::PrimaryThenSecondary | LocationMode::SecondaryThenPrimary
        );
        if falls_over && self.retry.get_max_retries() == 0 {
            tracing::warn!(
                service = name,
                location_mode = %self.location_mode,
                "with `max_retries` 0 a read that fails is not sent to the other region; only an \
                 open circuit moves reads"
            );
        }
        if !has_account {
            check_hedge(&self.retry, self.location_mode)?;
        }
        // An account gives its file service, which has one region at most, the settings of all.
        let is_alone = is_of_one_region(self.location_mode)
            && !has_account
            && kind
                .storage
                .is_none_or(StorageService::has_readable_secondary);
        if !has_account {
            check_budget(&self.retry, is_alone, &name)?;
        }
        let regions = if changing_regions {
            Regions::MAX
        } else {
            kind.regions.len()
        };
        #[cfg_attr(
            not(feature = "cosmos"),
            expect(unused_mut, reason = "no account to add")
        )]
        let mut runtime = Runtime::new(
            self.retry,
            regions,
            self.faults,
            self.advice,
            self.wall_clock,
            self.random,
            kind.no_copy,
            kind.storage,
            age,
        );
        #[cfg(feature = "cosmos")]
        {
            runtime.cosmos.clone_from(&kind.account);
        }
        let followers = Arc::clone(&runtime.gate_followers);
        let threads = self.threads.unwrap_or_else(|| {
            std::thread::available_parallelism().map_or(4, |threads| {
                u8::try_from(threads.get().min(16)).unwrap_or(16)
            })
        });
        let mut config =
            ServiceConfig::new(name, kind.provider, kind.regions, runtime::now(), runtime)
                .mode(self.location_mode)
                .breaker(self.breaker)
                .gate(self.gate)
                .changing_regions(changing_regions)
                .stripes(threads)
                .on_change(move || followers.tell());
        if let Some(group) = self.group {
            config = config.group(group);
        }
        if let Some(switch) = self.switch {
            config = config.account(switch);
        }
        #[cfg(feature = "cosmos")]
        if let Some(account) = kind.account {
            config = config.listener(Arc::new(crate::cosmos::Circuits(account)));
        }
        for listener in self.listeners {
            config = config.listener(listener);
        }
        Ok(GeoService::of_root(ServiceRoot::build(config)?))
    }

    fn resolve(&self) -> Result<Kind, ConfigError> {
        match &self.source {
            Source::Unknown => Err(ConfigError::new("endpoint", "is missing")),
            Source::Azure {
                service,
                primary,
                secondary,
            } => azure_kind(*service, primary, secondary),
            Source::Custom { provider, regions } => {
                let mut all = Vec::new();
                for (index, (name, endpoint, writes)) in regions.iter().enumerate() {
                    let endpoint =
                        Endpoint::parse(endpoint).map_err(|error| error.of_setting("region"))?;
                    // Names of regions stand in events and errors, as those of services do.
                    if !is_plain_name(name) {
                        return Err(ConfigError::new("region", format!("name {PLAIN_NAME}")));
                    }
                    let writes = writes.unwrap_or(index == 0);
                    all.push(Region::new(name.clone(), endpoint).writable(writes));
                }
                Ok(Kind {
                    storage: None,
                    name: String::new(),
                    provider: Arc::clone(provider),
                    regions: Regions::new(all)?,
                    no_copy: None,
                    #[cfg(feature = "cosmos")]
                    account: None,
                })
            }
            #[cfg(feature = "cosmos")]
            Source::Cosmos { endpoint, settings } => cosmos_kind(endpoint, settings),
        }
    }
}

/// What kind of service is built.
struct Kind {
    storage: Option<StorageService>,
    name: String,
    provider: Arc<dyn Provider>,
    regions: Regions,
    no_copy: Option<ConfigError>,
    #[cfg(feature = "cosmos")]
    account: Option<Arc<crate::cosmos::Shared>>,
}

#[cfg_attr(
    not(feature = "cosmos"),
    expect(clippy::unused_self, reason = "there are no accounts")
)]
impl Kind {
    const fn has_account(&self) -> bool {
        #[cfg(feature = "cosmos")]
        return self.account.is_some();
        #[cfg(not(feature = "cosmos"))]
        return false;
    }

    fn has_changing_regions(&self) -> bool {
        #[cfg(feature = "cosmos")]
        return self
            .account
            .as_ref()
            .is_some_and(|shared| shared.account.settings().get_discovery());
        #[cfg(not(feature = "cosmos"))]
        return false;
    }
}

#[cfg(feature = "cosmos")]
fn cosmos_kind(endpoint: &str, settings: &AccountSettings) -> Result<Kind, ConfigError> {
    let given = Endpoint::parse(endpoint).map_err(|error| error.of_setting("endpoint"))?;
    let account = AccountState::new(given, settings.clone())?;
    Ok(Kind {
        storage: None,
        name: "cosmos".to_owned(),
        provider: Arc::new(Cosmos::new()),
        regions: account.topology().regions().clone(),
        no_copy: None,
        account: Some(Arc::new(crate::cosmos::Shared::new(account))),
    })
}

fn azure_kind(
    service: Option<StorageService>,
    primary: &str,
    secondary: &Secondary,
) -> Result<Kind, ConfigError> {
    let account = AccountEndpoint::parse(primary)
        .map_err(|error| ConfigError::new("endpoint", error.to_string()))?;
    if account.is_secondary() {
        return Err(ConfigError::new(
            "endpoint",
            "is a secondary; give the primary, and use the location mode secondary-only to read \
             the secondary",
        ));
    }
    let kind = service.or_else(|| account.service()).ok_or_else(|| {
        ConfigError::new(
            "endpoint",
            "does not say which storage service it is; say so with `storage_service`",
        )
    })?;
    if let Some(named) = account.service().filter(|named| *named != kind) {
        return Err(ConfigError::new(
            "endpoint",
            format!("is of the service {named}, not of {kind}"),
        ));
    }
    if !kind.has_readable_secondary() && matches!(secondary, Secondary::Given(_)) {
        return Err(ConfigError::new(
            "secondary",
            "files have no readable secondary; remove it",
        ));
    }
    let endpoint = account.endpoint().clone();
    let provider = AzureStorage::at(kind, &endpoint);
    let mut regions = vec![Region::new("primary", endpoint).writable(true)];
    let mut no_copy = None;
    let copy = match secondary {
        Secondary::None => None,
        Secondary::Given(url) => Some(given_copy(kind, url)?),
        Secondary::Derived if !kind.has_readable_secondary() => {
            no_copy = Some(ConfigError::new(
                "location_mode",
                "files have no readable secondary; use primary-only",
            ));
            None
        }
        Secondary::Derived => match account.derive_secondary() {
            Ok(derived) => Some(derived),
            Err(error) => {
                no_copy = Some(ConfigError::new("secondary", error.to_string()));
                None
            }
        },
    };
    if let Some(copy) = copy {
        regions.push(Region::new("secondary", copy));
    }
    Ok(Kind {
        storage: Some(kind),
        name: kind.as_str().to_owned(),
        provider: Arc::new(provider),
        regions: Regions::new(regions)?,
        no_copy,
        #[cfg(feature = "cosmos")]
        account: None,
    })
}

/// The endpoint of a secondary that the user gave.
fn given_copy(kind: StorageService, url: &str) -> Result<Endpoint, ConfigError> {
    let endpoint = Endpoint::parse(url).map_err(|error| error.of_setting("secondary"))?;
    // What cannot be taken apart, such as a custom domain, does not tell which service it is.
    let named = AccountEndpoint::parse(url)
        .ok()
        .and_then(|copy| copy.service());
    match named {
        Some(named) if named != kind => Err(ConfigError::new(
            "secondary",
            format!("is of the service {named}, not of {kind}"),
        )),
        _ => Ok(endpoint),
    }
}

const fn is_of_one_region(mode: LocationMode) -> bool {
    matches!(
        mode,
        LocationMode::PrimaryOnly | LocationMode::SecondaryOnly
    )
}

/// T4: a bucket that cannot hold the price of any further send leaves none.
fn check_budget(retry: &RetrySettings, is_alone: bool, service: &str) -> Result<(), ConfigError> {
    let Some(budget) = retry.get_budget() else {
        return Ok(());
    };
    if is_alone && budget < RETURN_AFTER_THROTTLING {
        return Err(ConfigError::new(
            "budget",
            format!(
                "must be at least {RETURN_AFTER_THROTTLING} tokens, better {RETURN} (got \
                 {budget}): with fewer no send is ever repeated in the one region that the location mode has"
            ),
        ));
    }
    // Sensible for falling over alone, but surely not what all take it for.
    if budget < RETURN {
        tracing::warn!(
            service,
            budget,
            price = RETURN,
            "the budget holds less than the price of a return: after a failure no send goes to \
             the same region again"
        );
    }
    Ok(())
}

/// H1: a hedge is a read of a second region, so the mode has to allow one.
fn check_hedge(retry: &RetrySettings, mode: LocationMode) -> Result<(), ConfigError> {
    if retry.get_hedge().is_some() && is_of_one_region(mode) {
        return Err(ConfigError::new(
            "hedge",
            format!(
                "needs a location mode with two regions, such as primary-then-secondary; with \
                 {mode} no second region is ever asked"
            ),
        ));
    }
    Ok(())
}

const PLAIN_NAME: &str = "must be 1 to 64 letters, digits, `.`, `_` or `-`";

/// Names stand in events, errors and problem bodies as they are.
fn check_name(name: &str) -> Result<(), ConfigError> {
    if is_plain_name(name) {
        Ok(())
    } else {
        Err(ConfigError::new("name", PLAIN_NAME))
    }
}

fn is_plain_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    (1..=64).contains(&name.len()) && name.chars().all(plain)
}

#[cfg(test)]
mod tests;
