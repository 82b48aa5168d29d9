//! What all handles of a service share, without the user's data.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use super::lane::Lane;
use crate::breaker::{
    Auto, Cell, Circuit, Circuits, Compiled, Flags, Manual, Outcome, RegionTally, Sent, cut,
};
use crate::events::{Event, EventKind, Listener};
use crate::gate::{GateMode, GateStatus, ReadOnlyWhy};
use crate::group::{Effect, Group, Settling, effects};
use crate::region::RegionId;
use crate::sync::{Acquire, AtomicU8, AtomicU32, AtomicU64, Relaxed, Release};
use crate::tick::Tick;
use crate::verdict::Evidence;

/// Reasons to look closer. None of them: the healthy path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Calm(u32);

impl Calm {
    pub(crate) const CALM: Self = Self(0);
    /// A circuit of this service or of its group is not plainly closed.
    pub(crate) const CIRCUITS: Self = Self(1);
    /// The gate is not read-write.
    pub(crate) const GATE: Self = Self(2);
    /// In maintenance.
    pub(crate) const MAINTENANCE: Self = Self(4);
    /// A region rests, or is set aside.
    pub(crate) const RESTING: Self = Self(8);

    pub(crate) const fn with(self, reason: Self, holds: bool) -> Self {
        Self(if holds { self.0 | reason.0 } else { self.0 })
    }

    pub(crate) const fn has(self, reason: Self) -> bool {
        self.0 & reason.0 != 0
    }
}

/// Told that a gate changed.
pub(crate) type OnChange = Box<dyn Fn() + Send + Sync>;

/// The shared state of a service.
///
/// Aligned so that nothing in it shares a cache line with a reference count. All of it is read by
/// everybody and written seldom, except what each stripe has for itself.
#[repr(align(128))]
pub(crate) struct Core {
    calm: AtomicU32,
    cells: Box<[Arc<Cell>]>,
    /// What each stripe knows, by region; nothing without a breaker.
    tallies: Box<[Arc<[RegionTally]>]>,
    /// Writes that are under way without a breaker.
    writes: AtomicU64,
    pub(crate) breaker: Option<Compiled>,
    /// Status and reason of the gate; changed under the lock of the group, like all of the gate.
    gate: AtomicU8,
    gate_since: AtomicU64,
    gate_until: AtomicU64,
    pub(crate) mode: AtomicU8,
    pub(crate) gate_mode: GateMode,
    /// The regions that the service has, and those that take writes: a bit each. They change under
    /// the lock of the group.
    listed: AtomicU32,
    writable: AtomicU32,
    /// How many monitors watch the regions that take writes (B11).
    monitors: AtomicU32,
    pub(crate) name: Arc<str>,
    /// By number; only for events.
    region_names: RwLock<Arc<[Box<str>]>>,
    /// When the time of the service began.
    base: Instant,
    listeners: Box<[Arc<dyn Listener>]>,
    /// How often one of them panicked.
    listener_panics: AtomicU64,
    on_change: Option<OnChange>,
}

/// What a [`Core`] is made of.
pub(crate) struct Parts {
    pub(crate) name: Arc<str>,
    /// One for each region.
    pub(crate) region_names: Arc<[Box<str>]>,
    /// For how many numbers of regions there are circuits.
    pub(crate) slots: usize,
    pub(crate) writable: u16,
    pub(crate) stripes: u8,
    pub(crate) breaker: Option<Compiled>,
    pub(crate) mode: u8,
    pub(crate) gate_mode: GateMode,
    pub(crate) monitored: bool,
    pub(crate) base: Instant,
    pub(crate) listeners: Vec<Arc<dyn Listener>>,
    pub(crate) on_change: Option<OnChange>,
}

impl Core {
    pub(crate) fn new(parts: Parts) -> Self {
        let cells: Box<[_]> = (0..parts.slots).map(|_| Arc::new(Cell::new())).collect();
        let listed = (1_u32 << parts.region_names.len().min(16)) - 1;
        let tallies = (0..parts.stripes).map(|_| match parts.breaker {
            Some(_) => cells
                .iter()
                .map(|cell| RegionTally::new(Arc::clone(cell)))
                .collect(),
            None => Arc::default(),
        });
        Self {
            calm: AtomicU32::new(0),
            tallies: tallies.collect(),
            cells,
            writes: AtomicU64::new(0),
            breaker: parts.breaker,
            gate: AtomicU8::new(0),
            gate_since: AtomicU64::new(0),
            gate_until: AtomicU64::new(0),
            mode: AtomicU8::new(parts.mode),
            gate_mode: parts.gate_mode,
            listed: AtomicU32::new(listed),
            writable: AtomicU32::new(u32::from(parts.writable)),
            monitors: AtomicU32::new(u32::from(parts.monitored)),
            name: parts.name,
            region_names: RwLock::new(parts.region_names),
            base: parts.base,
            listeners: parts.listeners.into(),
            listener_panics: AtomicU64::new(0),
            on_change: parts.on_change,
        }
    }

