//! A shared access signature of the account.

use super::support::{ACCOUNT, KEY};

/// A query that signs requests for blobs and queues of the account: the older form, which names no
/// encryption scope.
pub(crate) fn account_sas() -> String {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use hmac::{Hmac, KeyInit, Mac};

    let (permissions, services, types, expiry, version) = (
        "rwdlacup",
        "bq",
        "sco",
        "2099-01-01T00:00:00Z",
        "2018-11-09",
    );
    let text =
        format!("{ACCOUNT}\n{permissions}\n{services}\n{types}\n\n{expiry}\n\n\n{version}\n");
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(&STANDARD.decode(KEY).unwrap()).unwrap();
    mac.update(text.as_bytes());
    let signature = STANDARD.encode(mac.finalize().into_bytes());
    let signature = signature
        .replace('+', "%2B")
        .replace('/', "%2F")
        .replace('=', "%3D");
    format!("sv={version}&ss={services}&srt={types}&sp={permissions}&se={expiry}&sig={signature}")
}
