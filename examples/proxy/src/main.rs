//! Runs the proxy. `geo-proxy --help` says how.

mod options;

use std::fmt;
use std::io::{self, Write};
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
use tokio::time::sleep;
use tower_geo::{BoxError, FreshConnectionsLayer, HyperClients};
use tower_layer::Layer;

use crate::options::Options;

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    match run(options).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(io::stderr(), format_args!("geo-proxy: {error}"));
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

    let mut signals = Signals::new()?;
    let (stop, _) = watch::channel(());
    let mut servers = JoinSet::new();
    for (service, addr) in options.services()? {
        let listener = TcpListener::bind(addr).await;
        let listener =
            listener.map_err(|error| format!("{} on {addr}: {error}", service.name()))?;
        let addr = listener.local_addr()?;
        say(
            io::stdout(),
            format_args!("{} on http://{addr}", service.name()),
        );
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
    signals.next().await;
    say(
        io::stdout(),
        format_args!("stopping: requests under way are finished"),
    );
    stop.send_replace(());
    let finished = async {
        while let Some(ended) = servers.join_next().await {
            ended??;
        }
        Ok(())
    };
    // A client that is slow, or says no more, must not keep the program from ending.
    tokio::select! {
        finished = finished => finished,
        () = signals.next() => Err("told twice to stop: what was under way is cut off".into()),
        () = sleep(Duration::from_secs(options.grace)) => {
            Err("time was up: what was under way is cut off".into())
        }
    }
}

/// Nobody has to read it: `geo-proxy | head -1` must go on, where `println!` would panic.
fn say(mut to: impl Write, line: fmt::Arguments<'_>) {
    drop(writeln!(to, "{line}"));
}

/// Ctrl-C, and what a service manager sends.
struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    #[expect(clippy::unnecessary_wraps, reason = "it can fail elsewhere")]
    const fn new() -> io::Result<Self> {
        Ok(Self {})
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            // There is nothing to wait for.
            std::future::pending::<()>().await;
        }
    }
}
