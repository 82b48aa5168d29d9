use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

/// The body of an answer: whole, or one that breaks off or stalls after promising more.
///
/// Its size is always that of the whole, so `Content-Length` promises all of it.
#[derive(Debug)]
pub(crate) struct StoreBody {
    rest: Bytes,
    size: u64,
    end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Whole,
    /// Breaks off, one poll after the data, so that hyper has sent the data by then.
    Cut {
        flushed: bool,
    },
    Stall,
}

impl StoreBody {
    pub(crate) fn new(content: Bytes) -> Self {
        Self {
            size: content.len() as u64,
            rest: content,
            end: End::Whole,
        }
    }

    pub(crate) fn cut_after(self, bytes: usize) -> Self {
        self.end_after(bytes, End::Cut { flushed: false })
    }

    pub(crate) fn stall_after(self, bytes: usize) -> Self {
        self.end_after(bytes, End::Stall)
    }

    fn end_after(mut self, bytes: usize, end: End) -> Self {
        if bytes < self.rest.len() {
            self.rest.truncate(bytes);
            self.end = end;
        }
        self
    }
}

impl Body for StoreBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if !self.rest.is_empty() {
            let data = std::mem::take(&mut self.rest);
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        match self.end {
            End::Whole => Poll::Ready(None),
            End::Cut { flushed: false } => {
                self.end = End::Cut { flushed: true };
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            End::Cut { flushed: true } => Poll::Ready(Some(Err(io::ErrorKind::BrokenPipe.into()))),
            End::Stall => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.end == End::Whole
    }

    fn size_hint(&self) -> SizeHint {
        // What hyper needs before the first frame; nobody asks later.
        SizeHint::with_exact(self.size)
    }
}
