//! What the programs of this crate share; its `README.md` says what they are for.

pub mod margin;
pub mod readme;
