//! The layers of `tower-geo`, built from a drill: the only place here that knows their API.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body::Body;
use http_body_util::BodyExt;
use tower_service::Service as _;

use crate::format::{Act, Drill, RequestOptions, ServiceKind};
use crate::problem::Problem;
use crate::stage::{SendKind, Stage};
use crate::transport::{RequestBody, Told, Transport};

/// A service as it is shown: its name, and its regions in order, the writer first.
#[derive(Clone, Debug)]
pub(crate) struct Info {
    pub(crate) name: String,
    pub(crate) regions: Vec<String>,
    /// The writer's base, to which paths of requests are relative.
    pub(crate) base: Uri,
}

/// The body of an answer, whatever the layers make of it.
pub(crate) type Answered = Pin<Box<dyn Body<Data = Bytes, Error = String> + Send>>;

/// An answer that was handed over.
pub(crate) struct Head {
    pub(crate) response: Response<Answered>,
    /// The region whose answer this is, where the layers say so.
    pub(crate) region: Option<usize>,
    /// Why each send was made, where the layers say so (E1).
    pub(crate) kinds: Vec<SendKind>,
    pub(crate) after_ambiguous: bool,
    pub(crate) freshness: Option<&'static str>,
}

/// An error that was handed over.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) kind: &'static str,
    pub(crate) message: String,
    pub(crate) kinds: Vec<SendKind>,
}

/// Every service of a drill, with its stack.
pub(crate) struct Services {
    info: Vec<Info>,
    stacks: Vec<Transport>,
}

impl Services {
    pub(crate) fn build(drill: &Drill, stage: &Arc<Stage>) -> Result<Self, Problem> {
        let mut info = Vec::new();
        let mut stacks = Vec::new();
        for (index, service) in drill.services.iter().enumerate() {
            let (names, first): (Vec<String>, String) = match &service.kind {
                ServiceKind::AzureStorage { endpoint, .. } => (
                    vec!["primary".into(), "secondary".into()],
                    endpoint.to_string(),
                ),
                ServiceKind::Static { regions } => (
                    regions.iter().map(|region| region.name.clone()).collect(),
                    regions[0].endpoint.to_string(),
                ),
            };
            let base: Uri = first
                .parse()
                .map_err(|_| Problem::at(format!("services.{}.endpoint", service.name), "bad"))?;
            let authority = base.authority().cloned();
            info.push(Info {
                name: service.name.clone(),
                regions: names,
                base,
            });
            stacks.push(Transport::new(
                Arc::clone(stage),
                index,
                Arc::new(move |uri| (uri.authority() == authority.as_ref()).then_some(0)),
                |_| Told::default(),
            ));
        }
        Ok(Self { info, stacks })
    }

    pub(crate) fn info(&self) -> &[Info] {
        &self.info
    }

    pub(crate) fn call(
        &self,
        service: usize,
        request: Request<RequestBody>,
        _options: &RequestOptions,
    ) -> Pin<Box<dyn Future<Output = Result<Head, Refusal>> + Send>> {
        let mut stack = self.stacks[service].clone();
        Box::pin(async move {
            match stack.call(request).await {
                Ok(response) => Ok(Head {
                    response: response
                        .map(|body| Box::pin(body.map_err(|error| error.to_string())) as Answered),
                    region: None,
                    kinds: Vec::new(),
                    after_ambiguous: false,
                    freshness: None,
                }),
                Err(error) => Err(Refusal {
                    kind: "transport",
                    message: error.to_string(),
                    kinds: Vec::new(),
                }),
            }
        })
    }

    pub(crate) fn act(&self, _act: &Act) -> Result<(), String> {
        Ok(())
    }
}
