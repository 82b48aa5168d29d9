use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Buf;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::Sleep;
use tower_service::Service;

use super::rest::{Misfit, Rest};
use crate::body::BodyPolicy;
use crate::error::{BoxError, Error, ErrorKind};
use crate::tally::RestEnd;

pin_project! {
    /// A response body whose rest is fetched when it breaks off. See the [module](super).
    ///
    /// Its size hint is what is still to come of the whole. Trailers are those of the answer that
    /// gave the last byte.
    ///
    /// # Cancellation
    ///
    /// Dropped, it drops what is under way; nothing runs on.
    pub struct ResumeBody<S, P, B, RB>
    where
        S: Service<Request<B>>,
    {
        #[pin]
        phase: Phase<S::Future, RB>,
        // `None` when there is nothing to resume, or no longer.
        rest: Option<Box<Rest<S, P, B>>>,
        timer: Option<Pin<Box<Sleep>>>,
        // Why the body broke off for whose rest we wait.
        broke: Option<Error>,
        resumes: u32,
    }
}

pin_project! {
    #[project = PhaseProj]
    enum Phase<F, RB> {
        Reading { #[pin] body: RB },
        // The rest is not asked for before the timer ends.
        Waiting,
        // The service has to be ready for the request.
        Readying,
        // The request for the rest is under way.
        Asking { #[pin] future: F },
        // The end, or an error, was handed over.
        Ended,
    }
}

impl<S, P, B, RB> ResumeBody<S, P, B, RB>
where
    S: Service<Request<B>>,
{
    pub(super) const fn new(body: RB, rest: Option<Box<Rest<S, P, B>>>) -> Self {
        Self {
            phase: Phase::Reading { body },
            rest,
            timer: None,
            broke: None,
            resumes: 0,
        }
    }

    /// How often the rest was asked for.
    #[must_use]
    pub fn resumes(&self) -> u32 {
        self.rest
            .as_ref()
            .map_or(self.resumes, |rest| rest.resumes())
    }

    /// Whether the rest will be fetched if the body breaks off now.
    #[must_use]
    pub const fn can_be_resumed(&self) -> bool {
        self.rest.is_some()
    }
}

impl<S, P, B, RB> fmt::Debug for ResumeBody<S, P, B, RB>
where
    S: Service<Request<B>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phase = match self.phase {
            Phase::Reading { .. } => "reading",
            Phase::Waiting => "waiting for the next request",
            Phase::Readying => "waiting for the service to be ready",
            Phase::Asking { .. } => "asking for the rest",
            Phase::Ended => "ended",
        };
        f.debug_struct("ResumeBody")
            .field("phase", &phase)
            .field("can_be_resumed", &self.can_be_resumed())
            .field("resumes", &self.resumes())
            .finish_non_exhaustive()
    }
}

/// What a frame of the body being read means.
enum Read<D> {
    Give(Frame<D>),
    End,
    Break(Error),
}

impl<S, P, B, RB> Body for ResumeBody<S, P, B, RB>
where
    S: Service<Request<B>, Response = Response<RB>> + Clone,
    S::Error: Into<BoxError>,
    P: BodyPolicy<B, Body = B>,
    RB: Body,
    RB::Error: Into<BoxError>,
{
    type Data = RB::Data;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<RB::Data>, Error>>> {
        let mut this = self.project();
        loop {
            let Some(rest) = this.rest else {
                // Nothing to resume: the body as it is.
                let PhaseProj::Reading { body } = this.phase.as_mut().project() else {
                    return Poll::Ready(None);
                };
                let read = ready!(body.poll_frame(cx));
                return Poll::Ready(
                    read.map(|frame| frame.map_err(|error| Error::body_cut(None, error.into()))),
                );
            };
            let failed = match this.phase.as_mut().project() {
                PhaseProj::Reading { mut body } => {
                    let read = ready!(body.as_mut().poll_frame(cx));
                    match rest.take_in(read) {
                        Read::Give(frame) => {
                            if rest.left() == 0 && body.is_end_stream() {
                                // Whoever asks for the end before reading it does not read on.
                                rest.settle();
                            }
                            return Poll::Ready(Some(Ok(frame)));
                        }
                        Read::End => {
                            *this.resumes = rest.resumes();
                            *this.rest = None;
                            this.phase.set(Phase::Ended);
                            return Poll::Ready(None);
                        }
                        Read::Break(error) => match rest.wait_after(&error) {
                            None => error,
                            Some(wait) => {
                                *this.broke = Some(error);
                                *this.timer = Some(Box::pin(tokio::time::sleep(wait)));
                                // The connection of the broken body is not kept while we wait.
                                this.phase.set(Phase::Waiting);
                                continue;
                            }
                        },
                    }
                }
                PhaseProj::Waiting => {
                    if let Some(timer) = this.timer.as_mut() {
                        ready!(timer.as_mut().poll(cx));
                    }
                    // Readiness is waited for as long as a body may give nothing (T7).
                    let limit = rest.state.extra().retry.get_body_idle();
                    *this.timer = limit.map(|limit| Box::pin(tokio::time::sleep(limit)));
                    this.phase.set(Phase::Readying);
                    continue;
                }
                PhaseProj::Readying => match rest.service.poll_ready(cx) {
                    Poll::Pending => {
                        let Some(timer) = this.timer.as_mut() else {
                            return Poll::Pending;
                        };
                        ready!(timer.as_mut().poll(cx));
                        rest.failed("the service was not ready in time", this.broke.take())
                    }
                    Poll::Ready(Err(error)) => {
                        rest.failed("the service failed", Some(Error::from_inner(error.into())))
                    }
                    Poll::Ready(Ok(())) => {
                        *this.timer = None;
                        if !rest.pay() {
                            rest.failed("the budget of the region is used up", this.broke.take())
                        } else if let Some(request) = rest.request() {
                            rest.tell();
                            let future = rest.call(request);
                            this.phase.set(Phase::Asking { future });
                            continue;
                        } else {
                            rest.failed("the request cannot be sent again", this.broke.take())
                        }
                    }
                },
                PhaseProj::Asking { future } => match ready!(future.poll(cx)) {
                    Err(error) => rest.failed(
                        "the request for the rest failed",
                        Some(Error::from_inner(error.into())),
                    ),
                    Ok(response) => match rest.accept(&response) {
                        Ok(()) => {
                            rest.state.extra().tally.rest_ended(RestEnd::Resumed);
                            *this.broke = None;
                            let body = response.into_body();
                            this.phase.set(Phase::Reading { body });
                            continue;
                        }
                        Err(misfit) => rest.misfit(misfit, this.broke.take()),
                    },
                },
                PhaseProj::Ended => return Poll::Ready(None),
            };
            rest.given_up(&failed);
            // No more can be done: what there was, the service included, is let go.
            *this.resumes = rest.resumes();
            *this.rest = None;
            *this.timer = None;
            this.phase.set(Phase::Ended);
            return Poll::Ready(Some(Err(failed)));
        }
    }

    fn is_end_stream(&self) -> bool {
        match (&self.phase, &self.rest) {
            (Phase::Ended, _) => true,
            (Phase::Reading { body }, Some(rest)) => rest.left() == 0 && body.is_end_stream(),
            (Phase::Reading { body }, None) => body.is_end_stream(),
            _ => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.phase, &self.rest) {
            (_, Some(rest)) => SizeHint::with_exact(rest.left()),
            (Phase::Reading { body }, None) => body.size_hint(),
            _ => SizeHint::with_exact(0),
        }
    }
}

