//! A median, and how far it can be trusted.

use serde::{Deserialize, Serialize};

/// The tenth part, the middle and the ninth tenth of samples.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Spread {
    pub(crate) p10: f64,
    pub(crate) median: f64,
    pub(crate) p90: f64,
}

impl Spread {
    /// None of no samples.
    pub(crate) fn of(mut samples: Vec<f64>) -> Option<Self> {
        samples.sort_by(f64::total_cmp);
        Some(Self {
            p10: at(&samples, 0.1)?,
            median: at(&samples, 0.5)?,
            p90: at(&samples, 0.9)?,
        })
    }

    /// So many digits behind the point.
    pub(crate) fn rounded(self, digits: i32) -> Self {
        Self {
            p10: round(self.p10, digits),
            median: round(self.median, digits),
            p90: round(self.p90, digits),
        }
    }
}

pub(crate) fn round(value: f64, digits: i32) -> f64 {
    let factor = 10_f64.powi(digits);
    (value * factor).round() / factor
}

/// The sample below which `part` of the sorted samples are.
pub(crate) fn at(sorted: &[f64], part: f64) -> Option<f64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place in a list: small and positive"
    )]
    let place = (sorted.len() as f64 * part) as usize;
    sorted.get(place.min(sorted.len().checked_sub(1)?)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_of_nothing_is_none() {
        assert!(Spread::of(Vec::new()).is_none());
    }

    #[test]
    fn the_middle_of_samples_does_not_mind_their_order() {
        let spread = Spread::of(vec![9.0, 1.0, 5.0, 3.0, 7.0]).unwrap();
        assert_eq!((spread.p10, spread.median, spread.p90), (1.0, 5.0, 9.0));
    }
}
