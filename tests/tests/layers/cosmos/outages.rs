//! Regions that fail: what it costs the callers (C5 to C8, C10, C15, H1 to H3).

use std::time::Duration;

use tower_geo::{Circuit, RegionRef, SendKind};

use super::*;

async fn at(rig: &Rig, seconds: u64) {
    let until = secs(seconds).saturating_sub(rig.world.elapsed());
    tokio::time::sleep(until).await;
}

/// C8: the name of the hub is gone and the account has another: writes that are made one at a time
/// get there within 20 s.
#[tokio::test(start_paused = true)]
async fn a_hub_whose_name_is_gone_is_left_within_twenty_seconds() {
    let rig = Rig::new(World::single());
    assert_eq!(told(&rig.call(write()).await), "200 East US");
    at(&rig, 60).await;
    rig.world.rule(|seen| {
        (seen.host == EAST || seen.host == GLOBAL && seen.at < secs(62)).then_some(Act::Refuse)
    });
    rig.world
        .becomes(&["West US", "Central US"], &["West US"], false);
    let mut answers = Vec::new();
    let left_after = loop {
        let answer = rig.call(write()).await;
        answers.push(told(&answer));
        if answer.is_ok() {
            break rig.world.elapsed() - secs(60);
        }
        assert!(rig.world.elapsed() < secs(120), "{answers:?}");
        tokio::time::sleep(secs(1)).await;
    };
    assert!(left_after <= secs(20), "{left_after:?}");
    assert_eq!(answers.last().unwrap(), "200 West US");
    // From now on at once.
    rig.world.forget();
    assert_eq!(told(&rig.call(write()).await), "200 West US");
    assert_eq!(rig.world.hosts(), [WEST]);
}

/// C7, C8, G1: the account names a new writer only when the circuit of the old one is open and
/// writes are refused already. Those that are refused find out.
#[tokio::test(start_paused = true)]
async fn a_gate_that_is_shut_does_not_hide_a_new_writer() {
    let rig = Rig::of(World::single(), account().breaker(breaker().streak(1)));
    assert_eq!(told(&rig.call(write()).await), "200 East US");
    rig.world
        .rule(|seen| (seen.host == EAST).then_some(Act::Refuse));
    let mut answers = Vec::new();
    let left_after = loop {
        if rig.world.elapsed() > secs(10) {
            rig.world
                .becomes(&["West US", "Central US"], &["West US"], false);
        }
        let answer = told(&rig.call(write()).await);
        answers.push(answer.clone());
        if answer.starts_with("200") {
            break rig.world.elapsed();
        }
        assert!(rig.world.elapsed() < secs(120), "{answers:?}");
        tokio::time::sleep(secs(1)).await;
    };
    assert_eq!(answers.last().unwrap(), "200 West US");
    assert!(answers.contains(&"read-only".to_owned()), "{answers:?}");
    assert!(left_after <= secs(20), "{left_after:?}: {answers:?}");
    // At start, for the first failure, for the circuit, then every 15 s.
    assert!(rig.world.reads().len() <= 5, "{:?}", rig.world.reads());
}

/// C7: a region that swallows everything costs a time-out to at most ten reads made one at a time.
#[tokio::test(start_paused = true)]
async fn a_black_hole_costs_ten_reads_a_time_out() {
    let rig = Rig::of(World::single(), account().breaker(breaker().streak(10)));
    assert_eq!(told(&rig.call(read()).await), "200 West US");
    rig.world
        .rule(|seen| (seen.host == WEST).then_some(Act::Hang));
    let mut slow = 0;
    for _ in 0..100 {
        let begun = rig.world.elapsed();
        assert_eq!(told(&rig.call(read()).await), "200 East US");
        slow += u32::from(rig.world.elapsed() - begun > secs(1));
    }
    assert_eq!(slow, 10);
    let view = rig.service.cosmos().unwrap();
    let west = view
        .regions()
        .into_iter()
        .find(|r| r.name() == "West US")
        .unwrap();
    assert!(
        west.is_marked(Circuit::Reads) && !west.is_marked(Circuit::Writes),
        "C10"
    );
    assert_eq!(
        rig.world.reads().len(),
        2,
        "C7: at start, and when the circuit opened"
    );
}

