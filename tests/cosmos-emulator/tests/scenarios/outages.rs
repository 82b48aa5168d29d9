//! Regions that cannot be reached, say nothing, fail or are busy (C7, C8, C9).

use std::time::Duration;

use tokio::time::Instant;
use tower_geo::{Circuit, ErrorKind, RetrySettings};

use crate::app::{App, trail_text};
use crate::peer::{CENTRAL, EAST, Fault, Peer, Reach, WEST};

/// C8: the hub is taken offline, its name is gone, and another region is the hub already.
#[tokio::test]
async fn a_write_follows_the_new_hub_when_the_name_of_the_old_one_is_gone() {
    let peer = Peer::single(&[WEST, EAST, CENTRAL]).await;
    let (app, _reader) = App::preferring(&peer, &[CENTRAL]);
    app.create("1").await.unwrap();
    peer.take();

    peer.control().set_region_offline(WEST).unwrap();
    peer.reach(WEST, Reach::HasNoName);
    let moved = app.create("2").await.unwrap();
    assert_eq!(moved.trail, ["West US dns", "West US dns", "East US 201"]);
    app.create("3").await.unwrap();
    app.read("1").await.unwrap();
    let sends = peer.take();
    assert_eq!(
        sends.data,
        ["POST East US 201", "POST East US 201", "GET Central US 200"]
    );
    assert_eq!(sends.account, ["GET global 200"]);
    assert_eq!(peer.stored(EAST).await, ["1", "2", "3"]);
}

/// C8: the hub is gone before the account says so: writes fail as surely not sent, and follow the
/// new hub within 20 s of its appearance. (The official client waits for its read every 300 s.)
#[tokio::test]
async fn a_hub_whose_name_is_gone_is_left_within_20_seconds() {
    let peer = Peer::single(&[WEST, EAST, CENTRAL]).await;
    let (app, _reader) = App::preferring(&peer, &[CENTRAL]);
    app.create("1").await.unwrap();
    peer.take();

    let gone = Instant::now();
    peer.reach(WEST, Reach::HasNoName);
    let error = app.create("2").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transport, "{error}");
    assert!(error.was_never_sent());
    assert_eq!(
        trail_text(error.trail(), |region| error.name_of(region)),
        ["West US dns", "West US dns"]
    );

    peer.control().set_region_offline(WEST).unwrap();
    let limit = gone + Duration::from_secs(20);
    let mut tries = 0;
    while let Err(error) = app.create("2").await {
        assert!(error.was_never_sent(), "{error}");
        assert!(Instant::now() < limit, "after {tries} tries: {error}");
        tries += 1;
        // Its callers come back after a moment.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(Instant::now() < limit, "after {tries} tries");
    let sends = peer.take();
    assert_eq!(sends.data, ["POST East US 201"]);
    assert_eq!(sends.account.len(), 2);
}

/// C8: what refuses connections is tried once more and then left, by reads and by writes.
#[tokio::test]
async fn a_region_that_refuses_connections_is_left_for_last() {
    let peer = Peer::multi(&[WEST, EAST, CENTRAL]).await;
    let (app, _reader) = App::preferring(&peer, &[EAST, CENTRAL]);
    app.create("1").await.unwrap();
    peer.take();

    peer.reach(EAST, Reach::Refuses);
    let read = app.read("1").await.unwrap();
    assert_eq!(
        read.trail,
        ["East US connect", "East US connect", "Central US 200"]
    );
    assert!(app.is_marked(EAST, Circuit::Reads) && app.is_marked(EAST, Circuit::Writes));
    app.create("2").await.unwrap();
    app.read("2").await.unwrap();
    assert_eq!(
        peer.take().data,
        [
            "GET Central US 200",
            "POST Central US 201",
            "GET Central US 200"
        ]
    );
}

