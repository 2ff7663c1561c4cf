//! The settings, routes, metrics and control socket of a service.

use tempfile::tempdir;

use super::super::ctl::ctl;
use super::*;

const UNIT: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/contrib/airtcp-gateway-split.service"));
const METRICS: &str = "127.0.0.1:9466";

async fn metrics() -> io::Result<String> {
    let mut stream = TcpStream::connect(METRICS).await?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

#[test]
fn a_service_reads_its_settings_adds_its_routes_and_answers_ctl() -> Outcome {
    if !has_ip() {
        return Ok(());
    }
    let path = Path::new(LINK)?;
    let directory = tempdir()?;
    let at = |name: &str| directory.path().join(name).display().to_string();
    let (file, socket) = (at("split.toml"), at("ctl.sock"));
    let settings = format!("strategies = \"rack/cubic\"\nmetrics = \"{METRICS}\"\n");
    std::fs::write(&file, settings)?;
    let line = ["gateway", "split", "--config", &file, "--control", &socket];
    let gateway = Running::start(path.router(), &line)?;
    for line in UNIT.lines().filter_map(|line| line.strip_prefix("ExecStartPost=")) {
        let output = run(path.router(), "sh", &["-c", line.trim_start_matches('-')])?;
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }
    for words in ROUTES.into_iter().filter(|words| words.contains("rule")) {
        ip(path.router(), words)?;
    }
    for is_ipv6 in [false, true] {
        path.curl(Network::serve(path.server(), &server_at(is_ipv6).to_string())?)?;
    }
    let closed = path.connect(SocketAddr::new(server_at(false).ip(), 9));
    assert_eq!(closed.err().map(|error| error.kind()), Some(ErrorKind::ConnectionRefused));

    let status = ctl(&socket, &["status"])?;
    assert!(
        status.contains(" 2 carried; ") && status.ends_with("refused: refused 1\n"),
        "{status}"
    );
    let status: Value = serde_json::from_str(&ctl(&socket, &["status", "--json"])?)?;
    assert!(status["split"]["received"].as_u64() >= Some(2 * BYTES as u64), "{status}");
    assert!(status["counters"]["link"].is_object(), "{status}");

    let at = path.client.serve(SocketAddr::new(client_at(false)?, 0), Service::Echo, None)?;
    let (outside, address) = (path.server(), at.address());
    let _stream = outside.block_on(async move {
        let mut stream = peer::connect(address, None).await?;
        stream.write_all(b"x").await?;
        stream.read_u8().await?;
        io::Result::Ok(stream)
    })?;
    let changed = ctl(&socket, &["set", "strategies", "le/westwood"])?;
    assert!(changed.starts_with("le/westwood"), "{changed}");
    let listed: Value = serde_json::from_str(&ctl(&socket, &["ss", "--json"])?)?;
    assert_eq!(listed[0]["device"], "gateway-split", "{listed}");
    let open = listed[0]["connections"].as_array().ok_or("a list")?;
    let open = open.iter().filter(|connection| connection["state"] == "ESTAB");
    let senders: Vec<_> =
        open.map(|one| (one["queue"].as_u64(), one["info"]["combination"].as_str())).collect();
    // Only the sender towards the link has changed.
    let expected = [(Some(0), Some("rack/bbr3/spike")), (Some(1), Some("le/westwood"))];
    assert_eq!(senders, expected, "{listed}");

    let metrics = path.router().block_on(metrics())?;
    for line in ["airtcp_gateway_opened_total 3", "airtcp_gateway_open 1"] {
        assert!(metrics.lines().any(|one| one == line), "{line}: {metrics}");
    }
    assert!(metrics.contains("airtcp_gateway_refused_total{reason=\"refused\"} 1"), "{metrics}");
    gateway.stop()?;
    Ok(())
}
