//! The handle of one service: what its layers, clients and operators share.

use std::fmt;
use std::sync::Arc;
#[cfg(feature = "metrics")]
use std::sync::Weak;
use std::time::Instant;

use tower_geo_policy::breaker::Circuit;
use tower_geo_policy::config_error::ConfigError;
use tower_geo_policy::operation::RegionRef;
use tower_geo_policy::region::{LocationMode, RegionId, Regions};
use tower_geo_policy::service_state::{CircuitState, ServiceRoot};
use tower_geo_policy::tick::Tick;

use crate::known::Known;
use crate::operator::Operator;
use crate::runtime::{self, Runtime, State};
use crate::service_builder::GeoServiceBuilder;
use crate::stack::GeoLayer;
use crate::watch::{GateView, GateWatch};

/// One service and its copies: the state that all its layers and clients share.
///
/// A clone is the same service. There is no global registry: two services built apart know nothing
/// of each other.
///
/// ```
/// use tower_geo::{GeoService, LocationMode};
///
/// let blob = GeoService::azure_storage("https://contoso.blob.core.windows.net")
///     .location_mode(LocationMode::PrimaryThenSecondary)
///     .build()?;
/// let shop = GeoService::static_copies("shop")
///     .region("eu", "https://eu.example.test")
///     .region("us", "https://us.example.test")
///     .location_mode(LocationMode::PrimaryThenSecondary)
///     .build()?;
/// # Ok::<(), tower_geo::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct GeoService {
    root: Arc<ServiceRoot<Runtime>>,
    state: State,
}

impl GeoService {
    /// A storage service by its endpoint: `https://ACCOUNT.SERVICE.core.windows.net`, a sovereign
    /// cloud, a DNS zone, or `http://127.0.0.1:PORT/ACCOUNT`. The secondary is derived.
    pub fn azure_storage(endpoint: impl Into<String>) -> GeoServiceBuilder {
        GeoServiceBuilder::azure_storage(endpoint)
    }

    /// Any HTTP service with copies. The first region takes the writes.
    pub fn static_copies(name: impl Into<String>) -> GeoServiceBuilder {
        GeoServiceBuilder::static_copies(name)
    }

    pub(crate) fn of_root(root: ServiceRoot<Runtime>) -> Self {
        let state = root.handle();
        Self {
            root: Arc::new(root),
            state,
        }
    }

    /// All four layers in the recommended order.
    #[must_use]
    pub fn layer(&self) -> GeoLayer {
        GeoLayer::new(self.clone())
    }

    /// The name of the service, in events and errors.
    #[must_use]
    pub fn name(&self) -> &str {
        self.state.name()
    }

    /// The regions of the service, in order. Those of an account of Cosmos DB come and go: it is the
    /// given host alone, and `cosmos` (feature `cosmos`) tells the regions of the moment.
    #[must_use]
    pub fn regions(&self) -> &Regions {
        self.state.regions()
    }

    /// Where reads go at this moment: in maintenance to the secondary only, whatever the mode of
    /// the service (G4).
    #[must_use]
    pub fn location_mode(&self) -> LocationMode {
        if self.state.in_maintenance() {
            return LocationMode::SecondaryOnly;
        }
        self.state.mode()
    }

    /// Whether writes are taken at this moment, and if not: since when, why, until when (G6).
    #[must_use]
    pub fn gate(&self) -> GateView {
        GateView::of(&self.state, self.state.tick(runtime::now()))
    }

    /// The instant of a time in an [event](crate::Event) or a [circuit's state](CircuitState) of
    /// this service.
    ///
    /// ```
    /// # fn show(service: &tower_geo::GeoService, event: &tower_geo::Event) {
    /// assert_eq!(service.instant(event.at), event.instant());
    /// # }
    /// ```
    #[must_use]
    pub fn instant(&self, at: Tick) -> Instant {
        self.state.instant(at)
    }

    /// How often a listener of this service has panicked. Such a panic reaches no caller.
    #[must_use]
    pub fn listener_panics(&self) -> u64 {
        self.state.listener_panics()
    }

    /// Follows the gate.
    #[must_use]
    pub fn watch_gate(&self) -> GateWatch {
        GateWatch::new(self.clone())
    }

    /// How a circuit stands at this moment.
    ///
    /// # Errors
    ///
    /// When the service has no such region, or no circuits.
    pub fn circuit(
        &self,
        region: &RegionRef,
        circuit: Circuit,
    ) -> Result<CircuitState, ConfigError> {
        let region = self.region(region)?;
        let now = self.state.tick(runtime::now());
        self.state
            .circuit(region, circuit, now)
            .ok_or_else(|| ConfigError::new("breaker", "this service has no circuits"))
    }

    /// The tokens that are left for further sends to a region, of how many (T4); `None` without a budget.
    #[must_use]
    pub fn budget(&self, region: &RegionRef) -> Option<(u32, u32)> {
        let region = self.region(region).ok()?;
        let bucket = self.state.extra().budgets.get(region.index())?;
        Some((bucket.level(), bucket.capacity()))
    }

    /// The region that is meant, of those that the service has at this moment.
    pub(crate) fn region(&self, named: &RegionRef) -> Result<RegionId, ConfigError> {
        let state = &self.state;
        #[cfg(feature = "cosmos")]
        if let Some(shared) = &state.extra().cosmos {
            let topology = shared.account.topology();
            let now = state.tick(runtime::now());
            return topology
                .region(named, shared.account.marks(), now)
                .ok_or_else(|| no_such_region(state));
        }
        named
            .region(state.regions())
            .ok_or_else(|| no_such_region(state))
    }

    /// The switches for an operator.
    #[must_use]
    pub fn operator(&self) -> Operator {
        Operator::new(self.clone())
    }

    /// The state for a service of ours: a handle that belongs to the calling thread.
    pub(crate) fn state(&self) -> State {
        self.root.handle()
    }

    /// For whoever must not keep the service alive.
    #[cfg(feature = "metrics")]
    pub(crate) fn downgrade(&self) -> Weak<ServiceRoot<Runtime>> {
        Arc::downgrade(&self.root)
    }

    pub(crate) const fn state_ref(&self) -> &State {
        &self.state
    }

    pub(crate) fn set_has_redirect(&self) {
        self.state.extra().set_has_redirect();
    }

    pub(crate) fn set_has_retry(&self) {
        self.state.extra().set_has_retry();
    }

    pub(crate) fn no_copy_error(&self) -> ConfigError {
        match &self.state.extra().no_copy {
            Some(reason) => reason.clone(),
            None => ConfigError::new("location_mode", "this service has no secondary region"),
        }
    }
}

fn no_such_region(state: &State) -> ConfigError {
    let names = Known::now(state).names(state);
    ConfigError::new(
        "region",
        format!("this service has no such region; it has {names}"),
    )
}

impl fmt::Debug for GeoService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GeoService")
            .field("name", &self.name())
            .field("location_mode", &self.location_mode())
            .field("gate", &self.gate().status)
            .finish_non_exhaustive()
    }
}
