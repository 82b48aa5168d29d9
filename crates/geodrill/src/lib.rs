//! (to be filled)
mod clock;
mod expect;
mod format;
mod glob;
mod problem;
mod random;
mod result;
mod run;
mod script;
mod stack;
mod stage;
mod timeline;
mod transport;
