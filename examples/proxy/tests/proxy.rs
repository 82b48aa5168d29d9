//! Clients that know nothing of two regions, through the proxy.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use geo_proxy::router;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, StreamBody};
use support::{ACCOUNT, KEY, Setting, before, serve, settings};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tower::ServiceExt;
use tower_geo::shared_key::{SharedKeyLayer, SharedKeyService};
use tower_geo::{Account, GeoService};
use tower_geo_testkit::Side;
use tower_geo_testkit::azurite::{Azurite, AzuriteOptions};
use tower_geo_testkit::client::{ClientBuilder, TestClient};
use tower_geo_testkit::front::FrontState;
use tower_geo_testkit::store::{RegionState, TwoRegionStore};
use tower_layer::Layer;

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Answer {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A client that signs for the account and was pointed at the proxy.
struct Client {
    proxy: SocketAddr,
    service: SharedKeyService,
}

impl Client {
    const fn of(setting: &Setting) -> Self {
        Self {
            proxy: setting.proxy,
            service: setting.kind,
        }
    }

    async fn send(
        &self,
        method: Method,
        target: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        // The proxy stands for the account under a host of its own.
        let layer = SharedKeyLayer::new(ACCOUNT, KEY, self.service)
            .and_then(|layer| layer.host(self.proxy.ip().to_string()))
            .unwrap();
        let client: TestClient<Full<Bytes>> = ClientBuilder::new().build().unwrap();
        let mut request = Request::builder()
            .method(method)
            .uri(format!("http://{}{target}", self.proxy));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).unwrap();
        let (head, body) = layer
            .layer(client)
            .oneshot(request)
            .await
            .unwrap()
            .into_parts();
        Answer {
            status: head.status,
            headers: head.headers,
            body: body.collect().await.unwrap().to_bytes(),
        }
    }

    async fn get(&self, target: &str) -> Answer {
        self.send(Method::GET, target, &[], "").await
    }
}

