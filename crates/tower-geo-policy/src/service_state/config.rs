//! What a service is made of, and how it is built.

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use super::core::{Core, OnChange, Parts};
use super::{Inner, ServiceRoot, ServiceState, Stripe};
use crate::breaker::{BreakerSettings, Compiled};
use crate::config_error::ConfigError;
use crate::events::Listener;
use crate::gate::{AccountSwitch, GateMode, OfAccount};
use crate::group::GroupHandle;
use crate::provider::Provider;
use crate::region::{LocationMode, Regions};

/// The most stripes that evidence can be split into.
pub const MAX_STRIPES: u8 = 64;

/// What a service is made of.
///
/// | option | default |
/// |---|---|
/// | `mode` | [`LocationMode::PrimaryOnly`] |
/// | `breaker` | [`BreakerSettings::default`]; `None` turns it off |
/// | `gate` | [`GateMode::WhileOpen`] |
/// | `stripes` | 8, rounded up to a power of two, 1 to 64 |
/// | `changing_regions` | no: the regions stay as they are |
/// | `monitored` | no: open circuits wait by time |
/// | `group` | none: the service is apart |
/// | `account` | none |
/// | `listener`, `on_change` | none |
pub struct ServiceConfig<X = ()> {
    name: Arc<str>,
    provider: Arc<dyn Provider>,
    regions: Regions,
    base: Instant,
    extra: X,
    mode: LocationMode,
    breaker: Option<BreakerSettings>,
    gate: GateMode,
    stripes: u8,
    changing_regions: bool,
    monitored: bool,
    listeners: Vec<Arc<dyn Listener>>,
    on_change: Option<OnChange>,
    group: Option<GroupHandle>,
    account: Option<Arc<AccountSwitch>>,
}

impl<X: Send + Sync + 'static> ServiceConfig<X> {
    /// A service with defaults. `base` is the beginning of its time: no later instant should be
    /// asked about that lies before it. `extra` comes back from
    /// [`ServiceState::extra`].
    #[must_use]
    pub fn new(
        name: impl Into<Arc<str>>,
        provider: Arc<dyn Provider>,
        regions: Regions,
        base: Instant,
        extra: X,
    ) -> Self {
        Self {
            name: name.into(),
            provider,
            regions,
            base,
            extra,
            mode: LocationMode::default(),
            breaker: Some(BreakerSettings::default()),
            gate: GateMode::default(),
            stripes: 8,
            changing_regions: false,
            monitored: false,
            listeners: Vec::new(),
            on_change: None,
            group: None,
            account: None,
        }
    }

    /// Where reads go (R2).
    #[must_use]
    pub fn mode(mut self, mode: LocationMode) -> Self {
        self.mode = mode;
        self
    }

    /// The settings of all circuits; `None` for a service without a breaker.
    #[must_use]
    pub fn breaker(mut self, settings: impl Into<Option<BreakerSettings>>) -> Self {
        self.breaker = settings.into();
        self
    }

    /// What makes the service read-only by itself (G1).
    #[must_use]
    pub fn gate(mut self, mode: GateMode) -> Self {
        self.gate = mode;
        self
    }

    /// Into how many parts the evidence is split, so that threads do not write to the same cache
    /// lines: about as many as there are threads. Each costs 1 KiB per region.
    #[must_use]
    pub fn stripes(mut self, stripes: u8) -> Self {
        self.stripes = stripes;
        self
    }

    /// Whether regions come and go: see [`ServiceState::set_regions`]. There are then circuits for
    /// [`Regions::MAX`] numbers of regions, whatever the service begins with.
    #[must_use]
    pub fn changing_regions(mut self, change: bool) -> Self {
        self.changing_regions = change;
        self
    }

    /// Open circuits of regions that take writes wait for a monitor instead of time (B11), from
    /// the beginning and for good; see [`ServiceState::monitor_succeeded`]. For a monitor that
    /// comes and goes there is [`ServiceState::monitor_started`].
    #[must_use]
    pub fn monitored(mut self, monitored: bool) -> Self {
        self.monitored = monitored;
        self
    }

    /// One more listener; they are called in this order. A panic of one is caught and counted.
    #[must_use]
    pub fn listener(mut self, listener: Arc<dyn Listener>) -> Self {
        self.listeners.push(listener);
        self
    }

    /// Called after every change of the gate, and when the last write has drained in maintenance;
    /// for waking whoever watches. Called without any lock held.
    #[must_use]
    pub fn on_change(mut self, wake: impl Fn() + Send + Sync + 'static) -> Self {
        self.on_change = Some(Box::new(wake));
        self
    }

    /// Behaves as one with the other services of this group (B12). Time then counts from the base
    /// of the group.
    #[must_use]
    pub fn group(mut self, group: GroupHandle) -> Self {
        self.group = Some(group);
        self
    }

    /// Follows a flag over all services of an account (G3).
    #[must_use]
    pub fn account(mut self, switch: Arc<AccountSwitch>) -> Self {
        self.account = Some(switch);
        self
    }

    fn check(&self) -> Result<(), ConfigError> {
        if self.name.is_empty() {
            return Err(ConfigError::new("name", "must not be empty"));
        }
        if self.stripes == 0 || self.stripes > MAX_STRIPES {
            return Err(ConfigError::new(
                "stripes",
                format!("must be 1 to {MAX_STRIPES} (got {})", self.stripes),
            ));
        }
        check_mode(self.mode, &self.regions)
    }
}

