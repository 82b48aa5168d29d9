//! Which regions a service has: always the same, or those that its account had at some moment.

#[cfg(feature = "cosmos")]
use std::sync::Arc;

#[cfg(feature = "cosmos")]
use tower_geo_policy::cosmos::Topology;
use tower_geo_policy::region::{Region, RegionId, Regions};

use crate::runtime::State;

/// The regions as they were known at some moment: when a request came in, or when a send was
/// decided. For a service whose regions never change it is nothing at all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    #[cfg(feature = "cosmos")]
    topology: Option<Arc<Topology>>,
}

impl Known {
    /// What is known at this moment.
    #[inline]
    #[cfg_attr(
        not(feature = "cosmos"),
        expect(
            clippy::missing_const_for_fn,
            unused_variables,
            reason = "nothing changes"
        )
    )]
    pub(crate) fn now(state: &State) -> Self {
        Self {
            #[cfg(feature = "cosmos")]
            topology: state
                .extra()
                .cosmos
                .as_ref()
                .map(|cosmos| cosmos.account.topology()),
        }
    }

    /// What an operation goes by.
    #[cfg(feature = "cosmos")]
    pub(crate) const fn of(topology: Option<Arc<Topology>>) -> Self {
        Self { topology }
    }

    /// The regions.
    #[inline]
    pub(crate) fn regions<'a>(&'a self, state: &'a State) -> &'a Regions {
        #[cfg(feature = "cosmos")]
        if let Some(topology) = &self.topology {
            return topology.regions();
        }
        state.regions()
    }

    /// The name of a region.
    pub(crate) fn name<'a>(&'a self, state: &'a State, region: RegionId) -> &'a str {
        self.regions(state)
            .get(region)
            .map_or("unknown", Region::name)
    }

    /// The names by which a region can be asked for at this moment, to be told to people.
    pub(crate) fn names(&self, state: &State) -> String {
        let all = self.regions(state).iter();
        let named = all.filter(|&(id, _)| self.lists(id));
        let names: Vec<_> = named.map(|(_, region)| region.name()).collect();
        names.join(", ")
    }

    /// Whether a region is one of the service's, and not the host by which an account is known, nor
    /// one that has left it (C4).
    #[cfg_attr(
        not(feature = "cosmos"),
        expect(
            clippy::missing_const_for_fn,
            clippy::unused_self,
            unused_variables,
            reason = "regions stay"
        )
    )]
    fn lists(&self, region: RegionId) -> bool {
        #[cfg(feature = "cosmos")]
        if let Some(topology) = &self.topology {
            return topology.lists(region);
        }
        true
    }

    /// Whether a write may be sent to a region, by whoever cannot send it elsewhere.
    ///
    /// The given host of an account is not one of its regions, but takes its writes (C4: where
    /// something of ours can direct them, it does).
    pub(crate) fn takes_writes(&self, state: &State, region: RegionId) -> bool {
        #[cfg(feature = "cosmos")]
        if let Some(topology) = &self.topology {
            if region == RegionId::FIRST && !topology.lists(region) {
                return true;
            }
        }
        self.regions(state).write_target(region).is_some()
    }

    /// Whether an answer of a region comes from a copy, and not from where writes are taken.
    pub(crate) fn is_copy(&self, state: &State, region: RegionId) -> bool {
        #[cfg(feature = "cosmos")]
        if let Some(topology) = &self.topology {
            return !topology.writable().contains(region);
        }
        region != state.regions().writer()
    }
}
