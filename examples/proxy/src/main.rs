//! Runs the proxy. `geo-proxy --help` says how.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command")]

mod options;

use std::process::ExitCode;
use std::time::Duration;

use axum::serve::ListenerExt;
use clap::Parser;
use geo_proxy::{Body, router};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower_geo::{BoxError, FreshConnectionsLayer, HyperClients};
use tower_layer::Layer;

use crate::options::Options;

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    match run(options).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("geo-proxy: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options) -> Result<(), BoxError> {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    // None by default: a black hole would hold a send until the operating system gives up.
    http.set_connect_timeout(Some(Duration::from_secs(5)));
    let https = HttpsConnectorBuilder::new()
        .with_native_roots()?
        .https_or_http()
        .enable_http1()
        .wrap_connector(http);
    let mut builder = Client::builder(TokioExecutor::new());
    builder
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(Duration::from_secs(30))
        // One send is one send (T8).
        .retry_canceled_requests(false);
    let clients = HyperClients::new(builder, https);
    // After a failover the names mean other machines, and connections must not outlive it (R12):
    // probes make new ones, which replace the old, and none grows older than this.
    let client = FreshConnectionsLayer::new(clients.clone())
        .max_age(Duration::from_secs(600))
        .layer(clients.client::<Body>());

    let (stop, _) = watch::channel(());
    let mut servers = JoinSet::new();
    for (service, addr) in options.services()? {
        let listener = TcpListener::bind(addr).await?;
        println!("{} on http://{}", service.name(), listener.local_addr()?);
        // What is small leaves at once. A connection that refuses that is as good, but slower.
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        let app = router(&service, options.keep, client.clone());
        let mut stopped = stop.subscribe();
        servers.spawn(async move {
            axum::serve(listener, app)
                .with_graceful_shutdown(async move {
                    // An error says that the sender is gone: the program ends.
                    let _ = stopped.changed().await;
                })
                .await
        });
    }
    signal().await?;
    println!("stopping: requests under way are finished");
    stop.send_replace(());
    while let Some(ended) = servers.join_next().await {
        ended??;
    }
    Ok(())
}

/// Waits for Ctrl-C, or for what a service manager sends.
async fn signal() -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            pressed = tokio::signal::ctrl_c() => pressed,
            _ = terminate.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}
