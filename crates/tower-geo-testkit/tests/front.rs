//! Fronts over the two-region store: forwarding, breaking, TLS under production host names, and the
//! refusal of writes at a secondary.

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use std::{error::Error, io, time::Duration};
use tokio::time::timeout;
use tower_geo_testkit::{
    Side,
    client::{ClientBuilder, Names, TestClient},
    front::{Front, FrontState, Refuses},
    store::TwoRegionStore,
    tls::TestCa,
};

/// Short, and only waited out where nothing must come.
const MOMENT: Duration = Duration::from_millis(50);
const PRIMARY: &str = "contoso.blob.core.windows.net";
const SECONDARY: &str = "contoso-secondary.blob.core.windows.net";

type Client = TestClient<Full<Bytes>>;
type BoxError = Box<dyn Error + Send + Sync>;

async fn store() -> TwoRegionStore {
    let store = TwoRegionStore::start().await.unwrap();
    store.seed("c", "b", "meow");
    store
}

async fn send(client: &Client, method: Method, url: &str) -> Result<(StatusCode, Bytes), BoxError> {
    let request = Request::builder()
        .method(method)
        .uri(url)
        .body(Full::default())?;
    let (head, body) = client.request(request).await?.into_parts();
    Ok((head.status, body.collect().await?.to_bytes()))
}

fn io_kind(error: &(dyn Error + 'static)) -> Option<io::ErrorKind> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return Some(error.kind());
        }
        next = error.source();
    }
    None
}

#[tokio::test]
async fn bytes_are_forwarded_until_the_front_is_broken() {
    let store = store().await;
    let front = Front::builder(store.addr(Side::Primary)).start().unwrap();
    let client: Client = ClientBuilder::new().build().unwrap();
    let url = format!("http://{}/c/b", front.addr());
    let get = || send(&client, Method::GET, &url);

    assert_eq!(get().await.unwrap().1, "meow");
    for (state, kind) in [
        (FrontState::Refuse, io::ErrorKind::ConnectionRefused),
        (FrontState::Reset, io::ErrorKind::ConnectionReset),
    ] {
        front.set(state).await.unwrap();
        let error = get().await.unwrap_err();
        assert_eq!(io_kind(&*error), Some(kind));
        front.set(FrontState::Forward).await.unwrap();
        assert_eq!(get().await.unwrap().1, "meow");
    }

    front.set(FrontState::Freeze).await.unwrap();
    let mut frozen = Box::pin(get());
    assert!(timeout(MOMENT, &mut frozen).await.is_err());
    front.set(FrontState::Forward).await.unwrap();
    assert_eq!(frozen.await.unwrap().1, "meow");

    assert_eq!(front.connections(), 5);
    assert_eq!(front.requests(), 0, "bytes are not requests");
    assert_eq!(store.requests(Side::Primary), 4);
}

#[tokio::test]
async fn production_host_names_work_over_tls() {
    let store = store().await;
    let ca = TestCa::new().unwrap();
    let front = |side, name| {
        let builder = Front::builder(store.addr(side)).tls(&ca, [name]).unwrap();
        builder.start().unwrap()
    };
    let primary = front(Side::Primary, PRIMARY);
    let secondary = front(Side::Secondary, SECONDARY);
    let client: Client = ClientBuilder::new()
        .resolve(PRIMARY, primary.addr())
        .resolve(SECONDARY, secondary.addr())
        .trust(&ca)
        .unwrap()
        .build()
        .unwrap();

    for (side, host) in [(Side::Primary, PRIMARY), (Side::Secondary, SECONDARY)] {
        let url = format!("https://{host}/c/b");
        assert_eq!(send(&client, Method::GET, &url).await.unwrap().1, "meow");
        assert_eq!(store.arrivals(side)[0].host, host);
    }
}

