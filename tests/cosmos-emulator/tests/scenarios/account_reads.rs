//! Who reads the account, when, and from where (C3, C5, F7).

use std::error::Error as _;

use tokio::task::JoinSet;
use tower_geo::ErrorKind;

use crate::app::{App, signed_client};
use crate::peer::{EAST, PATIENCE, Peer, Reach, WEST, until};

/// C3: however many wait for the first document, one read is made, by none of them.
#[tokio::test]
async fn operations_at_start_share_one_read_of_the_account() {
    let peer = Peer::single(&[WEST, EAST]).await;
    let held = peer.hold_account_reads().await;
    let (app, _reader) = App::preferring(&peer, &[EAST]);
    let mut waiting = JoinSet::new();
    for number in 0..20 {
        let app = app.clone();
        waiting.spawn(async move { app.create(&number.to_string()).await });
    }
    assert!(until(PATIENCE, || peer.sends().account.len() == 1).await);
    drop(held);
    while let Some(created) = waiting.join_next().await {
        assert_eq!(created.unwrap().unwrap().status, 201);
    }
    let sends = peer.take();
    assert_eq!(sends.account, ["GET global 200"]);
    assert_eq!(sends.data.len(), 20);
}

/// C3, C5: writes that are refused together make one read at a time, and all follow.
#[tokio::test]
async fn writes_that_are_refused_together_share_reads_of_the_account() {
    let peer = Peer::single(&[WEST, EAST]).await;
    let (app, _reader) = App::preferring(&peer, &[WEST]);
    app.create("first").await.unwrap();
    peer.take();

    peer.control().begin_failover(EAST).unwrap();
    let held = peer.hold_account_reads().await;
    let mut refused = JoinSet::new();
    for number in 0..20 {
        let app = app.clone();
        refused.spawn(async move { app.create(&number.to_string()).await });
    }
    let all_refused = || {
        let sends = peer.sends();
        sends.data.len() == 20 && sends.account.len() == 1
    };
    assert!(until(PATIENCE, all_refused).await, "{:?}", peer.sends());
    drop(held);
    while let Some(created) = refused.join_next().await {
        assert_eq!(created.unwrap().unwrap().status, 201);
    }
    let sends = peer.take();
    // One that was refused after the first read had begun needs to know of a later one.
    assert!(sends.account.len() <= 2, "{:?}", sends.account);
    let count = |what: &str| sends.data.iter().filter(|send| *send == what).count();
    assert_eq!(count("POST West US 403/3"), 20);
    assert_eq!(count("POST East US 201"), 20);
    assert_eq!(peer.stored(EAST).await.len(), 21);
}

/// C3: where the global host has no name at start, the preferred regions are asked for the
/// document, by the hosts that follow from its name.
#[tokio::test]
async fn a_preferred_region_tells_of_the_account_when_the_global_host_cannot() {
    let peer = Peer::single(&[WEST, EAST]).await;
    peer.reach(crate::peer::GLOBAL, Reach::HasNoName);
    let (app, _reader) = App::preferring(&peer, &[EAST]);
    assert_eq!(app.create("1").await.unwrap().status, 201);
    let sends = peer.take();
    assert_eq!(sends.account, ["GET East US 200"]);
    assert_eq!(sends.data, ["POST West US 201"]);
}

/// C3: a key that is not the account's ends the read at the first host, and the operation.
#[tokio::test]
async fn a_reader_that_is_refused_ends_the_operations_that_wait() {
    let peer = Peer::single(&[WEST, EAST]).await;
    let app = App::without_reader(&peer, |account| account.preferred([EAST]));
    let wrong = signed_client(&peer, "YW5vdGhlciBrZXk=");
    let _reader = app.service.spawn_account_reader(wrong).unwrap();
    let error = app.create("1").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(error.was_never_sent());
    assert!(error.source().is_some(), "{error:?}");
    let sends = peer.take();
    assert!(sends.data.is_empty());
    assert!(sends.account.iter().all(|read| read == "GET global 401"));
}

/// Contract of the reader: without one an operation says so, instead of waiting.
#[tokio::test]
async fn without_a_reader_an_operation_says_what_is_missing() {
    let peer = Peer::single(&[WEST]).await;
    let app = App::without_reader(&peer, |account| account);
    let error = app.create("1").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(error.to_string().contains("reader"), "{error}");
    assert!(peer.take().account.is_empty());
}
