//! What the layers need beside the shared state: clocks, chance, and the settings of retrying.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime};

use tower_geo_policy::azure_storage::StorageService;
use tower_geo_policy::budget::Budget;
use tower_geo_policy::config_error::ConfigError;
#[cfg(feature = "cosmos")]
use tower_geo_policy::cosmos::Cause;
use tower_geo_policy::freshness::CopyRules;
use tower_geo_policy::gate::ReadOnlyWhy;
use tower_geo_policy::operation::{Advice, Context};
use tower_geo_policy::repeats::FailedIds;
use tower_geo_policy::retry_settings::RetrySettings;
use tower_geo_policy::service_state::ServiceState;
use tower_geo_policy::tick::Tick;

use crate::faults::ClassifyFault;
use crate::gate_followers::GateFollowers;
use crate::last_sync::{Age, Changes};
use crate::tally::Tally;

/// The shared state of a service as the layers hold it.
pub(crate) type State = ServiceState<Runtime>;

/// The time on the wall, for headers that carry dates.
pub(crate) type WallClock = Arc<dyn Fn() -> SystemTime + Send + Sync>;
/// A number from `0.0..1.0`.
pub(crate) type Random = Arc<dyn Fn() -> f64 + Send + Sync>;

/// Aligned as [`SERVICE_ALIGN`] says.
#[repr(align(128))]
pub(crate) struct Runtime {
    pub(crate) retry: RetrySettings,
    pub(crate) budgets: Box<[Budget]>,
    pub(crate) failed_ids: FailedIds,
    pub(crate) advice: Option<Arc<dyn Advice>>,
    pub(crate) faults: Arc<dyn ClassifyFault>,
    pub(crate) wall_clock: WallClock,
    pub(crate) random: Random,
    /// What answers of copies are held against (F2, F3, F5).
    pub(crate) copies: CopyRules,
    /// Tells whoever watches the age of the copy.
    pub(crate) last_sync_changes: Arc<Changes>,
    /// The account whose regions come and go, if the service is one.
    #[cfg(feature = "cosmos")]
    pub(crate) cosmos: Option<Arc<crate::cosmos::Shared>>,
    /// Which storage service it is, if it is one.
    #[cfg_attr(
        not(feature = "last-sync"),
        expect(dead_code, reason = "only whoever asks for stats has to know")
    )]
    pub(crate) storage: Option<StorageService>,
    /// Why the service has no copy, for the error of a request that needs one.
    pub(crate) no_copy: Option<ConfigError>,
    /// Whether a redirect was built for this service, so that a retry above it may roam.
    has_redirect: AtomicBool,
    /// Whether a retry was built for this service, so that a redirect below it may follow.
    has_retry: AtomicBool,
    /// Shared with the state, which tells it of changes.
    pub(crate) gate_followers: Arc<GateFollowers>,
    pub(crate) tally: Tally,
    warned_of_repeats: AtomicBool,
    warned_of_unknown_age: AtomicBool,
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("retry", &self.retry)
            .field("budgets", &self.budgets)
            .field("advice", &self.advice)
            .field("faults", &self.faults)
            .finish_non_exhaustive()
    }
}

impl Runtime {
    #[expect(
        clippy::too_many_arguments,
        reason = "all of it comes from one builder, and is told apart by type"
    )]
    pub(crate) fn new(
        retry: RetrySettings,
        regions: usize,
        faults: Arc<dyn ClassifyFault>,
        advice: Option<Arc<dyn Advice>>,
        wall_clock: WallClock,
        random: Random,
        no_copy: Option<ConfigError>,
        storage: Option<StorageService>,
        age: Age,
    ) -> Self {
        let budgets = retry.get_budget().map_or_else(Box::default, |capacity| {
            (0..regions).map(|_| Budget::new(capacity)).collect()
        });
        Self {
            retry,
            budgets,
            failed_ids: FailedIds::default(),
            advice,
            faults,
            wall_clock,
            random,
            copies: age.rules,
            last_sync_changes: age.changes,
            #[cfg(feature = "cosmos")]
            cosmos: None,
            storage,
            no_copy,
            has_redirect: AtomicBool::new(false),
            has_retry: AtomicBool::new(false),
            gate_followers: Arc::default(),
            tally: Tally::default(),
            warned_of_repeats: AtomicBool::new(false),
            warned_of_unknown_age: AtomicBool::new(false),
        }
    }

    /// Whether the service is an account whose regions come and go.
    #[cfg_attr(
        not(feature = "cosmos"),
        expect(clippy::unused_self, reason = "there are none")
    )]
    pub(crate) const fn has_account(&self) -> bool {
        #[cfg(feature = "cosmos")]
        return self.cosmos.is_some();
        #[cfg(not(feature = "cosmos"))]
        return false;
    }

    pub(crate) fn set_has_redirect(&self) {
        self.has_redirect.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn has_redirect(&self) -> bool {
        self.has_redirect.load(Ordering::Relaxed)
    }

    pub(crate) fn set_has_retry(&self) {
        self.has_retry.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn has_retry(&self) -> bool {
        self.has_retry.load(Ordering::Relaxed)
    }

    /// A gate refused a write. No write gets through that could find out that the account has
    /// another writer by now, so that is reason enough to read it, every 15 s (C7).
    #[cfg_attr(
        not(feature = "cosmos"),
        expect(
            clippy::missing_const_for_fn,
            clippy::unused_self,
            unused_variables,
            reason = "other writers come with accounts"
        )
    )]
    pub(crate) fn write_was_refused(&self, why: ReadOnlyWhy, now: Tick) {
        #[cfg(feature = "cosmos")]
        if matches!(why, ReadOnlyWhy::Breaker | ReadOnlyWhy::Group) {
            if let Some(shared) = &self.cosmos {
                shared.account.ask(Cause::Circuit, now);
            }
        }
    }

    /// Whether nobody has been warned yet of a client that repeats what we gave up (T8).
    pub(crate) fn first_warning_of_repeats(&self) -> bool {
        !self.warned_of_repeats.swap(true, Ordering::Relaxed)
    }

    /// Whether nobody has been warned yet that the age of the copy is limited and not known (F3).
    pub(crate) fn first_warning_of_unknown_age(&self) -> bool {
        !self.warned_of_unknown_age.swap(true, Ordering::Relaxed)
    }
}

/// What an operation needs to know of its service.
#[inline]
pub(crate) fn context(state: &State) -> Context<'_, Runtime> {
    let runtime = state.extra();
    Context {
        state,
        settings: &runtime.retry,
        budgets: &runtime.budgets,
        advice: runtime.advice.as_deref(),
        copies: Some(&runtime.copies),
    }
}

/// Numbers of services are multiples of this, so that a scope can keep its notes below them.
pub(crate) const SERVICE_ALIGN: usize = align_of::<Runtime>();

/// A number that no other service has while this one lives: a multiple of [`SERVICE_ALIGN`].
#[inline]
pub(crate) fn service_id(state: &State) -> usize {
    std::ptr::from_ref(state.extra()) as usize
}

/// Tokio's clock, which tests can pause.
#[inline]
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// The time on the wall, as long as no other clock is given.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place where the wall clock is read unless another is given"
)]
pub(crate) fn system_time() -> SystemTime {
    SystemTime::now()
}
