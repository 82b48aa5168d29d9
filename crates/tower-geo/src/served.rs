//! What an answer was worth: which region gave it and what was tried before (E1, R10, F2).

use std::sync::Arc;
use std::time::SystemTime;

use http::{Extensions, Response, StatusCode};
use tower_geo_policy::freshness::Freshness;
use tower_geo_policy::region::RegionId;
use tower_geo_policy::trail::Trail;

use crate::known::Known;
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
    known: Known,
    region: RegionId,
    trail: Trail,
    after_ambiguous: bool,
    age: Option<ServedAge>,
}

/// How old an answer of a copy may be, as far as that was known when it came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServedAge {
    freshness: Freshness,
    last_sync: Option<SystemTime>,
}

impl ServedAge {
    pub(crate) const fn freshness(self) -> Freshness {
        self.freshness
    }

    /// `None` for an answer of the writer.
    pub(crate) fn of<B>(
        state: &State,
        known: &Known,
        region: RegionId,
        response: &Response<B>,
    ) -> Option<Self> {
        // Nobody tells how far a region of an account is behind.
        if state.extra().has_account() || !known.is_copy(state, region) {
            return None;
        }
        let last_sync = state.extra().copies.last_sync.get().time();
        let (status, headers) = (response.status(), response.headers());
        // Only such an answer is about an object, and an error has a time of its own.
        let has_object = status.is_success() || status == StatusCode::NOT_MODIFIED;
        let object = has_object.then(|| state.provider().object_time(headers));
        Some(Self {
            freshness: Freshness::judge(object.flatten(), last_sync),
            last_sync,
        })
    }
}

impl Served {
    pub(crate) fn new(
        state: State,
        known: Known,
        region: RegionId,
        trail: Trail,
        after_ambiguous: bool,
        age: Option<ServedAge>,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                state,
                known,
                region,
                trail,
                after_ambiguous,
                age,
            }),
        }
    }

    /// Takes a look at the extensions of a response.
    #[must_use]
    pub fn of(extensions: &Extensions) -> Option<&Self> {
        extensions.get()
    }

    pub(crate) fn region(&self) -> RegionId {
        self.inner.region
    }

    /// The name of the region that gave the answer (R10).
    #[must_use]
    pub fn region_name(&self) -> &str {
        self.name_of(self.inner.region)
    }

    #[cfg(feature = "metrics")]
    pub(crate) fn is_of(&self, state: &State) -> bool {
        self.inner.state.is_same_service(state)
    }

    /// Whether the answer comes from a copy, not from the region that takes writes.
    #[must_use]
    pub fn is_from_copy(&self) -> bool {
        self.inner
            .known
            .is_copy(&self.inner.state, self.inner.region)
    }

    /// Every send of the operation, the last one included (E1).
    #[must_use]
    pub fn trail(&self) -> &Trail {
        &self.inner.trail
    }

    /// The name of a region in [`trail`](Self::trail).
    #[must_use]
    pub fn name_of(&self, region: RegionId) -> &str {
        self.inner.known.name(&self.inner.state, region)
    }

    /// Whether this 404, 409 or 412 to a write may be the doing of an earlier send of the same
    /// write, whose answer was lost (V2).
    #[must_use]
    pub fn is_after_ambiguous(&self) -> bool {
        self.inner.after_ambiguous
    }

    /// How old the answer may be; `None` when it comes from the writer, or the service is an account of
    /// Cosmos DB, where nobody tells how far a region is behind (F2).
    ///
    /// The object's own time (`Last-Modified`, or the time in the `ETag` of a table entity) is
    /// compared with [`last_sync`](Self::last_sync). *Unknown* where one of the two is not known;
    /// a list has no time of its own: see [`freshness_of`](Self::freshness_of).
    #[must_use]
    pub fn freshness(&self) -> Option<Freshness> {
        Some(self.inner.age?.freshness)
    }

    /// The Last Sync Time that was known when the answer of a copy came; `None` when it was not
    /// known, or the answer comes from the writer (F2).
    #[must_use]
    pub fn last_sync(&self) -> Option<SystemTime> {
        self.inner.age?.last_sync
    }

    /// How old a list may be whose objects have these times, say the `Timestamp`s of entities as
    /// [`parse_timestamp`](tower_geo_policy::azure_storage::parse_timestamp) reads them; `None`
    /// when the answer comes from the writer.
    ///
    /// It is as fresh as the least certain of them, and *unknown* if it is empty.
    #[must_use]
    pub fn freshness_of(
        &self,
        objects: impl IntoIterator<Item = Option<SystemTime>>,
    ) -> Option<Freshness> {
        let age = self.inner.age?;
        Some(Freshness::judge_all(objects, age.last_sync))
    }
}
