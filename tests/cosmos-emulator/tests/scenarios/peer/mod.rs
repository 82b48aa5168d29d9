//! The other side of the wire: an account of several regions in the emulator, over loopback HTTP.
//!
//! Every region has a host name of its own, as on the live service, and a port of its own behind
//! the name (`names.rs`). What the emulator does not do is added here: faults (`host.rs`), the
//! global host, and the check of signatures (`signature.rs`). What arrives is noted (`log.rs`).

mod host;
mod log;
mod names;
mod server;
mod signature;

pub(crate) use self::host::{Fault, Reach};
pub(crate) use self::log::Sends;
pub(crate) use self::names::Names;
pub(crate) use azure_data_cosmos_driver::in_memory_emulator::WriteMode;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedRwLockWriteGuard, RwLock};

use azure_data_cosmos_driver::in_memory_emulator::{
    EmulatorStore, InMemoryEmulatorHttpClient, ReplicationConfig, SeedingPolicy,
    VirtualAccountConfig, VirtualRegion,
};

use self::host::Host;
use self::log::Log;

/// The global host, as it is called in logs.
pub(crate) const GLOBAL: &str = "global";
pub(crate) const WEST: &str = "West US";
pub(crate) const EAST: &str = "East US";
pub(crate) const CENTRAL: &str = "Central US";
/// What the account is called, in host names too.
pub(crate) const ACCOUNT: &str = "contoso";
/// The key of the account: `an account key for tests only`, in Base64.
pub(crate) const KEY: &str = "YW4gYWNjb3VudCBrZXkgZm9yIHRlc3RzIG9ubHk=";

/// How long what must come is waited for, far longer than it takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

const DOMAIN: &str = "documents.test";

/// An account in the emulator.
pub(crate) struct Peer {
    shared: Arc<Shared>,
}

struct Shared {
    emulator: InMemoryEmulatorHttpClient,
    /// The global host first.
    hosts: Vec<Host>,
    log: Log,
    /// Held alone while reads of the account are not answered.
    account_reads: Arc<RwLock<()>>,
}

impl Peer {
    /// An account that takes writes in the first of its regions.
    pub(crate) async fn single(regions: &[&str]) -> Self {
        Self::start(WriteMode::Single, regions, &[]).await
    }

    /// An account that takes writes in all of its regions; the first is the hub.
    pub(crate) async fn multi(regions: &[&str]) -> Self {
        Self::start(WriteMode::Multi, regions, &[]).await
    }

    /// An account that takes writes in the first of its regions, and may get `later` as well.
    pub(crate) async fn growing(regions: &[&str], later: &[&str]) -> Self {
        Self::start(WriteMode::Single, regions, later).await
    }

    async fn start(mode: WriteMode, regions: &[&str], later: &[&str]) -> Self {
        let members = regions.iter().map(|name| virtual_region(name)).collect();
        let config = VirtualAccountConfig::new(members)
            .unwrap()
            .with_write_mode(mode)
            .with_replication_config(ReplicationConfig::immediate());
        let emulator = InMemoryEmulatorHttpClient::new(config);
        let store = emulator.store();
        store.create_database("shop");
        let by_customer = serde_json::json!({"paths": ["/pk"], "kind": "Hash", "version": 2});
        store.create_container(
            "shop",
            "orders",
            serde_json::from_value(by_customer).unwrap(),
        );

        let mut hosts = vec![Host::open(GLOBAL, format!("{ACCOUNT}.{DOMAIN}")).await];
        let mut listeners = Vec::new();
        for name in regions.iter().chain(later) {
            hosts.push(Host::open(name, domain(name)).await);
        }
        for host in &mut hosts {
            listeners.push(host.listener.take().unwrap());
        }
        let shared = Arc::new(Shared {
            emulator,
            hosts,
            log: Log::default(),
            account_reads: Arc::default(),
        });
        for (at, listener) in listeners.into_iter().enumerate() {
            tokio::spawn(server::serve(listener, Arc::clone(&shared), at));
        }
        Self { shared }
    }

    /// What the account is called by its users.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{ACCOUNT}.{DOMAIN}")
    }

    /// What resolves the names of its hosts.
    pub(crate) fn names(&self) -> Names {
        Names::of(Arc::clone(&self.shared))
    }

    /// Regions, failovers, replication: the control plane of the emulator.
    pub(crate) fn control(&self) -> Arc<EmulatorStore> {
        self.shared.emulator.store()
    }

    /// The region joins the account, with all data.
    pub(crate) fn add_region(&self, name: &str) {
        let region = virtual_region(name);
        self.control()
            .add_region(region, SeedingPolicy::Immediate)
            .unwrap();
    }

    /// The account forbids hedges from now on, as its operator can.
    pub(crate) fn forbid_hedging(&self) {
        let config = self.control();
        config
            .config()
            .set_cross_region_hedging_disabled(Some(true));
    }

    /// Whether and how connections to a host can be made from now on.
    pub(crate) fn reach(&self, host: &str, reach: Reach) {
        self.host(host).set_reach(reach);
    }

    /// What a host does instead of answering, from now on; `None`: it answers.
    pub(crate) fn fault(&self, host: &str, fault: Option<Fault>) {
        self.host(host).set_fault(fault);
    }

    /// Answers no read of the account until this is dropped.
    pub(crate) async fn hold_account_reads(&self) -> OwnedRwLockWriteGuard<()> {
        Arc::clone(&self.shared.account_reads).write_owned().await
    }

    /// The names of the documents that a region has, in order.
    pub(crate) async fn stored(&self, region: &str) -> Vec<String> {
        server::documents(&self.shared, self.host(region)).await
    }

    /// What arrived since the last call.
    pub(crate) fn take(&self) -> Sends {
        self.shared.log.take()
    }

    /// What arrived since [`take`](Self::take) was called last.
    pub(crate) fn sends(&self) -> Sends {
        self.shared.log.since_taken()
    }

    fn host(&self, name: &str) -> &Host {
        self.shared
            .hosts
            .iter()
            .find(|host| host.name == name)
            .unwrap_or_else(|| panic!("no host is called {name}"))
    }
}

fn virtual_region(name: &str) -> VirtualRegion {
    let url = format!("http://{}/", domain(name));
    VirtualRegion::new(name, url.parse().unwrap())
}

/// `contoso-westus2.documents.test` for West US 2.
fn domain(region: &str) -> String {
    let region = region.replace(' ', "").to_lowercase();
    format!("{ACCOUNT}-{region}.{DOMAIN}")
}

/// Asks until `holds`, for at most `limit`; says whether it held in time.
pub(crate) async fn until(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let looked = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(limit, looked).await.is_ok()
}
