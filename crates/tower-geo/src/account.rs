//! A storage account: its services, built from a name, endpoints or a connection string.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tower_geo_policy::azure_storage::{AccountEndpoint, ConnectionString, StorageService};
use tower_geo_policy::breaker::BreakerSettings;
use tower_geo_policy::config_error::ConfigError;
use tower_geo_policy::gate::{AccountSwitch, GateMode};
use tower_geo_policy::group::GroupHandle;
use tower_geo_policy::region::LocationMode;
use tower_geo_policy::retry_settings::RetrySettings;

use crate::last_sync::SameData;
use crate::runtime;
use crate::service_builder::GeoServiceBuilder;
use crate::service_handle::GeoService;

/// The services of one Azure Storage account, each with its own state.
///
/// ```
/// use tower_geo::{Account, LocationMode};
///
/// let account = Account::azure_storage("contoso")
///     .location_mode(LocationMode::PrimaryThenSecondary)
///     .build()?;
/// assert_eq!(account.blob().name(), "blob");
/// # Ok::<(), tower_geo::ConfigError>(())
/// ```
///
/// Blob and Data Lake (`dfs`) share their circuits, because they are the same data; the others are
/// apart unless [`AccountBuilder::share_state`] says otherwise (B12). Keep the account as long as
/// its clients are used: it owns the per-thread halves of the shared state (without it clients
/// still work, but threads meet on one counter).
#[derive(Clone, Debug)]
pub struct Account {
    blob: GeoService,
    queue: GeoService,
    table: GeoService,
    others: Vec<(StorageService, GeoService)>,
    switch: Arc<AccountSwitch>,
}

impl Account {
    /// An account of the public cloud, by its name: 3 to 24 lower-case letters and digits.
    pub fn azure_storage(name: impl Into<String>) -> AccountBuilder {
        AccountBuilder::new(Source::Name(name.into()))
    }

    /// An account by its connection string: names, endpoints, `…SecondaryEndpoint` keys,
    /// `UseDevelopmentStorage=true`. Keys and signatures in it are ignored here; the feature
    /// `shared-key` has a signer.
    pub fn from_connection_string(text: impl Into<String>) -> AccountBuilder {
        AccountBuilder::new(Source::ConnectionString(text.into()))
    }

    /// An account whose endpoints are given one by one, with [`AccountBuilder::endpoint`].
    ///
    /// One is enough where the others follow from it:
    ///
    /// ```
    /// use tower_geo::{Account, StorageService};
    ///
    /// let account = Account::endpoints()
    ///     .endpoint(StorageService::Blob, "https://contoso.blob.core.windows.net")
    ///     .build()?;
    /// let queue = account.queue();
    /// let queue = queue.regions().iter().next().map(|(_, region)| region.endpoint().to_string());
    /// assert_eq!(queue.as_deref(), Some("https://contoso.queue.core.windows.net"));
    /// # Ok::<(), tower_geo::ConfigError>(())
    /// ```
    pub fn endpoints() -> AccountBuilder {
        AccountBuilder::new(Source::Endpoints)
    }

    /// Blobs.
    #[must_use]
    pub fn blob(&self) -> GeoService {
        self.blob.clone()
    }

    /// Queues.
    #[must_use]
    pub fn queue(&self) -> GeoService {
        self.queue.clone()
    }

    /// Tables.
    #[must_use]
    pub fn table(&self) -> GeoService {
        self.table.clone()
    }

    /// Any service of the account; `None` for one of which no endpoint is known (a static web site
    /// has to be given: its zone does not follow from the name).
    #[must_use]
    pub fn service(&self, service: StorageService) -> Option<GeoService> {
        match service {
            StorageService::Blob => Some(self.blob()),
            StorageService::Queue => Some(self.queue()),
            StorageService::Table => Some(self.table()),
            other => self
                .others
                .iter()
                .find(|(kind, _)| *kind == other)
                .map(|(_, service)| service.clone()),
        }
    }

    /// Refuses the writes of all services of the account, beside what each says itself (G3).
    pub fn set_read_only(&self, read_only: bool) {
        self.switch.set_read_only(read_only, runtime::now());
    }
}

#[derive(Clone)]
enum Source {
    Name(String),
    ConnectionString(String),
    Endpoints,
}

/// Builds an [`Account`]. What is set here holds for each of its services.
#[derive(Clone)]
#[must_use]
pub struct AccountBuilder {
    source: Source,
    suffix: Option<String>,
    given: Vec<(StorageService, String, Option<String>)>,
    shared: bool,
    each: GeoServiceBuilder,
}

