//! What all users of a service share: circuits, gate, rests, and how they are asked.
//!
//! A [`ServiceState`] is a handle that is cheap to clone. Every method takes what time it is; the
//! state itself knows no clock. [`ServiceState::tick`] turns an instant into a [`Tick`], once per
//! time stamp.
//!
//! # The path of a request
//!
//! 1. [`is_calm`](ServiceState::is_calm): one load. If so, send; no need to ask anything else.
//! 2. Otherwise a write asks [`check_gate`](ServiceState::check_gate), and every send asks
//!    [`standing`](ServiceState::standing) to choose a region and
//!    [`admit`](ServiceState::admit) to use it.
//! 3. [`send_started`](ServiceState::send_started), or
//!    [`probe_started`](ServiceState::probe_started) with the slot, when the send leaves.
//! 4. [`note_answer`](ServiceState::note_answer) when the head is there, if the body takes time.
//! 5. [`send_settled`](ServiceState::send_settled), once, whatever becomes of it.
//!
//! # Threads
//!
//! Nothing that two threads write shares a cache line while all is well. Evidence is split into
//! stripes; a clone belongs to the stripe of the thread that made it, and counts references there.
//! A handle may be used on any thread.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::{Duration, Instant};
//! use tower_geo_policy::breaker::{Admission, BreakerSettings, Circuit, Outcome, Standing};
//! use tower_geo_policy::region::{Endpoint, Region, RegionId, Regions};
//! use tower_geo_policy::service_state::{ServiceConfig, ServiceRoot};
//! use tower_geo_policy::verdict::Evidence;
//! # use http::{HeaderMap, Method, StatusCode, Uri};
//! # use tower_geo_policy::{intent::{Intent, Ruling}, provider::Provider, verdict::{FromCopy, Verdict}};
//! # #[derive(Debug)] struct MyProvider;
//! # impl Provider for MyProvider {
//! #     fn intent(&self, _: &Method, _: &Uri, _: &HeaderMap) -> Ruling { Ruling::new(Intent::READ, "a read") }
//! #     fn verdict(&self, _: Intent, _: StatusCode, _: &HeaderMap) -> Verdict { Verdict::Answered }
//! #     fn judge_copy(&self, _: StatusCode, _: &HeaderMap) -> FromCopy { FromCopy::Usual }
//! # }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # #[expect(clippy::disallowed_methods, reason = "an example of a user")]
//! let base = Instant::now();
//! let regions = Regions::new(vec![
//!     Region::new("primary", Endpoint::parse("https://a.example")?).writable(true),
//! ])?;
//! let config = ServiceConfig::new("orders", Arc::new(MyProvider), regions, base, ())
//!     .breaker(BreakerSettings::new().streak(1));
//! let root = ServiceRoot::build(config)?;
//! let state = root.handle();
//!
//! let now = state.tick(base + Duration::from_secs(1));
//! assert!(state.is_calm());
//! let sent = state.send_started(RegionId::FIRST, Circuit::Reads, now).expect("there is a breaker");
//! state.send_settled(sent, Outcome::fault(Evidence::FailureOfBoth), now, || 1.0);
//!
//! assert!(!state.is_calm());
//! let refusal = state.admit(RegionId::FIRST, Circuit::Reads, now).unwrap_err();
//! assert_eq!(refusal.until, Some(now + Duration::from_secs(30)));
//! # Ok(())
//! # }
//! ```

mod config;
mod core;
mod lane;
mod left_out;
mod operator;
mod regions;
#[cfg(all(test, not(loom)))]
mod tests;
mod writing;

use std::fmt;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

pub use config::{MAX_STRIPES, ServiceConfig};
pub(crate) use core::{Calm, Core};
use lane::Lane;
pub use operator::CircuitState;

use crate::breaker::{
    Admission, Circuit, Circuits, Flags, Look, Outcome, ProbeSlot, Refusal, Sent, Standing, Word,
    end,
};
use crate::config_error::ConfigError;
use crate::events::{EventKind, Resend};
use crate::gate::AccountSwitch;
use crate::group::Group;
use crate::provider::Provider;
use crate::region::{LocationMode, RegionId, Regions};
use crate::sync::{AcqRel, Acquire, Relaxed, Release};
use crate::tick::{Tick, nanos};

/// Keeps the shared state of a service alive; the owner of an account holds one per service.
///
/// Handles go on working without it, but may then share a stripe.
pub struct ServiceRoot<X = ()> {
    first: ServiceState<X>,
    /// Strong, so that every stripe can be handed out again at any time.
    _all: Box<[Arc<Stripe<X>>]>,
}

impl<X> ServiceRoot<X> {
    /// A handle for the calling thread.
    #[must_use]
    pub fn handle(&self) -> ServiceState<X> {
        self.first.clone()
    }
}

