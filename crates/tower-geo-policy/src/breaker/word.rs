//! Both circuits of a region in one atomic word (B1, B4 to B6).
//!
//! Thirty-two bits each, reads in the low half:
//!
//! | bits | what |
//! |---|---|
//! | 0..2 | automatic state: closed, open, half open |
//! | 2..4 | manual: none, forced open, forced closed |
//! | 4..9 | probes that are out |
//! | 9..13 | good probes so far |
//! | 13 | whether the ramp is not over |
//! | 14..32 | generation: one more at every change of the automatic state |
//!
//! A half of which everything but the generation is zero is *plain*: closed, nothing to consider.
//! So a healthy region is recognised by one load and one mask.

use super::Circuit;

/// The automatic state of a circuit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Auto {
    Closed,
    Open,
    HalfOpen,
}

/// What an operator said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Manual {
    None,
    Open,
    Closed,
}

const STATE: u32 = 0b11;
const MANUAL_SHIFT: u32 = 2;
const MANUAL: u32 = 0b11 << MANUAL_SHIFT;
const PROBES_SHIFT: u32 = 4;
const PROBES: u32 = 0b1_1111 << PROBES_SHIFT;
const GOOD_SHIFT: u32 = 9;
const GOOD: u32 = 0b1111 << GOOD_SHIFT;
const RAMP: u32 = 1 << 13;
const GENERATION_SHIFT: u32 = 14;
const PLAIN: u32 = (1 << GENERATION_SHIFT) - 1;

/// One circuit's half of the word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Half(u32);

impl Half {
    /// Closed, with nothing to consider.
    #[cfg(test)]
    pub(crate) const fn is_plain(self) -> bool {
        self.0 & PLAIN == 0
    }

    pub(crate) const fn auto(self) -> Auto {
        match self.0 & STATE {
            0 => Auto::Closed,
            1 => Auto::Open,
            _ => Auto::HalfOpen,
        }
    }

    pub(crate) const fn manual(self) -> Manual {
        match (self.0 & MANUAL) >> MANUAL_SHIFT {
            0 => Manual::None,
            1 => Manual::Open,
            _ => Manual::Closed,
        }
    }

    pub(crate) const fn probes(self) -> u32 {
        (self.0 & PROBES) >> PROBES_SHIFT
    }

    pub(crate) const fn good(self) -> u32 {
        (self.0 & GOOD) >> GOOD_SHIFT
    }

    pub(crate) const fn ramp(self) -> bool {
        self.0 & RAMP != 0
    }

    pub(crate) const fn generation(self) -> u32 {
        self.0 >> GENERATION_SHIFT
    }

    /// Whether an outcome that was admitted in `then` may still change something now (B6).
    pub(crate) const fn same_generation(self, then: Self) -> bool {
        self.generation() == then.generation()
    }

    /// The state that callers meet: what an operator said wins (B9).
    pub(crate) const fn effective(self) -> Auto {
        match self.manual() {
            Manual::None => self.auto(),
            Manual::Open => Auto::Open,
            Manual::Closed => Auto::Closed,
        }
    }

    /// A new automatic state in a new generation: no probes out, none good. The operator's say
    /// stays.
    pub(crate) const fn next(self, auto: Auto) -> Self {
        let state = match auto {
            Auto::Closed => 0,
            Auto::Open => 1,
            Auto::HalfOpen => 2,
        };
        // The topmost field: what wraps around falls off.
        let generation = (self.generation() + 1) << GENERATION_SHIFT;
        Self(generation | (self.0 & MANUAL) | state)
    }

    pub(crate) const fn with_manual(self, manual: Manual) -> Self {
        let bits = match manual {
            Manual::None => 0,
            Manual::Open => 1,
            Manual::Closed => 2,
        };
        Self((self.0 & !MANUAL) | (bits << MANUAL_SHIFT))
    }

    pub(crate) const fn with_ramp(self, on: bool) -> Self {
        Self(if on { self.0 | RAMP } else { self.0 & !RAMP })
    }

    pub(crate) const fn with_probes(self, out: u32) -> Self {
        Self((self.0 & !PROBES) | ((out << PROBES_SHIFT) & PROBES))
    }

    pub(crate) const fn with_good(self, good: u32) -> Self {
        Self((self.0 & !GOOD) | ((good << GOOD_SHIFT) & GOOD))
    }
}

/// Both circuits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Word(pub(crate) u64);

impl Word {
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "taking a half is the purpose"
    )]
    pub(crate) const fn half(self, circuit: Circuit) -> Half {
        match circuit {
            Circuit::Reads => Half(self.0 as u32),
            Circuit::Writes => Half((self.0 >> 32) as u32),
        }
    }

    pub(crate) const fn with_half(self, circuit: Circuit, half: Half) -> Self {
        match circuit {
            Circuit::Reads => Self((self.0 & !0xFFFF_FFFF) | half.0 as u64),
            Circuit::Writes => Self((self.0 & 0xFFFF_FFFF) | ((half.0 as u64) << 32)),
        }
    }

    /// Both circuits closed, with nothing to consider.
    #[inline]
    pub(crate) const fn is_plain(self) -> bool {
        const BOTH: u64 = (PLAIN as u64) << 32 | PLAIN as u64;
        self.0 & BOTH == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_touch_each_other() {
        let half = Word::default()
            .half(Circuit::Reads)
            .next(Auto::HalfOpen)
            .with_manual(Manual::Closed)
            .with_probes(31)
            .with_good(15)
            .with_ramp(true);
        assert_eq!(half.auto(), Auto::HalfOpen);
        assert_eq!(half.manual(), Manual::Closed);
        assert_eq!(half.probes(), 31);
        assert_eq!(half.good(), 15);
        assert!(half.ramp());
        assert_eq!(half.generation(), 1);
        assert_eq!(half.with_probes(0).good(), 15);
        assert_eq!(half.with_good(0).probes(), 31);
        assert_eq!(half.with_manual(Manual::None).effective(), Auto::HalfOpen);
        assert!(!half.with_ramp(false).ramp());
    }

    #[test]
    fn halves_do_not_touch_each_other() {
        let word = Word::default();
        let half = word.half(Circuit::Writes).next(Auto::Open);
        let word = word.with_half(Circuit::Writes, half);
        assert!(word.half(Circuit::Reads).is_plain());
        assert_eq!(word.half(Circuit::Writes), half);
        assert!(!word.is_plain());
        let word = word.with_half(Circuit::Reads, half.next(Auto::Closed));
        assert!(word.half(Circuit::Reads).is_plain());
        assert_eq!(word.half(Circuit::Writes), half);
    }

    /// B6: every change of the state is a generation of its own, also when the counter wraps.
    #[test]
    fn a_new_state_is_a_new_generation() {
        let mut half = Word::default().half(Circuit::Reads);
        for _ in 0..(1 << 18) + 5 {
            let next = half.next(Auto::Closed);
            assert!(!next.same_generation(half));
            assert!(next.is_plain());
            half = next;
        }
    }

    /// B9: manual wins over all else, and stays through changes underneath.
    #[test]
    fn manual_wins() {
        let closed = Word::default().half(Circuit::Reads);
        let forced = closed.with_manual(Manual::Open);
        assert_eq!(forced.effective(), Auto::Open);
        assert!(!forced.is_plain());
        let forced = closed.next(Auto::Open).with_manual(Manual::Closed);
        assert_eq!(forced.effective(), Auto::Closed);
        assert!(!forced.is_plain());
        assert_eq!(forced.next(Auto::HalfOpen).effective(), Auto::Closed);
    }
}
