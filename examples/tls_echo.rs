//! TLS over airtcp's sockets: an echo server and its client with tokio-rustls, on two stacks
//! connected in memory.
use std::{error::Error, sync::Arc};

use airtcp::device::memory;
use airtcp::{HostConfig, Stack};
use rcgen::CertifiedKey;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// The two ends of TLS: a server with a certificate for `name`, and a client that trusts it.
fn ends(name: &str) -> Result<(TlsAcceptor, TlsConnector), Box<dyn Error>> {
    let CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed([name.to_owned()])?;
    let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let mut trusted = RootCertStore::empty();
    trusted.add(cert.der().clone())?;
    let server = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key.into())?;
    let client = ClientConfig::builder().with_root_certificates(trusted).with_no_client_auth();
    Ok((Arc::new(server).into(), Arc::new(client).into()))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (left, right) = memory::pair(1500, 256);
    let server = Stack::new(left, HostConfig::new(["10.0.0.1/24".parse()?]))?;
    let client = Stack::new(right, HostConfig::new(["10.0.0.2/24".parse()?]))?;
    let (acceptor, connector) = ends("airtcp.example")?;
    let listener = server.listen("10.0.0.1:443".parse()?, 16)?;
    let serving = tokio::spawn(async move {
        let (stream, _) = listener.accept().await?;
        let (mut reader, mut writer) = tokio::io::split(acceptor.accept(stream).await?);
        tokio::io::copy(&mut reader, &mut writer).await?;
        writer.shutdown().await
    });
    let stream = client.connect("10.0.0.1:443".parse()?).await?;
    let mut stream = connector.connect("airtcp.example".try_into()?, stream).await?;
    stream.write_all(b"hello, in secret").await?;
    stream.shutdown().await?;
    let mut echoed = String::new();
    stream.read_to_string(&mut echoed).await?;
    serving.await??;
    let version = stream.get_ref().1.protocol_version();
    println!("{echoed} ({})", version.and_then(|version| version.as_str()).unwrap_or("?"));
    Ok(())
}
