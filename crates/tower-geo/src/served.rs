//! What an answer was worth: which region gave it and what was tried before (E1, R10, F2).

use std::sync::Arc;

use http::Extensions;
use tower_geo_policy::freshness::Freshness;
use tower_geo_policy::region::RegionId;
use tower_geo_policy::trail::Trail;

use crate::runtime::State;

/// How an answer came about, in the extensions of every response that was redirected or needed
/// more than one send.
///
/// A response without it is the first answer of the region that the request named.
///
/// ```
/// # fn show<B>(response: &http::Response<B>) {
/// if let Some(served) = tower_geo::Served::of(response.extensions()) {
///     println!("{} after {} sends", served.region_name(), served.trail().sends().len());
/// }
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Served {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    state: State,
    region: RegionId,
    trail: Trail,
    after_ambiguous: bool,
}

impl Served {
    pub(crate) fn new(state: State, region: RegionId, trail: Trail, after_ambiguous: bool) -> Self {
        Self {
            inner: Arc::new(Inner {
                state,
                region,
                trail,
                after_ambiguous,
            }),
        }
    }

    /// Takes a look at the extensions of a response.
    #[must_use]
    pub fn of(extensions: &Extensions) -> Option<&Self> {
        extensions.get()
    }

    /// The name of the region that gave the answer (R10).
    #[must_use]
    pub fn region_name(&self) -> &str {
        region_name(&self.inner.state, self.inner.region)
    }

    /// Whether the answer comes from a copy, not from the region that takes writes.
    #[must_use]
    pub fn is_from_copy(&self) -> bool {
        self.inner.region != self.inner.state.regions().writer()
    }

    /// Every send of the operation, the last one included (E1).
    #[must_use]
    pub fn trail(&self) -> &Trail {
        &self.inner.trail
    }

    /// The name of a region in [`trail`](Self::trail).
    #[must_use]
    pub fn name_of(&self, region: RegionId) -> &str {
        region_name(&self.inner.state, region)
    }

    /// Whether this 404, 409 or 412 to a write may be the doing of an earlier send of the same
    /// write, whose answer was lost (V2).
    #[must_use]
    pub fn is_after_ambiguous(&self) -> bool {
        self.inner.after_ambiguous
    }

    /// How old the answer may be; `None` when it comes from the writer (F2).
    ///
    /// *Unknown* for every answer of a copy whose last synchronisation is not known.
    #[must_use]
    pub fn freshness(&self) -> Option<Freshness> {
        self.is_from_copy().then(|| Freshness::judge(None, None))
    }
}

pub(crate) fn region_name(state: &State, region: RegionId) -> &str {
    state
        .regions()
        .get(region)
        .map_or("unknown", tower_geo_policy::region::Region::name)
}