impl fmt::Debug for AccountBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A connection string holds a key: it is not shown.
        f.debug_struct("AccountBuilder")
            .field("shared", &self.shared)
            .field("each", &self.each)
            .finish_non_exhaustive()
    }
}

impl AccountBuilder {
    fn new(source: Source) -> Self {
        Self {
            source,
            suffix: None,
            given: Vec::new(),
            shared: false,
            each: GeoServiceBuilder::unnamed(),
        }
    }

    /// The end of the host names: `core.windows.net` unless said otherwise. For accounts by name
    /// only.
    pub fn endpoint_suffix(mut self, suffix: impl Into<String>) -> Self {
        self.suffix = Some(suffix.into());
        self
    }

    /// The endpoint of one service, instead of the one that follows from the name; the secondary
    /// is derived if that is possible.
    pub fn endpoint(mut self, service: StorageService, primary: impl Into<String>) -> Self {
        self.given.push((service, primary.into(), None));
        self
    }

    /// The endpoints of one service.
    pub fn endpoint_pair(
        mut self,
        service: StorageService,
        primary: impl Into<String>,
        secondary: impl Into<String>,
    ) -> Self {
        self.given
            .push((service, primary.into(), Some(secondary.into())));
        self
    }

    /// Where reads go. Default: the primary only. Files have no secondary that can be read: the
    /// account's file service stays with the primary, and does not hedge, whatever is said here.
    pub fn location_mode(mut self, mode: LocationMode) -> Self {
        self.each = self.each.location_mode(mode);
        self
    }

    /// How sends are repeated.
    pub fn retry(mut self, settings: RetrySettings) -> Self {
        self.each = self.each.retry(settings);
        self
    }

    /// When regions are trusted; `None` for no circuits.
    pub fn breaker(mut self, settings: impl Into<Option<BreakerSettings>>) -> Self {
        self.each = self.each.breaker(settings);
        self
    }

    /// What makes the services read-only by themselves.
    pub fn gate(mut self, mode: GateMode) -> Self {
        self.each = self.each.gate(mode);
        self
    }

    /// How far a copy may be behind when it answers a read; see
    /// [`GeoServiceBuilder::max_staleness`]. Default: any age.
    pub fn max_staleness(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.each = self.each.max_staleness(limit);
        self
    }

    /// Whether reads see the writes that were acknowledged before them; see
    /// [`GeoServiceBuilder::read_your_writes`]. Default: no.
    pub fn read_your_writes(mut self, on: bool) -> Self {
        self.each = self.each.read_your_writes(on);
        self
    }

    /// Lets all services behave as one: while a circuit of one is open, all behave as open (B12).
    pub fn share_state(mut self) -> Self {
        self.shared = true;
        self
    }

    /// Changes what the services have in common in any other way. Names, endpoints and secondaries
    /// are each service's own: to set them here is an error of [`build`](Self::build).
    pub fn each(mut self, change: impl FnOnce(GeoServiceBuilder) -> GeoServiceBuilder) -> Self {
        self.each = change(self.each);
        self
    }