    #[inline]
    pub(crate) fn cell(&self, region: RegionId) -> Option<&Cell> {
        self.cells.get(region.index()).map(|cell| &**cell)
    }

    pub(crate) fn tally(&self, stripe: u8, region: RegionId) -> Option<&RegionTally> {
        self.tallies.get(usize::from(stripe))?.get(region.index())
    }

    /// What every stripe knows of one region.
    pub(crate) fn stripes_of(&self, region: RegionId) -> impl Iterator<Item = &RegionTally> {
        self.tallies
            .iter()
            .filter_map(move |stripe| stripe.get(region.index()))
    }

    /// What a handle of one stripe touches.
    pub(super) fn lane(self: &Arc<Self>, stripe: u8) -> Lane {
        let tallies = self.tallies.get(usize::from(stripe));
        Lane::new(
            Arc::clone(self),
            tallies.map(Arc::clone).unwrap_or_default(),
            stripe,
        )
    }

    pub(crate) fn regions(&self) -> impl Iterator<Item = RegionId> + use<> {
        let count = u8::try_from(self.cells.len()).unwrap_or(u8::MAX);
        (0..count).map(RegionId::new)
    }

    /// Whether open circuits of this region wait for a monitor instead of time (B11).
    pub(crate) fn waits_for_a_monitor(&self, region: RegionId) -> bool {
        self.monitors.load(Acquire) > 0 && self.is_writer(region)
    }

    /// One more monitor, or one less. With the lock of the group held.
    pub(crate) fn count_monitors(&self, one_more: bool) {
        let count = self.monitors.load(Acquire);
        let count = if one_more {
            count.saturating_add(1)
        } else {
            count.saturating_sub(1)
        };
        self.monitors.store(count, Release);
    }

    pub(crate) fn is_writer(&self, region: RegionId) -> bool {
        region.index() < 16 && self.writable.load(Acquire) & (1 << region.index()) != 0
    }

    /// How many regions the service has at this moment.
    pub(crate) fn region_count(&self) -> u32 {
        self.listed.load(Acquire).count_ones()
    }

    /// The service has other regions from now on. With the lock of the group held.
    pub(crate) fn set_regions(&self, names: Arc<[Box<str>]>, listed: u16, writable: u16) {
        self.listed.store(u32::from(listed), Release);
        self.writable.store(u32::from(writable), Release);
        let mut place = self
            .region_names
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *place = names;
    }

    pub(crate) fn writers(&self) -> impl Iterator<Item = RegionId> + use<> {
        let mut left = self.writable.load(Acquire);
        std::iter::from_fn(move || {
            let number = u8::try_from(left.trailing_zeros()).unwrap_or(u8::MAX);
            // The lowest bit.
            left &= left.wrapping_sub(1);
            (number < 16).then(|| RegionId::new(number))
        })
    }

    pub(crate) fn until(&self, region: RegionId, circuit: Circuit) -> Tick {
        self.cell(region).map_or(Tick::ZERO, |cell| {
            Tick::from_nanos(circuit.of(&cell.until).load(Acquire))
        })
    }

    #[inline]
    pub(crate) fn calm(&self) -> Calm {
        Calm(self.calm.load(Acquire))
    }

    /// Whether nothing is unusual. Orders nothing: what it finds is only a hint to look closer.
    #[inline]
    pub(crate) fn is_calm(&self) -> bool {
        Calm(self.calm.load(Relaxed)) == Calm::CALM
    }

    pub(crate) fn set_calm(&self, calm: Calm) {
        self.calm.store(calm.0, Release);
    }

    pub(crate) fn gate_record(&self) -> (GateStatus, ReadOnlyWhy) {
        let bits = self.gate.load(Acquire);
        (
            GateStatus::from_bits(bits & 3),
            ReadOnlyWhy::from_bits(bits >> 2),
        )
    }

    pub(crate) fn gate_since(&self) -> Tick {
        Tick::from_nanos(self.gate_since.load(Acquire))
    }

    /// The time until which writes are refused without looking further.
    #[inline]
    pub(crate) fn gate_until(&self) -> u64 {
        self.gate_until.load(Acquire)
    }

