//! In which order regions are tried (C1, C2, C10 to C12).

use std::error::Error;
use std::fmt;

use crate::breaker::Circuit;
use crate::region::{RegionId, Regions};
use crate::tick::Tick;

use super::marks::Marks;
use super::names::RegionName;
use super::topology::Topology;

/// Regions in order, at most as many as a service can have. Inline: it costs no memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Order {
    regions: [RegionId; Regions::MAX],
    len: u8,
}

impl Default for Order {
    fn default() -> Self {
        Self {
            regions: [RegionId::FIRST; Regions::MAX],
            len: 0,
        }
    }
}

impl Order {
    pub(super) fn push(&mut self, region: RegionId) {
        if self.contains(region) {
            return;
        }
        if let Some(place) = self.regions.get_mut(usize::from(self.len)) {
            *place = region;
            self.len += 1;
        }
    }

    /// The regions, best first.
    #[must_use]
    pub fn as_slice(&self) -> &[RegionId] {
        self.regions
            .get(..usize::from(self.len))
            .unwrap_or_default()
    }

    /// The regions, best first.
    pub fn iter(&self) -> impl Iterator<Item = RegionId> {
        self.as_slice().iter().copied()
    }

    /// The best.
    #[must_use]
    pub fn first(&self) -> Option<RegionId> {
        self.iter().next()
    }

    /// Whether the region is among them.
    #[must_use]
    pub fn contains(&self, region: RegionId) -> bool {
        self.as_slice().contains(&region)
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl FromIterator<RegionId> for Order {
    fn from_iter<I: IntoIterator<Item = RegionId>>(regions: I) -> Self {
        let mut order = Self::default();
        regions.into_iter().for_each(|region| order.push(region));
        order
    }
}

impl fmt::Debug for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.iter().map(RegionId::index))
            .finish()
    }
}

/// Which regions a request may use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Route {
    /// Those that answer reads.
    Read,
    /// Those that take the writes of documents and run stored procedures (C2).
    Write,
    /// The hub: all other writes (C2).
    Hub,
}

impl Route {
    /// The kind of request, for marks.
    #[must_use]
    pub const fn kind(self) -> Circuit {
        match self {
            Self::Read => Circuit::Reads,
            Self::Write | Self::Hub => Circuit::Writes,
        }
    }
}

/// Every region that the request may use is excluded (C11).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct AllExcluded;

impl fmt::Display for AllExcluded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("every region that the request may use is excluded")
    }
}

impl Error for AllExcluded {}

impl Topology {
    /// The regions that may be tried, best first: those that are marked come last, in the same
    /// order (C1, C2, C10). `excluded` has a bit for each region: see
    /// [`excluded`](Self::excluded) and [`mask`](Self::mask).
    ///
    /// Writes that have only one place to go are exempt from exclusions: those of a single-write
    /// account, and those that belong to the hub (C2, C11).
    ///
    /// # Errors
    ///
    /// When no region is left.
    pub fn order(
        &self,
        route: Route,
        marks: &Marks,
        excluded: u16,
        now: Tick,
    ) -> Result<Order, AllExcluded> {
        let (regions, excluded) = match route {
            Route::Read => (self.reads(), excluded),
            Route::Write if self.is_multi_write() => (self.writes(), excluded),
            Route::Hub if self.is_multi_write() => {
                return Ok(Order::from_iter(self.writable().first()));
            }
            Route::Write | Route::Hub => (self.writes(), 0),
        };
        let kind = route.kind();
        let usable = || regions.iter().filter(|&region| excluded & bit(region) == 0);
        let is_marked = |&region: &RegionId| marks.has(region, kind, now);
        let unmarked = usable().filter(|region| !is_marked(region));
        let order: Order = unmarked.chain(usable().filter(is_marked)).collect();
        if order.is_empty() {
            Err(AllExcluded)
        } else {
            Ok(order)
        }
    }

    /// The region to which a single-write account's writes go now: the first listed writer that
    /// is not marked for writes, or the first of all (C2).
    #[must_use]
    pub fn writer(&self, marks: &Marks, now: Tick) -> Option<RegionId> {
        let is_free = |region: &RegionId| !marks.has(*region, Circuit::Writes, now);
        let free = self.writable().iter().find(is_free);
        free.or_else(|| self.writable().first())
    }

    /// The hub: the first listed writer.
    #[must_use]
    pub fn hub(&self) -> Option<RegionId> {
        self.writable().first()
    }

    /// Whether a request that goes to this region has to carry
    /// [`ALLOW_TENTATIVE_WRITES`](super::ALLOW_TENTATIVE_WRITES): a write of a multi-write
    /// account anywhere but at the hub (C12).
    #[must_use]
    pub fn is_tentative(&self, route: Route, region: RegionId) -> bool {
        route.kind() == Circuit::Writes && self.is_multi_write() && self.hub() != Some(region)
    }

    /// A bit for each region of these names that the account has. Others are ignored.
    #[must_use]
    pub fn mask(&self, names: &[RegionName]) -> u16 {
        names
            .iter()
            .filter_map(|name| self.listed_by_name(name))
            .fold(0, |mask, region| mask | bit(region))
    }
}

/// The bit of a region in a set of regions.
pub(super) const fn bit(region: RegionId) -> u16 {
    1 << (region.index() % Regions::MAX)
}

/// C1 without marks and exclusions: the preferred that are among `listed`, then the rest.
pub(super) fn preferred_first(preferred: impl Iterator<Item = RegionId>, listed: &Order) -> Order {
    preferred
        .filter(|&region| listed.contains(region))
        .chain(listed.iter())
        .collect()
}
