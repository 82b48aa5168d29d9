//! Where reads and writes go while nothing fails, and what a session needs (C1, C2, C6, C11).

use tower_geo::{ErrorKind, RequestOptions};

use crate::app::App;
use crate::peer::{CENTRAL, EAST, Peer, WEST};

/// C1, C2, C3, C4: reads go to the preferred region, writes to the hub, and nothing but one read of
/// the account to the global host.
#[tokio::test]
async fn reads_go_to_the_preferred_region_and_writes_to_the_hub() {
    let peer = Peer::single(&[WEST, EAST, CENTRAL]).await;
    let (app, _reader) = App::preferring(&peer, &[EAST]);
    let created = app.create("1").await.unwrap();
    assert_eq!(created.status, 201);
    let read = app.read_own("1", created.token.as_deref()).await.unwrap();
    assert_eq!(read.status, 200);

    let sends = peer.take();
    assert_eq!(sends.data, ["POST West US 201", "GET East US 200"]);
    assert_eq!(sends.account, ["GET global 200"]);
    assert!(sends.tentative.is_empty());
}

/// C6: a region that is behind the session sends the read to the writer, token and all.
#[tokio::test]
async fn a_session_is_read_at_the_writer_while_the_region_is_behind() {
    let peer = Peer::single(&[WEST, EAST, CENTRAL]).await;
    let (app, _reader) = App::preferring(&peer, &[EAST]);
    peer.control().pause_replication(EAST);
    let token = app.create("1").await.unwrap().token;
    assert!(token.is_some());
    let read = app.read_own("1", token.as_deref()).await.unwrap();
    assert_eq!(read.status, 200);
    let sends = peer.take();
    assert_eq!(
        sends.data,
        [
            "POST West US 201",
            "GET East US 404/1002",
            "GET West US 200"
        ]
    );
    assert_eq!(sends.with_token, 2);

    peer.control().resume_replication(EAST);
    peer.control().drain_pending_replications().await;
    let read = app.read_own("1", token.as_deref()).await.unwrap();
    assert_eq!(read.status, 200);
    assert_eq!(peer.take().data, ["GET East US 200"]);
}

/// C6, C11: on an account that takes writes everywhere, each region is asked for the session once.
#[tokio::test]
async fn a_session_is_looked_for_in_each_region_once() {
    let peer = Peer::multi(&[WEST, EAST, CENTRAL]).await;
    let (app, _reader) = App::preferring(&peer, &[CENTRAL, EAST]);
    for behind in [CENTRAL, EAST] {
        peer.control().pause_replication(behind);
    }
    let only_west = RequestOptions::new().excluded([CENTRAL, EAST]);
    let created = app.send(app.creation("1", only_west)).await.unwrap();
    assert_eq!(created.status, 201);
    let read = app.read_own("1", created.token.as_deref()).await.unwrap();
    assert_eq!(read.status, 200);
    assert_eq!(
        peer.take().data,
        [
            "POST West US 201",
            "GET Central US 404/1002",
            "GET East US 404/1002",
            "GET West US 200"
        ]
    );
}

/// C11: where no region is left, nothing is sent; a write that has one place to go is exempt.
#[tokio::test]
async fn a_read_that_excludes_all_regions_is_not_sent() {
    let peer = Peer::single(&[WEST, EAST]).await;
    let (app, _reader) = App::with(&peer, |account| account.excluded([WEST, EAST]));
    assert_eq!(app.create("1").await.unwrap().status, 201);
    let error = app.read("1").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");

    let mut request = app.reading("1", None);
    request
        .extensions_mut()
        .insert(RequestOptions::new().excluded([WEST]));
    assert_eq!(app.send(request).await.unwrap().status, 200);
    assert_eq!(peer.take().data, ["POST West US 201", "GET East US 200"]);
}

/// C4: with discovery off only the given host is used, ever, and nobody reads the account.
#[tokio::test]
async fn without_discovery_everything_goes_to_the_given_host() {
    let peer = Peer::single(&[WEST, EAST]).await;
    let app = App::without_reader(&peer, |account| account.discovery(false).preferred([EAST]));
    assert_eq!(app.create("1").await.unwrap().status, 201);
    assert_eq!(app.read("1").await.unwrap().status, 200);
    let sends = peer.take();
    assert_eq!(sends.data, ["POST global 201", "GET global 200"]);
    assert!(sends.account.is_empty());
}
