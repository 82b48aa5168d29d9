//! The string to sign against the examples of "Authorize with Shared Key" of the Storage REST API;
//! signatures over them were computed apart from this code. The emulator judges the rest, in the
//! test kit.

use super::{
    SharedKey, SharedKeyLayer, SharedKeyService,
    string_to_sign::{Scheme, string_to_sign},
};
use http::{HeaderValue, Request, Response};
use http_body::{Body, Frame, SizeHint};
use std::{
    convert::Infallible,
    error::Error,
    future::{Future, Ready, ready},
    io,
    pin::{Pin, pin},
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tower_layer::Layer;
use tower_service::Service;

/// The emulator's published key.
const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
/// Fri, 26 Jun 2015 23:39:12 GMT
const JUNE_2015: Duration = Duration::from_secs(1_435_361_952);
/// Sun, 02 Aug 2009 17:30:45 GMT
const AUGUST_2009: Duration = Duration::from_secs(1_249_234_245);

/// A body that says of its size what the test wants.
struct Sized(Option<u64>);

impl Sized {
    fn exact(size: u64) -> Self {
        Self(Some(size))
    }

    fn unknown() -> Self {
        Self(None)
    }
}

impl Body for Sized {
    type Data = &'static [u8];
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Infallible>>> {
        Poll::Ready(None)
    }

    fn size_hint(&self) -> SizeHint {
        self.0.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

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

fn layer(service: SharedKeyService, date: Duration) -> SharedKeyLayer {
    SharedKeyLayer::new("myaccount", KEY, service)
        .unwrap()
        .wall_clock(move || UNIX_EPOCH + date)
}

fn call<S, B>(service: &mut S, request: Request<B>) -> Result<S::Response, S::Error>
where
    S: Service<Request<B>>,
{
    let mut cx = Context::from_waker(Waker::noop());
    let Poll::Ready(ready) = service.poll_ready(&mut cx) else {
        panic!("not ready")
    };
    ready?;
    let future = pin!(service.call(request));
    let Poll::Ready(answer) = future.poll(&mut cx) else {
        panic!("not answered at once")
    };
    answer
}

/// What the client got for `request`.
fn signed<B: Body>(layer: &SharedKeyLayer, request: Request<B>) -> Request<()> {
    let client = Client::default();
    call(&mut layer.layer(client.clone()), request).unwrap();
    client.seen.lock().unwrap().pop().unwrap()
}

fn authorization(request: &Request<()>) -> &str {
    request.headers()["authorization"].to_str().unwrap()
}

fn full(request: &Request<Sized>) -> String {
    let length = (!request.headers().contains_key("content-length"))
        .then(|| request.body().size_hint().exact().unwrap());
    text(Scheme::Full, request, length)
}

fn text(scheme: Scheme, request: &Request<Sized>, length: Option<u64>) -> String {
    let bytes = string_to_sign(
        scheme,
        "myaccount",
        request.method(),
        request.uri(),
        request.headers(),
        length,
    );
    String::from_utf8(bytes).unwrap()
}

fn get(uri: &str) -> Request<Sized> {
    Request::get(uri).body(Sized::exact(0)).unwrap()
}

/// The last lines of a string to sign: the canonicalised resource.
fn resource(uri: &str) -> String {
    let text = full(&get(uri));
    text.split_once("/myaccount")
        .map(|(_, tail)| format!("/myaccount{tail}"))
        .unwrap()
}

#[test]
fn documented_example_of_container_metadata() {
    let request = Request::get(
        "https://myaccount.blob.core.windows.net/mycontainer?restype=container&comp=metadata&timeout=20",
    )
    .header("x-ms-version", "2015-02-21")
    .header("x-ms-date", "Fri, 26 Jun 2015 23:39:12 GMT")
    .body(Sized::exact(0))
    .unwrap();

    assert_eq!(
        full(&request),
        "GET\n\n\n\n\n\n\n\n\n\n\n\n\
         x-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2015-02-21\n\
         /myaccount/mycontainer\ncomp:metadata\nrestype:container\ntimeout:20"
    );
    let sent = signed(&layer(SharedKeyService::Blob, JUNE_2015), request);
    assert_eq!(
        authorization(&sent),
        "SharedKey myaccount:1u9lui2jDxj0+fpbHjQ5m5NnastJRSYM+PSmfi8TXx4="
    );
}

#[test]
fn documented_example_of_put_blob() {
    let request =
        Request::put("https://myaccount.blob.core.windows.net/mycontainer/hello_world.txt")
            .header("content-type", "text/plain; charset=UTF-8")
            .header("x-ms-meta-m2", "v2")
            .header("x-ms-version", "2009-09-19")
            .header("x-ms-blob-type", "BlockBlob")
            .header("x-ms-meta-m1", "v1")
            .body(Sized::exact(11))
            .unwrap();

    let sent = signed(&layer(SharedKeyService::Blob, AUGUST_2009), request);

    assert_eq!(sent.headers()["x-ms-date"], "Sun, 02 Aug 2009 17:30:45 GMT");
    assert_eq!(
        authorization(&sent),
        "SharedKey myaccount:G1OR05A7+Q7OOEBgnegcOz1U0kwDhbdgr6eHsbOGc9I="
    );
}

#[test]
fn table_signs_date_and_no_query_but_comp() {
    let request = Request::get("https://myaccount.table.core.windows.net/Tables?$top=1")
        .body(Sized::exact(0))
        .unwrap();
    let sent = signed(&layer(SharedKeyService::Table, JUNE_2015), request);
    assert_eq!(
        authorization(&sent),
        "SharedKey myaccount:JR+7/FGFEXF96zHTcX7nkvw5C5cRMdRhyvTA8KVjiQA="
    );

    let request = get("https://myaccount.table.core.windows.net/?restype=service&comp=properties");
    assert_eq!(
        text(Scheme::Table, &request, None),
        "GET\n\n\n\n/myaccount/?comp=properties"
    );
}

#[test]
fn both_regions_of_an_account_get_the_same_signature() {
    let layer = layer(SharedKeyService::Blob, JUNE_2015);
    let primary = signed(&layer, get("https://myaccount.blob.core.windows.net/c/b"));
    let secondary = signed(
        &layer,
        get("https://myaccount-secondary.blob.core.windows.net/c/b"),
    );
    assert_eq!(authorization(&primary), authorization(&secondary));
    assert_eq!(
        resource("https://myaccount-secondary.blob.core.windows.net/mycontainer/myblob"),
        "/myaccount/mycontainer/myblob"
    );
}

#[test]
fn path_style_signs_the_path_that_it_sees() {
    assert_eq!(
        resource("http://127.0.0.1:10000/myaccount/c/b"),
        "/myaccount/myaccount/c/b"
    );
    assert_eq!(
        resource("http://127.0.0.1:10000/myaccount-secondary/c/b"),
        "/myaccount/myaccount-secondary/c/b"
    );
}

#[test]
fn query_is_decoded_lower_cased_sorted_and_joined() {
    let base = "https://myaccount.blob.core.windows.net/container";
    assert_eq!(
        resource(&format!(
            "{base}?restype=container&comp=list&include=snapshots&include=metadata&include=uncommittedblobs"
        )),
        "/myaccount/container\ncomp:list\ninclude:metadata,snapshots,uncommittedblobs\nrestype:container"
    );
    assert_eq!(
        resource(&format!(
            "{base}?Prefix=a%2Fb%20c+d&DELIMITER=%2f&marker=&x=100%&&y=%zz&flag"
        )),
        "/myaccount/container\ndelimiter:/\nflag:\nmarker:\nprefix:a/b c d\nx:100%\ny:%zz"
    );
}

#[test]
fn path_is_signed_as_it_is_encoded() {
    assert_eq!(
        resource("https://myaccount.blob.core.windows.net/c/a%20b%2Fc"),
        "/myaccount/c/a%20b%2Fc"
    );
    assert_eq!(
        resource("https://myaccount.blob.core.windows.net"),
        "/myaccount/"
    );
}

#[test]
fn headers_are_trimmed_joined_and_sorted_as_the_service_sorts() {
    let request = Request::get("https://myaccount.blob.core.windows.net/c/b")
        .header("x-ms-meta-a1", "one")
        .header("x-ms-meta-a_b", "  inner  space ")
        .header("x-ms-meta-aa", "three")
        .header("x-ms-meta-a-b", "first")
        .header("x-ms-meta-a-b", "second")
        .header("range", "bytes=0-1")
        .header("if-match", "\"0x1\"")
        .header("date", "Thu, 01 Jan 1970 00:00:00 GMT")
        .body(Sized::exact(0))
        .unwrap();
    assert_eq!(
        full(&request),
        "GET\n\n\n\n\n\n\n\n\"0x1\"\n\n\nbytes=0-1\n\
         x-ms-meta-a_b:inner  space\nx-ms-meta-a1:one\nx-ms-meta-aa:three\nx-ms-meta-a-b:first,second\n\
         /myaccount/c/b"
    );
}

#[test]
fn length_comes_from_the_header_else_from_the_body() {
    let put = |length: Option<&str>, body: Sized| {
        let mut request = Request::put("https://myaccount.blob.core.windows.net/c/b")
            .body(body)
            .unwrap();
        if let Some(length) = length {
            request
                .headers_mut()
                .insert("content-length", length.parse().unwrap());
        }
        full(&request).split('\n').nth(3).unwrap().to_owned()
    };
    assert_eq!(put(Some("7"), Sized::unknown()), "7");
    assert_eq!(put(Some("0"), Sized::unknown()), "");
    assert_eq!(put(None, Sized::exact(10)), "10");
    assert_eq!(put(None, Sized::exact(0)), "");
}

#[test]
fn body_of_unknown_length_is_a_typed_error_and_nothing_is_sent() {
    let client = Client::default();
    let mut service = layer(SharedKeyService::Blob, JUNE_2015).layer(client.clone());
    let request = Request::put("https://myaccount.blob.core.windows.net/c/b")
        .body(Sized::unknown())
        .unwrap();

    let error = call(&mut service, request).unwrap_err();

    assert!(error.sign_error().unwrap().is_unknown_length());
    assert!(error.get_ref().is_none());
    assert_eq!(
        error.source().unwrap().to_string(),
        "cannot sign a body of unknown length: set the content-length header, or give the body an exact size"
    );
    assert!(client.seen.lock().unwrap().is_empty());
}

#[test]
fn table_needs_no_length() {
    let request = Request::post("https://myaccount.table.core.windows.net/t")
        .body(Sized::unknown())
        .unwrap();
    let sent = signed(&layer(SharedKeyService::Table, JUNE_2015), request);
    assert!(authorization(&sent).starts_with("SharedKey myaccount:"));
}

#[test]
fn inner_error_is_the_source() {
    let client = Client {
        fails: true,
        ..Client::default()
    };
    let mut service = layer(SharedKeyService::Blob, JUNE_2015).layer(client);

    let error = call(
        &mut service,
        get("https://myaccount.blob.core.windows.net/c/b"),
    )
    .unwrap_err();

    let source = error.source().unwrap().downcast_ref::<io::Error>().unwrap();
    assert_eq!(source.kind(), io::ErrorKind::ConnectionRefused);
    let inner = error.into_inner().unwrap().downcast::<io::Error>().unwrap();
    assert_eq!(inner.kind(), io::ErrorKind::ConnectionRefused);
}

#[test]
fn stale_date_of_the_caller_is_replaced_and_its_version_kept() {
    let layer = layer(SharedKeyService::Queue, JUNE_2015);
    let request = Request::get("https://myaccount.queue.core.windows.net/?comp=list")
        .header("x-ms-date", "Thu, 01 Jan 1970 00:00:00 GMT")
        .header("x-ms-version", "2020-12-06")
        .body(Sized::exact(0))
        .unwrap();
    let sent = signed(&layer, request);
    assert_eq!(sent.headers()["x-ms-date"], "Fri, 26 Jun 2015 23:39:12 GMT");
    assert_eq!(sent.headers()["x-ms-version"], "2020-12-06");

    let layer = layer.service_version(HeaderValue::from_static("2019-02-02"));
    let sent = signed(
        &layer,
        get("https://myaccount.queue.core.windows.net/?comp=list"),
    );
    assert_eq!(sent.headers()["x-ms-version"], "2019-02-02");
}

#[test]
fn authorized_request_passes_untouched() {
    let request = Request::get("https://myaccount.blob.core.windows.net/c/b")
        .header("authorization", "Bearer token")
        .body(Sized::unknown())
        .unwrap();
    let sent = signed(&layer(SharedKeyService::Blob, JUNE_2015), request);
    assert_eq!(sent.headers().len(), 1);
    assert_eq!(authorization(&sent), "Bearer token");
}

/// What is authorised by a shared access signature needs no key, and must not show that there is one.
#[test]
fn a_request_with_a_shared_access_signature_passes_untouched() {
    for uri in [
        "https://myaccount.blob.core.windows.net/c/b?sv=2024-01-01&sig=a%3D",
        "https://myaccount.blob.core.windows.net/c/b?SIG=a",
    ] {
        let sent = signed(&layer(SharedKeyService::Blob, JUNE_2015), get(uri));
        assert!(sent.headers().is_empty(), "{uri}");
    }
    let listed = get("https://myaccount.blob.core.windows.net/c?comp=list&prefix=sig");
    let sent = signed(&layer(SharedKeyService::Blob, JUNE_2015), listed);
    assert!(sent.headers().contains_key("authorization"));
}

/// A signature goes to the account only.
#[test]
fn requests_to_other_hosts_are_not_signed() {
    let layer = layer(SharedKeyService::Blob, JUNE_2015);
    for ours in [
        "https://myaccount.blob.core.windows.net/c/b",
        "https://MyAccount.Blob.core.windows.net./c/b",
        "https://myaccount-secondary.blob.core.windows.net/c/b",
        "https://myaccount-secondary-ipv6.blob.core.windows.net/c/b",
        "https://myaccount-dualstack.dfs.core.windows.net/c/b",
        "https://myaccount.z01.blob.storage.azure.net/c/b",
        "http://127.0.0.1:10000/myaccount/c/b",
        "http://[::1]:10000/myaccount-secondary/c/b",
        "http://azurite:10000/myaccount",
    ] {
        let sent = signed(&layer, get(ours));
        assert!(sent.headers().contains_key("authorization"), "{ours}");
    }
    for foreign in [
        "https://evil.example.com/steal",
        "https://evil.example.com/myaccount/c",
        "https://myaccount.evil.example.com/c",
        "https://myaccount2.blob.core.windows.net/c",
        "https://myaccount-third.blob.core.windows.net/c",
        "https://other.blob.core.windows.net/myaccount/c",
        "http://127.0.0.1:10000/other/c",
        "http://127.0.0.1:10000/myaccount2/c",
    ] {
        let sent = signed(&layer, get(foreign));
        assert!(sent.headers().is_empty(), "{foreign}");
    }
}

#[test]
fn a_host_that_was_given_is_signed_whatever_its_port() {
    let layer = layer(SharedKeyService::Blob, JUNE_2015);
    let layer = layer.host("files.contoso.test").unwrap();
    for ours in [
        "https://files.contoso.test/c/b",
        "https://FILES.contoso.test:8443/c/b",
    ] {
        let sent = signed(&layer, get(ours));
        assert!(sent.headers().contains_key("authorization"), "{ours}");
    }
    assert!(
        signed(&layer, get("https://contoso.test/c"))
            .headers()
            .is_empty()
    );
    for senseless in ["", "https://a.test", "a.test:443", "a.test/c", "me@a.test"] {
        assert!(
            layer.clone().host(senseless).unwrap_err().is_config(),
            "{senseless}"
        );
    }
}

/// Where the client has moved the host into the header.
#[test]
fn a_relative_uri_is_judged_by_its_host_header() {
    let layer = layer(SharedKeyService::Blob, JUNE_2015);
    let at = |host: &str| {
        let request = Request::get("/c/b").header("host", host);
        let sent = signed(&layer, request.body(Sized::exact(0)).unwrap());
        sent.headers().contains_key("authorization")
    };
    assert!(at("myaccount.blob.core.windows.net:443"));
    assert!(!at("evil.example.com"));
    assert!(
        !signed(&layer, get("/c/b"))
            .headers()
            .contains_key("authorization")
    );
}

/// A client whose error is boxed already can be signed for below the geo layers.
#[test]
fn a_client_with_boxed_errors_can_be_signed_for() {
    fn is_error<E: Error + Send + ::std::marker::Sync + 'static>(_: &E) {}
    struct Boxing(Client);
    impl<B> Service<Request<B>> for Boxing {
        type Response = Response<()>;
        type Error = Box<dyn Error + Send + ::std::marker::Sync>;
        type Future = Ready<Result<Response<()>, Self::Error>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Request<B>) -> Self::Future {
            assert!(self.0.fails);
            ready(Err(io::Error::from(io::ErrorKind::ConnectionRefused).into()))
        }
    }
    let client = Boxing(Client {
        fails: true,
        ..Client::default()
    });
    let mut service = layer(SharedKeyService::Blob, JUNE_2015).layer(client);
    let request = get("https://myaccount.blob.core.windows.net/c/b");

    let error = call(&mut service, request).unwrap_err();

    is_error(&error);
    assert!(error.source().unwrap().is::<io::Error>());
}

#[test]
fn dates_that_http_cannot_write_are_errors() {
    for time in [
        UNIX_EPOCH - Duration::from_secs(1),
        UNIX_EPOCH + Duration::from_secs(253_402_300_800),
    ] {
        let layer = SharedKeyLayer::new("myaccount", KEY, SharedKeyService::Blob)
            .unwrap()
            .wall_clock(move || time);
        let request = get("https://myaccount.blob.core.windows.net/c/b");
        let error = call(&mut layer.layer(Client::default()), request).unwrap_err();
        assert!(!error.sign_error().unwrap().is_config());
    }
    let last: SystemTime = UNIX_EPOCH + Duration::from_secs(253_402_300_799);
    let layer = SharedKeyLayer::new("myaccount", KEY, SharedKeyService::Blob)
        .unwrap()
        .wall_clock(move || last);
    let sent = signed(&layer, get("https://myaccount.blob.core.windows.net/c/b"));
    assert_eq!(sent.headers()["x-ms-date"], "Fri, 31 Dec 9999 23:59:59 GMT");
}

#[test]
fn senseless_accounts_and_keys_are_refused() {
    let message = |account: &str, key: &str| {
        let error = SharedKeyLayer::new(account, key, SharedKeyService::Blob).unwrap_err();
        assert!(error.is_config());
        error.to_string()
    };
    assert_eq!(
        message("", KEY),
        "account name for shared key must consist of lower-case letters and digits"
    );
    assert_eq!(
        message("a:b", KEY),
        "account name for shared key must consist of lower-case letters and digits"
    );
    assert_eq!(
        message("myaccount-secondary", KEY),
        "account name for shared key must be the primary's, without `-secondary`, for both regions"
    );
    assert_eq!(message("myaccount", ""), "account key is empty");
    assert_eq!(
        message("myaccount", "not base64!"),
        "account key is not valid Base64"
    );
}

/// E3: the key and the signature appear in no debug output.
#[test]
fn debug_shows_neither_key_nor_signature() {
    let layer = layer(SharedKeyService::Blob, JUNE_2015);
    let service: SharedKey<()> = layer.layer(());
    let sent = signed(&layer, get("https://myaccount.blob.core.windows.net/c/b"));
    let shown = format!("{layer:?} {service:?} {sent:?}");
    assert!(shown.contains("myaccount"), "{shown}");
    assert!(!shown.contains("Eby8"), "{shown}");
    assert!(!shown.contains("SharedKey myaccount:"), "{shown}");
}

#[test]
fn layer_and_service_can_be_shared_between_threads() {
    fn shared<T: Clone + Send + Sync + 'static>() {}
    shared::<SharedKeyLayer>();
    shared::<SharedKey<Client>>();
}
