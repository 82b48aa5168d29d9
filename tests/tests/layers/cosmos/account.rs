//! What is known of the account, who asks for it, and who waits: C3, C4, C11, F7, I8, R10.

use std::error::Error as _;
use std::pin::pin;

use tower::service_fn;
use tower_geo::{
    CircuitBreakerLayer, GeoRedirectLayer, ReadOnlyGateLayer, RequestOptions, RetryLayer,
};

use super::*;

/// C1, C3, C4: the first operation waits for the document, and goes to a region, not to the host
/// that it names. Its answer says which.
#[tokio::test(start_paused = true)]
async fn the_first_read_waits_for_the_account_and_goes_to_a_region() {
    let rig = Rig::new(World::single());
    assert!(!rig.service.cosmos().unwrap().is_known());
    assert_eq!(told(&rig.call(read()).await), "200 West US");
    assert_eq!(rig.world.reads(), [GLOBAL]);
    assert_eq!(rig.world.hosts(), [WEST]);
    assert_eq!(told(&rig.call(write()).await), "200 East US");
    assert_eq!(
        rig.world.reads().len(),
        1,
        "C3: healthy operations read nothing"
    );
    let sent = rig.world.sends();
    assert!(
        sent[0].headers.is_empty() && sent[0].purpose == Some("account"),
        "F7"
    );
}