impl<S, P, B> Rest<S, P, B> {
    /// What the body that is being read has given.
    fn take_in<D, E>(&mut self, read: Option<Result<Frame<D>, E>>) -> Read<D>
    where
        D: Buf,
        E: Into<BoxError>,
    {
        match read {
            Some(Ok(frame)) => match frame.data_ref().map(|data| data.remaining() as u64) {
                Some(bytes) if self.took(bytes) => Read::Give(frame),
                Some(_) => Read::Break(Error::body("the body is longer than it was to be")),
                None if self.left() == 0 => Read::Give(frame),
                None => Read::Break(Error::body("the body ended before its end")),
            },
            Some(Err(error)) => Read::Break(Error::body_cut(None, error.into())),
            None if self.left() == 0 => Read::End,
            None => Read::Break(Error::body("the body ended before its end")),
        }
    }

    /// The wait before the rest is asked for, or `None` if there is no sense in it.
    fn wait_after(&mut self, error: &Error) -> Option<Duration> {
        self.broke();
        // All other kinds are ours and say that something is wrong with the request. A body that
        // breaks off behind its last byte has only lost its trailers.
        if error.kind() != ErrorKind::Transport || self.left() == 0 {
            return None;
        }
        let wait = self.wait()?;
        tracing::debug!(
            service = self.state.name(),
            region = self.region_name(),
            resume = self.resumes() + 1,
            from = self.next(),
            end = self.end(),
            ?wait,
            stalled = error.is_timeout(),
            "a body broke off, its rest will be fetched"
        );
        Some(wait)
    }

    /// Tells and counts that the rest will not come.
    fn given_up(&self, error: &Error) {
        let end = match error.kind() {
            ErrorKind::VersionChanged => RestEnd::VersionChanged,
            _ => RestEnd::GivenUp,
        };
        self.state.extra().tally.rest_ended(end);
        tracing::debug!(
            service = self.state.name(),
            region = self.region_name(),
            resumes = self.resumes(),
            left = self.left(),
            why = end.as_str(),
            "the rest of a body was given up"
        );
    }

    fn failed(&self, why: &str, source: Option<Error>) -> Error {
        let left = self.left();
        Error::not_resumed(
            &self.state,
            ErrorKind::Transport,
            format!("a body broke off {left} bytes before its end and was not resumed: {why}"),
            source,
        )
    }

    fn misfit(&self, misfit: Misfit, broke: Option<Error>) -> Error {
        match misfit {
            Misfit::VersionChanged => {
                let left = self.left();
                Error::not_resumed(
                    &self.state,
                    ErrorKind::VersionChanged,
                    format!("a body broke off {left} bytes before its end"),
                    broke,
                )
            }
            Misfit::Answered(status) => {
                let status = status.as_u16();
                self.failed(&format!("the answer was {status}, not a part"), broke)
            }
            Misfit::OtherPart => self.failed("the answer was another part", broke),
        }
    }
}
