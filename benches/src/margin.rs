//! How much more is chance.

/// In percent: more than differs between two builds of the same code, less than anybody would
/// notice.
pub const OURS: u64 = 2;
/// For rows so small that a part of them is nothing.
const INSTRUCTIONS: u64 = 3;

/// Whether instructions have grown by more than so many percent, and a few.
#[must_use]
pub const fn is_more(before: u64, after: u64, percent: u64) -> bool {
    after > before + INSTRUCTIONS + before * percent / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_little_is_chance_and_more_is_not() {
        assert!(!is_more(400, 411, 2) && is_more(400, 412, 2));
        assert!(!is_more(10, 13, 2) && is_more(10, 14, 2));
        assert!(!is_more(400, 10, 2));
    }
}