    pub(crate) fn set_gate(
        &self,
        status: GateStatus,
        why: ReadOnlyWhy,
        until: u64,
        since: Option<Tick>,
    ) {
        if let Some(since) = since {
            self.gate_since.store(since.as_nanos(), Release);
        }
        self.gate
            .store(status.to_bits() | why.to_bits() << 2, Release);
        self.gate_until.store(until, Release);
    }

    /// An event of this service.
    pub(crate) fn event(&self, at: Tick, kind: EventKind) -> Event {
        Event {
            service: Arc::clone(&self.name),
            at,
            kind,
            base: self.base,
            region_names: {
                let names = self.region_names.read();
                Arc::clone(&names.unwrap_or_else(PoisonError::into_inner))
            },
        }
    }

    pub(crate) fn has_listeners(&self) -> bool {
        !self.listeners.is_empty()
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.on_change.is_some()
    }

    /// Tells an event to the listeners, and a change of the gate to whoever watches it.
    pub(crate) fn tell(&self, event: Option<&Event>) {
        if let Some(event) = event {
            for listener in &self.listeners {
                self.shield(|| listener.on_event(event));
            }
        }
        let of_gate = event.is_none_or(|e| matches!(e.kind, EventKind::Gate { .. }));
        if of_gate {
            self.tell_watchers();
        }
    }

    fn tell_watchers(&self) {
        if let Some(on_change) = &self.on_change {
            self.shield(on_change);
        }
    }

