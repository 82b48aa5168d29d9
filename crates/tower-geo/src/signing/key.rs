//! The key of an account.

use super::SigningError;
use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// HMAC with the key already mixed in; the key is not kept apart from it. Has no `Debug`, so that
/// nobody prints it by mistake.
#[derive(Clone)]
pub(crate) struct AccountKey(Hmac<Sha256>);

impl AccountKey {
    /// A key in Base64, as the portal shows it.
    pub(crate) fn from_base64(key: &str) -> Result<Self, SigningError> {
        let key = STANDARD
            .decode(key)
            .map_err(|_| SigningError::key("is not valid Base64"))?;
        if key.is_empty() {
            return Err(SigningError::key("is empty"));
        }
        Hmac::new_from_slice(&key)
            .map(Self)
            .map_err(|_| SigningError::key("has a length that cannot be used"))
    }

    /// Appends the signature of `text` to `out`, in Base64.
    pub(crate) fn sign(&self, text: &[u8], out: &mut String) {
        let signature = self.0.clone().chain_update(text).finalize();
        STANDARD.encode_string(signature.into_bytes(), out);
    }
}
