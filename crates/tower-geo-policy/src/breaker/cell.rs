//! What is shared about one region: its word, its times and its evidence.
//!
//! The word, the ends of waits and the streaks are read by every thread and written seldom, so
//! they share cache lines of their own. Evidence that every call writes is kept per stripe.

use super::compiled::{Compiled, Epochs};
use super::flight::Flight;
use super::probe::{Standing, end};
use super::window::Window;
use super::word::{Auto, Half, Manual, Word};
use super::{Circuit, Circuits};
use std::sync::Arc;

use crate::sync::{AcqRel, Acquire, AtomicU32, AtomicU64, Relaxed, Release};
use crate::tick::Tick;

/// The state of one region.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Cell {
    word: AtomicU64,
    /// Failures in a row, with the generation that they belong to in the upper half.
    streaks: [AtomicU64; 2],
    /// The end of the slot of time in which the region answered last, whatever it was (B8); 0: it
    /// never did.
    pub(crate) answered: AtomicU64,
    /// Until when sends are refused without a further look: the longest wait of the group, this
    /// service's own included, if no operator says otherwise. Worked out after every change.
    pub(crate) shut: [AtomicU64; 2],
    /// When the wait of an open circuit is over; meaningless while it is closed.
    pub(crate) until: [AtomicU64; 2],
    /// When the state changed last.
    pub(crate) since: [AtomicU64; 2],
    /// Operations that found the circuit open.
    pub(crate) calls: [AtomicU32; 2],
    /// Until when the service asked not to be asked (T1); 0: it did not.
    pub(crate) rest: AtomicU64,
    /// Until when the region is set aside (R6); 0: it is not.
    pub(crate) aside: AtomicU64,
}

/// What a send through a circuit finds, leaving out the group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Look {
    /// Go.
    Clear,
    /// Go as a probe.
    Due,
    /// Stop until then; `u64::MAX` until further notice.
    Shut(u64),
    /// Stop: enough probes are out.
    Full,
}

