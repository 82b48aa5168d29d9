//! The copies of one service, and the only way to direct a request to one of them.
//!
//! | question | file |
//! |---|---|
//! | which copies are there, which one does a request name, how is it directed elsewhere? | `regions.rs` |
//! | what is an endpoint, and when are two the same? | `endpoint.rs` |
//! | which copies may reads use? | `mode.rs` |
//!
//! Nothing but a [`Destination`] changes where a request goes, and there are two ways to one:
//! [`Regions::read_target`], which asks for a [`ReadProof`], and [`Regions::write_target`], which
//! knows no region that takes no writes. That is rule R1, as far as types can carry it.
//!
//! ```
//! use tower_geo_policy::intent::Intent;
//! use tower_geo_policy::region::{Endpoint, ReadProof, Region, RegionId, Regions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let regions = Regions::new(vec![
//!     Region::new("primary", Endpoint::parse("https://contoso.blob.core.windows.net")?)
//!         .writable(true),
//!     Region::new(
//!         "secondary",
//!         Endpoint::parse("https://contoso-secondary.blob.core.windows.net")?,
//!     ),
//! ])?;
//! let secondary = RegionId::new(1);
//!
//! let proof = ReadProof::of(Intent::READ).ok_or("not a read")?;
//! let there = regions.read_target(proof, secondary).ok_or("no such region")?;
//! let uri = "https://contoso.blob.core.windows.net/c/b?comp=metadata".parse()?;
//! let (uri, host) = regions.direct(there, &uri)?;
//! assert_eq!(uri, "https://contoso-secondary.blob.core.windows.net/c/b?comp=metadata");
//! assert_eq!(host, "contoso-secondary.blob.core.windows.net");
//!
//! // A write has no way there.
//! assert!(ReadProof::of(Intent::WRITE_HARMLESS).is_none());
//! assert!(regions.write_target(secondary).is_none());
//! # Ok(())
//! # }
//! ```

mod endpoint;
mod mode;
mod regions;
#[cfg(test)]
mod tests;

pub use self::endpoint::{Endpoint, EndpointError};
pub use self::mode::LocationMode;
pub use self::regions::{Destination, DirectError, ReadProof, Region, RegionId, Regions};
