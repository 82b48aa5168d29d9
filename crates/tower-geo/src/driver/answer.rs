//! What a driver keeps of an operation that did not go well at once.

use tower_geo_policy::region::RegionId;

use crate::error::BoxError;

/// The answers and errors that an operation may have to end with.
#[derive(Debug)]
pub(super) struct Kept<R> {
    /// The last answer of a region that had the right to give it (R5).
    pub(super) held: Option<(RegionId, R)>,
    /// The answer of a copy in case that the writer cannot be asked (R4).
    pub(super) of_copy: Option<(RegionId, R)>,
    /// The client's last error.
    pub(super) error: Option<BoxError>,
    /// The span of the send under way, if somebody wants one (E3).
    pub(super) span: Option<tracing::Span>,
}

impl<R> Kept<R> {
    /// Whatever is told meanwhile belongs to the send under way.
    #[cold]
    #[inline(never)]
    pub(super) fn in_span<T>(&self, act: impl FnOnce() -> T) -> T {
        let _entered = self.span.as_ref().map(tracing::Span::enter);
        act()
    }
}

impl<R> Default for Kept<R> {
    fn default() -> Self {
        Self {
            held: None,
            of_copy: None,
            error: None,
            span: None,
        }
    }
}