/// C3: a request for an account that nobody reads ends at once, and says what to do.
#[tokio::test(start_paused = true)]
async fn without_a_reader_the_error_says_so() {
    let mut rig = Rig::new(World::single());
    rig.reader = None;
    let error = rig.call(read()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(
        error.to_string().contains("spawn_account_reader"),
        "{error}"
    );
    assert!(error.was_never_sent());
    assert!(rig.world.sends().is_empty());
}

/// C3: one read for a thousand operations that wait for it.
#[tokio::test(start_paused = true)]
async fn a_thousand_operations_wait_for_one_account_read() {
    let rig = Rig::new(World::single());
    rig.world
        .rule(|seen| (seen.path == "/").then_some(Act::Answer(200, 0, 400)));
    let stack = rig.service.layer().clone_bodies().layer(rig.world.client());
    let calls: Vec<_> = (0..1_000)
        .map(|_| tokio::spawn(stack.clone().oneshot(read())))
        .collect();
    for call in calls {
        assert_eq!(told(&call.await.unwrap()), "200 West US");
    }
    assert_eq!(rig.world.reads().len(), 1);
    assert_eq!(rig.world.elapsed(), ms(405));
}

/// C3: the read belongs to none of those who wait for it.
#[tokio::test(start_paused = true)]
async fn a_caller_that_leaves_takes_no_account_read_along() {
    let rig = Rig::new(World::single());
    rig.world
        .rule(|seen| (seen.path == "/").then_some(Act::Answer(200, 0, 400)));
    let left = tokio::time::timeout(ms(100), rig.call(read())).await;
    assert!(left.is_err());
    assert_eq!(told(&rig.call(read()).await), "200 West US");
    assert_eq!(rig.world.reads().len(), 1);
    assert_eq!(rig.world.elapsed(), ms(405));
}

/// C3: with the reader gone nobody waits in vain; who knows the regions goes on.
#[tokio::test(start_paused = true)]
async fn operations_do_not_outwait_the_reader() {
    let mut rig = Rig::new(World::single());
    rig.world
        .rule(|seen| (seen.path == "/").then_some(Act::Hang));
    let reader = rig.reader.take();
    {
        let mut waiting = pin!(rig.call(read()));
        assert!(tokio::time::timeout(ms(100), &mut waiting).await.is_err());
        drop(reader);
        assert_eq!(told(&waiting.await), "config");
        assert_eq!(rig.world.elapsed(), ms(100));
    }
    rig.world.rule(|_| None);
    let reader = rig
        .service
        .spawn_account_reader(rig.world.client())
        .unwrap();
    assert_eq!(told(&rig.call(read()).await), "200 West US");
    reader.stop();
    tokio::task::yield_now().await;
    assert_eq!(told(&rig.call(read()).await), "200 West US");
    // C5 asks for a fresh read, which nobody makes: the refusal is the answer.
    rig.world
        .rule(|seen| (seen.host == WEST).then_some(Act::Answer(403, 1008, 5)));
    assert_eq!(told(&rig.call(read()).await), "403 West US");
}

/// C3: a second reader takes over the wish that a stopped one has left behind.
#[tokio::test(start_paused = true)]
async fn another_reader_takes_over() {
    let mut rig = Rig::new(World::single());
    rig.world
        .rule(|seen| (seen.path == "/" && seen.at < ms(100)).then_some(Act::Hang));
    let second = rig
        .service
        .spawn_account_reader(rig.world.client())
        .unwrap();
    let reader = rig.reader.take();
    let mut waiting = pin!(rig.call(read()));
    assert!(tokio::time::timeout(ms(200), &mut waiting).await.is_err());
    assert_eq!(rig.world.reads().len(), 1, "one read at a time");
    drop(reader);
    assert_eq!(told(&waiting.await), "200 West US");
    assert_eq!(rig.world.reads().len(), 2);
    second.stop();
}

/// C3: a reader whose client panics lives on.
#[tokio::test(start_paused = true)]
async fn a_client_that_panics_is_no_end_of_the_reader() {
    let world = World::single();
    let service = account().preferred(["West US"]).build().unwrap();
    let asked = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let client = {
        let (world, asked) = (world.clone(), asked.clone());
        service_fn(move |request: Request<Body>| {
            let nth = asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let client = world.client();
            async move {
                assert!(nth >= 2, "the first two reads of a host fail on purpose");
                client.oneshot(request).await
            }
        })
    };
    let _reader = service.spawn_account_reader(client).unwrap();
    let rig = Rig {
        world,
        service,
        reader: None,
    };
    let answer = rig.call(read()).await;
    assert_eq!(told(&answer), "transport", "no host had an answer");
    tokio::time::sleep(ms(1)).await;
    assert_eq!(told(&rig.call(read()).await), "200 West US");
}

/// C3: numbers that are none, from the user's own generator, do not end the reading of the account.
#[tokio::test(start_paused = true)]
async fn no_draw_ends_the_reader() {
    for draw in [f64::NAN, f64::INFINITY, -1.0] {
        let builder = account().random(move || draw).refresh_jitter(secs(5));
        let rig = Rig::of(World::single(), builder);
        assert_eq!(told(&rig.call(read()).await), "200 West US");
        assert!(!rig.reader.as_ref().unwrap().is_finished(), "{draw}");
    }
}

/// C3: 401 and 403 end the wait, with the answer as source; the next operation reads again.
#[tokio::test(start_paused = true)]
async fn a_refused_account_read_is_told() {
    for status in [401, 403] {
        let rig = Rig::new(World::single());
        rig.world
            .rule(move |seen| (seen.path == "/").then_some(Act::Answer(status, 0, 5)));
        let error = rig.call(read()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        let source = error.source().unwrap().to_string();
        assert_eq!(source, format!("the account answered {status}"));
        rig.world.rule(|_| None);
        assert_eq!(told(&rig.call(read()).await), "200 West US");
        assert_eq!(rig.world.reads(), [GLOBAL, GLOBAL]);
    }
}

/// C3: who waits in vain for the first document is told what the account's own host did, whatever
/// that was; the next operation reads again.
#[tokio::test(start_paused = true)]
async fn an_account_that_cannot_be_read_is_told() {
    for (act, told_cause) in [
        (Act::Answer(500, 0, 5), "the account read was answered 500"),
        (Act::Answer(204, 0, 5), "the account read was answered 204"),
        (Act::Refuse, "connection refused"),
        (Act::Hang, "no answer in time"),
    ] {
        let rig = Rig::new(World::single());
        rig.world.rule(move |seen| match seen.path.as_str() {
            "/" if seen.host == GLOBAL => Some(act),
            // Its regions are guesses, of which nobody has to hear.
            "/" => Some(Act::Reset),
            _ => None,
        });
        let error = rig.call(read()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Transport);
        assert!(error.was_never_sent());
        assert!(error.to_string().contains("could not be read"), "{error}");
        assert_eq!(error.source().unwrap().to_string(), told_cause);
        rig.world.rule(|_| None);
        // A read that began at this very moment would do.
        tokio::time::sleep(ms(1)).await;
        assert_eq!(told(&rig.call(read()).await), "200 West US");
    }
    // A document that cannot be used is no answer either: this one would take data off TLS.
    let rig = Rig::new(World::single());
    rig.world.document_is(
        r#"{"readableLocations":[{"name":"East US","databaseAccountEndpoint":"http://e.test"}],
            "writableLocations":[{"name":"East US","databaseAccountEndpoint":"http://e.test"}]}"#,
    );
    let error = rig.call(read()).await.unwrap_err();
    let cause = error.source().unwrap().to_string();
    assert!(
        cause.starts_with("the account document cannot be used"),
        "{cause}"
    );
}

/// C3: at start the preferred regions are asked when the global host has no document.
#[tokio::test(start_paused = true)]
async fn the_preferred_regions_are_asked_at_start() {
    let rig = Rig::new(World::single());
    rig.world
        .rule(|seen| (seen.host == GLOBAL).then_some(Act::Refuse));
    assert_eq!(told(&rig.call(read()).await), "200 West US");
    assert_eq!(rig.world.reads(), [GLOBAL, WEST]);
    let rig = Rig::new(World::single());
    rig.world
        .rule(|seen| (seen.path == "/").then_some(Act::Refuse));
    assert_eq!(told(&rig.call(read()).await), "transport");
    assert_eq!(rig.world.reads(), [GLOBAL, WEST, EAST]);
}

/// C3: read again after the period, and when somebody asks; what the account says holds from then.
#[tokio::test(start_paused = true)]
async fn the_account_is_read_again() {
    let rig = Rig::of(World::single(), account().refresh(secs(60)));
    assert_eq!(told(&rig.call(read()).await), "200 West US");
    tokio::time::sleep(secs(150)).await;
    assert_eq!(rig.world.reads().len(), 3, "C3: idle reads go on");
    rig.world
        .becomes(&["East US", "Central US"], &["Central US"], false);
    rig.service.cosmos().unwrap().refresh();
    tokio::time::sleep(ms(10)).await;
    assert_eq!(rig.world.reads().len(), 4);
    assert_eq!(told(&rig.call(read()).await), "200 East US");
    assert_eq!(told(&rig.call(write()).await), "200 Central US");
    let view = rig.service.cosmos().unwrap();
    let names: Vec<_> = view.regions().iter().map(|r| r.name().to_owned()).collect();
    assert_eq!(names, ["Central US", "East US"]);
    assert!(view.regions()[0].takes_writes() && !view.regions()[1].takes_writes());
}

/// C4: with discovery off there is the given host, and nobody to read the account.
#[tokio::test(start_paused = true)]
async fn with_discovery_off_there_is_one_host() {
    let world = World::single();
    let service = account().discovery(false).build().unwrap();
    assert!(service.spawn_account_reader(world.client()).is_err());
    let rig = Rig {
        world,
        service,
        reader: None,
    };
    let answer = rig.call(read()).await;
    assert_eq!(
        told(&answer),
        "200 -",
        "E2: the first answer of the host that it names"
    );
    rig.world.rule(|_| Some(Act::Answer(503, 0, 5)));
    assert_eq!(told(&rig.call(read()).await), "503 global");
    assert_eq!(rig.world.hosts(), [GLOBAL, GLOBAL]);
    assert!(rig.world.reads().is_empty());
}

/// F7: only an account has a reader.
#[tokio::test(start_paused = true)]
async fn other_services_have_no_account_to_read() {
    let world = World::single();
    assert!(service().spawn_account_reader(world.client()).is_err());
    assert!(service().cosmos().is_none());
}

/// I8: requests to other hosts pass untouched; one without a host is a mistake.
#[tokio::test(start_paused = true)]
async fn other_hosts_pass() {
    let rig = Rig::new(World::single());
    let foreign = request(Method::POST, "login.example.com", "/token");
    assert_eq!(told(&rig.call(foreign).await), "200 -");
    assert_eq!(rig.world.hosts(), ["login.example.com"]);
    let mut relative = read();
    *relative.uri_mut() = "/dbs".parse().unwrap();
    assert_eq!(told(&rig.call(relative).await), "config");
}

/// R10, C11: a request that names a region, or is pinned to one, stays there; one may leave
/// regions out.
#[tokio::test(start_paused = true)]
async fn a_request_may_choose_among_the_regions() {
    let rig = Rig::new(World::single());
    assert_eq!(told(&rig.call(read()).await), "200 West US");
    rig.world.forget();
    let by_host = request(Method::GET, CENTRAL, "/dbs/shop/colls/orders/docs/1");
    assert_eq!(
        told(&rig.call(by_host).await),
        "200 -",
        "it is where it says"
    );
    let with = |options: RequestOptions| {
        let mut read = read();
        read.extensions_mut().insert(options);
        read
    };
    let pinned = RequestOptions::new().pin(tower_geo::RegionRef::Named("centralus".into()));
    assert_eq!(
        told(&rig.call(with(pinned.clone())).await),
        "200 Central US"
    );
    let without = RequestOptions::new().excluded(["West US"]);
    assert_eq!(told(&rig.call(with(without)).await), "200 East US");
    let nowhere = RequestOptions::new().excluded(["West US", "East US", "Central US"]);
    assert_eq!(told(&rig.call(with(nowhere)).await), "config");
    assert_eq!(rig.world.hosts(), [CENTRAL, CENTRAL, EAST]);
    let mut pinned_write = write();
    pinned_write.extensions_mut().insert(pinned);
    assert_eq!(told(&rig.call(pinned_write).await), "config", "R1");
    assert_eq!(rig.world.hosts().len(), 3);
}

/// E4: each layer alone. Nothing directs a send where there is no redirect, so Retry alone says so
/// instead of sending data to the global host (C4).
#[tokio::test(start_paused = true)]
async fn each_layer_alone_keeps_its_word() {
    let rig = Rig::new(World::single());
    assert_eq!(told(&rig.call(read()).await), "200 West US");
    let service = || rig.service.clone();
    let redirect = GeoRedirectLayer::new(service()).clone_bodies();
    let alone = redirect.layer(rig.world.client()).oneshot(read()).await;
    assert_eq!(told(&alone), "200 West US");
    let gate = ReadOnlyGateLayer::new(service()).layer(rig.world.client());
    assert_eq!(told(&gate.oneshot(write()).await), "200 -");
    let breaker = CircuitBreakerLayer::new(service()).layer(rig.world.client());
    assert_eq!(told(&breaker.oneshot(write()).await), "200 -");
    // Another service, because this one has a redirect.
    let fresh = Rig::new(World::single());
    let retry = RetryLayer::new(fresh.service.clone()).clone_bodies();
    let error = retry.layer(fresh.world.client()).oneshot(read()).await;
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("GeoRedirectLayer"), "{error}");
}

