//! Writers that change, and accounts with several (C2, C5, C10, C12).

use tower_geo::Circuit;

use crate::app::App;
use crate::peer::{CENTRAL, EAST, Peer, WEST, WriteMode};

/// C5: a failover is noticed by one refusal, costs one read of the account, and is followed.
#[tokio::test]
async fn a_write_failover_is_followed_after_one_refusal() {
    let peer = Peer::single(&[WEST, EAST, CENTRAL]).await;
    let (app, _reader) = App::preferring(&peer, &[WEST, EAST]);
    let control = peer.control();

    control.announce_failover(EAST).unwrap();
    assert_eq!(app.create("1").await.unwrap().status, 201);
    assert_eq!(peer.take().data, ["POST West US 201"]);

    control.begin_failover(EAST).unwrap();
    let moved = app.create("2").await.unwrap();
    assert_eq!(moved.trail, ["West US 403", "East US 201"]);
    app.create("3").await.unwrap();
    let sends = peer.take();
    assert_eq!(
        sends.data,
        ["POST West US 403/3", "POST East US 201", "POST East US 201"]
    );
    assert_eq!(sends.account, ["GET global 200"]);

    control.complete_failover();
    app.create("4").await.unwrap();
    let sends = peer.take();
    assert_eq!(sends.data, ["POST East US 201"]);
    assert!(sends.account.is_empty());
    assert_eq!(peer.stored(EAST).await, ["1", "2", "3", "4"]);
}

/// C2, C5, C10, C12: where all regions take writes, one that refuses them is left by writes alone.
/// Writes away from the hub say that they are tentative; a container is created at the hub.
#[tokio::test]
async fn a_region_that_lost_its_writes_keeps_its_reads() {
    let peer = Peer::multi(&[WEST, EAST, CENTRAL]).await;
    let (app, _reader) = App::preferring(&peer, &[EAST, CENTRAL]);
    app.create("1").await.unwrap();
    assert_eq!(app.create_container("returns").await.unwrap().status, 201);
    let sends = peer.take();
    assert_eq!(sends.data, ["POST East US 201", "POST West US 201"]);
    assert_eq!(sends.tentative, [EAST]);

    peer.control().revoke_region_write(EAST).unwrap();
    app.create("2").await.unwrap();
    app.create("3").await.unwrap();
    app.read("1").await.unwrap();
    let sends = peer.take();
    assert_eq!(
        sends.data,
        [
            "POST East US 403/3",
            "POST Central US 201",
            "POST Central US 201",
            "GET East US 200"
        ]
    );
    assert_eq!(sends.tentative, [EAST, CENTRAL, CENTRAL]);
    assert_eq!(sends.account, ["GET global 200"]);
    assert!(app.is_marked(EAST, Circuit::Writes));
    assert!(!app.is_marked(EAST, Circuit::Reads));
    assert_eq!(peer.stored(WEST).await, ["1", "2", "3"]);
}

/// C2, C5: an account may change between one writer and many, under way.
#[tokio::test]
async fn an_account_may_change_between_one_writer_and_many() {
    let peer = Peer::single(&[WEST, EAST, CENTRAL]).await;
    let (app, _reader) = App::preferring(&peer, &[EAST]);
    app.create("1").await.unwrap();

    peer.control().set_write_mode(WriteMode::Multi);
    app.refresh().await;
    app.create("2").await.unwrap();
    let sends = peer.take();
    assert_eq!(sends.data, ["POST West US 201", "POST East US 201"]);
    assert_eq!(sends.tentative, [EAST]);

    peer.control().set_write_mode(WriteMode::Single);
    app.create("3").await.unwrap();
    let sends = peer.take();
    assert_eq!(sends.data, ["POST East US 403/3", "POST West US 201"]);
    assert_eq!(sends.tentative, [EAST], "nothing is tentative at the hub");
    assert_eq!(peer.stored(WEST).await, ["1", "2", "3"]);
}

/// C2: a client that opted out writes at the hub, whatever the account can do.
#[tokio::test]
async fn a_client_may_keep_to_one_writer() {
    let peer = Peer::multi(&[WEST, EAST]).await;
    let (app, _reader) = App::with(&peer, |account| {
        account.preferred([EAST]).multi_write(false)
    });
    app.create("1").await.unwrap();
    app.read("1").await.unwrap();
    let sends = peer.take();
    assert_eq!(sends.data, ["POST West US 201", "GET East US 200"]);
    assert!(sends.tentative.is_empty());
}
