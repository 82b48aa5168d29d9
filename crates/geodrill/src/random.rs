//! Random draws, each purpose from a stream of its own, so that using one never shifts another.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// What the draws of a stream are for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// Whether a rule applies to a send it matches; the index of the rule.
    Rule(usize),
    /// Everything that the layers of a service draw: jitter, ramps; the index of the service.
    Service(usize),
}

/// One stream of the seed.
#[derive(Clone, Debug)]
pub(crate) struct Stream(ChaCha8Rng);

impl Stream {
    pub(crate) fn new(seed: u64, purpose: Purpose) -> Self {
        // A stream is numbered by its purpose (high half) and its index (low half).
        let (purpose, index) = match purpose {
            Purpose::Rule(index) => (1_u64, index),
            Purpose::Service(index) => (2, index),
        };
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        generator.set_stream((purpose << 32) | index as u64);
        Self(generator)
    }

    /// 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number from 0 (included) to 1 (excluded).
    pub(crate) fn unit(&mut self) -> f64 {
        // The 53 bits that the fraction of a double holds.
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit exactly")]
        let fraction = (self.bits() >> 11) as f64;
        fraction / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_apart_and_repeatable() {
        let draw = |seed, purpose| Stream::new(seed, purpose).bits();
        let first = draw(1, Purpose::Rule(0));
        assert_eq!(first, draw(1, Purpose::Rule(0)));
        assert_ne!(first, draw(1, Purpose::Rule(1)));
        assert_ne!(first, draw(1, Purpose::Service(0)));
        assert_ne!(first, draw(2, Purpose::Rule(0)));
    }

    /// The numbers themselves are part of what a drill promises: a new version of the generator
    /// that changes them would change results.
    #[test]
    fn the_numbers_of_a_seed_stay_the_same() {
        let mut stream = Stream::new(7, Purpose::Rule(3));
        let drawn: Vec<u64> = (0..2).map(|_| stream.bits()).collect();
        assert_eq!(drawn, PINNED);
        let mut stream = Stream::new(7, Purpose::Rule(3));
        assert!((0..1_000).all(|_| (0.0..1.0).contains(&stream.unit())));
    }

    const PINNED: [u64; 2] = [5_693_560_982_930_056_147, 16_483_964_268_905_863_812];
}
