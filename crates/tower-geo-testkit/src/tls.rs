//! Certificates for production host names, by an authority that only the test trusts.

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use std::{fmt, io, sync::Arc};
use tokio_rustls::rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivatePkcs8KeyDer},
};

/// A certificate authority of its own for one test.
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// let ca = tower_geo_testkit::tls::TestCa::new()?;
/// let server = ca.server_config(["contoso.blob.core.windows.net"])?;
/// # drop(server);
/// # Ok(())
/// # }
/// ```
pub struct TestCa {
    issuer: Issuer<'static, KeyPair>,
    root: CertificateDer<'static>,
}

impl TestCa {
    /// A new authority with a new key.
    ///
    /// # Errors
    ///
    /// When the operating system gives no random bytes.
    pub fn new() -> io::Result<Self> {
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, "tower-geo test authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let root = params.self_signed(&key).map_err(io::Error::other)?;
        Ok(Self {
            root: root.der().clone(),
            issuer: Issuer::new(params, key),
        })
    }

    /// A server that presents one certificate for `names` (host names or IP addresses) and speaks
    /// HTTP/1.1.
    ///
    /// # Errors
    ///
    /// When a name is not one that a certificate can hold.
    pub fn server_config<N: Into<String>>(
        &self,
        names: impl IntoIterator<Item = N>,
    ) -> io::Result<Arc<ServerConfig>> {
        let (leaf, key) = self.leaf(names)?;
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                builder
                    .with_no_client_auth()
                    .with_single_cert(vec![leaf.der().clone()], key.into())
            })
            .map_err(io::Error::other)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    /// The same for a server that is another program: the certificate and its key, as PEM.
    ///
    /// # Errors
    ///
    /// When a name is not one that a certificate can hold.
    pub fn server_pem<N: Into<String>>(
        &self,
        names: impl IntoIterator<Item = N>,
    ) -> io::Result<(String, String)> {
        let (leaf, key) = self.leaf(names)?;
        Ok((leaf.pem(), key.serialize_pem()))
    }

    fn leaf<N: Into<String>>(
        &self,
        names: impl IntoIterator<Item = N>,
    ) -> io::Result<(Certificate, KeyPair)> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let leaf = CertificateParams::new(names)
            .and_then(|params| params.signed_by(&key, &self.issuer))
            .map_err(io::Error::other)?;
        Ok((leaf, key))
    }

    /// A client that trusts this authority and nobody else.
    ///
    /// # Errors
    ///
    /// Not in practice: our own certificate is well formed.
    pub fn client_config(&self) -> io::Result<ClientConfig> {
        client_config(Some(self))
    }

    /// The authority's certificate (DER), for clients that are configured otherwise.
    #[must_use]
    pub const fn root(&self) -> &CertificateDer<'static> {
        &self.root
    }
}

/// A client that trusts `ca`, or without it nobody at all.
pub(crate) fn client_config(ca: Option<&TestCa>) -> io::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    if let Some(ca) = ca {
        roots.add(ca.root.clone()).map_err(io::Error::other)?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

impl fmt::Debug for TestCa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestCa").finish_non_exhaustive()
    }
}
