//! What the tests and examples of tower-geo run against.