impl Cell {
    pub(crate) fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            word: zero(),
            streaks: [zero(), zero()],
            answered: zero(),
            shut: [zero(), zero()],
            until: [zero(), zero()],
            since: [zero(), zero()],
            calls: [AtomicU32::new(0), AtomicU32::new(0)],
            rest: zero(),
            aside: zero(),
        }
    }

    #[inline]
    pub(crate) fn word(&self) -> Word {
        Word(self.word.load(Acquire))
    }

    /// The word, for comparing it with what it was. Orders nothing.
    #[inline]
    pub(crate) fn word_now(&self) -> Word {
        Word(self.word.load(Relaxed))
    }

    pub(crate) fn half(&self, circuit: Circuit) -> Half {
        self.word().half(circuit)
    }

    /// Changes one half, and returns what it was before. Only with the lock of the group held;
    /// slots are given back without it, hence the loop.
    pub(crate) fn change(&self, circuit: Circuit, with: impl Fn(Half) -> Half) -> Half {
        let mut seen = self.word.load(Acquire);
        loop {
            let half = Word(seen).half(circuit);
            let next = Word(seen).with_half(circuit, with(half));
            match self.word.compare_exchange(seen, next.0, AcqRel, Acquire) {
                Ok(_) => return half,
                Err(now) => seen = now,
            }
        }
    }

    /// Gives probe slots back undecided, unless the circuit has moved on (B6, B7). Takes no lock
    /// and knows no time, so that it can be done wherever a guard is dropped.
    pub(crate) fn release(&self, taken: Word, slots: Circuits) {
        let mut seen = self.word.load(Acquire);
        loop {
            let mut next = Word(seen);
            for circuit in Circuit::BOTH {
                let half = next.half(circuit);
                if slots.contains(circuit) && half.same_generation(taken.half(circuit)) {
                    let probes = half.probes().saturating_sub(1);
                    next = next.with_half(circuit, half.with_probes(probes));
                }
            }
            match self.word.compare_exchange(seen, next.0, AcqRel, Acquire) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// Until when sends through this circuit are refused; `u64::MAX`: until further notice.
    #[inline]
    pub(crate) fn shut_until(&self, circuit: Circuit) -> u64 {
        self.shut[circuit as usize & 1].load(Acquire)
    }

    /// What a send through this circuit finds.
    pub(crate) fn look(&self, circuit: Circuit, probes: u32, now: u64) -> Look {
        let shut = self.shut_until(circuit);
        if now < shut {
            return Look::Shut(shut);
        }
        let half = self.half(circuit);
        match (half.manual(), half.auto()) {
            (Manual::Open, _) => Look::Shut(u64::MAX),
            (Manual::Closed, _) | (Manual::None, Auto::Closed) => Look::Clear,
            (Manual::None, Auto::Open) => {
                // The circuit may have opened since the last line but two.
                let until = circuit.of(&self.until).load(Acquire);
                if now < until {
                    Look::Shut(until)
                } else {
                    Look::Due
                }
            }
            (Manual::None, Auto::HalfOpen) if half.probes() < probes => Look::Due,
            (Manual::None, Auto::HalfOpen) => Look::Full,
        }
    }

    /// The share of reads that a closing region gets, while its ramp is not over.
    pub(crate) fn ramp(&self, circuit: Circuit, settings: &Compiled, now: u64) -> Option<f32> {
        let half = self.half(circuit);
        if !half.ramp() || half.effective() != Auto::Closed {
            return None;
        }
        let passed = now.saturating_sub(circuit.of(&self.since).load(Acquire));
        let step = usize::try_from(passed / settings.ramp_step.max(1)).unwrap_or(usize::MAX);
        settings.ramp.get(step).copied()
    }

    /// What [`look`](Self::look) and [`ramp`](Self::ramp) find, for callers.
    pub(crate) fn standing(
        &self,
        circuit: Circuit,
        settings: Option<&Compiled>,
        now: u64,
    ) -> Standing {
        let probes = settings.map_or(1, |s| s.probes);
        match self.look(circuit, probes, now) {
            Look::Clear => settings
                .and_then(|s| self.ramp(circuit, s, now))
                .map_or(Standing::Closed, Standing::Ramp),
            Look::Due => Standing::Probe,
            Look::Shut(until) => Standing::Open { until: end(until) },
            Look::Full => Standing::Open { until: None },
        }
    }

    /// The region answered, whatever it said. Stored only when the slot of time has changed.
    #[inline]
    pub(crate) fn note_answer(&self, slots: Epochs, now: u64) {
        if now >= self.answered.load(Relaxed) {
            self.note_first_answer(slots, now);
        }
    }

    #[cold]
    #[inline(never)]
    fn note_first_answer(&self, slots: Epochs, now: u64) {
        self.answered.fetch_max(slots.end(slots.at(now)), Relaxed);
    }

    /// The first slot after the one of the last answer: sends of slots before it are not suspect.
    pub(crate) fn first_silent_slot(&self, slots: Epochs) -> u64 {
        slots.at(self.answered.load(Relaxed))
    }

    /// Whether both circuits are plainly closed, and a success through `circuit` has no streak to
    /// end (B1).
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the lower half is the count"
    )]
    fn is_good(&self, circuit: Circuit) -> bool {
        let none = |streak: &AtomicU64| streak.load(Relaxed) as u32 == 0;
        let [reads, writes] = &self.streaks;
        self.word().is_plain() && none(reads) && (circuit == Circuit::Reads || none(writes))
    }

    /// Ends a streak. One load as long as there is none.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the lower half is the count"
    )]
    pub(crate) fn end_streak(&self, circuit: Circuit, generation: u32) {
        let streak = circuit.of(&self.streaks);
        let seen = streak.load(Relaxed);
        if seen as u32 != 0 {
            Self::end_streak_slowly(streak, seen, generation);
        }
    }

    #[cold]
    fn end_streak_slowly(streak: &AtomicU64, mut seen: u64, generation: u32) {
        // A success of an older generation must not end the streak of a newer one (B6).
        while seen >> 32 == u64::from(generation) {
            match streak.compare_exchange(seen, u64::from(generation) << 32, Relaxed, Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// Adds to a streak, or starts one, and returns its length. With the lock of the group held.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the lower half is the count"
    )]
    pub(crate) fn add_to_streak(
        &self,
        circuit: Circuit,
        generation: u32,
        failures: u32,
        goes_on: bool,
    ) -> u32 {
        let streak = circuit.of(&self.streaks);
        let mut seen = streak.load(Relaxed);
        loop {
            let before = if goes_on && seen >> 32 == u64::from(generation) {
                seen as u32
            } else {
                0
            };
            let length = before.saturating_add(failures);
            let next = u64::from(generation) << 32 | u64::from(length);
            match streak.compare_exchange(seen, next, Relaxed, Relaxed) {
                Ok(_) => return length,
                Err(now) => seen = now,
            }
        }
    }

    /// The length of the streak of this generation.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the lower half is the count"
    )]
    pub(crate) fn streak(&self, circuit: Circuit) -> u32 {
        let seen = circuit.of(&self.streaks).load(Relaxed);
        if seen >> 32 == u64::from(self.half(circuit).generation()) {
            seen as u32
        } else {
            0
        }
    }

    pub(crate) fn is_resting_or_aside(&self) -> bool {
        self.rest.load(Acquire) != 0 || self.aside.load(Acquire) != 0
    }

    /// `held` is the longest wait in the group. An operator's say wins (B9).
    pub(crate) fn set_shut(&self, circuit: Circuit, held: u64) {
        let shut = match self.half(circuit).manual() {
            Manual::None => held,
            Manual::Open => u64::MAX,
            Manual::Closed => 0,
        };
        circuit.of(&self.shut).store(shut, Release);
    }

    pub(crate) fn set_until(&self, circuit: Circuit, until: u64) {
        circuit.of(&self.until).store(until, Release);
    }

    pub(crate) fn set_since(&self, circuit: Circuit, since: u64) {
        circuit.of(&self.since).store(since, Release);
    }
}

