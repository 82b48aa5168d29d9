//! What is told of an account: events, errors, metrics (B10, E1, E3).

use std::sync::{Arc, Mutex};

use tower_geo::{Event, EventKind};

use super::*;

/// B10: events name regions as the account does, also one that came later.
#[tokio::test(start_paused = true)]
async fn events_name_the_regions_of_the_moment() {
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let listener = {
        let heard = Arc::clone(&heard);
        move |event: &Event| {
            if let EventKind::Breaker { region, to, .. } = event.kind {
                let word = format!("{} {to:?}", event.region_name(region));
                heard.lock().unwrap().push(word);
            }
        }
    };
    let builder = account()
        .breaker(breaker().streak(1))
        .listener(Arc::new(listener));
    let world = World::new(&["East US"], &["East US"], false);
    let rig = Rig::of(world, builder);
    rig.world
        .rule(|seen| (seen.path != "/").then_some(Act::Answer(503, 0, 5)));
    assert_eq!(told(&rig.call(read()).await), "503 East US");
    rig.world
        .becomes(&["East US", "West US"], &["East US"], false);
    rig.service.cosmos().unwrap().refresh();
    tokio::time::sleep(ms(10)).await;
    assert_eq!(told(&rig.call(read()).await), "503 West US");
    assert_eq!(*heard.lock().unwrap(), ["East US Open", "West US Open"]);
    // R7: now no region admits a read.
    let error = rig.call(read()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BreakerOpen);
    assert!(error.retry_after().is_some());
}

/// E1, E3: an error tells the regions that were tried by the names that they had, and no more.
#[tokio::test(start_paused = true)]
async fn an_error_tells_what_was_tried() {
    let rig = Rig::new(World::single());
    rig.world
        .rule(|seen| (seen.path != "/").then_some(Act::Reset));
    let mut secret = request(
        Method::GET,
        GLOBAL,
        "/dbs/shop/colls/orders/docs/1?sig=hush",
    );
    secret
        .headers_mut()
        .insert("authorization", "hush".parse().unwrap());
    let error = rig.call(secret).await.unwrap_err();
    let text = format!("{error} {error:?}");
    for region in ["West US", "East US", "Central US", GLOBAL] {
        assert!(text.contains(region), "{text}");
    }
    assert!(!text.contains("hush"), "{text}");
    assert_eq!(error.trail().sends().len(), 3);
    assert_eq!(error.name_of(error.trail().sends()[0].region), "West US");
    // The account has changed meanwhile; what was tried has not.
    rig.world.becomes(&["East US"], &["East US"], false);
    rig.service.cosmos().unwrap().refresh();
    tokio::time::sleep(ms(10)).await;
    assert_eq!(error.name_of(error.trail().sends()[0].region), "West US");
}

/// T9: the user's advice is asked before every further send, and may choose another region.
#[tokio::test(start_paused = true)]
async fn advice_is_asked() {
    use tower_geo::policy::operation::{Advice, Advised, Planned};
    use tower_geo::{RegionId, Trail};

    #[derive(Debug, Default)]
    struct ToCentral(Mutex<Option<RegionId>>);
    impl Advice for ToCentral {
        fn advise(&self, trail: &Trail, planned: &Planned) -> Advised {
            assert_eq!(trail.sends().len(), 1);
            match *self.0.lock().unwrap() {
                Some(region) if region != planned.region => Advised::To(region),
                _ => Advised::Proceed,
            }
        }
    }
    let advice = Arc::new(ToCentral::default());
    let rig = Rig::of(World::single(), account().advice(advice.clone()));
    assert_eq!(told(&rig.call(read()).await), "200 West US");
    let regions = rig.service.cosmos().unwrap().regions();
    let central = regions.iter().find(|r| r.name() == "Central US").unwrap();
    *advice.0.lock().unwrap() = Some(central.id());
    rig.world
        .rule(|seen| (seen.host == WEST).then_some(Act::Answer(503, 0, 5)));
    assert_eq!(told(&rig.call(read()).await), "200 Central US");
}

/// E3: metrics know the regions of the moment by name and host; budgets and circuits are each one's.
#[tokio::test(start_paused = true)]
async fn metrics_name_the_regions_of_the_moment() {
    use tower::ServiceBuilder;
    use tower_geo::telemetry::Metrics;

    use crate::watching::Metered;

    let rig = Rig::new(World::single());
    let metered = Metered::new();
    // Before anything is known of the account.
    let metrics = Metrics::new(&metered.meter(), &rig.service);
    let stack = ServiceBuilder::new()
        .layer(metrics.operations())
        .layer(rig.service.layer().clone_bodies())
        .layer(metrics.sends())
        .service(rig.world.client());
    rig.world
        .rule(|seen| (seen.host == WEST).then_some(Act::Answer(503, 0, 5)));
    assert!(stack.oneshot(read()).await.is_ok());
    let sends = metered.of("http.client.request.duration");
    let hosts = [("West US", WEST), ("East US", EAST)];
    assert_eq!(sends.len(), 2);
    for (name, host) in hosts {
        let found = sends.iter().any(|(key, count)| {
            let (region, address) = (format!("region={name}"), format!("server.address={host}"));
            key.contains(&region) && key.contains(&address) && (*count - 1.0).abs() < f64::EPSILON
        });
        assert!(found, "{name}: {sends:?}");
    }
    let circuits = metered.of("tower_geo.circuit.state");
    for name in ["West US", "East US", "Central US"] {
        let region = format!("region={name}");
        assert!(
            circuits.iter().any(|(key, _)| key.contains(&region)),
            "{circuits:?}"
        );
    }
}
