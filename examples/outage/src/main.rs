//! Lose a region and come back.

fn main() {}
