//! Regions that leave and join the account (C1, C5, C10, C13).

use std::time::Duration;

use tower_geo::Circuit;

use crate::app::App;
use crate::peer::{CENTRAL, EAST, PATIENCE, Peer, WEST, until};

const EUROPE: &str = "West Europe";
const MARK: Duration = Duration::from_secs(3);

/// C5, C10: a region that is being removed refuses while the account still lists it. It is left
/// after one refusal, and when it has gone from the account, for good.
#[tokio::test]
async fn a_region_that_is_removed_is_visited_once() {
    let peer = Peer::single(&[WEST, EAST, CENTRAL]).await;
    let (app, _reader) = App::with(&peer, |account| {
        account.preferred([CENTRAL, EAST]).mark_for(MARK)
    });
    app.create("1").await.unwrap();
    peer.take();

    peer.control().begin_region_removal(CENTRAL).unwrap();
    assert_eq!(app.read("1").await.unwrap().status, 200);
    assert_eq!(app.read("1").await.unwrap().status, 200);
    let sends = peer.take();
    assert_eq!(
        sends.data,
        [
            "GET Central US 403/1008",
            "GET East US 200",
            "GET East US 200"
        ]
    );
    assert_eq!(sends.account, ["GET global 200"]);
    assert!(app.is_marked(CENTRAL, Circuit::Reads));

    peer.control().remove_region(CENTRAL).unwrap();
    app.refresh().await;
    assert!(!app.has_region(CENTRAL));
    assert_eq!(app.read("1").await.unwrap().status, 200);
    assert_eq!(peer.take().data, ["GET East US 200"]);
}

/// C10, C13: neither an answer elsewhere nor an account document ends a mark; its time does, and
/// then the region is used again.
#[tokio::test]
async fn a_region_that_refused_is_used_again_when_its_mark_has_ended() {
    let peer = Peer::single(&[WEST, EAST, CENTRAL]).await;
    let (app, _reader) = App::with(&peer, |account| {
        account.preferred([EAST, WEST]).mark_for(MARK)
    });
    app.create("1").await.unwrap();
    peer.take();

    peer.control().begin_region_removal(EAST).unwrap();
    app.read("1").await.unwrap();
    peer.control().cancel_region_removal(EAST).unwrap();
    app.refresh().await;
    app.read("1").await.unwrap();
    assert_eq!(
        peer.take().data,
        ["GET East US 403/1008", "GET West US 200", "GET West US 200"]
    );

    let ended = || !app.is_marked(EAST, Circuit::Reads);
    assert!(until(PATIENCE, ended).await);
    app.read("1").await.unwrap();
    assert_eq!(peer.take().data, ["GET East US 200"]);
}

/// C1, C3, C13: a preferred region is unknown until the account has it; the next read of the
/// account, which comes by itself, finds it.
#[tokio::test]
async fn a_region_that_joins_is_taken_up_when_it_ranks_higher() {
    let peer = Peer::growing(&[WEST, EAST], &[EUROPE]).await;
    let (app, _reader) = App::with(&peer, |account| {
        account
            .preferred([EUROPE, EAST])
            .refresh(Duration::from_millis(200))
            .refresh_jitter(Duration::from_millis(20))
    });
    app.create("1").await.unwrap();
    app.read("1").await.unwrap();
    assert_eq!(peer.take().data, ["POST West US 201", "GET East US 200"]);

    peer.add_region(EUROPE);
    assert!(until(PATIENCE, || app.has_region(EUROPE)).await);
    assert_eq!(app.read("1").await.unwrap().status, 200);
    let sends = peer.take();
    assert_eq!(sends.data, ["GET West Europe 200"]);
    assert!(sends.account.iter().all(|read| read == "GET global 200"));
}