/// R3, R8, G2: what is signed for the proxy's address is valid at both regions; streams, ranges and
/// lists go through; a refusal is a 503 that says when to come back.
#[tokio::test]
async fn blobs_survive_the_loss_of_the_primary() {
    let azurite = Azurite::start(AzuriteOptions::new().account(ACCOUNT, KEY))
        .await
        .unwrap();
    let setting = before(&azurite, SharedKeyService::Blob).await;
    let client = Client::of(&setting);
    let blob = [("x-ms-blob-type", "BlockBlob")];
    let (cat, big) = ("/photos/my%20cat%2Bdog", "/photos/big");
    let content: Vec<u8> = (0..8 << 20).map(|at: u32| at.to_le_bytes()[1]).collect();
    let created = client
        .send(Method::PUT, "/photos?restype=container", &[], "")
        .await;
    assert_eq!(created.status, 201, "{}", created.text());
    assert_eq!(
        client.send(Method::PUT, cat, &blob, "meow").await.status,
        201
    );
    assert_eq!(
        client
            .send(Method::PUT, big, &blob, content.clone())
            .await
            .status,
        201
    );
    let answer = client.get(cat).await;
    assert_eq!(
        (answer.status.as_u16(), answer.text().as_str()),
        (200, "meow")
    );
    assert!(!answer.headers.contains_key("x-geo-region"));

    for outage in [FrontState::Reset, FrontState::Freeze] {
        setting.primary.set(outage).await.unwrap();
        for _ in 0..3 {
            let answer = client
                .send(Method::GET, cat, &[("range", "bytes=1-2")], "")
                .await;
            assert_eq!(
                (answer.status.as_u16(), answer.text().as_str()),
                (206, "eo")
            );
            assert_eq!(answer.headers["x-geo-region"], "secondary");
        }
        let head = client.send(Method::HEAD, big, &[], "").await;
        assert_eq!(head.headers["content-length"], "8388608");
        let sent = setting.primary.requests() + setting.secondary.requests();
        let refused = client.send(Method::PUT, cat, &blob, "woof").await;
        assert_eq!(refused.status, 503, "{outage:?}");
        assert_eq!(refused.headers["content-type"], "application/problem+json");
        assert!(refused.headers.contains_key("retry-after"));
        assert!(
            refused.text().contains(r#""kind":"read-only""#),
            "{}",
            refused.text()
        );
        assert_eq!(
            setting.primary.requests() + setting.secondary.requests(),
            sent,
            "nothing was sent"
        );
        let state = client.get("/-/geo").await.text();
        assert!(state.contains(r#""writes":"read-only""#), "{state}");
        assert!(client.get(big).await.body == content, "all bytes, in order");
        let list = client.get("/photos?restype=container&comp=list").await;
        assert!(list.text().contains("my cat+dog"));

        setting.primary.set(FrontState::Forward).await.unwrap();
        let back = async {
            while client.send(Method::PUT, cat, &blob, "meow").await.status != 201
                || setting.service.gate().status != tower_geo::GateStatus::ReadWrite
            {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), back)
            .await
            .unwrap();
    }
    assert_eq!(setting.secondary.refused(), 0, "R1");
}

/// I2, I4: queues and tables; receiving is a write.
#[tokio::test]
async fn messages_and_entities_are_read_from_the_secondary_and_never_taken() {
    let azurite = Azurite::start(AzuriteOptions::new().account(ACCOUNT, KEY))
        .await
        .unwrap();
    let queue = before(&azurite, SharedKeyService::Queue).await;
    let client = Client::of(&queue);
    assert_eq!(client.send(Method::PUT, "/work", &[], "").await.status, 201);
    let message = "<QueueMessage><MessageText>meow</MessageText></QueueMessage>";
    let xml = [("content-type", "application/xml")];
    assert_eq!(
        client
            .send(Method::POST, "/work/messages", &xml, message)
            .await
            .status,
        201
    );
    queue.primary.set(FrontState::Reset).await.unwrap();
    let peeked = client.get("/work/messages?peekonly=true").await;
    assert!(peeked.text().contains("meow"), "{}", peeked.text());
    let received = client.get("/work/messages").await;
    assert!(received.status.is_server_error(), "{}", received.text());
    assert_eq!(queue.secondary.refused(), 0);

    let table = before(&azurite, SharedKeyService::Table).await;
    let client = Client::of(&table);
    let json = [
        ("content-type", "application/json"),
        ("accept", "application/json;odata=nometadata"),
    ];
    let made = client
        .send(Method::POST, "/Tables", &json, r#"{"TableName":"people"}"#)
        .await;
    assert_eq!(made.status, 201, "{}", made.text());
    let entity = r#"{"PartitionKey":"sales","RowKey":"1","Name":"Mia"}"#;
    assert_eq!(
        client
            .send(Method::POST, "/people", &json, entity)
            .await
            .status,
        201
    );
    table.primary.set(FrontState::Reset).await.unwrap();
    let target = "/people()?$filter=Name%20eq%20'Mia'";
    let found = client.send(Method::GET, target, &json, "").await;
    assert!(found.text().contains("Mia"), "{}", found.text());
    assert_eq!(found.headers["x-geo-region"], "secondary");
    assert_eq!(table.secondary.refused(), 0);
}

/// A store that checks no signatures, and the proxy before it.
async fn local() -> (TwoRegionStore, GeoService, SocketAddr) {
    let store = TwoRegionStore::builder()
        .path_style(ACCOUNT)
        .start()
        .await
        .unwrap();
    store.seed("photos", "cat", "meow");
    let mut account = Account::endpoints();
    for service in tower_geo::StorageService::ALL.into_iter().take(3) {
        let [primary, secondary] = Side::BOTH.map(|side| store.endpoint(side));
        account = account.endpoint_pair(service, primary, secondary);
    }
    let blob = settings(account).blob();
    let client = ClientBuilder::new().build().unwrap();
    let proxy = serve(router(&blob, 1 << 10, client)).await;
    (store, blob, proxy)
}

/// Sends bytes and reads up to the end of a head.
async fn head(stream: &mut TcpStream, send: &str) -> String {
    stream.write_all(send.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// G2: a client that asks first is told to go on when there is a region that takes its write, and
/// sends nothing when there is none.
#[tokio::test]
async fn upload_that_would_be_refused_is_never_begun() {
    let (store, blob, proxy) = local().await;
    let put = "PUT /contoso/photos/dog HTTP/1.1\r\nhost: proxy\r\nx-ms-blob-type: BlockBlob\r\n\
               content-length: 4\r\nexpect: 100-continue\r\n\r\n";
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    assert!(head(&mut stream, put).await.starts_with("HTTP/1.1 100"));
    assert!(head(&mut stream, "woof").await.starts_with("HTTP/1.1 201"));
    assert_eq!(
        store.content(Side::Primary, "photos", "dog").unwrap(),
        "woof"
    );

    blob.operator().read_only();
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    let answer = head(&mut stream, put).await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
}

/// G2: a client that does not ask first, and writes all that it has before it reads, gets the refusal
/// and no reset; the connection is good for its next request.
#[tokio::test]
async fn upload_that_is_refused_while_it_is_sent_gets_the_refusal() {
    let (store, blob, proxy) = local().await;
    blob.operator().read_only();
    let body = vec![7; 16 << 20];
    let length = body.len();
    let put = format!(
        "PUT /contoso/photos/dog HTTP/1.1\r\nhost: proxy\r\nx-ms-blob-type: BlockBlob\r\n\
         content-length: {length}\r\n\r\n"
    );
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    stream.write_all(put.as_bytes()).await.unwrap();
    // The refusal is there before the body is.
    stream.readable().await.unwrap();
    stream.write_all(&body).await.unwrap();
    let answer = head(&mut stream, "").await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    let length = answer.split_once("content-length: ").unwrap().1;
    let length = length.lines().next().unwrap().parse().unwrap();
    stream.read_exact(&mut vec![0; length]).await.unwrap();
    let get = "GET /contoso/photos/cat HTTP/1.1\r\nhost: proxy\r\n\r\n";
    let answer = head(&mut stream, get).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(store.requests_by(Side::Primary, &Method::PUT), 0);
}

/// T6: clients that leave in the middle of an upload take no write from the others.
#[tokio::test]
async fn uploads_that_are_broken_off_count_against_no_region() {
    let (store, blob, proxy) = local().await;
    let put = "PUT /contoso/photos/dog HTTP/1.1\r\nhost: proxy\r\nx-ms-blob-type: BlockBlob\r\n";
    for rest in [
        "content-length: 9\r\n\r\nwo",
        "transfer-encoding: chunked\r\n\r\n2\r\nwo\r\nnext",
    ] {
        for _ in 0..4 {
            let mut stream = TcpStream::connect(proxy).await.unwrap();
            stream.write_all(put.as_bytes()).await.unwrap();
            stream.write_all(rest.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
            // Whether there is an answer depends on when the proxy sees the end.
            drop(stream.read_to_end(&mut Vec::new()).await);
        }
    }
    for circuit in tower_geo::Circuit::BOTH {
        let state = blob
            .circuit(&tower_geo::RegionRef::Primary, circuit)
            .unwrap();
        assert_eq!(state.streak, 0, "{circuit:?}");
        assert_eq!(state.phase, tower_geo::CircuitPhase::Closed, "{circuit:?}");
    }
    assert!(store.content(Side::Primary, "photos", "dog").is_none());
}

/// A tunnel is not a request of storage: no region hears of it.
#[tokio::test]
async fn tunnels_are_refused() {
    let (store, _blob, proxy) = local().await;
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    let connect = "CONNECT elsewhere:443 HTTP/1.1\r\nhost: elsewhere:443\r\n\r\n";
    let answer = head(&mut stream, connect).await;
    assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
    assert_eq!(store.requests(Side::Primary), 0);
}

/// Trailers that are announced go through, both ways.
#[tokio::test]
async fn trailers_go_through() {
    let blob = GeoService::azure_storage("https://contoso.blob.core.windows.net");
    let blob = blob.build().unwrap();
    let seen = Arc::new(Mutex::new(None));
    let keep = seen.clone();
    let client = tower::service_fn(move |request: Request<geo_proxy::Body>| {
        let keep = keep.clone();
        async move {
            let body = request.into_body().collect().await?;
            *keep.lock().unwrap() = body.trailers().cloned();
            let mut trailers = HeaderMap::new();
            trailers.insert("x-sum", "2".parse().unwrap());
            let frames = [
                http_body::Frame::data(Bytes::from_static(b"meow")),
                http_body::Frame::trailers(trailers),
            ];
            let frames = frames.map(Ok::<_, std::io::Error>);
            let answer = http::Response::builder().header("trailer", "x-sum");
            answer
                .body(StreamBody::new(futures::stream::iter(frames)))
                .map_err(tower_geo::BoxError::from)
        }
    });
    let proxy = serve(router(&blob, 1 << 10, client)).await;
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    let put = "PUT /contoso/photos/cat HTTP/1.1\r\nhost: proxy\r\nconnection: te, close\r\nte: trailers\r\n\
               x-ms-blob-type: BlockBlob\r\ntrailer: x-sum\r\ntransfer-encoding: chunked\r\n\r\n\
               4\r\nwoof\r\n0\r\nx-sum: 1\r\n\r\n";
    stream.write_all(put.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(
        answer.ends_with("4\r\nmeow\r\n0\r\nx-sum: 2\r\n\r\n"),
        "{answer}"
    );
    assert_eq!(seen.lock().unwrap().as_ref().unwrap()["x-sum"], "1");
}

/// T6: chunked bodies stream through; one that is small is kept and sent again.
#[tokio::test]
async fn chunked_bodies_go_through_and_small_ones_are_sent_again() {
    let (store, _blob, proxy) = local().await;
    let chunked = async |path: &str, chunk: usize| {
        let chunks = (0..4_u8).map(move |at| {
            let data = Bytes::from(vec![at; chunk]);
            Ok::<_, std::io::Error>(http_body::Frame::data(data))
        });
        let body = BodyExt::boxed_unsync(StreamBody::new(futures::stream::iter(chunks)));
        let client: TestClient<_> = ClientBuilder::new().build().unwrap();
        let request = Request::put(format!("http://{proxy}/contoso/photos/{path}"))
            .header("x-ms-blob-type", "BlockBlob")
            .body(body)
            .unwrap();
        client.oneshot(request).await.unwrap().status()
    };
    assert_eq!(chunked("big", 10_000).await, 201);
    let content = store.content(Side::Primary, "photos", "big").unwrap();
    assert_eq!((content.len(), content[39_999]), (40_000, 3));

    let down = RegionState::Status(StatusCode::SERVICE_UNAVAILABLE);
    store.set(Side::Primary, down).await.unwrap();
    store.clear_arrivals();
    assert_eq!(chunked("small", 10).await, 503);
    assert_eq!(store.requests_by(Side::Primary, &Method::PUT), 3);
    assert_eq!(store.writes_at_secondary(), 0);
}

/// The program, and where it listens for blobs.
#[cfg(unix)]
async fn program(store: &TwoRegionStore, more: &[&str]) -> (Child, String) {
    let [primary, secondary] = Side::BOTH.map(|side| store.endpoint(side));
    let mut program = Command::new(env!("CARGO_BIN_EXE_geo-proxy"))
        .args(["--blob", "127.0.0.1:0", "--blob-endpoint"])
        .arg(format!("{primary},{secondary}"))
        .args(more)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
    let line = lines.next_line().await.unwrap().unwrap();
    let addr = line.strip_prefix("blob on http://").unwrap().to_owned();
    // It says one more thing, to nobody.
    (program, addr)
}

#[cfg(unix)]
async fn terminate(program: &Child) {
    let pid = program.id().unwrap().to_string();
    let kill = Command::new("kill").args(["-TERM", &pid]).status();
    assert!(kill.await.unwrap().success());
}

/// A request that is under way when the program is told to stop gets its answer.
#[cfg(unix)]
#[tokio::test]
async fn program_finishes_what_is_under_way_and_ends() {
    let (store, ..) = local().await;
    let (mut program, addr) = program(&store, &[]).await;
    let slow = RegionState::Slow(Duration::from_millis(500));
    store.set(Side::Primary, slow).await.unwrap();
    let client: TestClient<Full<Bytes>> = ClientBuilder::new().build().unwrap();
    let get = Request::get(format!("http://{addr}/contoso/photos/cat"));
    let get = tokio::spawn(client.oneshot(get.body(Full::default()).unwrap()));
    while store.requests(Side::Primary) == 0 {
        tokio::task::yield_now().await;
    }
    terminate(&program).await;
    let body = get
        .await
        .unwrap()
        .unwrap()
        .into_body()
        .collect()
        .await
        .unwrap();
    assert_eq!(body.to_bytes(), "meow");
    let ended = tokio::time::timeout(Duration::from_secs(20), program.wait()).await;
    assert!(ended.unwrap().unwrap().success());
}

/// A client that says no more in the middle of a request keeps the program from ending for as long
/// as it was told, or until it is told to stop again.
#[cfg(unix)]
#[tokio::test]
async fn program_ends_although_a_client_is_stuck() {
    let (store, ..) = local().await;
    for (more, again) in [(["--grace", "1"], false), (["--grace", "3600"], true)] {
        let (mut program, addr) = program(&store, &more).await;
        let mut stuck = TcpStream::connect(&addr).await.unwrap();
        stuck.write_all(b"GET /contoso/photos/c").await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        terminate(&program).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(program.try_wait().unwrap().is_none(), "it waits");
        if again {
            terminate(&program).await;
        }
        let ended = tokio::time::timeout(Duration::from_secs(20), program.wait()).await;
        assert_eq!(ended.unwrap().unwrap().code(), Some(1), "{more:?}");
    }
}

/// The program says which of its addresses it cannot have.
#[tokio::test]
async fn address_in_use_is_named() {
    let (_store, _blob, used) = local().await;
    let program = Command::new(env!("CARGO_BIN_EXE_geo-proxy"))
        .args(["--account", "contoso", "--blob", "127.0.0.1:0"])
        .args(["--queue", &used.to_string()])
        .output();
    let error = String::from_utf8(program.await.unwrap().stderr).unwrap();
    assert!(error.contains(&format!("queue on {used}")), "{error}");
}

/// 64 MiB up and down, and the program never holds more than a part of it.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn large_bodies_stream_through_in_little_memory() {
    let (store, ..) = local().await;
    let (program, addr) = program(&store, &[]).await;
    let content = Bytes::from(vec![7; 64 << 20]);
    let client: TestClient<Full<Bytes>> = ClientBuilder::new().build().unwrap();
    let url = format!("http://{addr}/contoso/photos/large");
    let put = Request::put(&url).header("x-ms-blob-type", "BlockBlob");
    let put = put.body(Full::new(content.clone())).unwrap();
    assert_eq!(client.clone().oneshot(put).await.unwrap().status(), 201);
    let get = Request::get(&url).body(Full::default()).unwrap();
    let got = client
        .oneshot(get)
        .await
        .unwrap()
        .into_body()
        .collect()
        .await
        .unwrap();
    assert!(got.to_bytes() == content);

    let status =
        std::fs::read_to_string(format!("/proc/{}/status", program.id().unwrap())).unwrap();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    let kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kib < 32 << 10, "the peak was {kib} KiB");
}
