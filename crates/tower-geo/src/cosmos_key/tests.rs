//! The example of "Access control on Cosmos DB resources" of the REST API; other signatures were
//! computed apart from this code.

use super::{CosmosKey, CosmosKeyLayer};
use crate::signing::SigningServiceError;
use http::{HeaderValue, Request, Response};
use std::{
    error::Error,
    future::{Future, Ready, ready},
    io,
    pin::pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
    time::{Duration, UNIX_EPOCH},
};
use tower_layer::Layer;
use tower_service::Service;

/// The key of the documented example.
const KEY: &str =
    "dsZQi3KtZmCv1ljt3VNWNm7sQUF1y5rJfC6kv5JiwvW0EndXdDku/dkKBp8/ufDToSxLzR4y+O/0H/t4bQtVNw==";
/// Thu, 27 Apr 2017 00:51:12 GMT
const APRIL_2017: Duration = Duration::from_secs(1_493_254_272);
const ENDPOINT: &str = "https://contoso.documents.azure.com:443/";

/// Keeps what it is sent, or fails.
#[derive(Clone, Default)]
struct Client {
    seen: Arc<Mutex<Vec<Request<()>>>>,
    fails: bool,
}

impl<B> Service<Request<B>> for Client {
    type Response = Response<()>;
    type Error = io::Error;
    type Future = Ready<Result<Response<()>, io::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.seen.lock().unwrap().push(request.map(drop));
        ready(if self.fails {
            Err(io::ErrorKind::ConnectionRefused.into())
        } else {
            Ok(Response::new(()))
        })
    }
}

fn layer_at(endpoint: &str) -> CosmosKeyLayer {
    CosmosKeyLayer::new(endpoint, KEY)
        .unwrap()
        .wall_clock(|| UNIX_EPOCH + APRIL_2017)
}

fn layer() -> CosmosKeyLayer {
    layer_at(ENDPOINT)
}

fn call(
    layer: &CosmosKeyLayer,
    client: Client,
    request: Request<()>,
) -> Result<Response<()>, SigningServiceError> {
    let mut cx = Context::from_waker(Waker::noop());
    let mut service = layer.layer(client);
    assert!(matches!(
        Service::<Request<()>>::poll_ready(&mut service, &mut cx),
        Poll::Ready(Ok(()))
    ));
    let future = pin!(service.call(request));
    let Poll::Ready(answer) = future.poll(&mut cx) else {
        panic!("not answered at once")
    };
    answer
}

/// What the client got for `request`.
fn signed(layer: &CosmosKeyLayer, request: Request<()>) -> Request<()> {
    let client = Client::default();
    call(layer, client.clone(), request).unwrap();
    client.seen.lock().unwrap().pop().unwrap()
}

fn get(uri: &str) -> Request<()> {
    Request::get(uri).body(()).unwrap()
}

fn is_signed(layer: &CosmosKeyLayer, uri: &str) -> bool {
    let sent = signed(layer, get(uri));
    let is_signed = sent.headers().contains_key("authorization");
    // All or nothing: a stranger is not told a version either.
    assert_eq!(sent.headers().is_empty(), !is_signed, "{uri}");
    is_signed
}

#[test]
fn documented_example_of_a_database() {
    let sent = signed(
        &layer(),
        get("https://contoso.documents.azure.com/dbs/ToDoList"),
    );
    let headers = sent.headers();
    assert_eq!(
        headers["authorization"],
        "type%3Dmaster%26ver%3D1.0%26sig%3Dc09PEVJrgp2uQRkr934kFbTqhByc7TVr3OHyqlu%2Bc%2Bc%3D"
    );
    assert_eq!(headers["x-ms-date"], "Thu, 27 Apr 2017 00:51:12 GMT");
    assert_eq!(headers["x-ms-version"], "2018-12-31");
}

