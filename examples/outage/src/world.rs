//! The two regions: the test kit's embedded store, or the storage emulator behind two fronts.

use std::time::Duration;

use tower_geo::BoxError;
use tower_geo::shared_key::{SharedKeyLayer, SharedKeyService};
use tower_geo_testkit::Side;
use tower_geo_testkit::azurite::{ACCOUNT, Azurite, AzuriteOptions, KEY};
use tower_geo_testkit::front::{Front, FrontState, Refuses};
use tower_geo_testkit::store::{RegionState, Replication, TwoRegionStore};

use crate::options::Failure;

/// How long the embedded store takes to copy a write to the secondary.
const LAG: Duration = Duration::from_secs(1);

/// An account with two regions.
pub(crate) enum World {
    Store(TwoRegionStore),
    Azurite {
        primary: Front,
        secondary: Front,
        /// Killed when dropped.
        _emulator: Box<Azurite>,
    },
}

/// What arrived, as the regions counted it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrived {
    pub(crate) at_primary: u64,
    pub(crate) at_secondary: u64,
    pub(crate) writes_at_secondary: u64,
}

impl World {
    /// Starts both regions on free ports of loopback.
    ///
    /// # Errors
    ///
    /// When there is no free port, or the emulator is not installed or does not start.
    pub(crate) async fn start(azurite: bool) -> Result<Self, BoxError> {
        if !azurite {
            let store = TwoRegionStore::builder()
                .path_style(ACCOUNT)
                .start()
                .await?;
            return Ok(Self::Store(store));
        }
        let emulator = Box::new(Azurite::start(AzuriteOptions::new()).await?);
        let front = |refuses| {
            Front::builder(emulator.blob_addr())
                .refuse_writes(refuses)
                .start()
        };
        Ok(Self::Azurite {
            primary: front(Refuses::Nothing)?,
            // The emulator takes writes at its secondary; the real service does not.
            secondary: front(Refuses::Writes)?,
            _emulator: emulator,
        })
    }

    /// What it is called in the report.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Store(_) => "embedded store",
            Self::Azurite { .. } => "azurite",
        }
    }

    fn endpoint(&self, side: Side) -> String {
        let (addr, suffix) = match (self, side) {
            (Self::Store(store), _) => return store.endpoint(side),
            (Self::Azurite { primary, .. }, Side::Primary) => (primary.addr(), ""),
            (Self::Azurite { secondary, .. }, Side::Secondary) => (secondary.addr(), "-secondary"),
        };
        format!("http://{addr}/{ACCOUNT}{suffix}")
    }

    /// What an application would find in its configuration.
    pub(crate) fn connection_string(&self) -> String {
        let [primary, secondary] = [Side::Primary, Side::Secondary].map(|side| self.endpoint(side));
        // Queues and tables are not asked for, but an account has them, and where they are does not
        // follow from a local address.
        format!(
            "AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={primary};\
             BlobSecondaryEndpoint={secondary};QueueEndpoint={primary};TableEndpoint={primary}"
        )
    }

    /// Where requests are addressed to: always the primary.
    pub(crate) fn base_url(&self) -> String {
        self.endpoint(Side::Primary)
    }

    /// Signs with the account's key. The embedded store does not look at signatures.
    ///
    /// # Errors
    ///
    /// Not in practice: the key is a well-known one.
    pub(crate) fn signer() -> Result<SharedKeyLayer, BoxError> {
        Ok(SharedKeyLayer::new(ACCOUNT, KEY, SharedKeyService::Blob)?)
    }

    /// From now on writes reach the secondary late, where that can be had.
    pub(crate) fn lag(&self) {
        if let Self::Store(store) = self {
            store.set_replication(Replication::After(LAG));
        }
    }

    /// Takes the primary away.
    ///
    /// # Errors
    ///
    /// Not in practice.
    pub(crate) async fn take_away(&self, failure: Failure) -> Result<(), BoxError> {
        match self {
            Self::Store(store) => {
                let state = match failure {
                    Failure::Refuse => RegionState::Refuse,
                    Failure::Reset => RegionState::Reset,
                    Failure::Freeze => RegionState::Freeze,
                };
                store.set(Side::Primary, state).await?;
            }
            Self::Azurite { primary, .. } => {
                let state = match failure {
                    Failure::Refuse => FrontState::Refuse,
                    Failure::Reset => FrontState::Reset,
                    Failure::Freeze => FrontState::Freeze,
                };
                primary.set(state).await?;
            }
        }
        Ok(())
    }

    /// Brings the primary back.
    ///
    /// # Errors
    ///
    /// When its port cannot be listened on again.
    pub(crate) async fn bring_back(&self) -> Result<(), BoxError> {
        match self {
            Self::Store(store) => store.bring_back(Side::Primary).await?,
            Self::Azurite { primary, .. } => primary.set(FrontState::Forward).await?,
        }
        Ok(())
    }

    /// What arrived so far.
    pub(crate) fn arrived(&self) -> Arrived {
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        match self {
            Self::Store(store) => Arrived {
                at_primary: count(store.requests(Side::Primary)),
                at_secondary: count(store.requests(Side::Secondary)),
                writes_at_secondary: count(store.writes_at_secondary()),
            },
            Self::Azurite {
                primary, secondary, ..
            } => Arrived {
                at_primary: primary.requests(),
                at_secondary: secondary.requests(),
                writes_at_secondary: secondary.refused(),
            },
        }
    }
}
