//! HTTP in front of the emulator.

use std::future::pending;
use std::io;
use std::sync::Arc;

use azure_core::http::{Request as CoreRequest, Url};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::host::{Host, Next};
use super::{GLOBAL, Shared, signature};

/// Serves the host with this number until the runtime ends.
pub(super) async fn serve(listener: TcpListener, shared: Arc<Shared>, at: usize) {
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let answer = service_fn(|request| answer(&shared, at, request));
            // A client that leaves is none of our business.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), answer)
                .await;
        });
    }
}

/// An error closes the connection.
async fn answer(
    shared: &Shared,
    at: usize,
    request: Request<Incoming>,
) -> io::Result<Response<Full<Bytes>>> {
    let host = &shared.hosts[at];
    let (parts, body) = request.into_parts();
    let path = parts.uri.path();
    let arrival = shared
        .log
        .arrived(&host.name, &parts.method, path, &parts.headers);
    if path == "/" {
        drop(shared.account_reads.read().await);
    }
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();

    let answer = if !signature::is_right(&parts.method, path, &parts.headers) {
        problem(401, None)
    } else {
        match host.next(path != "/") {
            Next::Emulator => ask_emulator(shared, host, &parts, body).await?,
            Next::Nowhere => pending().await,
            Next::Answer {
                status,
                sub_status,
                retry_after,
            } => {
                let mut answer = problem(status, sub_status);
                if let Some(wait) = retry_after {
                    let wait = HeaderValue::try_from(wait.as_millis().to_string()).unwrap();
                    answer.headers_mut().insert("x-ms-retry-after-ms", wait);
                }
                answer
            }
        }
    };
    let status = answer.status().as_u16();
    shared.log.answered(arrival, status, answer.headers());
    Ok(answer)
}

fn problem(status: u16, sub_status: Option<u32>) -> Response<Full<Bytes>> {
    let mut answer = Response::builder()
        .status(status)
        .header("content-type", "application/json")
        .header("x-ms-activity-id", "made-up");
    if let Some(sub_status) = sub_status {
        answer = answer.header("x-ms-substatus", sub_status);
    }
    let body = r#"{"code":"MadeUp","message":"made up by the tests"}"#;
    answer.body(Full::from(body)).unwrap()
}

/// The emulator knows regions by the host of the URL, and no global host: the hub answers for it.
async fn ask_emulator(
    shared: &Shared,
    mut host: &Host,
    parts: &Parts,
    body: Bytes,
) -> io::Result<Response<Full<Bytes>>> {
    if host.name == GLOBAL {
        let hub = shared.emulator.store().config().write_region_name();
        let known = shared.hosts.iter().find(|host| host.name == hub);
        host = known.ok_or_else(|| io::Error::other("the hub has no host"))?;
    }
    let target = parts
        .uri
        .path_and_query()
        .map_or("/", |target| target.as_str());
    let url: Url = format!("http://{}{target}", host.domain)
        .parse()
        .map_err(io::Error::other)?;
    let method = parts.method.as_str().parse().map_err(io::Error::other)?;
    let mut request = CoreRequest::new(url, method);
    for (name, value) in &parts.headers {
        let value = value.to_str().map_err(io::Error::other)?.to_owned();
        request.insert_header(name.as_str().to_owned(), value);
    }
    request.set_body(body);

    // An error says that the region cannot be reached, or is unknown.
    let answer = shared.emulator.execute_request(&request).await;
    let answer = answer.map_err(|_| io::Error::from(io::ErrorKind::ConnectionReset))?;
    let answer = answer
        .try_into_raw_response()
        .await
        .map_err(io::Error::other)?;
    let mut built = Response::builder().status(u16::from(answer.status()));
    for (name, value) in answer.headers().iter() {
        // hyper writes its own.
        if name.as_str() != "content-length" {
            built = built.header(name.as_str(), value.as_str());
        }
    }
    built
        .body(Full::from(answer.into_body().to_vec()))
        .map_err(io::Error::other)
}

/// The names of the documents of customer `a` in a region, past the wire.
pub(super) async fn documents(shared: &Shared, region: &Host) -> Vec<String> {
    let list = Request::get("/dbs/shop/colls/orders/docs")
        .header("x-ms-documentdb-partitionkey", r#"["a"]"#)
        .body(())
        .unwrap();
    let (parts, ()) = list.into_parts();
    let answer = ask_emulator(shared, region, &parts, Bytes::new()).await;
    let body = answer.unwrap().into_body().collect().await.unwrap();
    let feed: serde_json::Value = serde_json::from_slice(&body.to_bytes()).unwrap();
    let documents = feed["Documents"].as_array().unwrap();
    let mut names: Vec<String> = documents
        .iter()
        .map(|document| document["id"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}
