//! Chance that can be repeated: each purpose draws from its own stream of the seed, so one more
//! draw for one purpose shifts no other.

use fastrand::Rng;

/// What chance is needed for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// When the operations of a client begin, and what they are.
    Arrivals(u32),
    /// Jitter and ramps in the layers of a client.
    Layers(u32),
    /// How long the work of a region takes, and which of it fails.
    Region(u32),
}

/// The stream of a purpose.
pub(crate) fn stream(seed: u64, purpose: Purpose) -> Rng {
    let (kind, index) = match purpose {
        Purpose::Arrivals(client) => (1_u64, client),
        Purpose::Layers(client) => (2, client),
        Purpose::Region(region) => (3, region),
    };
    let name = (kind << 32) | u64::from(index);
    Rng::with_seed(mix(mix(seed) ^ name))
}

/// SplitMix64: what is close together comes out far apart.
const fn mix(number: u64) -> u64 {
    let z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_apart_and_repeatable() {
        let draw = |seed, purpose| stream(seed, purpose).u64(..);
        let first = draw(0, Purpose::Layers(0));
        assert_eq!(first, draw(0, Purpose::Layers(0)));
        assert_ne!(first, draw(0, Purpose::Layers(1)));
        assert_ne!(first, draw(0, Purpose::Arrivals(0)));
        assert_ne!(first, draw(1, Purpose::Layers(0)));
    }
}
