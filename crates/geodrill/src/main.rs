//! Rehearse an outage before it happens.

fn main() {}