#[test]
fn signatures_cover_verb_type_link_and_date() {
    for (method, path, signature) in [
        (
            "GET",
            "/",
            "rp533%2Fe%2BAfAi87cI2Vg1QmCqQY1Ki3ryYkABWMvF9xw%3D",
        ),
        (
            "POST",
            "/dbs/ToDoList/colls/Items/docs",
            "1hQoluJ9G3Ls4EgDpVtLQz7smI6yOp0mpX%2BexxeUT3g%3D",
        ),
        (
            "GET",
            "/dbs/ToDoList/colls/Items/docs/a%20b?x=1",
            "uoqBBsOaipRpTLdwwUgLRqNSbeY8My%2BJh60CjmZYiak%3D",
        ),
        (
            "GET",
            "/offers/aB+c==",
            "a0sEHCHgWY1muSMfHEZoN3SbffbJ5t%2FCMxKYISdCTdo%3D",
        ),
    ] {
        let request = Request::builder()
            .method(method)
            .uri(format!("https://contoso-eastus.documents.azure.com{path}"))
            .body(())
            .unwrap();
        let sent = signed(&layer(), request);
        let expected = format!("type%3Dmaster%26ver%3D1.0%26sig%3D{signature}");
        assert_eq!(sent.headers()["authorization"], expected, "{method} {path}");
    }
}

/// The host is not covered, so a signature is good in every region.
#[test]
fn all_regions_of_an_account_get_the_same_signature() {
    let at = |host: &str| {
        let sent = signed(&layer(), get(&format!("https://{host}/dbs/d/colls/c")));
        sent.headers()["authorization"].clone()
    };
    assert_eq!(
        at("contoso.documents.azure.com"),
        at("contoso-westus2.documents.azure.com")
    );
}

/// A signature goes to the account only.
#[test]
fn requests_to_other_hosts_are_not_signed() {
    for ours in [
        "https://contoso.documents.azure.com/",
        "https://contoso.documents.azure.com:443/dbs",
        "https://CONTOSO.documents.azure.com./dbs",
        "https://contoso-westus.documents.azure.com/dbs",
        "https://Contoso-GermanyWestCentral.Documents.azure.com/dbs",
        "https://contoso-eastus2.documents.azure.com:10255/dbs",
    ] {
        assert!(is_signed(&layer(), ours), "{ours}");
    }
    for foreign in [
        "https://evil.example.com/dbs",
        "https://contoso.documents.azure.com.evil.example/dbs",
        "https://contoso-westus.evil.example/dbs",
        "https://contoso.documents.azure.cn/dbs",
        "https://contosowestus.documents.azure.com/dbs",
        "https://contoso2.documents.azure.com/dbs",
        "https://contoso-.documents.azure.com/dbs",
        "https://contoso-west-us.documents.azure.com/dbs",
        "https://contoso-westus.sql.documents.azure.com/dbs",
        "https://other-westus.documents.azure.com/dbs",
        "https://con.documents.azure.com/dbs",
        "https://documents.azure.com/dbs",
        "https://contoso/dbs",
        "https://127.0.0.1:8081/dbs",
        "https://login.microsoftonline.com/contoso.documents.azure.com",
    ] {
        assert!(!is_signed(&layer(), foreign), "{foreign}");
    }
}

/// A host without a domain, or an address, has no regions.
#[test]
fn an_emulator_is_signed_for_by_its_host_alone() {
    for (endpoint, ours, foreign) in [
        (
            "https://localhost:8081",
            "https://localhost:8082/dbs",
            "https://localhost-westus/dbs",
        ),
        (
            "http://127.0.0.1:8081/",
            "http://127.0.0.1:1234/dbs",
            "http://127-a.0.0.1/dbs",
        ),
        (
            "http://[::1]:8081",
            "http://[::1]:1234/dbs",
            "http://[::2]:8081/dbs",
        ),
    ] {
        let layer = layer_at(endpoint);
        assert!(is_signed(&layer, ours), "{ours}");
        assert!(!is_signed(&layer, foreign), "{foreign}");
    }
}

#[test]
fn an_allowed_host_is_signed_whatever_its_port() {
    let layer = layer().allow_host("cosmos.contoso.test").unwrap();
    assert!(is_signed(&layer, "https://cosmos.contoso.test/dbs"));
    assert!(is_signed(&layer, "https://COSMOS.contoso.test:8443/dbs"));
    // No regions are derived from it: it was named because it says nothing of the account.
    assert!(!is_signed(&layer, "https://cosmos-westus.contoso.test/dbs"));
    for senseless in ["", "https://a.test", "a.test:443", "a.test/c", "me@a.test"] {
        let error = layer.clone().allow_host(senseless).unwrap_err();
        assert!(error.is_config(), "{senseless}");
    }
}

