//! When the body of a request can be sent again.

use aws_sdk_s3::primitives::SdkBody;
use tower_geo::body::BodyPolicy;

/// Keeps bodies of the SDK that can be made again: those in memory, and those of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SdkBodies;

impl BodyPolicy<SdkBody> for SdkBodies {
    type Body = SdkBody;

    fn prepare(&self, body: SdkBody) -> SdkBody {
        body
    }

    fn keep(&self, body: &SdkBody) -> Option<SdkBody> {
        body.try_clone()
    }

    fn is_whole(&self, _kept: &SdkBody) -> bool {
        true
    }
}