/// C10, C13: back to the region when its mark has ended.
#[tokio::test(start_paused = true)]
async fn a_region_is_used_again_when_its_mark_has_ended() {
    let rig = Rig::new(World::single());
    assert_eq!(told(&rig.call(read()).await), "200 West US");
    rig.world
        .rule(|seen| (seen.host == WEST).then_some(Act::Refuse));
    assert_eq!(told(&rig.call(read()).await), "200 East US");
    rig.world.rule(|_| None);
    tokio::time::sleep(secs(299)).await;
    assert_eq!(told(&rig.call(read()).await), "200 East US");
    tokio::time::sleep(secs(2)).await;
    assert_eq!(told(&rig.call(read()).await), "200 West US");
}

/// C8: once more on a new connection, which the client is told to make; then the next region.
#[tokio::test(start_paused = true)]
async fn a_second_connection_is_asked_for() {
    let rig = Rig::new(World::single());
    assert_eq!(told(&rig.call(read()).await), "200 West US");
    rig.world.forget();
    rig.world
        .rule(|seen| (seen.host == WEST && !seen.asks_for_a_new_connection).then_some(Act::Refuse));
    let answer = rig.call(read()).await.unwrap();
    let served = Served::of(answer.extensions()).unwrap();
    assert_eq!(served.region_name(), "West US");
    let kinds: Vec<_> = served
        .trail()
        .sends()
        .iter()
        .map(|send| send.kind)
        .collect();
    assert_eq!(kinds, [SendKind::First, SendKind::Retry]);
    assert_eq!(served.name_of(served.trail().sends()[0].region), "West US");
    let asked: Vec<_> = rig
        .world
        .sends()
        .iter()
        .map(|s| s.asks_for_a_new_connection)
        .collect();
    assert_eq!(asked, [false, true]);
    rig.world.forget();
    assert_eq!(
        told(&rig.call(read()).await),
        "200 West US",
        "no mark: the second one worked"
    );
}

/// C5: a region that has left is told by 403/1008; the account is read, then the read goes on.
/// Later ones go there at once.
#[tokio::test(start_paused = true)]
async fn a_region_that_is_gone_is_left_for_good() {
    let rig = Rig::new(World::single());
    assert_eq!(told(&rig.call(read()).await), "200 West US");
    rig.world
        .becomes(&["East US", "Central US"], &["East US"], false);
    rig.world
        .rule(|seen| (seen.host == WEST).then_some(Act::Answer(403, 1008, 5)));
    assert_eq!(told(&rig.call(read()).await), "200 East US");
    assert_eq!(rig.world.reads().len(), 2);
    rig.world.forget();
    assert_eq!(told(&rig.call(read()).await), "200 East US");
    assert_eq!(rig.world.hosts(), [EAST]);
}

/// C6: a region that lags behind the session; single-write: the writer, once.
#[tokio::test(start_paused = true)]
async fn a_session_that_a_region_lacks_is_found_at_the_writer() {
    let rig = Rig::of(
        World::single(),
        account().preferred(["West US", "Central US"]),
    );
    assert_eq!(told(&rig.call(read()).await), "200 West US");
    rig.world.forget();
    rig.world
        .rule(|seen| (seen.host == WEST).then_some(Act::Answer(404, 1002, 5)));
    let mut request = read();
    request
        .headers_mut()
        .insert("x-ms-session-token", "0:1#9".parse().unwrap());
    assert_eq!(told(&rig.call(request).await), "200 East US");
    assert_eq!(rig.world.hosts(), [WEST, EAST]);
    assert!(
        rig.world
            .sends()
            .iter()
            .all(|s| s.headers.contains_key("x-ms-session-token"))
    );
}

/// C9: 429 is waited for in the same region.
#[tokio::test(start_paused = true)]
async fn a_throttled_read_waits_in_its_region() {
    let rig = Rig::new(World::single());
    assert_eq!(told(&rig.call(read()).await), "200 West US");
    let begun = rig.world.elapsed();
    rig.world
        .rule(move |seen| (seen.at < begun + secs(1)).then_some(Act::Answer(429, 3200, 0)));
    rig.world.forget();
    assert_eq!(told(&rig.call(read()).await), "200 West US");
    assert_eq!(rig.world.hosts(), [WEST, WEST]);
    assert_eq!(
        rig.world.elapsed() - begun,
        secs(5) + ms(5),
        "C9: 5 s where none is told"
    );
}

