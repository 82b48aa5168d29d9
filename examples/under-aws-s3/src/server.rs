//! An S3 server on loopback that checks signatures, for the example and its tests.

use std::io;
use std::net::SocketAddr;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s_fs::FileSystem;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tower_geo::BoxError;

/// The access key that the server takes.
pub const ACCESS_KEY: &str = "AKIAIOSFODNN7EXAMPLE";
/// Its secret.
pub const SECRET_KEY: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";

/// A server with a folder of its own, both of which are gone when this is dropped.
#[derive(Debug)]
pub struct Server {
    addr: SocketAddr,
    serving: JoinHandle<()>,
    _folder: TempDir,
}

impl Server {
    /// Starts one on a free port.
    ///
    /// # Errors
    ///
    /// No folder, or no port.
    pub async fn start() -> Result<Self, BoxError> {
        let folder = tempfile::tempdir()?;
        let files = FileSystem::new(folder.path())
            .map_err(|error| io::Error::other(format!("{error:?}")))?;
        let mut service = S3ServiceBuilder::new(files);
        service.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let addr = listener.local_addr()?;
        let serving = tokio::spawn(serve(listener, service.build()));
        Ok(Self {
            addr,
            serving,
            _folder: folder,
        })
    }

    /// Where it listens.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, service: S3Service) {
    while let Ok((stream, _)) = listener.accept().await {
        let service = service.clone();
        tokio::spawn(async move {
            let builder = Builder::new(TokioExecutor::new());
            let connection = builder.serve_connection(TokioIo::new(stream), service);
            // How it ends is the client's to see.
            drop(connection.await);
        });
    }
}