impl<X> fmt::Debug for ServiceRoot<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ServiceRoot").field(&self.first).finish()
    }
}

/// A handle on the shared state of a service. See the [module](self).
pub struct ServiceState<X = ()>(Arc<Stripe<X>>);

/// What a thread touches. Aligned, so that its reference count has cache lines of its own.
#[repr(align(128))]
struct Stripe<X> {
    lane: Lane,
    inner: Arc<Inner<X>>,
}

struct Inner<X> {
    core: Arc<Core>,
    group: Arc<Group>,
    member: usize,
    provider: Arc<dyn Provider>,
    regions: Regions,
    account: Option<Arc<AccountSwitch>>,
    extra: X,
    /// Set once when the service is built.
    stripes: OnceLock<Box<[Weak<Stripe<X>>]>>,
}

impl<X> Drop for Inner<X> {
    fn drop(&mut self) {
        self.group.leave(self.member);
    }
}

/// A number for each thread, from 0.
fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: usize = NEXT.fetch_add(1, Relaxed);
    }
    // While a thread ends there is no number any more; any stripe will do.
    MINE.try_with(|&mine| mine).unwrap_or(0)
}

impl<X> Clone for ServiceState<X> {
    fn clone(&self) -> Self {
        let stripe = &*self.0;
        if let Some(stripes) = stripe.inner.stripes.get() {
            // The number of stripes is a power of two.
            let wanted = thread_number() & (stripes.len() - 1);
            if wanted != usize::from(stripe.lane.stripe) {
                if let Some(other) = stripes.get(wanted).and_then(Weak::upgrade) {
                    return Self(other);
                }
            }
        }
        Self(Arc::clone(&self.0))
    }
}

impl<X> fmt::Debug for ServiceState<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceState")
            .field("name", &self.name())
            .field("calm", &self.is_calm())
            .field("gate", &self.0.lane.core.gate_record().0)
            .finish_non_exhaustive()
    }
}

/// What it is.
impl<X> ServiceState<X> {
    /// Whether nothing at all is unusual: every circuit of the service and of its group closed, no
    /// ramp, read-write, no region resting or set aside, nothing forced. One load.
    #[inline]
    #[must_use]
    pub fn is_calm(&self) -> bool {
        self.0.lane.is_calm()
    }

    /// Its name, for events, errors and metrics.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.lane.core.name
    }

    /// Its regions.
    #[must_use]
    pub fn regions(&self) -> &Regions {
        &self.0.inner.regions
    }

    /// What kind of service it is.
    #[must_use]
    pub fn provider(&self) -> &Arc<dyn Provider> {
        &self.0.inner.provider
    }

    /// The user's own data.
    #[inline]
    #[must_use]
    pub fn extra(&self) -> &X {
        &self.0.inner.extra
    }

    /// Whether both are handles of one service.
    #[must_use]
    pub fn is_same_service(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0.lane.core, &other.0.lane.core)
    }

    /// The settings of its circuits, if it has any.
    #[must_use]
    pub fn breaker_settings(&self) -> Option<&crate::breaker::BreakerSettings> {
        self.0.lane.core.breaker.as_ref().map(|b| &b.settings)
    }

    /// Where reads go. An operation asks once, when it begins (R2).
    #[inline]
    #[must_use]
    pub fn mode(&self) -> LocationMode {
        LocationMode::from_bits(self.0.lane.core.mode.load(Acquire)).unwrap_or_default()
    }

    /// Changes where reads go, for operations that begin from now on.
    ///
    /// # Errors
    ///
    /// When the mode needs a secondary and there is none.
    pub fn set_mode(&self, mode: LocationMode) -> Result<(), ConfigError> {
        config::check_mode(mode, self.regions())?;
        self.0.lane.core.mode.store(mode.to_bits(), Release);
        Ok(())
    }

    /// An instant in the service's own time; instants before its base are its base.
    #[inline]
    #[must_use]
    pub fn tick(&self, at: Instant) -> Tick {
        let since = at.saturating_duration_since(self.0.inner.group.base);
        Tick::from_nanos(nanos(since))
    }

    /// The instant of a tick; one that is too far away to be an instant is a century away.
    #[must_use]
    pub fn instant(&self, at: Tick) -> Instant {
        at.after(self.0.inner.group.base)
    }
}

/// Sending.
impl<X> ServiceState<X> {
    /// Whether a region may be asked. Changes nothing; an operation looks at all of its regions
    /// before it [admits](Self::admit) itself to one.
    #[must_use]
    pub fn standing(&self, region: RegionId, circuit: Circuit, now: Tick) -> Standing {
        let core = &*self.0.lane.core;
        if !core.calm().has(Calm::CIRCUITS) {
            return Standing::Closed;
        }
        core.cell(region).map_or(Standing::Closed, |cell| {
            cell.standing(circuit, core.breaker.as_ref(), now.as_nanos())
        })
    }

