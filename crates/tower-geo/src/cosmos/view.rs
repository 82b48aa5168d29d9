//! What is known of an account, to be shown to people.

use std::fmt;
use std::sync::Arc;

use tower_geo_policy::breaker::Circuit;
use tower_geo_policy::cosmos::{Cause, Topology};
use tower_geo_policy::region::RegionId;

use super::shared::Shared;
use crate::runtime;
use crate::service_handle::GeoService;

/// An account of Cosmos DB as it was known when this was made: see [`GeoService::cosmos`].
///
/// ```
/// # fn show(docs: &tower_geo::GeoService) {
/// if let Some(account) = docs.cosmos() {
///     for region in account.regions() {
///         println!("{} {}", region.name(), if region.takes_writes() { "writes" } else { "" });
///     }
/// }
/// # }
/// ```
#[derive(Clone)]
pub struct CosmosAccount {
    service: GeoService,
    shared: Arc<Shared>,
    topology: Arc<Topology>,
}

/// One region of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CosmosRegion {
    id: RegionId,
    name: String,
    host: String,
    reads: bool,
    writes: bool,
    marked: [bool; 2],
}

impl CosmosRegion {
    /// Its number in trails and events. It stays the same as long as the account has the region.
    #[must_use]
    pub const fn id(&self) -> RegionId {
        self.id
    }

    /// Its name, as the account writes it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its host, with the port where that is not the scheme's own.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Whether it answers reads.
    #[must_use]
    pub const fn answers_reads(&self) -> bool {
        self.reads
    }

    /// Whether it takes writes.
    #[must_use]
    pub const fn takes_writes(&self) -> bool {
        self.writes
    }

    /// Whether it is left for last, by requests that use this circuit (C10).
    #[must_use]
    pub const fn is_marked(&self, circuit: Circuit) -> bool {
        match circuit {
            Circuit::Reads => self.marked[0],
            Circuit::Writes => self.marked[1],
        }
    }
}

impl CosmosAccount {
    /// Whether the account was read, or is not to be read.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.topology.is_known()
    }

    /// Whether documents may be written in several regions: the account takes them there, and the
    /// service makes use of it.
    #[must_use]
    pub fn is_multi_write(&self) -> bool {
        self.topology.is_multi_write()
    }

    /// The regions, those that take writes first, each part in the account's order. Whether one
    /// is marked is looked up now.
    #[must_use]
    pub fn regions(&self) -> Vec<CosmosRegion> {
        let topology = &self.topology;
        let state = self.service.state_ref();
        let now = state.tick(runtime::now());
        let marks = self.shared.account.marks();
        let readers = topology.readable().iter();
        let readers = readers.filter(|&region| !topology.writable().contains(region));
        let all = topology.writable().iter().chain(readers);
        all.filter_map(|id| {
            let region = topology.regions().get(id)?;
            Some(CosmosRegion {
                id,
                name: region.name().to_owned(),
                host: region.endpoint().authority().to_owned(),
                reads: topology.readable().contains(id),
                writes: topology.writable().contains(id),
                marked: Circuit::BOTH.map(|circuit| marks.has(id, circuit, now)),
            })
        })
        .collect()
    }

    /// How many reads of the account have ended.
    #[must_use]
    pub fn reads(&self) -> u64 {
        self.shared.account.reads_finished()
    }

    /// Has the account read now, say after a failover by hand.
    pub fn refresh(&self) {
        let state = self.service.state_ref();
        let now = state.tick(runtime::now());
        self.shared.account.ask(Cause::Refusal, now);
    }
}

impl fmt::Debug for CosmosAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CosmosAccount")
            .field("service", &self.service.name())
            .field("is_known", &self.is_known())
            .field("regions", &self.regions())
            .finish_non_exhaustive()
    }
}

impl GeoService {
    /// The account of Cosmos DB, as it is known at this moment; `None` if the service is none.
    /// Feature `cosmos`.
    #[must_use]
    pub fn cosmos(&self) -> Option<CosmosAccount> {
        let shared = self.state_ref().extra().cosmos.clone()?;
        Some(CosmosAccount {
            topology: shared.account.topology(),
            service: self.clone(),
            shared,
        })
    }
}
