//! The hosts of the account: a server for each on loopback, and the names that lead there.

use std::collections::HashMap;
use std::future::{Ready, ready};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::Request;
use http::header::AUTHORIZATION;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::sleep;
use tower::Service;

use crate::account::{Account, Answer, Region, Site};

/// How long an answer takes.
const LATENCY: Duration = Duration::from_millis(2);

/// The servers of an account, and its names.
pub(crate) struct Hosts {
    account: Arc<Mutex<Account>>,
    global: String,
    names: Names,
    online: HashMap<Region, watch::Sender<bool>>,
}

/// The name of a host, as the service makes them.
fn host_of(site: Site) -> String {
    let label = match site {
        Site::Global => "contoso",
        Site::Regional(Region::East) => "contoso-eastus",
        Site::Regional(Region::West) => "contoso-westus",
        Site::Regional(Region::Central) => "contoso-centralus",
    };
    format!("{label}.documents.example")
}

impl Hosts {
    /// Starts a server for each host, on free ports.
    ///
    /// # Errors
    ///
    /// When there is no free port.
    pub(crate) async fn start() -> io::Result<Self> {
        let names = Names::default();
        let bind = async |site: Site| {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            let host = host_of(site);
            let port = listener.local_addr()?.port();
            names.lock().insert(host.clone(), true);
            Ok::<_, io::Error>((listener, format!("http://{host}:{port}")))
        };
        let (at_global, global) = bind(Site::Global).await?;
        let mut listeners = vec![(Site::Global, at_global)];
        let mut urls = [const { String::new() }; 3];
        for region in Region::ALL {
            let site = Site::Regional(region);
            let (listener, url) = bind(site).await?;
            listeners.push((site, listener));
            urls[region as usize] = format!("{url}/");
        }
        let account = Arc::new(Mutex::new(Account::new(urls)));
        let mut online = HashMap::new();
        for (site, listener) in listeners {
            let (switch, is_online) = watch::channel(true);
            tokio::spawn(accept(
                listener,
                site,
                Arc::clone(&account),
                is_online.clone(),
            ));
            if let Site::Regional(region) = site {
                online.insert(region, switch);
            } else {
                // The global host stays.
                tokio::spawn(async move { switch.closed().await });
            }
        }
        Ok(Self {
            account,
            global,
            names,
            online,
        })
    }

    /// What an application has in its configuration.
    pub(crate) fn endpoint(&self) -> &str {
        &self.global
    }

    /// What the client resolves names with.
    pub(crate) fn names(&self) -> Names {
        self.names.clone()
    }

    pub(crate) fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a region off the network: its name leads nowhere, its connections are cut.
    pub(crate) fn withdraw(&self, region: Region) {
        self.names
            .lock()
            .insert(host_of(Site::Regional(region)), false);
        if let Some(switch) = self.online.get(&region) {
            switch.send_replace(false);
        }
    }
}

async fn accept(
    listener: TcpListener,
    site: Site,
    account: Arc<Mutex<Account>>,
    mut online: watch::Receiver<bool>,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            // The listener goes with this task, so connections are refused from now on.
            _ = online.wait_for(|online| !online) => return,
        };
        // One that was given up before it was taken is nobody's loss.
        let Ok((stream, _)) = accepted else { continue };
        let served = serve(stream, site, Arc::clone(&account));
        let mut online = online.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = served => {}
                _ = online.wait_for(|online| !online) => {}
            }
        });
    }
}

async fn serve(stream: TcpStream, site: Site, account: Arc<Mutex<Account>>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let account = Arc::clone(&account);
        async move { answer(request, site, &account).await }
    });
    // A client that goes away has ended its connection, and that is all there is to say.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(
    request: Request<Incoming>,
    site: Site,
    account: &Mutex<Account>,
) -> Result<Answer, hyper::Error> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    sleep(LATENCY).await;
    let mut account = account.lock().unwrap_or_else(PoisonError::into_inner);
    let authorization = parts.headers.get(AUTHORIZATION);
    let is_signed = authorization.is_some_and(|it| it.as_bytes().starts_with(b"type%3Dmaster"));
    if !is_signed {
        return Ok(account.refuse_unsigned());
    }
    Ok(account.answer(site, &parts.method, parts.uri.path(), &body))
}

/// The names of the account's hosts, and whether each is there. All lead to loopback.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(Arc<Mutex<HashMap<String, bool>>>);

impl Names {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, bool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Service<Name> for Names {
    type Response = std::iter::Once<SocketAddr>;
    type Error = io::Error;
    type Future = Ready<io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        ready(if self.lock().get(name.as_str()) == Some(&true) {
            // The port is that of the URL.
            Ok(std::iter::once((Ipv4Addr::LOCALHOST, 0).into()))
        } else {
            Err(io::Error::new(io::ErrorKind::NotFound, "no such host"))
        })
    }
}
