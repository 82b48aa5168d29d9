//! What resolves host names to the ports that they are behind.

use std::future::{Ready, ready};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::dns::Name;
use tower::Service;

use super::Shared;

/// A resolver for the connector of hyper-util, which takes the port from it where the URL has none.
#[derive(Clone)]
pub(crate) struct Names {
    shared: Arc<Shared>,
}

impl Names {
    pub(super) const fn of(shared: Arc<Shared>) -> Self {
        Self { shared }
    }
}

impl Service<Name> for Names {
    type Response = std::option::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Ready<io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let host = self
            .shared
            .hosts
            .iter()
            .find(|host| host.domain == name.as_str());
        ready(
            host.and_then(|host| host.address())
                .map(|address| Some(address).into_iter())
                .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such name")),
        )
    }
}
