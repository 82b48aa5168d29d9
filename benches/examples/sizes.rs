#![allow(missing_docs, reason="scratch")]
use std::mem::size_of;
use bytes::Bytes; use http_body_util::Full;
fn size<T>(_: &T, n: &str) { println!("{n}: {}", size_of::<T>()); }
#[derive(Clone)] struct C;
impl tower_service::Service<http::Request<Full<Bytes>>> for C { type Response=http::Response<Full<Bytes>>; type Error=std::convert::Infallible; type Future=std::future::Ready<Result<Self::Response,Self::Error>>;
fn poll_ready(&mut self,_:&mut std::task::Context<'_>)->std::task::Poll<Result<(),Self::Error>>{std::task::Poll::Ready(Ok(()))} fn call(&mut self,_:http::Request<Full<Bytes>>)->Self::Future{std::future::ready(Ok(http::Response::new(Full::default())))} }
fn main(){ use tower_layer::Layer; use tower_service::Service;
 println!("request {} response {} parts {} headermap {} uri {}", size_of::<http::Request<Full<Bytes>>>(), size_of::<http::Response<Full<Bytes>>>(), size_of::<http::request::Parts>(), size_of::<http::HeaderMap>(), size_of::<http::Uri>());
 println!("operation {}", size_of::<tower_geo::policy::operation::Operation>());
 println!("plan {}", size_of::<tower_geo::policy::operation::Plan>());
 println!("step {}", size_of::<tower_geo::policy::operation::Step>());
 println!("sleep {}", size_of::<tokio::time::Sleep>());
 println!("sent {}", size_of::<tower_geo::policy::breaker::Sent>());
 let s=tower_geo::GeoService::azure_storage("https://contoso.blob.core.windows.net").build().unwrap();
 let mut b=tower_geo::CircuitBreakerLayer::new(s.clone()).layer(C); size(&b.call(Default::default()),"breaker fut");
 let mut st=s.layer().clone_bodies().layer(C); size(&st.call(Default::default()),"stack fut"); size(&st,"stack");
 let mut g=tower_geo::GeoRedirectLayer::new(s.clone()).below_retry().layer(b); size(&g.call(Default::default()),"geo fut");
}
