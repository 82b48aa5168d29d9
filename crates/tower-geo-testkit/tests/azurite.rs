//! The signer of `tower_geo::shared_key` judged by the storage emulator, and the emulator's own
//! handling. Needs `scripts/setup`.

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use std::{future::poll_fn, net::SocketAddr, time::Duration};
use tokio::time::timeout;
use tower_geo::shared_key::{SharedKey, SharedKeyLayer, SharedKeyService};
use tower_geo_testkit::{
    azurite::{ACCOUNT, Azurite, AzuriteOptions, KEY},
    client::{ClientBuilder, TestClient},
    front::{Front, Refuses},
    tls::TestCa,
};
use tower_layer::Layer;
use tower_service::Service;

/// Short, and only waited out where nothing must come.
const MOMENT: Duration = Duration::from_millis(200);

type Client = TestClient<Full<Bytes>>;

struct Signed(SharedKey<Client>);

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: String,
}

impl Signed {
    fn new(service: SharedKeyService) -> Self {
        Self::over(ClientBuilder::new().build().unwrap(), ACCOUNT, KEY, service)
    }

    fn over(client: Client, account: &str, key: &str, service: SharedKeyService) -> Self {
        let layer = SharedKeyLayer::new(account, key, service).unwrap();
        Self(layer.layer(client))
    }

    async fn send(
        &mut self,
        method: Method,
        url: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::from(body.to_owned())).unwrap();
        let service = &mut self.0;
        poll_fn(|cx| Service::<Request<Full<Bytes>>>::poll_ready(service, cx))
            .await
            .unwrap();
        let (head, body) = service.call(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer {
            status: head.status,
            headers: head.headers,
            body: String::from_utf8_lossy(&body).into_owned(),
        }
    }

    async fn get(&mut self, url: &str) -> Answer {
        self.send(Method::GET, url, &[], "").await
    }
}

#[track_caller]
fn expect(answer: &Answer, status: u16) {
    assert_eq!(
        answer.status, status,
        "{:?} {}",
        answer.headers, answer.body
    );
}

async fn azurite() -> Azurite {
    Azurite::start(AzuriteOptions::new()).await.unwrap()
}

fn path_style(addr: SocketAddr, suffix: &str) -> String {
    format!("http://{addr}/{ACCOUNT}{suffix}")
}

#[tokio::test]
async fn signed_blobs_are_put_got_and_listed_in_both_regions() {
    let azurite = azurite().await;
    let mut client = Signed::new(SharedKeyService::Blob);
    let [primary, secondary] =
        ["", "-secondary"].map(|suffix| path_style(azurite.blob_addr(), suffix));

    let url = format!("{primary}/photos?restype=container");
    expect(&client.send(Method::PUT, &url, &[], "").await, 201);
    let url = format!("{primary}/photos/my%20cat%2Bdog.jpg");
    let headers = [
        ("x-ms-blob-type", "BlockBlob"),
        ("content-type", "image/jpeg"),
        ("x-ms-meta-a_b", "underscore before digit"),
        ("x-ms-meta-a1", "  two  spaces  "),
        ("x-ms-meta-aa", "letter"),
    ];
    expect(&client.send(Method::PUT, &url, &headers, "meow").await, 201);

    for endpoint in [&primary, &secondary] {
        let url = format!("{endpoint}/photos/my%20cat%2Bdog.jpg");
        let answer = client.get(&url).await;
        expect(&answer, 200);
        assert_eq!(answer.body, "meow");
        let answer = client
            .send(Method::GET, &url, &[("range", "bytes=1-2")], "")
            .await;
        expect(&answer, 206);
        assert_eq!(answer.body, "eo");
        let etag = answer.headers["etag"].to_str().unwrap();
        let answer = client
            .send(Method::HEAD, &url, &[("if-match", etag)], "")
            .await;
        expect(&answer, 200);

        let url = format!(
            "{endpoint}/photos?restype=container&comp=list&prefix=my%20cat%2b&include=metadata,snapshots&delimiter=%2F"
        );
        let answer = client.get(&url).await;
        expect(&answer, 200);
        assert!(answer.body.contains("my cat+dog.jpg"), "{}", answer.body);
    }
    let stats = client
        .get(&format!("{secondary}/?restype=service&comp=stats"))
        .await;
    expect(&stats, 200);
    assert!(stats.body.contains("live"), "{}", stats.body);
}

#[tokio::test]
async fn wrong_key_is_refused() {
    let azurite = azurite().await;
    let client = ClientBuilder::new().build().unwrap();
    let mut client = Signed::over(client, ACCOUNT, "c2VjcmV0", SharedKeyService::Blob);
    let url = format!("{}/?comp=list", path_style(azurite.blob_addr(), ""));
    expect(&client.get(&url).await, 403);
}

#[tokio::test]
async fn signed_messages_are_put_and_peeked() {
    let azurite = azurite().await;
    let mut client = Signed::new(SharedKeyService::Queue);
    let [primary, secondary] =
        ["", "-secondary"].map(|suffix| path_style(azurite.queue_addr(), suffix));

    let url = format!("{primary}/work");
    expect(&client.send(Method::PUT, &url, &[], "").await, 201);
    let url = format!("{primary}/work/messages?messagettl=60");
    let message = "<QueueMessage><MessageText>meow</MessageText></QueueMessage>";
    let headers = [("content-type", "application/xml")];
    expect(&client.send(Method::POST, &url, &headers, message).await, 201);
    for endpoint in [&primary, &secondary] {
        let url = format!("{endpoint}/work/messages?peekonly=true&numofmessages=2");
        let answer = client.get(&url).await;
        expect(&answer, 200);
        assert!(answer.body.contains("meow"), "{}", answer.body);
    }
    let stats = format!("{secondary}/?restype=service&comp=stats");
    expect(&client.get(&stats).await, 200);
}

