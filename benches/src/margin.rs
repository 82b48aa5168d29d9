//! How much more is chance.

/// More than differs between two builds of the same code, less than anybody would notice.
const PERCENT: u64 = 2;
/// For rows so small that a part of them is nothing.
const INSTRUCTIONS: u64 = 3;

/// Whether instructions have grown by more than the margin.
#[must_use]
pub const fn is_more(before: u64, after: u64) -> bool {
    after > before + INSTRUCTIONS + before * PERCENT / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_little_is_chance_and_more_is_not() {
        assert!(!is_more(400, 411) && is_more(400, 412));
        assert!(!is_more(10, 13) && is_more(10, 14));
        assert!(!is_more(400, 10));
    }
}
