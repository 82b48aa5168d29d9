//! What the caller says of one request.

use std::time::Duration;

use super::age::Limit;
use crate::region::{LocationMode, RegionId, Regions};

/// A region as a caller or an operator names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RegionRef {
    /// The region that takes the writes.
    Primary,
    /// The first copy.
    Secondary,
    /// The region of this name.
    Named(String),
}

impl RegionRef {
    /// The region that is meant, if the service has it.
    #[must_use]
    pub fn region(&self, regions: &Regions) -> Option<RegionId> {
        match self {
            Self::Primary => Some(regions.writer()),
            Self::Secondary => regions.copies().next(),
            Self::Named(name) => regions.by_name(name),
        }
    }
}

/// What the caller says of one request: put it into the request's extensions.
///
/// ```
/// use http::Request;
/// use tower_geo_policy::operation::{RegionRef, RequestOptions};
///
/// // The second page of a listing belongs to the region that gave the first one.
/// let request = Request::get("https://contoso.blob.core.windows.net/c?comp=list&marker=2!72")
///     .extension(RequestOptions::new().pin(RegionRef::Secondary))
///     .body(())?;
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct RequestOptions {
    location_mode: Option<LocationMode>,
    pin: Option<RegionRef>,
    replayable: bool,
    excluded: Option<Box<[Box<str>]>>,
    pub(super) max_staleness: Limit,
}

impl RequestOptions {
    /// Nothing said.
    pub const fn new() -> Self {
        Self {
            location_mode: None,
            pin: None,
            replayable: false,
            excluded: None,
            max_staleness: Limit::Unsaid,
        }
    }

    /// Where this read may go, instead of the service's own mode (R2). Writes ignore it.
    pub const fn location_mode(mut self, mode: LocationMode) -> Self {
        self.location_mode = Some(mode);
        self
    }

    /// The one region that may answer this request (R10). For continuation markers, which belong
    /// to the region that issued them.
    pub fn pin(mut self, pin: RegionRef) -> Self {
        self.pin = Some(pin);
        self
    }

    /// That this write gives the same result when it arrives twice (V1).
    pub const fn replayable(mut self) -> Self {
        self.replayable = true;
        self
    }

    /// The regions that this request must not use, by name, instead of those that the service
    /// excludes; an empty list excludes none (C11). Only services whose regions come and go, as
    /// those of Cosmos DB do, look at it.
    pub fn excluded<I>(mut self, regions: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<str>,
    {
        let names = regions.into_iter();
        self.excluded = Some(names.map(|name| name.as_ref().into()).collect());
        self
    }

    /// How far a copy that answers this read may be behind, instead of the service's own limit
    /// (F3); `None`: any age will do. Writes ignore it.
    ///
    /// To the nanosecond, and no more than 584 years.
    pub fn max_staleness(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.max_staleness = Limit::of(limit.into());
        self
    }

    /// See [`Self::location_mode`].
    #[must_use]
    pub const fn get_location_mode(&self) -> Option<LocationMode> {
        self.location_mode
    }

    /// See [`Self::pin`].
    #[must_use]
    pub const fn get_pin(&self) -> Option<&RegionRef> {
        self.pin.as_ref()
    }

    /// See [`Self::excluded`]; `None` when nothing was said.
    #[must_use]
    pub fn get_excluded(&self) -> Option<&[Box<str>]> {
        self.excluded.as_deref()
    }

    /// See [`Self::max_staleness`]; `None` when nothing was said.
    #[must_use]
    pub const fn get_max_staleness(&self) -> Option<Option<Duration>> {
        self.max_staleness.get()
    }

    /// See [`Self::replayable`].
    #[must_use]
    pub const fn is_replayable(&self) -> bool {
        self.replayable
    }
}