#[tokio::test]
async fn certificates_of_others_are_not_trusted() {
    let store = store().await;
    let ca = TestCa::new().unwrap();
    let front = Front::builder(store.addr(Side::Primary))
        .tls(&ca, [PRIMARY])
        .unwrap()
        .start()
        .unwrap();
    let names = Names::new();
    names.point(PRIMARY, front.addr());
    names.point(SECONDARY, front.addr());
    let trusts = |ca: &TestCa| -> Client {
        let builder = ClientBuilder::new().names(names.clone()).trust(ca).unwrap();
        builder.build().unwrap()
    };
    let url = format!("https://{PRIMARY}/c/b");

    let stranger = trusts(&TestCa::new().unwrap());
    assert!(send(&stranger, Method::GET, &url).await.is_err());
    let nobody: Client = ClientBuilder::new().names(names.clone()).build().unwrap();
    assert!(send(&nobody, Method::GET, &url).await.is_err());
    let friend = trusts(&ca);
    assert!(send(&friend, Method::GET, &url).await.is_ok());
    let wrong_name = format!("https://{SECONDARY}/c/b");
    assert!(send(&friend, Method::GET, &wrong_name).await.is_err());
}

#[tokio::test]
async fn names_move_and_vanish_while_a_client_holds_them() {
    let store = store().await;
    let names = Names::new();
    let client: Client = ClientBuilder::new().names(names.clone()).build().unwrap();
    let url = format!("http://{PRIMARY}/c/b");

    let unknown = send(&client, Method::GET, &url).await.unwrap_err();
    assert_eq!(io_kind(&*unknown), Some(io::ErrorKind::NotFound));
    names.point(PRIMARY, store.addr(Side::Primary));
    assert!(send(&client, Method::GET, &url).await.is_ok());
    names.point(PRIMARY, store.addr(Side::Secondary));
    assert!(send(&client, Method::GET, &url).await.is_ok());
    names.remove(PRIMARY);
    assert!(send(&client, Method::GET, &url).await.is_err());
    assert_eq!(store.requests(Side::Primary), 1);
    assert_eq!(store.requests(Side::Secondary), 1);
}

/// R1, I2: a dequeue is a write, although it is a GET.
#[tokio::test]
async fn writes_and_dequeues_are_refused_and_counted() {
    let store = store().await;
    let front = Front::builder(store.addr(Side::Primary))
        .refuse_writes(Refuses::QueueWrites)
        .start()
        .unwrap();
    let client: Client = ClientBuilder::new().build().unwrap();
    let mut refused = 0;
    for (method, target, refuses) in [
        (Method::GET, "/c/b", false),
        (Method::GET, "/q/messages?peekonly=true", false),
        (Method::GET, "/q/messages?numofmessages=1&PeekOnly=true", false),
        (Method::GET, "/q/messages", true),
        (Method::GET, "/q/messages?peekonly=false", true),
        (Method::GET, "/account/q/messages?x=peekonly", true),
        (Method::PUT, "/c/b", true),
        (Method::DELETE, "/c/b", true),
        (Method::POST, "/q/messages?peekonly=true", true),
    ] {
        let url = format!("http://{}{target}", front.addr());
        let (status, _) = send(&client, method.clone(), &url).await.unwrap();
        assert_eq!(status == StatusCode::FORBIDDEN, refuses, "{method} {target}");
        refused += u64::from(refuses);
    }
    assert_eq!(front.refused(), refused);
    assert_eq!(front.requests(), 9);
    assert_eq!(front.requests_by(&Method::GET), 6);
    assert_eq!(store.requests(Side::Primary), 3);

    front.set_refuses(Refuses::Everything);
    let url = format!("http://{}/c/b", front.addr());
    let (status, body) = send(&client, Method::GET, &url).await.unwrap();
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(String::from_utf8_lossy(&body).contains("InsufficientAccountPermissions"));
}

/// R12: after a failover of the account its name leads to the other region.
#[tokio::test]
async fn upstream_can_change_behind_a_front() {
    let store = store().await;
    let front = Front::builder(store.addr(Side::Primary))
        .refuse_writes(Refuses::Nothing)
        .start()
        .unwrap();
    let client: Client = ClientBuilder::new().build().unwrap();
    let url = format!("http://{}/c/b", front.addr());
    assert!(send(&client, Method::GET, &url).await.is_ok());
    front.set_upstream(store.addr(Side::Secondary));
    assert!(send(&client, Method::GET, &url).await.is_ok());
    assert_eq!(store.requests(Side::Secondary), 1);

    // A dead server behind a front that reads HTTP looks dead too: no made-up answer.
    store.take_down(Side::Secondary).await.unwrap();
    assert!(send(&client, Method::GET, &url).await.is_err());
}
