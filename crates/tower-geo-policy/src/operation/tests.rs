//! The operation, step by step, with the rules in hand.