    /// Calls code of the user, and keeps its panic from whoever is served at this moment. Events
    /// are also told while a service is dropped, perhaps by a thread that panics already: a second
    /// panic would end the program.
    fn shield(&self, call: impl FnOnce()) {
        if catch_unwind(AssertUnwindSafe(call)).is_err() {
            self.listener_panics.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn listener_panics(&self) -> u64 {
        self.listener_panics.load(Relaxed)
    }

    /// Writes that are under way, over all stripes.
    pub(crate) fn writes_in_flight(&self) -> u64 {
        self.tallies
            .iter()
            .flat_map(|stripe| stripe.iter())
            .map(|tally| &tally.writes)
            .chain([&self.writes])
            .map(|writes| writes.load(Acquire))
            // One that left on one stripe was never counted on another, but the sum is not taken
            // at one instant.
            .fold(0, u64::saturating_add)
    }

    /// A send leaves that needs more than [`Lane::start_if_calm`] does.
    pub(super) fn start(
        &self,
        stripe: u8,
        region: RegionId,
        circuit: Circuit,
        flags: Flags,
        now: Tick,
    ) -> Option<Sent> {
        let cell = self.cell(region)?;
        let word = cell.word();
        let flags = if word.is_plain() {
            flags
        } else {
            flags.with(Flags::CLOSER)
        };
        let mut sent = Sent {
            word,
            at: now.as_nanos(),
            slot: 0,
            region,
            stripe,
            circuit,
            flags,
        };
        let (Some(settings), Some(tally)) = (&self.breaker, self.tally(stripe, region)) else {
            if circuit == Circuit::Reads {
                return None;
            }
            self.writes.fetch_add(1, Relaxed);
            return Some(sent);
        };
        if circuit == Circuit::Writes {
            tally.writes.fetch_add(1, Relaxed);
        }
        let slots = settings.suspect;
        sent.slot = cut(slots.at(sent.at));
        if flags.is_tracked() {
            let answered = cut(cell.first_silent_slot(slots));
            tally.of(circuit).flight.enter(sent.slot, answered);
        }
        Some(sent)
    }

    /// A send is over of which [`Lane::settle_if_good`] could not take care: does what needs no
    /// lock, and says what is left to do.
    #[cold]
    #[inline(never)]
    pub(super) fn settle(&self, sent: &Sent, outcome: Outcome, now: Tick) -> Option<Left> {
        let tally = self.tally(sent.stripe, sent.region);
        if sent.circuit == Circuit::Writes {
            tally
                .map_or(&self.writes, |tally| &tally.writes)
                .fetch_sub(1, Release);
            self.tell_if_drained_in_maintenance();
        }
        let settings = self.breaker.as_ref()?;
        let tally = tally?;
        let counted = sent.flags.is_tracked() && tally.of(sent.circuit).flight.leave(sent.slot);
        match outcome {
            Outcome::Judged { evidence, answered } => {
                if answered {
                    tally.cell.note_answer(settings.suspect, now.as_nanos());
                }
                self.judge(sent, evidence, counted, now)
            }
            Outcome::Dropped | Outcome::Outrun => self.give_up(sent, outcome, counted, now),
        }
    }

    /// What is left of an outcome for the lock, if anything.
    fn judge(&self, sent: &Sent, says: Evidence, counted: bool, now: Tick) -> Option<Left> {
        let settings = self.breaker.as_ref()?;
        let slow = now.as_nanos().saturating_sub(sent.at) >= settings.slow_after;
        let left = Left {
            effects: effects(says, sent.circuit),
            counted,
            slow,
            outrun: false,
            silent: false,
        };
        let for_the_lock = match says {
            Evidence::Failure | Evidence::FailureOfBoth => true,
            Evidence::Success => slow || counted || self.matters_to_a_probe(sent),
            // For a circuit that is closed these are nothing at all.
            Evidence::Alive | Evidence::Nothing | Evidence::FailsProbe => {
                self.matters_to_a_probe(sent)
            }
        };
        if for_the_lock {
            return Some(left);
        }
        if says == Evidence::Success {
            // Common also while the other circuit has something to say.
            self.succeed(sent, now);
        }
        None
    }

    /// A good answer of a circuit that is closed, and was when the send left; it was no probe.
    fn succeed(&self, sent: &Sent, now: Tick) -> Option<()> {
        let settings = self.breaker.as_ref()?;
        let tally = self.tally(sent.stripe, sent.region)?;
        let cell = &tally.cell;
        let word = cell.word();
        for circuit in Circuit::BOTH {
            let half = word.half(circuit);
            let proved = circuit == Circuit::Reads || sent.circuit == Circuit::Writes;
            if proved
                && half.same_generation(sent.word.half(circuit))
                && half.auto() == Auto::Closed
            {
                cell.end_streak(circuit, half.generation());
                if circuit == sent.circuit {
                    tally.of(circuit).add_good_call(settings, now);
                }
            }
        }
        tally.relax(sent.circuit, settings, now.as_nanos());
        Some(())
    }

    /// Whether the send is a probe, or is taken for one because its circuit is forced closed.
    fn matters_to_a_probe(&self, sent: &Sent) -> bool {
        let forced = |circuit| {
            let half = sent.word.half(circuit);
            half.manual() == Manual::Closed && half.auto() != Auto::Closed
        };
        sent.flags.is_probe() || Circuit::BOTH.into_iter().any(forced)
    }

    /// B8, H4: the caller, or the operation, did not wait for an answer.
    #[cold]
    fn give_up(&self, sent: &Sent, outcome: Outcome, counted: bool, now: Tick) -> Option<Left> {
        let took = now.as_nanos().saturating_sub(sent.at);
        let settings = self.breaker.as_ref()?;
        let cell = self.cell(sent.region)?;
        let outrun = outcome == Outcome::Outrun;
        let silent = cell.first_silent_slot(settings.suspect) <= settings.suspect.at(sent.at);
        let fails = silent && (outrun || took >= settings.suspect_after);
        if fails {
            return Some(Left {
                effects: effects(Evidence::Failure, sent.circuit),
                counted,
                slow: took >= settings.slow_after,
                outrun,
                silent: true,
            });
        }
        let slow_call = outrun && settings.slow.is_some();
        (slow_call || sent.flags.is_probe()).then(|| Left {
            effects: effects(Evidence::Nothing, sent.circuit),
            counted,
            slow: slow_call,
            outrun,
            silent: false,
        })
    }

    /// G4: maintenance waits for the last write.
    #[cold]
    #[inline(never)]
    pub(super) fn tell_if_drained_in_maintenance(&self) {
        if self.calm().has(Calm::MAINTENANCE) && self.writes_in_flight() == 0 {
            self.tell_watchers();
        }
    }
}

/// What is left to settle under the lock.
#[derive(Debug)]
pub(crate) struct Left {
    effects: [Effect; 2],
    counted: bool,
    slow: bool,
    outrun: bool,
    silent: bool,
}

impl Left {
    /// Settles it.
    #[cold]
    pub(crate) fn settle(
        self,
        core: &Core,
        group: &Group,
        member: usize,
        sent: Sent,
        now: Tick,
        draw: &mut dyn FnMut() -> f64,
    ) -> Circuits {
        let settling = Settling {
            core,
            member,
            sent,
            counted: self.counted,
            slow: self.slow,
            outrun: self.outrun,
            silent: self.silent,
        };
        group.update(now, |change| change.settle(&settling, self.effects, draw))
    }
}
