use super::{RegionState, Replication, TwoRegionStore};
use crate::{
    Side,
    client::{ClientBuilder, TestClient},
};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use std::{
    error::Error,
    io,
    time::{Duration, UNIX_EPOCH},
};
use tokio::time::timeout;

/// Short, and only waited out where nothing must come.
const MOMENT: Duration = Duration::from_millis(50);

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }
}

type Body = Full<Bytes>;
type BoxError = Box<dyn Error + Send + Sync>;

fn client() -> TestClient<Body> {
    ClientBuilder::new().build().unwrap()
}

fn request(method: Method, url: String, headers: &[(&str, &str)], body: &str) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Full::from(body.to_owned())).unwrap()
}

async fn send(client: &TestClient<Body>, request: Request<Body>) -> Result<Answer, BoxError> {
    let (head, body) = client.request(request).await?.into_parts();
    Ok(Answer {
        status: head.status,
        headers: head.headers,
        body: body.collect().await?.to_bytes(),
    })
}

struct Fixture {
    store: TwoRegionStore,
    client: TestClient<Body>,
}

impl Fixture {
    async fn start() -> Self {
        let store = TwoRegionStore::start().await.unwrap();
        store.create_container("c");
        Self {
            store,
            client: client(),
        }
    }

    async fn call(
        &self,
        side: Side,
        method: Method,
        target: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let url = format!("{}{target}", self.store.endpoint(side));
        send(&self.client, request(method, url, headers, body))
            .await
            .unwrap()
    }

    async fn get(&self, side: Side, target: &str) -> Answer {
        self.call(side, Method::GET, target, &[], "").await
    }

    async fn put(&self, target: &str, body: &str) -> Answer {
        self.call(Side::Primary, Method::PUT, target, &[], body)
            .await
    }