/// What one stripe knows of one region: 1 KiB.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct RegionTally {
    /// First, because it is looked up by an index.
    tallies: [Tally; 2],
    /// What is shared about the region, so that one look-up finds both.
    pub(crate) cell: Arc<Cell>,
    /// Writes that are under way, for maintenance (G4).
    pub(crate) writes: AtomicU64,
}

/// What one stripe knows of one circuit of a region.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) flight: Flight,
    /// Until when a good call has nothing to do but to be counted: the region has answered in this
    /// slot of time, the tenth of the window is not over, there is no streak to end and the
    /// circuits are plainly closed. 0 when one of that is not so.
    good_until: AtomicU64,
    /// Failures among calls.
    pub(crate) rate: Window,
    /// Slow calls among calls.
    pub(crate) slow: Window,
}

impl RegionTally {
    /// A failure or a change of a circuit: good calls have more to do than to be counted. With the
    /// lock of the group held, after the failure or the change.
    pub(crate) fn look_closer(&self) {
        for tally in &self.tallies {
            tally.good_until.swap(0, AcqRel);
        }
    }

    /// After a good call at `now` that ended what there was to end: says until when the next ones
    /// have nothing to do but to be counted.
    pub(crate) fn relax(&self, circuit: Circuit, settings: &Compiled, now: u64) {
        let slots = settings.suspect;
        let mut until = slots.end(slots.at(now));
        if let Some(rate) = settings.rate {
            until = until.min(rate.epochs.end(rate.epochs.at(now)));
        }
        let good_until = &self.of(circuit).good_until;
        if !self.cell.is_good(circuit) {
            return;
        }
        // Whoever looks closer changes the cell first and this word afterwards; here it is the
        // other way round. So one of the two sees the other, and the last word is 0.
        good_until.swap(until, AcqRel);
        if !self.cell.is_good(circuit) {
            good_until.swap(0, AcqRel);
        }
    }

    pub(crate) fn new(cell: Arc<Cell>) -> Self {
        let new = || Tally {
            flight: Flight::new(),
            good_until: AtomicU64::new(0),
            rate: Window::new(),
            slow: Window::new(),
        };
        Self {
            cell,
            writes: AtomicU64::new(0),
            tallies: [new(), new()],
        }
    }

    #[inline]
    pub(crate) const fn of(&self, circuit: Circuit) -> &Tally {
        // One multiplication instead of a choice.
        &self.tallies[circuit as usize & 1]
    }
}

impl Tally {
    /// Whether a good call at `now` has nothing to do but to be counted.
    #[inline]
    pub(crate) fn is_relaxed(&self, now: u64) -> bool {
        now < self.good_until.load(Relaxed)
    }

    /// Counts a call that was neither a failure nor slow.
    pub(crate) fn add_good_call(&self, settings: &Compiled, now: Tick) {
        if let Some(rate) = settings.rate {
            self.rate.add_calls(rate.epochs, now.as_nanos(), 1);
        }
        if let Some(slow) = settings.slow {
            self.slow.add_calls(slow.epochs, now.as_nanos(), 1);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// DESIGN: at most 1 KiB per region and stripe.
    #[test]
    fn evidence_fits_a_kibibyte() {
        assert!(size_of::<RegionTally>() <= 1024);
        assert!(size_of::<Cell>() <= 256);
    }

    /// B6: a late success does not end the streak of a newer generation.
    #[test]
    fn streaks_belong_to_a_generation() {
        let cell = Cell::new();
        assert_eq!(cell.add_to_streak(Circuit::Reads, 0, 2, true), 2);
        cell.end_streak(Circuit::Reads, 1);
        assert_eq!(cell.streak(Circuit::Reads), 2);
        cell.end_streak(Circuit::Reads, 0);
        assert_eq!(cell.streak(Circuit::Reads), 0);
        assert_eq!(cell.add_to_streak(Circuit::Reads, 0, 4, true), 4);
        assert_eq!(cell.add_to_streak(Circuit::Reads, 1, 1, true), 1);
    }
}
