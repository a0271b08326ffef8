//! TLS with the host's own name, over a connection that was pinned to a judged address.
//!
//! The name goes into SNI and is what the certificate must be for; the address is nowhere looked at.
//! What goes wrong is told apart, because different people mend it.

use std::io;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use url::{Host, Url};
use waybill_domain::attempt::Phase;
use waybill_domain::outcome::Seen;

use crate::budget::{Budget, Elapsed};
use crate::report::Fault;
use crate::wire::Wire;

/// Whom we trust to name a recipient.
#[derive(Clone)]
pub struct Tls(TlsConnector);

impl Tls {
    /// The certificate authorities that browsers trust, compiled in.
    pub fn public() -> Self {
        Self::trusting(RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()))
    }

    /// These roots and no others, with TLS 1.2 and 1.3.
    pub fn trusting(roots: RootCertStore) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring has a cipher suite for every default version")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self::configured(config)
    }

    /// A configuration of one's own. What is spoken stays HTTP/1.1, and no data is sent early: it
    /// would leave before the last look at the clock, and could be replayed.
    pub fn configured(mut config: ClientConfig) -> Self {
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.enable_early_data = false;
        Self(TlsConnector::from(Arc::new(config)))
    }

    /// Negotiates with the host of `url`.
    pub(crate) async fn handshake(
        &self,
        url: &Url,
        wire: Wire,
        budget: &Budget,
    ) -> Result<TlsStream<Wire>, Fault> {
        let name = server_name(url)?;
        match budget.within(self.0.connect(name, wire)).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(failed(why(&error))),
            Err(Elapsed) => Err(failed(format!("the TLS handshake was not done {}", budget.in_words()))),
        }
    }
}

fn server_name(url: &Url) -> Result<ServerName<'static>, Fault> {
    let name = match url.host() {
        Some(Host::Domain(name)) => ServerName::try_from(name.to_owned()).ok(),
        Some(Host::Ipv4(ip)) => Some(ServerName::IpAddress(std::net::IpAddr::V4(ip).into())),
        Some(Host::Ipv6(ip)) => Some(ServerName::IpAddress(std::net::IpAddr::V6(ip).into())),
        None => None,
    };
    name.ok_or_else(|| failed("the host's name is not one that a certificate can be for".to_owned()))
}

fn failed(note: String) -> Fault {
    Fault::saw(Seen::TlsFailed, Phase::Tls, note)
}

/// The fault in an operator's words. Nothing of the certificate is quoted: its issuer wrote it.
fn why(error: &io::Error) -> String {
    let Some(fault) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) else {
        return match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                "the recipient closed the connection during the TLS handshake".into()
            }
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                "the recipient reset the connection during the TLS handshake".into()
            }
            kind => format!("the connection failed during the TLS handshake: {kind}"),
        };
    };
    match fault {
        rustls::Error::InvalidCertificate(certificate) => about_certificate(certificate).into(),
        rustls::Error::InvalidMessage(_) => "what answers there does not speak TLS".into(),
        rustls::Error::AlertReceived(alert) => format!("the recipient refused the TLS handshake: {alert:?}"),
        rustls::Error::PeerIncompatible(_) => {
            "the recipient speaks no version of TLS that we do (1.2, 1.3)".into()
        }
        rustls::Error::NoApplicationProtocol => "the recipient does not offer HTTP/1.1 over TLS".into(),
        _ => "the TLS handshake failed: the recipient broke the protocol".into(),
    }
}

fn about_certificate(error: &CertificateError) -> &'static str {
    use CertificateError as E;
    match error {
        E::Expired | E::ExpiredContext { .. } => "the recipient's certificate has expired",
        E::NotValidYet | E::NotValidYetContext { .. } => {
            "the recipient's certificate is not valid yet; if it should be, this machine's clock is slow"
        }
        E::NotValidForName | E::NotValidForNameContext { .. } => {
            "the recipient's certificate is for another name than the destination's"
        }
        E::UnknownIssuer => {
            "the recipient's certificate comes from an issuer that is not trusted, or an intermediate one is missing"
        }
        E::Revoked => "the recipient's certificate was revoked",
        E::InvalidPurpose | E::InvalidPurposeContext { .. } => {
            "the recipient's certificate is not for servers"
        }
        E::BadSignature => "the recipient's certificate was not signed by the issuer that it names",
        _ => "the recipient's certificate is not valid",
    }
}