    /// Asks for leave to send. The first to ask after the wait of an open circuit makes it half
    /// open and gets a probe slot (B4). A write that finds the circuit of reads waiting for a
    /// probe gets a slot of that, too, if there is one.
    ///
    /// A slot comes with a duty: see [`ProbeSlot`].
    ///
    /// # Errors
    ///
    /// While the circuit is open, or enough probes are out.
    pub fn admit(
        &self,
        region: RegionId,
        circuit: Circuit,
        now: Tick,
    ) -> Result<Admission, Refusal> {
        let core = &*self.0.lane.core;
        if !core.calm().has(Calm::CIRCUITS) {
            return Ok(Admission::Plain);
        }
        let Some(cell) = core.cell(region) else {
            return Ok(Admission::Plain);
        };
        let shut = cell.shut_until(circuit);
        if now.as_nanos() < shut {
            return Err(Refusal { until: end(shut) });
        }
        self.admit_closely(region, circuit, now)
    }

    #[inline(never)]
    fn admit_closely(
        &self,
        region: RegionId,
        circuit: Circuit,
        now: Tick,
    ) -> Result<Admission, Refusal> {
        let core = &*self.0.lane.core;
        let Some(cell) = core.cell(region) else {
            return Ok(Admission::Plain);
        };
        let probes = core.breaker.as_ref().map_or(1, |s| s.probes);
        let needed = cell.look(circuit, probes, now.as_nanos());
        match needed {
            Look::Shut(until) => return Err(Refusal { until: end(until) }),
            Look::Full => return Err(Refusal { until: None }),
            Look::Due | Look::Clear => {}
        }
        let wishes = circuit == Circuit::Writes
            && cell.look(Circuit::Reads, probes, now.as_nanos()) == Look::Due;
        if needed == Look::Due || wishes {
            let wished = if wishes {
                Circuits::from(Circuit::Reads)
            } else {
                Circuits::NONE
            };
            let (word, slots) = self.update(now, |change| {
                change.acquire(core, self.member(), region, circuit.into(), wished)
            })?;
            if !slots.is_empty() {
                return Ok(Admission::Probe(self.slot(region, word, slots)));
            }
        }
        if cell.half(circuit).ramp() {
            self.end_ramp(region, circuit, now);
        }
        Ok(Admission::Plain)
    }

    fn slot(&self, region: RegionId, word: Word, slots: Circuits) -> ProbeSlot {
        ProbeSlot::new(Arc::clone(&self.0.lane.core), region, word, slots)
    }

    #[cold]
    fn end_ramp(&self, region: RegionId, circuit: Circuit, now: Tick) {
        let core = &*self.0.lane.core;
        let over = match (core.cell(region), &core.breaker) {
            (Some(cell), Some(settings)) => cell.ramp(circuit, settings, now.as_nanos()).is_none(),
            _ => false,
        };
        if over {
            self.update(now, |change| {
                change.end_ramp(core, self.member(), region, circuit)
            });
        }
    }

    /// An operation found this circuit open, and was refused or went elsewhere; so many of them
    /// end the wait ([`open_for_calls`](crate::breaker::BreakerSettings::open_for_calls)). To be
    /// called once per operation and circuit, after the operation has looked at it: the n-th call
    /// ends the wait for the operation after it. Without that setting it is nothing.
    pub fn note_operation(&self, region: RegionId, circuit: Circuit, now: Tick) {
        let core = &*self.0.lane.core;
        let (Some(cell), Some(settings)) = (core.cell(region), core.breaker.as_ref()) else {
            return;
        };
        if settings.open_for_calls == 0
            || cell.half(circuit).effective() != crate::breaker::Auto::Open
        {
            return;
        }
        let before = circuit.of(&cell.calls).fetch_add(1, AcqRel);
        if before.saturating_add(1) == settings.open_for_calls {
            self.update(now, |change| change.count_operation(core, region, circuit));
        }
    }

    /// A send leaves now, if nothing at all is unusual. The shortest way: none means that
    /// something may be, and that it is to be done the long way, by [`admit`](Self::admit) and
    /// [`send_started`](Self::send_started).
    #[must_use = "a send must be settled"]
    #[inline]
    pub fn send_if_calm(&self, region: RegionId, circuit: Circuit, now: Tick) -> Option<Sent> {
        self.0.lane.start_if_calm(region, circuit, now)
    }

    /// A send leaves now. None if there is nothing to settle: no such region, or a read of a
    /// service without a breaker.
    #[must_use = "a send must be settled"]
    #[inline]
    pub fn send_started(&self, region: RegionId, circuit: Circuit, now: Tick) -> Option<Sent> {
        let lane = &self.0.lane;
        match lane.start_if_calm(region, circuit, now) {
            Some(sent) => Some(sent),
            None => lane.start(region, circuit, Flags::NONE, now),
        }
    }

