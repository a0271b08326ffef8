//! TLS for the scripted server, with certificates made on the spot for whatever names a test needs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use super::line::Socket;

/// A certificate authority that nobody knows but who is handed its [`Authority::roots`].
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A server's certificate and key.
#[derive(Clone)]
pub struct Identity(Arc<ServerConfig>);

/// When a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validity {
    /// Now.
    Current,
    /// Not any more.
    Past,
    /// Not yet.
    Future,
}

impl Authority {
    /// A fresh one, with a name that no other has: a client looks for issuers by name.
    pub fn new() -> Self {
        static MADE: AtomicUsize = AtomicUsize::new(1);
        let name = format!("scripted authority {}", MADE.fetch_add(1, Ordering::Relaxed));
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("ring makes keys");
        Self(CertifiedIssuer::self_signed(params, key).expect("an authority can sign itself"))
    }

    /// What a client must trust to trust its certificates.
    pub fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).expect("our own certificate is well-formed");
        roots
    }

    /// A server's identity for one host name or IP address.
    pub fn identity(&self, name: &str, validity: Validity) -> Identity {
        let mut params = CertificateParams::new([name.to_owned()]).expect("a test's names are valid");
        let (from, to) = match validity {
            Validity::Current => (1975, 4096),
            Validity::Past => (1975, 2020),
            Validity::Future => (4000, 4096),
        };
        params.not_before = date_time_ymd(from, 1, 1);
        params.not_after = date_time_ymd(to, 1, 1);
        let key = KeyPair::generate().expect("ring makes keys");
        let certificate = params.signed_by(&key, &self.0).expect("the authority can sign");
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring has a cipher suite for every default version")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .expect("key and certificate belong together");
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Identity(Arc::new(config))
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Identity {
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.0))
    }
}

/// The server's side of the handshake; nothing where it fails.
pub(crate) async fn accept(acceptor: TlsAcceptor, stream: TcpStream) -> Option<Socket> {
    let _ = stream.set_nodelay(true);
    let stream = acceptor.accept(stream).await.ok()?;
    let name = stream.get_ref().1.server_name().map(str::to_owned);
    Some(Socket::Encrypted(Box::new(stream), name))
}