    async fn try_get(&self, side: Side) -> Result<Answer, BoxError> {
        let url = format!("{}/c/b", self.store.endpoint(side));
        send(&self.client, request(Method::GET, url, &[], "")).await
    }
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
async fn blob_is_written_read_looked_up_and_deleted() {
    let x = Fixture::start().await;
    let put = x
        .call(
            Side::Primary,
            Method::PUT,
            "/c/a%20b",
            &[
                ("content-type", "text/plain"),
                ("x-ms-meta-colour", "black"),
            ],
            "meow",
        )
        .await;
    assert_eq!(put.status, 201);

    for side in Side::BOTH {
        let get = x.get(side, "/c/a%20b").await;
        assert_eq!(get.status, 200);
        assert_eq!(get.body, "meow");
        assert_eq!(get.header("etag"), put.header("etag"));
        assert_eq!(get.header("content-type"), "text/plain");
        assert_eq!(get.header("x-ms-meta-colour"), "black");
        assert!(!get.header("last-modified").is_empty());
        assert!(!get.header("x-ms-request-id").is_empty());

        let head = x.call(side, Method::HEAD, "/c/a%20b", &[], "").await;
        assert_eq!(head.header("content-length"), "4");
        assert!(head.body.is_empty());
    }
    let delete = x
        .call(Side::Primary, Method::DELETE, "/c/a%20b", &[], "")
        .await;
    assert_eq!(delete.status, 202);
    let gone = x.get(Side::Primary, "/c/a%20b").await;
    assert_eq!(gone.status, 404);
    assert_eq!(gone.header("x-ms-error-code"), "BlobNotFound");
    let nowhere = x.get(Side::Primary, "/nowhere/b").await;
    assert_eq!(nowhere.header("x-ms-error-code"), "ContainerNotFound");
}

#[tokio::test]
async fn ranges_are_served_in_part() {
    let x = Fixture::start().await;
    x.store.seed("c", "b", "0123456789");
    let range = async |range| {
        x.call(
            Side::Secondary,
            Method::GET,
            "/c/b",
            &[("range", range)],
            "",
        )
        .await
    };
    let part = range("bytes=2-4").await;
    assert_eq!(part.status, 206);
    assert_eq!(part.body, "234");
    assert_eq!(part.header("content-range"), "bytes 2-4/10");
    assert_eq!(range("bytes=7-").await.body, "789");
    assert_eq!(range("bytes=7-99").await.body, "789");
    assert_eq!(range("bytes=10-").await.status, 416);
    assert_eq!(range("bytes=5-2").await.status, 416);
    assert_eq!(range("lines=1-2").await.status, 400);
}

#[tokio::test]
async fn conditions_are_kept() {
    let x = Fixture::start().await;
    let first = x.put("/c/b", "one").await.header("etag").to_owned();
    let second = x.put("/c/b", "two").await.header("etag").to_owned();
    let put = async |name, value: &str| {
        let headers = [(name, value)];
        let call = x.call(Side::Primary, Method::PUT, "/c/b", &headers, "three");
        call.await.status
    };
    let get = async |name, value: &str| {
        let headers = [(name, value)];
        let call = x.call(Side::Primary, Method::GET, "/c/b", &headers, "");
        call.await.status
    };
    assert_eq!(put("if-match", &first).await, 412);
    assert_eq!(put("if-none-match", "*").await, 409);
    assert_eq!(get("if-match", &first).await, 412);
    assert_eq!(get("if-match", &second).await, 200);
    assert_eq!(get("if-none-match", &second).await, 304);
    assert_eq!(put("if-match", &second).await, 201);
    assert_eq!(get("if-match", &second).await, 412);
}

#[tokio::test]
async fn writes_appear_at_the_secondary_after_the_lag() {
    let x = Fixture::start().await;
    x.store.set_replication(Replication::Held);
    x.put("/c/a", "1").await;
    x.put("/c/b", "2").await;
    x.put("/c/b", "3").await;
    assert_eq!(x.store.pending(), 3);
    assert_eq!(x.get(Side::Primary, "/c/b").await.body, "3");
    assert_eq!(x.get(Side::Secondary, "/c/b").await.status, 404);

    // Out of order: all of b, nothing of a.
    x.store.replicate_blob("c", "b");
    assert_eq!(x.get(Side::Secondary, "/c/b").await.body, "3");
    assert_eq!(x.get(Side::Secondary, "/c/a").await.status, 404);
    x.store.replicate_next(1);
    assert_eq!(x.get(Side::Secondary, "/c/a").await.body, "1");

    x.store
        .set_replication(Replication::After(Duration::from_secs(3600)));
    x.put("/c/a", "4").await;
    assert_eq!(x.get(Side::Secondary, "/c/a").await.body, "1");
    x.store.set_replication(Replication::Immediate);
    assert_eq!(x.get(Side::Secondary, "/c/a").await.body, "4");
    assert_eq!(x.store.content(Side::Secondary, "c", "a").unwrap(), "4");
}

#[tokio::test(start_paused = true)]
async fn lag_is_counted_by_the_clock_of_tokio() {
    let store = TwoRegionStore::start().await.unwrap();
    let mut data = crate::lock(&store.data);
    data.seed_container("c");
    data.set_replication(Replication::After(Duration::from_secs(5)));
    let blob = data.new_version("meow".into(), Vec::new());
    data.change(super::data::Change::Put("c".into(), "b".into(), blob));
    drop(data);

    tokio::time::advance(Duration::from_millis(4_999)).await;
    assert_eq!(store.content(Side::Secondary, "c", "b"), None);
    tokio::time::advance(Duration::from_millis(1)).await;
    assert!(store.content(Side::Secondary, "c", "b").is_some());
}

/// R1: what the service says to a write at the secondary.
#[tokio::test]
async fn secondary_refuses_writes_and_counts_them() {
    let x = Fixture::start().await;
    x.store.seed("c", "b", "meow");
    for method in [Method::PUT, Method::DELETE, Method::POST] {
        let answer = x.call(Side::Secondary, method, "/c/b", &[], "x").await;
        assert_eq!(answer.status, 403);
        assert_eq!(
            answer.header("x-ms-error-code"),
            "InsufficientAccountPermissions"
        );
    }
    assert_eq!(x.store.writes_at_secondary(), 3);
    assert_eq!(x.store.requests_by(Side::Secondary, &Method::PUT), 1);
    assert_eq!(x.store.content(Side::Primary, "c", "b").unwrap(), "meow");
    x.store.clear_arrivals();
    assert_eq!(x.store.writes_at_secondary(), 0);
}

/// R6: an account without read access to its secondary.
#[tokio::test]
async fn secondary_without_read_access_refuses_reads_too() {
    let x = Fixture::start().await;
    x.store.seed("c", "b", "meow");
    x.store.set_secondary_readable(false);
    let answer = x.get(Side::Secondary, "/c/b").await;
    assert_eq!(answer.status, 403);
    assert_eq!(
        answer.header("x-ms-error-code"),
        "InsufficientAccountPermissions"
    );
    assert_eq!(x.get(Side::Primary, "/c/b").await.status, 200);
}

/// F1, I5: Last Sync Time is that of the oldest write which is not there yet.
#[tokio::test]
async fn stats_are_told_by_the_secondary_only() {
    let noon = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let store = TwoRegionStore::builder()
        .clock(move || noon)
        .start()
        .await
        .unwrap();
    let client = client();
    let stats = async |side| {
        let url = format!("{}/?restype=service&comp=stats", store.endpoint(side));
        send(&client, request(Method::GET, url, &[], ""))
            .await
            .unwrap()
    };
    let secondary = stats(Side::Secondary).await;
    assert_eq!(secondary.status, 200);
    let text = String::from_utf8(secondary.body.to_vec()).unwrap();
    assert!(
        text.contains("<Status>live</Status><LastSyncTime>Tue, 14 Nov 2023 22:13:20 GMT<"),
        "{text}"
    );
    let primary = stats(Side::Primary).await;
    assert_eq!(primary.status, 400);
    assert_eq!(
        primary.header("x-ms-error-code"),
        "InvalidQueryParameterValue"
    );
    assert_eq!(store.last_sync_time(), noon);
}

/// R10: a marker belongs to the region that issued it.
#[tokio::test]
async fn list_goes_page_by_page_within_one_region() {
    let x = Fixture::start().await;
    for name in ["a&b", "b", "c"] {
        x.store.seed("c", name, "meow");
    }
    let list = "/c?restype=container&comp=list&maxresults=2";
    let first = x.get(Side::Secondary, list).await;
    let text = String::from_utf8(first.body.to_vec()).unwrap();
    assert!(text.contains("<Name>a&amp;b</Name>"), "{text}");
    assert!(text.contains("<NextMarker>s!b</NextMarker>"), "{text}");

    let next = format!("{list}&marker=s%21b");
    let second = x.get(Side::Secondary, &next).await;
    let text = String::from_utf8(second.body.to_vec()).unwrap();
    assert!(text.contains("<Name>c</Name>"), "{text}");
    assert!(text.contains("<NextMarker></NextMarker>"), "{text}");
    assert_eq!(x.get(Side::Primary, &next).await.status, 400);
}

#[tokio::test]
async fn containers_come_and_go() {
    let x = Fixture::start().await;
    let call = async |method| {
        let call = x.call(Side::Primary, method, "/new?restype=container", &[], "");
        call.await.status.as_u16()
    };
    assert_eq!(call(Method::GET).await, 404);
    assert_eq!(call(Method::PUT).await, 201);
    assert_eq!(call(Method::PUT).await, 409);
    assert_eq!(call(Method::HEAD).await, 200);
    assert_eq!(call(Method::DELETE).await, 202);
    assert_eq!(call(Method::DELETE).await, 404);
}

#[tokio::test]
async fn path_style_wants_the_account_of_its_region() {
    let store = TwoRegionStore::builder()
        .path_style("devstoreaccount1")
        .start()
        .await
        .unwrap();
    // A container that is called as the account is no trap.
    store.seed("devstoreaccount1", "b", "meow");
    let client = client();
    let get = async |url: String| {
        send(&client, request(Method::GET, url, &[], ""))
            .await
            .unwrap()
    };
    for side in Side::BOTH {
        let url = format!("{}/devstoreaccount1/b", store.endpoint(side));
        assert_eq!(get(url).await.body, "meow");
        let account = format!("devstoreaccount1{}", side.other().suffix());
        let url = format!("http://{}/{account}/devstoreaccount1/b", store.addr(side));
        assert_eq!(get(url).await.status, 404);
    }
}

#[tokio::test]
async fn region_that_is_down_refuses_and_comes_back_at_its_port() {
    let x = Fixture::start().await;
    x.store.seed("c", "b", "meow");
    for _ in 0..2 {
        let addr = x.store.addr(Side::Primary);
        x.store.take_down(Side::Primary).await.unwrap();
        let error = x.try_get(Side::Primary).await.err().unwrap();
        assert_eq!(io_kind(&*error), Some(io::ErrorKind::ConnectionRefused));
        assert_eq!(x.get(Side::Secondary, "/c/b").await.body, "meow");
        x.store.bring_back(Side::Primary).await.unwrap();
        assert_eq!(x.store.addr(Side::Primary), addr);
        assert_eq!(x.get(Side::Primary, "/c/b").await.body, "meow");
    }
    assert_eq!(x.store.requests(Side::Primary), 2);
}

#[tokio::test]
async fn reset_region_accepts_and_resets() {
    let x = Fixture::start().await;
    let before = x.store.connections(Side::Primary);
    x.store
        .set(Side::Primary, RegionState::Reset)
        .await
        .unwrap();
    let error = x.try_get(Side::Primary).await.err().unwrap();
    assert_eq!(io_kind(&*error), Some(io::ErrorKind::ConnectionReset));
    assert!(x.store.connections(Side::Primary) > before);
    assert_eq!(x.store.requests(Side::Primary), 0);
}

#[tokio::test]
async fn kept_connections_are_reset_as_well() {
    let mut x = Fixture::start().await;
    x.store.seed("c", "b", "meow");
    x.client = ClientBuilder::new()
        .keep_alive(Duration::from_secs(60))
        .build()
        .unwrap();
    assert_eq!(x.get(Side::Primary, "/c/b").await.status, 200);
    x.store.take_down(Side::Primary).await.unwrap();
    let error = x.try_get(Side::Primary).await.err();
    assert!(error.is_some());
}

#[tokio::test]
async fn frozen_region_answers_only_when_it_thaws() {
    let mut x = Fixture::start().await;
    x.store.seed("c", "b", "meow");
    x.client = ClientBuilder::new()
        .keep_alive(Duration::from_secs(60))
        .build()
        .unwrap();
    assert_eq!(x.get(Side::Primary, "/c/b").await.status, 200);
    x.store
        .set(Side::Primary, RegionState::Freeze)
        .await
        .unwrap();

    // On the connection that was kept, and on a new one.
    let mut kept = Box::pin(x.try_get(Side::Primary));
    assert!(timeout(MOMENT, &mut kept).await.is_err());
    let mut new = Box::pin(x.try_get(Side::Primary));
    assert!(timeout(MOMENT, &mut new).await.is_err());
    assert_eq!(x.store.requests(Side::Primary), 1);

    x.store.bring_back(Side::Primary).await.unwrap();
    assert_eq!(kept.await.unwrap().body, "meow");
    assert_eq!(new.await.unwrap().body, "meow");
}

#[tokio::test]
async fn statuses_are_those_of_a_front_or_of_the_service() {
    let x = Fixture::start().await;
    let unavailable = StatusCode::SERVICE_UNAVAILABLE;
    x.store
        .set(Side::Primary, RegionState::Status(unavailable))
        .await
        .unwrap();
    let bare = x.get(Side::Primary, "/c/b").await;
    assert_eq!(bare.status, unavailable);
    assert_eq!(bare.header("x-ms-request-id"), "");

    x.store
        .set(Side::Primary, RegionState::Code(unavailable, "ServerBusy"))
        .await
        .unwrap();
    let busy = x.get(Side::Primary, "/c/b").await;
    assert_eq!(busy.status, unavailable);
    assert_eq!(busy.header("x-ms-error-code"), "ServerBusy");
    assert_ne!(busy.header("x-ms-request-id"), "");

    let arrivals = x.store.arrivals(Side::Primary);
    assert_eq!(arrivals[1].method, Method::GET);
    assert_eq!(arrivals[1].target, "/c/b");
    assert_eq!(arrivals[1].host, x.store.addr(Side::Primary).to_string());
    assert_eq!(arrivals[1].status, unavailable);
}

/// R9: bodies that break off, and bodies that stall.
#[tokio::test]
async fn bodies_break_off_or_stall_after_some_bytes() {
    let x = Fixture::start().await;
    x.store.seed("c", "b", "0123456789");
    let open = async || {
        let url = format!("{}/c/b", x.store.endpoint(Side::Primary));
        let answer = x.client.request(request(Method::GET, url, &[], "")).await;
        let answer = answer.unwrap();
        assert_eq!(answer.headers()["content-length"], "10");
        let mut body = answer.into_body();
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(first, "0123");
        body
    };
    x.store
        .set(Side::Primary, RegionState::CutBody(4))
        .await
        .unwrap();
    let mut body = open().await;
    assert!(body.frame().await.unwrap().is_err());

    x.store
        .set(Side::Primary, RegionState::StallBody(4))
        .await
        .unwrap();
    let mut body = open().await;
    assert!(timeout(MOMENT, body.frame()).await.is_err());
}

#[tokio::test]
async fn slow_region_has_acted_before_it_answers() {
    let x = Fixture::start().await;
    x.store
        .set(Side::Primary, RegionState::Slow(Duration::from_secs(3600)))
        .await
        .unwrap();
    assert!(timeout(MOMENT, x.put("/c/b", "meow")).await.is_err());
    assert_eq!(x.store.content(Side::Primary, "c", "b").unwrap(), "meow");
}

#[tokio::test]
async fn dropped_store_refuses() {
    let x = Fixture::start().await;
    let url = format!("{}/c/b", x.store.endpoint(Side::Primary));
    drop(x.store);
    // The server's task ends when it is next polled.
    tokio::task::yield_now().await;
    let error = send(&x.client, request(Method::GET, url, &[], "")).await;
    let error = error.err().unwrap();
    assert_eq!(io_kind(&*error), Some(io::ErrorKind::ConnectionRefused));
}