/// Where the client has moved the host into the header.
#[test]
fn a_relative_uri_is_judged_by_its_host_header() {
    let at = |host: &str| {
        let request = Request::get("/dbs").header("host", host).body(()).unwrap();
        let sent = signed(&layer(), request);
        sent.headers().contains_key("authorization")
    };
    assert!(at("contoso-westus.documents.azure.com:443"));
    assert!(!at("evil.example.com"));
    assert!(!is_signed(&layer(), "/dbs"));
}

/// A resource token or a token of Entra ID needs no key, and must not show that there is one.
#[test]
fn authorized_request_passes_untouched() {
    let request = Request::get("https://contoso.documents.azure.com/dbs")
        .header("authorization", "type%3Daad%26ver%3D1.0%26sig%3Dtoken")
        .body(())
        .unwrap();
    let sent = signed(&layer(), request);
    assert_eq!(sent.headers().len(), 1);
    assert_eq!(
        sent.headers()["authorization"],
        "type%3Daad%26ver%3D1.0%26sig%3Dtoken"
    );
}

#[test]
fn stale_date_of_the_caller_is_replaced_and_its_version_kept() {
    let request = || Request::get("https://contoso.documents.azure.com/dbs");
    let stale = request()
        .header("x-ms-date", "Thu, 01 Jan 1970 00:00:00 GMT")
        .header("x-ms-version", "2020-07-15");
    let sent = signed(&layer(), stale.body(()).unwrap());
    assert_eq!(sent.headers()["x-ms-date"], "Thu, 27 Apr 2017 00:51:12 GMT");
    assert_eq!(sent.headers()["x-ms-version"], "2020-07-15");

    let layer = layer().service_version(HeaderValue::from_static("2016-07-11"));
    let sent = signed(&layer, request().body(()).unwrap());
    assert_eq!(sent.headers()["x-ms-version"], "2016-07-11");
}

#[test]
fn inner_error_is_the_source() {
    let client = Client {
        fails: true,
        ..Client::default()
    };
    let request = get("https://contoso.documents.azure.com/dbs");
    let error = call(&layer(), client, request).unwrap_err();
    let source = error.source().unwrap().downcast_ref::<io::Error>().unwrap();
    assert_eq!(source.kind(), io::ErrorKind::ConnectionRefused);
}

#[test]
fn a_date_that_http_cannot_write_is_an_error_and_nothing_is_sent() {
    let layer = layer().wall_clock(|| UNIX_EPOCH - Duration::from_secs(1));
    let client = Client::default();
    let request = get("https://contoso.documents.azure.com/dbs");
    let error = call(&layer, client.clone(), request).unwrap_err();
    assert!(!error.sign_error().unwrap().is_config());
    assert!(client.seen.lock().unwrap().is_empty());
    // A stranger's request needs no date.
    call(&layer, client.clone(), get("https://example.com/")).unwrap();
    assert_eq!(client.seen.lock().unwrap().len(), 1);
}

#[test]
fn senseless_endpoints_and_keys_are_refused() {
    let message = |endpoint: &str, key: &str| {
        let error = CosmosKeyLayer::new(endpoint, key).unwrap_err();
        assert!(error.is_config());
        error.to_string()
    };
    for endpoint in ["", "contoso", "ftp://contoso.documents.azure.com"] {
        assert_eq!(
            message(endpoint, KEY),
            "endpoint to sign for must be a URL with a host, such as https://ACCOUNT.documents.azure.com"
        );
    }
    assert_eq!(
        message("http://localhost:8081/contoso", KEY),
        "endpoint to sign for must have no path: the account is in the host"
    );
    assert_eq!(message(ENDPOINT, ""), "account key is empty");
    assert_eq!(
        message(ENDPOINT, "not base64!"),
        "account key is not valid Base64"
    );
}

/// E3: the key and the signature appear in no debug output.
#[test]
fn debug_shows_neither_key_nor_signature() {
    let layer = layer();
    let service: CosmosKey<()> = layer.layer(());
    let sent = signed(&layer, get("https://contoso.documents.azure.com/dbs"));
    let shown = format!("{layer:?} {service:?} {sent:?}");
    assert!(shown.contains("contoso.documents"), "{shown}");
    assert!(!shown.contains("dsZQ"), "{shown}");
    assert!(!shown.contains("type%3Dmaster"), "{shown}");
}

#[test]
fn layer_and_service_can_be_shared_between_threads() {
    fn shared<T: Clone + Send + Sync + 'static>() {}
    shared::<CosmosKeyLayer>();
    shared::<CosmosKey<Client>>();
}
