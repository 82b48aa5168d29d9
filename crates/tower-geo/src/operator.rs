//! What an operator does by hand (B9, G1, G4, R2).

use std::time::Duration;

use tower_geo_policy::config_error::ConfigError;
use tower_geo_policy::operation::RegionRef;
use tower_geo_policy::region::LocationMode;

use crate::runtime;
use crate::service_handle::GeoService;

/// The switches of one service. Manual states win over all else.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), tower_geo::ConfigError> {
/// use tower_geo::{Account, LocationMode};
///
/// let account = Account::azure_storage("contoso")
///     .location_mode(LocationMode::PrimaryThenSecondary)
///     .build()?;
/// let operator = account.blob().operator();
/// operator.begin_maintenance()?; // writes are refused, reads go to the secondary
/// operator.writes_drained().await;
/// // … work on the primary …
/// operator.end_maintenance();
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Operator {
    service: GeoService,
}

impl Operator {
    pub(crate) const fn new(service: GeoService) -> Self {
        Self { service }
    }

    /// Refuses the writes of this service until [`read_write`](Self::read_write) (G1).
    pub fn read_only(&self) {
        self.set_read_only(true);
    }

    /// Withdraws [`read_only`](Self::read_only), and nothing else: a service whose circuit is open
    /// stays read-only (G1).
    pub fn read_write(&self) {
        self.set_read_only(false);
    }

    fn set_read_only(&self, read_only: bool) {
        let state = self.service.state_ref();
        state.set_read_only(read_only, state.tick(runtime::now()));
    }

    /// Refuses the writes, reads the secondary only, and keeps everything of ours from asking the
    /// primary (G4).
    ///
    /// # Errors
    ///
    /// When the service has no secondary.
    pub fn begin_maintenance(&self) -> Result<(), ConfigError> {
        let state = self.service.state_ref();
        state.begin_maintenance(state.tick(runtime::now()))
    }

    /// Restores what would hold by now, not what held before (G4).
    pub fn end_maintenance(&self) {
        let state = self.service.state_ref();
        state.end_maintenance(state.tick(runtime::now()));
    }

    /// Waits until no write is under way any more (G4). Looked at every 10 ms; writes are counted
    /// by the [`CircuitBreakerLayer`](crate::CircuitBreakerLayer).
    pub async fn writes_drained(&self) {
        while self.service.state_ref().writes_in_flight() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Holds both circuits of a region open (B9).
    ///
    /// # Errors
    ///
    /// When the service has no such region.
    pub fn force_open(&self, region: &RegionRef) -> Result<(), ConfigError> {
        let (state, region) = (self.service.state_ref(), self.service.region(region)?);
        state.force_open(region, state.tick(runtime::now()));
        Ok(())
    }

    /// Holds both circuits of a region closed, whatever it answers (B9).
    ///
    /// # Errors
    ///
    /// When the service has no such region.
    pub fn force_closed(&self, region: &RegionRef) -> Result<(), ConfigError> {
        let (state, region) = (self.service.state_ref(), self.service.region(region)?);
        state.force_closed(region, state.tick(runtime::now()));
        Ok(())
    }

    /// Hands the circuits of a region back: they are in the state that they would have had (B9).
    ///
    /// # Errors
    ///
    /// When the service has no such region.
    pub fn automatic(&self, region: &RegionRef) -> Result<(), ConfigError> {
        let (state, region) = (self.service.state_ref(), self.service.region(region)?);
        state.automatic(region, state.tick(runtime::now()));
        Ok(())
    }

    /// Closes the circuits of a region and forgets their evidence, but no manual state (B9).
    ///
    /// # Errors
    ///
    /// When the service has no such region.
    pub fn reset(&self, region: &RegionRef) -> Result<(), ConfigError> {
        let (state, region) = (self.service.state_ref(), self.service.region(region)?);
        state.reset(region, state.tick(runtime::now()));
        Ok(())
    }

    /// Where reads go from now on. Operations under way keep the mode that they began with (R2).
    ///
    /// # Errors
    ///
    /// When the mode needs a secondary and the service has none, or the service is an account of
    /// Cosmos DB, whose preferred regions say where reads go.
    pub fn set_location_mode(&self, mode: LocationMode) -> Result<(), ConfigError> {
        let state = self.service.state_ref();
        if state.extra().has_account() {
            return Err(ConfigError::new(
                "location_mode",
                "means nothing to an account of Cosmos DB: its preferred regions say where reads go",
            ));
        }
        match state.set_mode(mode) {
            Err(_) if state.extra().no_copy.is_some() => Err(self.service.no_copy_error()),
            result => result,
        }
    }
}