    /// A send of an operation leaves now that has given its one failure to these circuits of this
    /// region already (B2), as earlier [`send_settled`](Self::send_settled) said.
    #[must_use = "a send must be settled"]
    pub fn send_restarted(
        &self,
        region: RegionId,
        circuit: Circuit,
        given: Circuits,
        now: Tick,
    ) -> Option<Sent> {
        let mut flags = Flags::of_given(given);
        if given.contains(circuit) {
            flags = flags.with(Flags::UNTRACKED);
        }
        self.0.lane.start(region, circuit, flags, now)
    }

    /// A probe leaves now. From here on the [`Sent`] answers for the slot. `given` is as for
    /// [`send_restarted`](Self::send_restarted).
    ///
    /// None, and the slot is given back, if the slot belongs to another service.
    #[must_use = "a send must be settled"]
    pub fn probe_started(
        &self,
        slot: ProbeSlot,
        circuit: Circuit,
        given: Circuits,
        now: Tick,
    ) -> Option<Sent> {
        let lane = &self.0.lane;
        if !slot.belongs_to(&lane.core) {
            return None;
        }
        let region = slot.region();
        let mut flags = Flags::of_given(given).with(Flags::of_probes(slot.circuits()));
        if given.contains(circuit) {
            flags = flags.with(Flags::UNTRACKED);
        }
        let sent = lane.start(region, circuit, flags, now)?;
        let (word, _) = slot.take();
        Some(Sent { word, ..sent })
    }

    /// A region said something, be it an error: a response head is there, and its body may take a
    /// while. Calls to that region that were dropped are then no sign of an outage (B8).
    #[inline]
    pub fn note_answer(&self, region: RegionId, now: Tick) {
        let core = &*self.0.lane.core;
        if let (Some(settings), Some(cell)) = (&core.breaker, core.cell(region)) {
            cell.note_answer(settings.suspect, now.as_nanos());
        }
    }

    /// A send is over; to be called exactly once for each.
    ///
    /// `draw` is chance, from 0 to 1; it is asked for only when a circuit opens and its settings
    /// have jitter, and must not call back into the state. Says which circuits took it as a
    /// failure: further sends of the same operation must not give them another.
    #[inline]
    pub fn send_settled(
        &self,
        sent: Sent,
        outcome: Outcome,
        now: Tick,
        draw: impl FnOnce() -> f64,
    ) -> Circuits {
        if self.0.lane.settle_if_good(&sent, outcome, now) {
            return Circuits::NONE;
        }
        self.settle_the_rest(sent, outcome, now, draw)
    }

    #[cold]
    #[inline(never)]
    fn settle_the_rest(
        &self,
        sent: Sent,
        outcome: Outcome,
        now: Tick,
        draw: impl FnOnce() -> f64,
    ) -> Circuits {
        let Some(left) = self.0.lane.settle(&sent, outcome, now) else {
            return Circuits::NONE;
        };
        let mut draw = Some(draw);
        let mut drawn = 1.0;
        // Once, also when one outcome opens two circuits.
        let mut draw = || {
            if let Some(draw) = draw.take() {
                drawn = draw();
            }
            drawn
        };
        let inner = &*self.0.inner;
        left.settle(
            &inner.core,
            &inner.group,
            inner.member,
            sent,
            now,
            &mut draw,
        )
    }

    /// Whether anybody listens; without a listener there is nothing to tell. One load.
    #[inline]
    #[must_use]
    pub fn has_listeners(&self) -> bool {
        self.0.lane.core.has_listeners()
    }

    /// How often a listener, or what was given as
    /// [`on_change`](ServiceConfig::on_change), has panicked. Such a panic reaches no caller; the
    /// panic hook of the program has printed it. Where panics abort, none is survived.
    #[must_use]
    pub fn listener_panics(&self) -> u64 {
        self.0.lane.core.listener_panics()
    }

    /// Tells the listeners that a further send of an operation leaves (T9), on this thread and at
    /// once. Called by whoever carries the operation out.
    pub fn tell_resend(&self, resend: Resend, now: Tick) {
        let core = &*self.0.lane.core;
        if core.has_listeners() {
            core.tell(Some(&core.event(now, EventKind::Resend(resend))));
        }
    }

    /// Writes that are under way, for whoever waits for them to drain (G4).
    #[must_use]
    pub fn writes_in_flight(&self) -> u64 {
        self.0.lane.core.writes_in_flight()
    }

    fn member(&self) -> usize {
        self.0.inner.member
    }

    fn update<R>(&self, now: Tick, make: impl FnOnce(&mut crate::group::Change<'_>) -> R) -> R {
        self.0.inner.group.update(now, make)
    }
}