pub(super) fn check_mode(mode: LocationMode, regions: &Regions) -> Result<(), ConfigError> {
    if mode.needs_secondary() && regions.len() < 2 {
        return Err(ConfigError::new(
            "location_mode",
            "needs a second region; name the secondary, or read from the primary only",
        ));
    }
    Ok(())
}

impl<X> fmt::Debug for ServiceConfig<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceConfig")
            .field("name", &self.name)
            .field("provider", &self.provider)
            .field("regions", &self.regions)
            .field("mode", &self.mode)
            .field("breaker", &self.breaker)
            .field("gate", &self.gate)
            .field("stripes", &self.stripes)
            .field("changing_regions", &self.changing_regions)
            .field("monitored", &self.monitored)
            .field("listeners", &self.listeners.len())
            .field("group", &self.group)
            .field("account", &self.account)
            .finish_non_exhaustive()
    }
}

impl<X: Send + Sync + 'static> ServiceRoot<X> {
    /// Builds the shared state of a service.
    ///
    /// # Errors
    ///
    /// When a setting cannot work; the error names it.
    pub fn build(config: ServiceConfig<X>) -> Result<Self, ConfigError> {
        config.check()?;
        let breaker = config.breaker.map(Compiled::new).transpose()?;
        let writable = config
            .regions
            .iter()
            .filter(|(_, region)| region.is_writable())
            .fold(0, |bits, (id, _)| bits | 1_u16 << id.index());
        let stripes = config.stripes.next_power_of_two();
        let group = config
            .group
            .unwrap_or_else(|| GroupHandle::new(config.base))
            .0;
        let core = Arc::new(Core::new(Parts {
            name: config.name,
            region_names: config
                .regions
                .iter()
                .map(|(_, region)| region.name().into())
                .collect(),
            slots: if config.changing_regions {
                Regions::MAX
            } else {
                config.regions.len()
            },
            writable,
            stripes,
            breaker,
            mode: config.mode.to_bits(),
            gate_mode: config.gate,
            monitored: config.monitored,
            base: group.base,
            listeners: config.listeners,
            on_change: config.on_change,
        }));
        let member = group.join(Arc::clone(&core));
        let inner = Arc::new(Inner {
            core: Arc::clone(&core),
            group,
            member,
            provider: config.provider,
            regions: config.regions,
            account: config.account.clone(),
            extra: config.extra,
            stripes: OnceLock::new(),
        });
        let all: Box<[_]> = (0..stripes)
            .map(|index| {
                Arc::new(Stripe {
                    lane: core.lane(index),
                    inner: Arc::clone(&inner),
                })
            })
            .collect();
        let weak: Box<[Weak<Stripe<X>>]> = all.iter().map(Arc::downgrade).collect();
        // It was empty: nobody else has seen it yet.
        let _ = inner.stripes.set(weak);
        if let Some(account) = config.account {
            let service: Arc<dyn OfAccount> = inner.clone();
            account.join(Arc::downgrade(&service));
            inner.account_changed(inner.group.base);
        }
        let Some(first) = all.first().cloned() else {
            return Err(ConfigError::new("stripes", "must be 1 to 64 (got 0)"));
        };
        Ok(Self {
            first: ServiceState(first),
            _all: all,
        })
    }
}