/// H1, H2: another region is asked beside the first; the first final answer wins, and 404/1002 is
/// none (C15).
#[tokio::test(start_paused = true)]
async fn a_slow_read_is_hedged() {
    let rig = Rig::of(World::single(), account().retry(retry().hedge(ms(100))));
    assert_eq!(told(&rig.call(read()).await), "200 West US");
    rig.world.forget();
    rig.world
        .rule(|seen| (seen.host == WEST).then_some(Act::Hang));
    let begun = rig.world.elapsed();
    assert_eq!(told(&rig.call(read()).await), "200 East US");
    assert_eq!(rig.world.elapsed() - begun, ms(105));
    assert_eq!(rig.world.hosts(), [WEST, EAST]);

    rig.world.forget();
    rig.world.rule(|seen| match &*seen.host {
        WEST => Some(Act::Answer(200, 0, 300)),
        EAST => Some(Act::Answer(404, 1002, 5)),
        _ => None,
    });
    assert_eq!(
        told(&rig.call(read()).await),
        "200 West US",
        "a fast failure does not win"
    );
    assert_eq!(rig.world.hosts(), [WEST, EAST]);

    // H1: writes are not hedged.
    rig.world.forget();
    rig.world
        .rule(|seen| (seen.host == EAST).then_some(Act::Answer(200, 0, 500)));
    assert_eq!(told(&rig.call(write()).await), "200 East US");
    assert_eq!(rig.world.hosts(), [EAST]);
}

/// C11, H3: a hedge leaves out what is excluded.
#[tokio::test(start_paused = true)]
async fn a_hedge_leaves_excluded_regions_out() {
    let builder = account()
        .retry(retry().hedge(ms(100)))
        .excluded(["East US"]);
    let rig = Rig::of(World::single(), builder);
    assert_eq!(told(&rig.call(read()).await), "200 West US");
    rig.world.forget();
    rig.world
        .rule(|seen| (seen.host == WEST).then_some(Act::Hang));
    assert_eq!(told(&rig.call(read()).await), "200 Central US");
    assert_eq!(rig.world.hosts(), [WEST, CENTRAL]);
}

/// T3: the deadline bounds the wait for the account, too.
#[tokio::test(start_paused = true)]
async fn the_deadline_ends_the_wait_for_the_account() {
    let builder = account().retry(retry().deadline(secs(3)));
    let rig = Rig::of(World::single(), builder);
    rig.world
        .rule(|seen| (seen.path == "/").then_some(Act::Hang));
    assert_eq!(told(&rig.call(read()).await), "transport");
    assert_eq!(rig.world.elapsed(), secs(3));
}

/// G1: a multi-write account is read-only only while circuits of all regions that take writes are
/// open; a trial write opens it again (B4).
#[tokio::test(start_paused = true)]
async fn writes_are_refused_while_no_region_takes_them() {
    let builder = account().breaker(breaker().streak(1));
    let rig = Rig::of(World::multi(), builder);
    assert_eq!(told(&rig.call(write()).await), "200 West US");
    rig.world
        .rule(|seen| (seen.host == WEST).then_some(Act::Answer(503, 0, 5)));
    assert_eq!(told(&rig.call(write()).await), "200 East US");
    assert_eq!(rig.service.gate().status, tower_geo::GateStatus::ReadWrite);
    rig.world
        .rule(|seen| (seen.path != "/").then_some(Act::Answer(503, 0, 5)));
    assert_eq!(told(&rig.call(write()).await), "503 Central US");
    assert_eq!(rig.service.gate().status, tower_geo::GateStatus::ReadOnly);
    rig.world.forget();
    assert_eq!(told(&rig.call(write()).await), "read-only");
    assert!(rig.world.hosts().is_empty());
    rig.world.rule(|_| None);
    tokio::time::sleep(secs(31)).await;
    assert!(told(&rig.call(write()).await).starts_with("200"));
    assert_eq!(rig.service.gate().status, tower_geo::GateStatus::ReadWrite);
}

/// B1: circuits are per region of the account, found by its name.
#[tokio::test(start_paused = true)]
async fn circuits_are_per_region() {
    let rig = Rig::of(World::single(), account().breaker(breaker().streak(2)));
    assert_eq!(told(&rig.call(read()).await), "200 West US");
    rig.world
        .rule(|seen| (seen.host == WEST).then_some(Act::Answer(503, 0, 5)));
    for _ in 0..2 {
        assert_eq!(told(&rig.call(read()).await), "200 East US");
    }
    let open = |name: &str| {
        let region = RegionRef::Named(name.to_owned());
        phase(&rig.service, &region, Circuit::Reads) == tower_geo::CircuitPhase::Open
    };
    assert!(open("West US") && !open("East US") && !open("Central US"));
    rig.world.forget();
    assert_eq!(told(&rig.call(read()).await), "200 East US");
    assert_eq!(rig.world.hosts(), [EAST]);
    let _: Duration = rig.world.elapsed();
}
