//! hyper's client below the stack. It is a tower service and needs no adapter; what it does about
//! connections that were kept is tested here, outages with it in the workspace's `tests`.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tower::ServiceExt;
use tower_geo::{GeoService, RetrySettings, Served, StorageService};
use tower_layer::Layer;

/// A server that answers once on each connection, and closes it when it is told to. Says when it has.
fn server() -> (SocketAddr, Sender<()>, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let ((close, told), (closed, done)) = (channel(), channel());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            answer(&mut stream);
            if told.recv().is_err() {
                return;
            }
            stream.shutdown(Shutdown::Both).unwrap();
            closed.send(()).unwrap();
        }
    });
    (addr, close, done)
}

fn answer(stream: &mut TcpStream) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        request.extend(byte);
    }
    stream
        .write_all(b"HTTP/1.1 200 OK\r\netag: \"1\"\r\ncontent-length: 4\r\n\r\nmeow")
        .unwrap();
}

/// T8: hyper itself sends a request again that a kept connection has not taken, unseen by the
/// stack. Switched off, the stack sees the fault and does it.
#[tokio::test]
async fn request_that_a_kept_connection_has_not_taken_is_sent_again_by_one_of_the_two() {
    for (by_hyper, sends) in [(true, 1), (false, 2)] {
        let (addr, close, closed) = server();
        let service = GeoService::azure_storage(format!("http://{addr}/contoso"))
            .storage_service(StorageService::Blob)
            .no_secondary()
            .retry(RetrySettings::new().delay(Duration::from_millis(10)))
            .build()
            .unwrap();
        let client: Client<HttpConnector, Full<Bytes>> = Client::builder(TokioExecutor::new())
            .retry_canceled_requests(by_hyper)
            .build_http();
        let stack = service.layer().clone_bodies().layer(client);
        let get = async || {
            let request = Request::get(format!("http://{addr}/contoso/photos/cat"));
            let request = request.body(Full::default()).unwrap();
            let (head, body) = stack.clone().oneshot(request).await.unwrap().into_parts();
            assert_eq!(body.collect().await.unwrap().to_bytes(), "meow");
            head
        };
        get().await;
        // Back to the pool.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        // Blocks the only thread, so the client cannot notice meanwhile that its connection is
        // gone. What yields is polled first: the runtime knows by then, the client does not.
        close.send(()).unwrap();
        closed.recv().unwrap();
        tokio::task::yield_now().await;
        let head = get().await;
        let served = Served::of(&head.extensions);
        let seen = served.map_or(1, |served| served.trail().sends().len());
        assert_eq!(seen, sends, "by hyper: {by_hyper}");
    }
}
