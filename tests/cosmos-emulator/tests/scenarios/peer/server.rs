//! HTTP in front of the emulator.

use std::future::pending;
use std::io;
use std::sync::Arc;

use azure_core::http::{Request as CoreRequest, Url};
use bytes::Bytes;
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::host::Next;
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
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();

    let answer = if !signature::is_right(&parts.method, path, &parts.headers) {
        problem(401, None)
    } else {
        match host.next(path != "/") {
            Next::Emulator => ask_emulator(shared, at, &parts, body).await?,
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
    at: usize,
    parts: &http::request::Parts,
    body: Bytes,
) -> io::Result<Response<Full<Bytes>>> {
    let mut host = &shared.hosts[at];
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