    /// Builds the account.
    ///
    /// A service of which no endpoint is known gets the one that follows from another's:
    /// `https://contoso.queue.core.windows.net` from `https://contoso.blob.core.windows.net`. From a
    /// custom domain, an IP address or a host with a port nothing follows, so without the endpoints
    /// of blob, queue and table there is no account: build single services with
    /// [`GeoService::azure_storage`].
    ///
    /// # Errors
    ///
    /// Names what is missing, malformed or senseless, and what to do about it.
    pub fn build(self) -> Result<Account, ConfigError> {
        self.each.check_for_account()?;
        if self.shared && self.each.has_group() {
            return Err(ConfigError::new(
                "share_state",
                "makes a group of its own; use it, or `group`, but not both",
            ));
        }
        let endpoints = self.resolve()?;
        let switch = AccountSwitch::new();
        let base = runtime::now();
        let all = self.shared.then(|| GroupHandle::new(base));
        let same_data = GroupHandle::new(base);
        // F1: `dfs` and `web` take the age of their copies from blob.
        let age_of_blob = Arc::<SameData>::default();
        let build = |service: StorageService| -> Result<Option<GeoService>, ConfigError> {
            let Some((primary, secondary)) = endpoints.get(service) else {
                return Ok(None);
            };
            let group = match (&all, service) {
                (Some(all), _) => Some(all),
                (None, _) if self.each.has_group() => None,
                (None, StorageService::Blob | StorageService::Dfs) => Some(&same_data),
                (None, _) => None,
            };
            let mut builder = self
                .each
                .clone()
                .named(service.as_str())
                .azure_endpoint(service, primary)
                .account_switch(Arc::clone(&switch));
            if !service.has_readable_secondary() {
                builder = builder.primary_alone();
            }
            if matches!(
                service,
                StorageService::Blob | StorageService::Dfs | StorageService::Web
            ) {
                builder = builder.same_data(Arc::clone(&age_of_blob));
            }
            if let Some(secondary) = secondary {
                builder = builder.secondary(secondary);
            }
            if let Some(group) = group {
                builder = builder.group(group.clone());
            }
            builder.build().map(Some)
        };
        let mut others = Vec::new();
        for service in [
            StorageService::Dfs,
            StorageService::Web,
            StorageService::File,
        ] {
            if let Some(built) = build(service)? {
                others.push((service, built));
            }
        }
        let (Some(blob), Some(queue), Some(table)) = (
            build(StorageService::Blob)?,
            build(StorageService::Queue)?,
            build(StorageService::Table)?,
        ) else {
            return Err(endpoints.are_missing());
        };
        Ok(Account {
            blob,
            queue,
            table,
            others,
            switch: Arc::clone(&switch),
        })
    }

    fn resolve(&self) -> Result<Endpoints, ConfigError> {
        if self.suffix.is_some() && !matches!(self.source, Source::Name(_)) {
            return Err(ConfigError::new(
                "endpoint_suffix",
                "is for accounts by name; here the endpoints say it",
            ));
        }
        let mut found = Endpoints::default();
        match &self.source {
            Source::Endpoints => {}
            Source::Name(name) => {
                let suffix = self
                    .suffix
                    .as_deref()
                    .unwrap_or(tower_geo_policy::azure_storage::DEFAULT_SUFFIX);
                for service in StorageService::ALL {
                    // The zone of a static web site does not follow from the account's name.
                    if service != StorageService::Web {
                        let primary = service.endpoint(name, suffix)?.to_string();
                        found.set(service, primary, None);
                    }
                }
            }
            Source::ConnectionString(text) => {
                let parsed = ConnectionString::parse(text)?;
                for service in StorageService::ALL {
                    if let Some(primary) = parsed.primary(service) {
                        let secondary = parsed.secondary(service).map(ToString::to_string);
                        found.set(service, primary.to_string(), secondary);
                    }
                }
            }
        }
        for (service, primary, secondary) in &self.given {
            found.set(*service, primary.clone(), secondary.clone());
        }
        found.complete();
        Ok(found)
    }
}

#[derive(Default)]
struct Endpoints(Vec<(StorageService, String, Option<String>)>);

impl Endpoints {
    fn get(&self, service: StorageService) -> Option<(&str, Option<&str>)> {
        self.0
            .iter()
            .rev()
            .find(|(kind, ..)| *kind == service)
            .map(|(_, primary, secondary)| (primary.as_str(), secondary.as_deref()))
    }

    /// Adds what follows from the endpoints that are there.
    fn complete(&mut self) {
        let given: Vec<AccountEndpoint> = StorageService::ALL
            .into_iter()
            .filter_map(|service| AccountEndpoint::parse(self.get(service)?.0).ok())
            .collect();
        for service in StorageService::ALL {
            if self.get(service).is_some() {
                continue;
            }
            let sibling = given.iter().find_map(|endpoint| endpoint.sibling(service));
            if let Some(sibling) = sibling {
                self.set(service, sibling.to_string(), None);
            }
        }
    }

    /// The error of an account that lacks one of the three that every account has.
    fn are_missing(&self) -> ConfigError {
        let needed = [
            StorageService::Blob,
            StorageService::Queue,
            StorageService::Table,
        ];
        let missing: Vec<&str> = needed
            .into_iter()
            .filter(|service| self.get(*service).is_none())
            .map(StorageService::as_str)
            .collect();
        ConfigError::new(
            "endpoints",
            format!(
                "of {} are not known and do not follow from those that are; give them with \
                 `endpoint`, or build single services with `GeoService::azure_storage`",
                missing.join(" and ")
            ),
        )
    }

    fn set(&mut self, service: StorageService, primary: String, secondary: Option<String>) {
        self.0.push((service, primary, secondary));
    }
}

#[cfg(test)]
mod tests;
