//! (to be filled)
mod clock;
mod format;
mod glob;
mod problem;
mod random;
mod script;