#[tokio::test]
async fn signed_entities_are_inserted_and_queried() {
    let azurite = azurite().await;
    let mut client = Signed::new(SharedKeyService::Table);
    let [primary, secondary] =
        ["", "-secondary"].map(|suffix| path_style(azurite.table_addr(), suffix));
    let json = [
        ("content-type", "application/json"),
        ("accept", "application/json;odata=nometadata"),
    ];

    let url = format!("{primary}/Tables");
    let answer = client
        .send(Method::POST, &url, &json, r#"{"TableName":"people"}"#)
        .await;
    expect(&answer, 201);
    let url = format!("{primary}/people");
    let entity = r#"{"PartitionKey":"sales","RowKey":"1","Name":"Mia"}"#;
    expect(&client.send(Method::POST, &url, &json, entity).await, 201);

    for endpoint in [&primary, &secondary] {
        let url = format!("{endpoint}/people()?$filter=Name%20eq%20'Mia'&$top=1");
        let answer = client.send(Method::GET, &url, &json, "").await;
        expect(&answer, 200);
        assert!(answer.body.contains("Mia"), "{}", answer.body);
        let url = format!("{endpoint}/people(PartitionKey='sales',RowKey='1')");
        expect(&client.send(Method::GET, &url, &json, "").await, 200);
    }
    let stats = format!("{secondary}/?restype=service&comp=stats");
    expect(&client.get(&stats).await, 200);
}

/// R8, R11: production host names, TLS, one signature for both regions, and a secondary that refuses
/// writes as the real one does.
#[tokio::test]
async fn signatures_hold_under_production_host_names() {
    const SECRET: &str = "c2VjcmV0IG9mIGNvbnRvc28=";
    let azurite = Azurite::start(AzuriteOptions::new().account("contoso", SECRET))
        .await
        .unwrap();
    let ca = TestCa::new().unwrap();
    let front = |host, refuses| {
        let builder = Front::builder(azurite.blob_addr()).tls(&ca, [host]).unwrap();
        builder.refuse_writes(refuses).start().unwrap()
    };
    let hosts = [
        "contoso.blob.core.windows.net",
        "contoso-secondary.blob.core.windows.net",
    ];
    let primary = front(hosts[0], Refuses::Nothing);
    let secondary = front(hosts[1], Refuses::Writes);
    let client = ClientBuilder::new()
        .resolve(hosts[0], primary.addr())
        .resolve(hosts[1], secondary.addr())
        .trust(&ca)
        .unwrap()
        .build()
        .unwrap();
    let mut client = Signed::over(client, "contoso", SECRET, SharedKeyService::Blob);

    let blob = [("x-ms-blob-type", "BlockBlob")];
    let url = format!("https://{}/photos?restype=container", hosts[0]);
    expect(&client.send(Method::PUT, &url, &[], "").await, 201);
    let [url, copy] = hosts.map(|host| format!("https://{host}/photos/cat.jpg"));
    expect(&client.send(Method::PUT, &url, &blob, "meow").await, 201);
    expect(&client.get(&url).await, 200);
    expect(&client.get(&copy).await, 200);

    let refused = client.send(Method::PUT, &copy, &blob, "woof").await;
    expect(&refused, 403);
    assert_eq!(
        refused.headers["x-ms-error-code"],
        "InsufficientAccountPermissions"
    );
    assert_eq!(secondary.refused(), 1);
    assert_eq!(client.get(&url).await.body, "meow");
}

#[tokio::test]
async fn emulator_keeps_ports_and_data_over_its_ends() {
    let folder = std::env::temp_dir().join(format!("tower-geo-azurite-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut azurite = Azurite::start(AzuriteOptions::new().location(&folder))
        .await
        .unwrap();
    let addr = azurite.blob_addr();
    let mut client = Signed::new(SharedKeyService::Blob);
    let container = format!("{}/photos?restype=container", path_style(addr, ""));
    expect(&client.send(Method::PUT, &container, &[], "").await, 201);

    // An orderly end saves; a kill does not lose what was saved.
    azurite.terminate().await.unwrap();
    let refused = tokio::net::TcpStream::connect(addr).await.unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    azurite.restart().await.unwrap();
    assert_eq!(azurite.blob_addr(), addr);
    expect(&client.get(&container).await, 200);
    azurite.kill().await.unwrap();
    assert!(tokio::net::TcpStream::connect(addr).await.is_err());
    azurite.restart().await.unwrap();
    expect(&client.get(&container).await, 200);

    azurite.freeze().unwrap();
    let mut frozen = Box::pin(client.get(&container));
    assert!(timeout(MOMENT, &mut frozen).await.is_err());
    azurite.thaw().unwrap();
    expect(&frozen.await, 200);

    azurite.kill().await.unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn missing_emulator_says_what_to_run() {
    let options = AzuriteOptions::new().directory("no/such/folder");
    let error = Azurite::start(options).await.unwrap_err();
    assert!(error.contains("run scripts/setup"), "{error}");
}