/// B9: an operator names regions as the account does.
#[tokio::test(start_paused = true)]
async fn an_operator_names_regions() {
    let rig = Rig::new(World::single());
    assert_eq!(told(&rig.call(read()).await), "200 West US");
    let west = tower_geo::RegionRef::Named("West US".into());
    rig.service.operator().force_open(&west).unwrap();
    assert_eq!(told(&rig.call(read()).await), "200 East US");
    rig.service.operator().automatic(&west).unwrap();
    assert_eq!(told(&rig.call(read()).await), "200 West US");
    let mars = tower_geo::RegionRef::Named("Mars".into());
    let error = rig.service.operator().force_open(&mars).unwrap_err();
    assert!(error.to_string().contains("West US"), "{error}");
    // C4: the account's own host is none of the regions, so nobody is told to name it.
    assert!(!error.to_string().contains("global"), "{error}");
    let global = tower_geo::RegionRef::Named("global".into());
    let mut pinned = read();
    pinned
        .extensions_mut()
        .insert(RequestOptions::new().pin(global));
    let error = rig.call(pinned).await.unwrap_err().to_string();
    assert!(
        error.ends_with("it has East US, West US, Central US"),
        "{error}"
    );
    assert!(
        rig.service
            .operator()
            .set_location_mode(tower_geo::LocationMode::PrimaryOnly)
            .is_err()
    );
}

/// G4: in maintenance writes are refused, and no read asks the region that takes them.
#[tokio::test(start_paused = true)]
async fn maintenance_spares_the_writer() {
    let rig = Rig::of(World::single(), account().preferred(["East US"]));
    assert!(
        rig.service.operator().begin_maintenance().is_err(),
        "nothing is known yet"
    );
    assert_eq!(told(&rig.call(read()).await), "200 East US");
    rig.service.operator().begin_maintenance().unwrap();
    assert_eq!(told(&rig.call(read()).await), "200 West US");
    assert_eq!(told(&rig.call(write()).await), "read-only");
    rig.service.operator().end_maintenance();
    assert_eq!(told(&rig.call(read()).await), "200 East US");
}
