//! A host: whether it is reached, and what it does when it is.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};

/// Whether and how connections to a host can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// It listens.
    Listens,
    /// Its name is known, and nobody listens there.
    Refuses,
    /// Its name is not known any more, as that of a region that was taken offline.
    HasNoName,
}

/// What a host does instead of answering.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// It takes requests and says nothing.
    Silence,
    /// It answers this to so many requests for data, and then as ever.
    Answer {
        status: u16,
        sub_status: Option<u32>,
        /// `x-ms-retry-after-ms`
        retry_after: Option<Duration>,
        times: usize,
    },
}

impl Fault {
    /// Answers `status` to every request for data.
    pub(crate) const fn status(status: u16) -> Self {
        Self::Answer {
            status,
            sub_status: None,
            retry_after: None,
            times: usize::MAX,
        }
    }
}

/// Where a request that arrived goes.
pub(super) enum Next {
    Emulator,
    Nowhere,
    Answer {
        status: u16,
        sub_status: Option<u32>,
        retry_after: Option<Duration>,
    },
}

pub(super) struct Host {
    pub(super) name: String,
    pub(super) domain: String,
    /// Until the server takes it.
    pub(super) listener: Option<TcpListener>,
    listens_at: SocketAddr,
    /// Bound and never listened to, so that nobody else takes the port and connections are refused.
    refusing: TcpSocket,
    state: Mutex<(Reach, Option<Fault>)>,
}

impl Host {
    pub(super) async fn open(name: &str, domain: String) -> Self {
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = TcpListener::bind(any_port).await.unwrap();
        let refusing = TcpSocket::new_v4().unwrap();
        refusing.bind(any_port).unwrap();
        Self {
            name: name.to_owned(),
            domain,
            listens_at: listener.local_addr().unwrap(),
            listener: Some(listener),
            refusing,
            state: Mutex::new((Reach::Listens, None)),
        }
    }

    pub(super) fn set_reach(&self, reach: Reach) {
        self.state.lock().unwrap().0 = reach;
    }

    pub(super) fn set_fault(&self, fault: Option<Fault>) {
        self.state.lock().unwrap().1 = fault;
    }

    /// What its name resolves to.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        match self.state.lock().unwrap().0 {
            Reach::Listens => Some(self.listens_at),
            Reach::Refuses => Some(self.refusing.local_addr().unwrap()),
            Reach::HasNoName => None,
        }
    }

    /// What becomes of a request; one for data uses up an answer.
    pub(super) fn next(&self, is_data: bool) -> Next {
        match &mut self.state.lock().unwrap().1 {
            Some(Fault::Silence) => Next::Nowhere,
            Some(Fault::Answer {
                status,
                sub_status,
                retry_after,
                times,
            }) if is_data && *times > 0 => {
                *times -= 1;
                Next::Answer {
                    status: *status,
                    sub_status: *sub_status,
                    retry_after: *retry_after,
                }
            }
            _ => Next::Emulator,
        }
    }
}
