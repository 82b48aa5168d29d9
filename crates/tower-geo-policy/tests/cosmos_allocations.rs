//! A healthy operation on a Cosmos DB account allocates nothing (E2).

use std::alloc::System;
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

use http::{HeaderMap, StatusCode};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region as Watch, StatsAlloc};
use tower_geo_policy::cosmos::operation::{Answer, Context, Operation, Step};
use tower_geo_policy::cosmos::{AccountSettings, AccountState, Cosmos, ReadStep, RequestKind};
use tower_geo_policy::operation::{self, Again, Fate, Reach};
use tower_geo_policy::region::{Endpoint, Region, RegionId, Regions};
use tower_geo_policy::retry_settings::RetrySettings;
use tower_geo_policy::service_state::{ServiceConfig, ServiceRoot};
use tower_geo_policy::tick::Tick;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const DOCUMENT: &str = r#"{
    "writableLocations": [
        {"name": "East US", "databaseAccountEndpoint": "https://acct-eastus.documents.azure.com:443/"}],
    "readableLocations": [
        {"name": "East US", "databaseAccountEndpoint": "https://acct-eastus.documents.azure.com:443/"},
        {"name": "West US", "databaseAccountEndpoint": "https://acct-westus.documents.azure.com:443/"}]}"#;

/// E2: from the first decision to the answer, also though the request is directed to a region.
#[test]
fn a_healthy_operation_allocates_nothing() {
    let given = Endpoint::parse("https://acct.documents.azure.com").unwrap();
    let settings = AccountSettings::new().preferred(["West US"]);
    let account = AccountState::new(given.clone(), settings).unwrap();
    let now = Tick::ZERO + Duration::from_secs(1);
    assert_eq!(account.read_step(now), ReadStep::Begin);
    let mut read = account.begin_read();
    let _ = read.answered(StatusCode::OK, DOCUMENT.as_bytes(), now, 0.0);
    drop(read);

    let regions = Regions::new(vec![Region::new("slot 0", given).writable(true)]).unwrap();
    #[expect(clippy::disallowed_methods, reason = "any instant will do as the base")]
    let base = Instant::now();
    let config = ServiceConfig::new("docs", Arc::new(Cosmos::new()), regions, base, ());
    let root = ServiceRoot::build(config).unwrap();
    let state = root.handle();
    let retry = RetrySettings::new();
    let headers = HeaderMap::new();

    let play = |kind| {
        let service = operation::Context {
            state: &state,
            settings: &retry,
            budgets: &[],
            advice: None,
            copies: None,
        };
        let context = Context::new(service, &account);
        let mut operation = Operation::new(kind, RegionId::FIRST, Reach::Everywhere);
        let directed = match operation.next(&context, Again::Possible, now, &mut || 0.5) {
            Step::Send(directed) => directed.plan.directed,
            _ => false,
        };
        let answer = Answer::read(StatusCode::OK, &headers, || UNIX_EPOCH);
        (directed, operation.answered(&context, &answer, now))
    };
    for kind in [RequestKind::Read, RequestKind::DocumentWrite] {
        let watch = Watch::new(ALLOCATOR);
        let ended = play(kind);
        let change = watch.change();
        assert_eq!(ended, (true, Fate::Deliver { told: true }));
        assert_eq!(change.allocations + change.reallocations, 0, "{kind:?}");
    }
}
