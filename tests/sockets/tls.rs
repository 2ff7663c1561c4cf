//! An echo service and its client over TLS, over any stream.

use std::io;
use std::sync::Arc;

use airtcp_testbed::peer;
use rcgen::CertifiedKey;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

const NAME: &str = "airtcp.test";

/// A server with a self-signed certificate, and a client that trusts only that certificate.
pub(crate) fn ends() -> (TlsAcceptor, TlsConnector) {
    let CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed([NAME.to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
    let mut trusted = RootCertStore::empty();
    trusted.add(cert.der().clone()).expect("a root");
    let server = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .expect("a server");
    let client = ClientConfig::builder().with_root_certificates(trusted).with_no_client_auth();
    (Arc::new(server).into(), Arc::new(client).into())
}

/// Echoes until the client has ended.
pub(crate) async fn serve(
    acceptor: TlsAcceptor,
    stream: impl AsyncRead + AsyncWrite + Unpin,
) -> io::Result<()> {
    let (mut reader, mut writer) = tokio::io::split(acceptor.accept(stream).await?);
    tokio::io::copy(&mut reader, &mut writer).await?;
    writer.shutdown().await
}

/// Sends `bytes` and compares the echo up to its end: a truncated stream is an error.
pub(crate) async fn exchange(
    connector: TlsConnector,
    stream: impl AsyncRead + AsyncWrite + Unpin,
    bytes: u64,
) {
    let name = ServerName::try_from(NAME).expect("a name");
    let stream = connector.connect(name, stream).await.expect("a handshake");
    assert_eq!(peer::echo(stream, 7, bytes).await.expect("an echo"), bytes);
}
