//! What is shared about one region: its word, its times and its evidence.
//!
//! The word, the ends of waits and the streaks are read by every thread and written seldom, so
//! they share a cache line of their own. Evidence that every call writes is kept per stripe.

use super::flight::Flight;
use super::probe::{Standing, end};
use super::settings::Compiled;
use super::window::Window;
use super::word::{Auto, Half, Manual, Word};
use super::{Circuit, Circuits};
use crate::sync::{AcqRel, Acquire, AtomicU32, AtomicU64, Relaxed, Release};
use crate::tick::Tick;

/// The state of one region.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Cell {
    word: AtomicU64,
    /// Failures in a row, with the generation that they belong to in the upper half.
    streaks: [AtomicU64; 2],
    /// The slot after the one of the last answer, whatever it was (B8).
    pub(crate) answered: AtomicU64,
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

    /// What a send through this circuit finds. `held` is the end of the longest wait of the
    /// group, this service's own included.
    pub(crate) fn look(&self, circuit: Circuit, probes: u32, held: u64, now: u64) -> Look {
        let half = self.half(circuit);
        match half.manual() {
            Manual::Closed => return Look::Clear,
            Manual::Open => return Look::Shut(u64::MAX),
            Manual::None if now < held => return Look::Shut(held),
            Manual::None => {}
        }
        match half.auto() {
            Auto::Closed => Look::Clear,
            Auto::Open => {
                let until = circuit.of(&self.until).load(Acquire);
                if now < until {
                    Look::Shut(until)
                } else {
                    Look::Due
                }
            }
            Auto::HalfOpen if half.probes() < probes => Look::Due,
            Auto::HalfOpen => Look::Full,
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
        held: u64,
        now: u64,
    ) -> Standing {
        let probes = settings.map_or(1, |s| s.probes);
        match self.look(circuit, probes, held, now) {
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
    pub(crate) fn note_answer(&self, slot: u64) {
        if self.answered.load(Relaxed) <= slot {
            self.answered.fetch_max(slot + 1, Relaxed);
        }
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

    pub(crate) fn set_until(&self, circuit: Circuit, until: u64) {
        circuit.of(&self.until).store(until, Release);
    }

    pub(crate) fn set_since(&self, circuit: Circuit, since: u64) {
        circuit.of(&self.since).store(since, Release);
    }
}

/// What one stripe knows of one region: 1 KiB.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct RegionEvidence {
    pub(crate) flight: Flight,
    /// Failures among calls.
    pub(crate) rate: [Window; 2],
    /// Slow calls among calls.
    pub(crate) slow: [Window; 2],
    /// Writes that are under way, for maintenance (G4).
    pub(crate) writes: AtomicU64,
}

impl RegionEvidence {
    pub(crate) fn new() -> Self {
        Self {
            flight: Flight::new(),
            rate: [Window::new(), Window::new()],
            slow: [Window::new(), Window::new()],
            writes: AtomicU64::new(0),
        }
    }

    /// Counts a call that was neither a failure nor slow.
    #[inline]
    pub(crate) fn add_good_call(&self, circuit: Circuit, settings: &Compiled, now: Tick) {
        if let Some(rate) = settings.rate {
            let epoch = rate.epochs.at(now.as_nanos());
            circuit.of(&self.rate).add_calls(epoch, 1);
        }
        if let Some(slow) = settings.slow {
            let epoch = slow.epochs.at(now.as_nanos());
            circuit.of(&self.slow).add_calls(epoch, 1);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// DESIGN: at most 1 KiB per region and stripe.
    #[test]
    fn evidence_fits_a_kibibyte() {
        assert!(size_of::<RegionEvidence>() <= 1024);
        assert_eq!(size_of::<Cell>(), 128);
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
