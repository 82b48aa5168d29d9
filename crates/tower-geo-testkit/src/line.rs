//! A listening port whose network can be broken and mended at run time. Store and fronts stand on it.

use std::{
    future::{Future, pending},
    io,
    net::{Ipv4Addr, SocketAddr},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpSocket, TcpStream},
    sync::{mpsc, oneshot, watch},
    task::JoinSet,
};

/// The state of the network before a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineState {
    /// Connections are accepted and served.
    Open,
    /// Nobody listens: connecting is refused.
    Refuse,
    /// Connections are accepted and reset at once.
    Reset,
    /// Connections are accepted; not a byte comes or goes.
    Freeze,
}

/// A loopback port that stays ours while nobody listens on it.
///
/// A socket that is bound but does not listen holds the port: connecting to it is refused, the
/// kernel gives it to nobody else, and a listener may be bound beside it, here or in a child process.
#[derive(Debug)]
pub(crate) struct Port {
    addr: SocketAddr,
    _holder: TcpSocket,
}

impl Port {
    pub(crate) fn reserve() -> io::Result<Self> {
        let holder = TcpSocket::new_v4()?;
        holder.set_reuseaddr(true)?;
        holder.bind((Ipv4Addr::LOCALHOST, 0).into())?;
        Ok(Self {
            addr: holder.local_addr()?,
            _holder: holder,
        })
    }

    pub(crate) const fn addr(&self) -> SocketAddr {
        self.addr
    }

    fn listen(&self) -> io::Result<TcpListener> {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind(self.addr)?;
        socket.listen(1024)
    }
}

/// A server on a [`Port`]; dropping it ends the server and cuts its connections.
#[derive(Debug)]
pub(crate) struct Line {
    addr: SocketAddr,
    commands: mpsc::UnboundedSender<(LineState, oneshot::Sender<io::Result<()>>)>,
    connections: Arc<AtomicU64>,
}

impl Line {
    /// Listens, and serves every connection with `serve`, each in a task of its own.
    pub(crate) fn open<H, F>(serve: H) -> io::Result<Self>
    where
        H: Fn(Wire) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let port = Port::reserve()?;
        let listener = port.listen()?;
        let addr = port.addr();
        let (commands, inbox) = mpsc::unbounded_channel();
        let connections = Arc::new(AtomicU64::new(0));
        tokio::spawn(run(port, listener, inbox, connections.clone(), serve));
        Ok(Self {
            addr,
            commands,
            connections,
        })
    }

    pub(crate) const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// How many connections were accepted so far, those that were then reset or frozen included.
    pub(crate) fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Changes the state; it holds for new and for present connections when this returns.
    pub(crate) async fn set(&self, state: LineState) -> io::Result<()> {
        let (done, applied) = oneshot::channel();
        let gone = || io::Error::other("the server has ended");
        self.commands.send((state, done)).map_err(|_| gone())?;
        applied.await.map_err(|_| gone())?
    }
}

async fn run<H, F>(
    port: Port,
    listener: TcpListener,
    mut inbox: mpsc::UnboundedReceiver<(LineState, oneshot::Sender<io::Result<()>>)>,
    connections: Arc<AtomicU64>,
    serve: H,
) where
    H: Fn(Wire) -> F + Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let mut listener = Some(listener);
    let (state, watcher) = watch::channel(LineState::Open);
    let mut served = JoinSet::new();
    loop {
        tokio::select! {
            // A command goes first, so that no connection is judged by a state that has ended.
            biased;
            command = inbox.recv() => {
                let Some((wanted, done)) = command else { return };
                // The listener goes before the state is seen, and comes before it is reported.
                let result = match wanted {
                    LineState::Refuse => {
                        listener = None;
                        Ok(())
                    }
                    LineState::Open | LineState::Reset | LineState::Freeze if listener.is_none() => {
                        port.listen().map(|new| listener = Some(new))
                    }
                    LineState::Open | LineState::Reset | LineState::Freeze => Ok(()),
                };
                state.send_replace(wanted);
                if matches!(wanted, LineState::Refuse | LineState::Reset) {
                    // Each connection is reset as it is dropped.
                    served.shutdown().await;
                }
                // Whoever asked may have given up meanwhile; the state holds all the same.
                let _ = done.send(result);
            }
            // Connections that have ended leave the set, or it would grow for ever.
            Some(_) = served.join_next(), if !served.is_empty() => {}
            accepted = accept(listener.as_ref()) => {
                // A failed accept is the peer's, who is gone already, and the next may succeed.
                let Ok(stream) = accepted else { continue };
                connections.fetch_add(1, Ordering::Relaxed);
                let wire = Wire::new(stream, watcher.clone());
                if *state.borrow() != LineState::Reset {
                    served.spawn(serve(wire));
                }
            }
        }
    }
}

async fn accept(listener: Option<&TcpListener>) -> io::Result<TcpStream> {
    match listener {
        Some(listener) => {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            Ok(stream)
        }
        None => pending().await,
    }
}

/// A connection that obeys the state of its line: frozen, it neither reads nor writes; dropped while
/// the line is cut, it is reset rather than closed.
pub(crate) struct Wire {
    stream: TcpStream,
    state: watch::Receiver<LineState>,
    thaw: Option<Pin<Box<dyn Future<Output = ()> + Send + Sync>>>,
}

impl Wire {
    fn new(stream: TcpStream, state: watch::Receiver<LineState>) -> Self {
        Self {
            stream,
            state,
            thaw: None,
        }
    }

    /// Reading and writing are driven by one task, so one stored future wakes for both.
    fn poll_thawed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if let Some(thaw) = &mut self.thaw {
                ready!(thaw.as_mut().poll(cx));
                self.thaw = None;
            }
            if *self.state.borrow() != LineState::Freeze {
                return Poll::Ready(());
            }
            let mut state = self.state.clone();
            self.thaw = Some(Box::pin(async move {
                if state
                    .wait_for(|state| *state != LineState::Freeze)
                    .await
                    .is_err()
                {
                    // The line is gone, and this connection's task is about to go with it.
                    pending::<()>().await;
                }
            }));
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_thawed(cx));
        Pin::new(&mut this.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_thawed(cx));
        Pin::new(&mut this.stream).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_thawed(cx));
        Pin::new(&mut this.stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_thawed(cx));
        Pin::new(&mut this.stream).poll_shutdown(cx)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if matches!(*self.state.borrow(), LineState::Refuse | LineState::Reset) {
            // If it fails, the connection is closed in order, which is an outage as well.
            let _ = self.stream.set_zero_linger();
        }
    }
}