/// C7: reads made one at a time lose at most ten time-outs to a region that says nothing.
#[tokio::test]
async fn a_black_hole_costs_at_most_ten_time_outs() {
    let peer = Peer::single(&[WEST, EAST, CENTRAL]).await;
    let quick = RetrySettings::new().attempt_timeout(Duration::from_millis(400));
    let (app, _reader) = App::with(&peer, |account| {
        account.preferred([EAST, CENTRAL]).retry(quick)
    });
    app.create("1").await.unwrap();
    peer.take();

    peer.fault(EAST, Some(Fault::Silence));
    for _ in 0..25 {
        assert_eq!(app.read("1").await.unwrap().status, 200);
    }
    let sends = peer.take();
    let lost = sends.data.iter().filter(|send| *send == "GET East US -");
    let lost = lost.count();
    assert!((1..=10).contains(&lost), "{lost}");
    assert_eq!(sends.data.len(), 25 + lost);
    assert_eq!(sends.account, ["GET global 200"], "a circuit opened");
    assert!(app.is_marked(EAST, Circuit::Reads));
}

/// C15, H1: a slow region is hedged, unless the account forbids it.
#[tokio::test]
async fn a_read_is_hedged_unless_the_account_forbids_it() {
    let peer = Peer::single(&[WEST, EAST, CENTRAL]).await;
    let hedged = RetrySettings::new()
        .attempt_timeout(Duration::from_secs(2))
        .hedge(Duration::from_millis(50));
    let (app, _reader) = App::with(&peer, |account| {
        account.preferred([EAST, CENTRAL]).retry(hedged)
    });
    app.create("1").await.unwrap();
    peer.fault(EAST, Some(Fault::Silence));
    let read = app.read("1").await.unwrap();
    assert_eq!(read.trail, ["East US dropped", "Central US 200"]);

    peer.forbid_hedging();
    app.refresh().await;
    let read = app.read("1").await.unwrap();
    assert_eq!(read.trail, ["East US timeout", "Central US 200"]);
}

/// C7: a read moves on from a failing region; a write does only where others take it too.
#[tokio::test]
async fn a_read_leaves_a_failing_region_and_a_write_only_where_others_take_it() {
    for (peer, expected) in [
        (
            Peer::single(&[WEST, EAST]).await,
            ["GET West US 503", "GET East US 200", "POST West US 503"].as_slice(),
        ),
        (
            Peer::multi(&[WEST, EAST]).await,
            &[
                "GET West US 503",
                "GET East US 200",
                "POST West US 503",
                "POST East US 201",
            ],
        ),
    ] {
        let (app, _reader) = App::preferring(&peer, &[WEST]);
        app.create("1").await.unwrap();
        peer.take();
        peer.fault(WEST, Some(Fault::status(503)));
        assert_eq!(app.read("1").await.unwrap().status, 200);
        app.create("2").await.unwrap();
        assert_eq!(peer.take().data, expected);
    }
}

/// C9: a busy region is asked again when it said, and no other is.
#[tokio::test]
async fn a_busy_region_is_asked_again_in_place() {
    let peer = Peer::single(&[WEST, EAST]).await;
    let (app, _reader) = App::preferring(&peer, &[EAST]);
    app.create("1").await.unwrap();
    peer.take();

    let wait = Duration::from_millis(80);
    let busy = Fault::Answer {
        status: 429,
        sub_status: Some(3200),
        retry_after: Some(wait),
        times: 2,
    };
    peer.fault(EAST, Some(busy.clone()));
    let began = Instant::now();
    assert_eq!(app.read("1").await.unwrap().status, 200);
    assert!(began.elapsed() >= 2 * wait);
    peer.fault(WEST, Some(busy));
    assert_eq!(app.create("2").await.unwrap().status, 201);
    assert_eq!(
        peer.take().data,
        [
            "GET East US 429/3200",
            "GET East US 429/3200",
            "GET East US 200",
            "POST West US 429/3200",
            "POST West US 429/3200",
            "POST West US 201"
        ]
    );
}

/// C9: a busy system (429/3092) is left at once where others take the request.
#[tokio::test]
async fn a_busy_system_is_left_at_once_by_an_account_with_several_writers() {
    let peer = Peer::multi(&[WEST, EAST]).await;
    let (app, _reader) = App::preferring(&peer, &[EAST]);
    app.create("1").await.unwrap();
    peer.take();
    peer.fault(
        EAST,
        Some(Fault::Answer {
            status: 429,
            sub_status: Some(3092),
            retry_after: Some(Duration::from_secs(60)),
            times: 1,
        }),
    );
    assert_eq!(app.create("2").await.unwrap().status, 201);
    assert_eq!(
        peer.take().data,
        ["POST East US 429/3092", "POST West US 201"]
    );
}
