//! A Cosmos service: its account, and which regions its sends go to.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use http::Uri;
use http_body_util::Empty;
use tower_geo::cosmos::{AccountSettings, CosmosAccount};
use tower_geo::policy::cosmos::{GLOBAL, RegionName};
use tower_geo::policy::region::Endpoint;
use tower_geo::{BackgroundTask, GeoService};

use super::reason;
use crate::format::{self, Cosmos, ServiceKind};
use crate::names::Names;
use crate::problem::Problem;
use crate::stage::Stage;
use crate::transport::{RegionOf, Transport};

/// The regions of the service's account, as far as the drill says which they are.
pub(super) fn names_of_account(service: &format::Service, stage: &Stage) -> Option<Arc<Names>> {
    let (endpoint, _) = parts(service)?;
    let names = stage.accounts().regions_beside(endpoint.authority());
    Some(Arc::new(Names::growing(names)))
}

const fn parts(service: &format::Service) -> Option<(&Endpoint, &Cosmos)> {
    match &service.kind {
        ServiceKind::Cosmos { endpoint, settings } => Some((endpoint, settings)),
        _ => None,
    }
}

/// What the drill says of the account, in the words of the layers.
pub(super) fn settings(settings: &Cosmos) -> AccountSettings {
    AccountSettings::new()
        .preferred(&settings.preferred)
        .excluded(&settings.excluded)
        .multi_write(settings.multi_write)
        .discovery(settings.discovery)
        .refresh(settings.refresh)
        .refresh_jitter(settings.refresh_jitter)
        .mark_for(settings.mark_for)
}

/// Starts what reads the account. It goes over the wire as it is, since nothing here is signed.
pub(super) fn spawn_reader(
    service: &format::Service,
    geo: &GeoService,
    transport: &Transport,
) -> Result<Option<BackgroundTask>, Problem> {
    if !parts(service).is_some_and(|(_, settings)| settings.discovery) {
        return Ok(None);
    }
    let started = geo.spawn_account_reader::<_, Empty<bytes::Bytes>, _>(transport.clone());
    started.map(Some).map_err(|error| {
        Problem::at(
            format!("services.{}.discovery", service.name),
            reason(&error),
        )
    })
}

/// Which region a send goes to, under the number that the result keeps.
pub(super) fn region_of(geo: &GeoService, names: &Arc<Names>, stage: &Arc<Stage>) -> RegionOf {
    let Some(account) = geo.cosmos() else {
        let geo = geo.clone();
        return Arc::new(move |uri| geo.regions().region_of(uri).map(|region| region.index()));
    };
    let known = Mutex::new(Known {
        account,
        reads: 0,
        hosts: HashMap::new(),
    });
    let (geo, names, stage) = (geo.clone(), Arc::clone(names), Arc::clone(stage));
    Arc::new(move |uri| {
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        known.follow(&geo, &names);
        // As the layers write it, so nearly always it is found at once.
        if let Some(region) = known.hosts.get(uri.authority()?.as_str()) {
            return Some(*region);
        }
        let host = authority(uri)?;
        if let Some(region) = known.hosts.get(&host) {
            return Some(*region);
        }
        let accounts = stage.accounts();
        let name = if geo.regions().region_of(uri).is_some() {
            Some(GLOBAL)
        } else {
            // At start hosts are asked whose account nobody has read yet.
            accounts.name_of(&host)
        };
        names.number(name?)
    })
}

/// Which hosts are regions, also those that have left.
#[derive(Debug)]
struct Known {
    /// As it was when it was looked at last; how often it was read is told as of now.
    account: CosmosAccount,
    reads: u64,
    hosts: HashMap<String, usize>,
}

impl Known {
    /// Looks at the account again if it was read since.
    fn follow(&mut self, geo: &GeoService, names: &Names) {
        let reads = self.account.reads();
        if reads == self.reads {
            return;
        }
        self.reads = reads;
        if let Some(account) = geo.cosmos() {
            self.account = account;
        }
        if !self.account.is_known() {
            return;
        }
        for region in self.account.regions() {
            if let Some(number) = names.number(region.name()) {
                self.hosts.insert(region.host().to_owned(), number);
            }
        }
    }
}

/// The host of a request, with the port where it is not the scheme's own.
fn authority(uri: &Uri) -> Option<String> {
    let endpoint = format!("{}://{}", uri.scheme_str()?, uri.authority()?);
    let endpoint = Endpoint::parse(&endpoint).ok()?;
    Some(endpoint.authority().to_owned())
}

/// What is odd about how the drill uses its account.
pub(super) fn puzzles(service: &format::Service, geo: &GeoService, names: &Names) -> Vec<String> {
    let (Some((endpoint, settings)), Some(account)) = (parts(service), geo.cosmos()) else {
        return Vec::new();
    };
    let path = format!("services.{}", service.name);
    if !account.is_known() {
        let host = endpoint.authority();
        return vec![format!(
            "{path}: nobody gave it an account document; `accounts.{host}` makes its hosts do so"
        )];
    }
    if !settings.discovery {
        return Vec::new();
    }
    // Those that it had and those that it has, whoever said so.
    let listed = account.regions();
    let had = names.all();
    let is_known = |name: &str| {
        let name = RegionName::new(name);
        listed.iter().any(|region| name.is(region.name())) || had.iter().any(|had| name.is(had))
    };
    let lists = [
        ("preferred", &settings.preferred),
        ("excluded", &settings.excluded),
    ];
    lists
        .into_iter()
        .flat_map(|(key, names)| names.iter().enumerate().map(move |it| (key, it)))
        .filter(|(_, (_, name))| !is_known(name))
        .map(|(key, (index, name))| {
            format!("{path}.{key}[{index}]: the account never had a region `{name}`")
        })
        .collect()
}
