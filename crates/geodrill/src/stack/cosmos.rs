//! A Cosmos service: its account, and which regions its sends go to.

use std::sync::Arc;

use tower_geo::GeoService;

use crate::format::{self, ServiceKind};
use crate::names::Names;
use crate::stage::Stage;
use crate::transport::RegionOf;

/// The regions of the service's account, as far as the drill says which they are.
pub(super) fn names_of_account(service: &format::Service, stage: &Stage) -> Option<Arc<Names>> {
    let ServiceKind::Cosmos { endpoint, .. } = &service.kind else {
        return None;
    };
    let names = stage.accounts().regions_beside(endpoint.authority());
    Some(Arc::new(Names::growing(names)))
}

/// Which region a send goes to, under the number that the result keeps.
pub(super) fn region_of(geo: &GeoService, _names: &Arc<Names>, _stage: &Arc<Stage>) -> RegionOf {
    let geo = geo.clone();
    Arc::new(move |uri| geo.regions().region_of(uri).map(|region| region.index()))
}

/// What is odd about how the drill uses its account.
pub(super) fn puzzles(_service: &format::Service, _geo: &GeoService) -> Vec<String> {
    Vec::new()
}
