//! The status of a gateway as text.

use serde_json::Value;

use crate::output;

/// Formats a status for people.
pub(super) fn text(status: &Value) -> String {
    let near = &status["near"];
    let end = [near, &status["far"], &status["split"]].into_iter().find(|end| !end.is_null());
    let end = end.unwrap_or(&Value::Null);
    let count = |name: &str| end[name].as_u64().unwrap_or(0);
    let mut lines = Vec::new();
    if !near.is_null() {
        let far = near["far"].as_str().unwrap_or("-");
        let state = match (near["connected"] == true, near["reason"].as_str()) {
            (true, _) => "answers",
            (false, Some(reason)) => reason,
            (false, None) => "is not heard yet",
        };
        let since = near["since"].as_f64().unwrap_or(0.0) / 1e3;
        let rtt = near["rtt"].as_f64().filter(|_| near["connected"] == true);
        let rtt = rtt.map_or(String::new(), |rtt| format!("; round trip {rtt:.1} ms"));
        lines.push(format!("the far gateway at {far} {state} (for {since:.0} s){rtt}"));
    }
    lines.push(format!(
        "connections: {} open, {} carried; {} sent, {} received",
        count("open"),
        count("opened"),
        output::bytes(count("sent")),
        output::bytes(count("received")),
    ));
    let refused: Vec<String> = end["refused"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(reason, count)| format!("{} {count}", reason.replace('_', " ")))
        .collect();
    if !refused.is_empty() {
        lines.push(format!("refused: {}", refused.join(", ")));
    }
    let datagrams = &status["datagrams"];
    let count = |name: &str| datagrams[name].as_u64().unwrap_or(0);
    if count("sent") + count("received") > 0 {
        lines.push(format!(
            "datagrams: {} sent, {} received; lost by the link {}, recovered {}; repairs sent {}",
            count("sent"),
            count("received"),
            count("lost"),
            count("recovered"),
            count("repairs_sent"),
        ));
    }
    for peer in status["peers"].as_array().into_iter().flatten() {
        let ago = |what: &str| {
            let age = peer[format!("seconds_since_{what}")].as_f64();
            age.map_or(format!("no {what} yet"), |age| format!("last {what} {age:.0} s ago"))
        };
        let state = match peer["key"].as_str() {
            Some(key) => {
                let at = peer["endpoint"].as_str().unwrap_or("an unknown address");
                format!("{key} at {at}: {}", ago("handshake"))
            }
            None => format!("{}: {}", peer["addresses"][0].as_str().unwrap_or("-"), ago("packet")),
        };
        lines.push(format!(
            "peer {state}; {} sent, {} received",
            output::bytes(peer["sent_bytes"].as_u64().unwrap_or(0)),
            output::bytes(peer["received_bytes"].as_u64().unwrap_or(0)),
        ));
    }
    if let Some(refused) = status["refused_packets"].as_u64().filter(|refused| *refused > 0) {
        lines.push(format!("packets of others, which were dropped: {refused}"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_status_says_whether_the_other_end_answers_and_what_was_carried() {
        let near = json!({
            "near": {
                "far": "10.77.0.1:7077", "connected": true, "since": 61_000.5, "rtt": 20.5, "open": 2, "opened": 9, "sent": 2048, "received": 0,
                "refused": {"host_unreachable": 1, "refused": 3},
            },
            "datagrams": {"sent": 7, "received": 6, "lost": 3, "recovered": 2, "repairs_sent": 4},
            "peers": [{
                "key": "KEY=", "endpoint": "192.0.2.1:51820", "seconds_since_handshake": 12.4,
                "sent_bytes": 4096, "received_bytes": 1,
            }],
        });
        let expected = "\
the far gateway at 10.77.0.1:7077 answers (for 61 s); round trip 20.5 ms
connections: 2 open, 9 carried; 2 KiB sent, 0 B received
refused: host unreachable 1, refused 3
datagrams: 7 sent, 6 received; lost by the link 3, recovered 2; repairs sent 4
peer KEY= at 192.0.2.1:51820: last handshake 12 s ago; 4 KiB sent, 1 B received";
        assert_eq!(text(&near), expected);
        let near = json!({"near": {
            "far": "10.77.0.1:7077", "connected": false, "reason": "does not answer", "since": 4_000, "rtt": 20.5,
        }});
        let shown = text(&near);
        let first = "the far gateway at 10.77.0.1:7077 does not answer (for 4 s)";
        assert_eq!(shown.lines().next(), Some(first));
        let far = json!({
            "far": {"open": 0, "opened": 0, "sent": 0, "received": 0, "refused": {}},
            "peers": [{"key": "KEY=", "endpoint": null, "sent_bytes": 0, "received_bytes": 0}],
        });
        let expected = "\
connections: 0 open, 0 carried; 0 B sent, 0 B received
peer KEY= at an unknown address: no handshake yet; 0 B sent, 0 B received";
        assert_eq!(text(&far), expected);
        let far = json!({
            "far": {"open": 0, "opened": 0, "sent": 0, "received": 0, "refused": {}},
            "peers": [
                {"key": null, "addresses": ["10.77.0.2"], "seconds_since_packet": 1.2, "sent_bytes": 9, "received_bytes": 0},
                {"key": null, "addresses": ["10.77.0.3"], "sent_bytes": 0, "received_bytes": 0},
            ],
            "refused_packets": 7,
        });
        let expected = "\
connections: 0 open, 0 carried; 0 B sent, 0 B received
peer 10.77.0.2: last packet 1 s ago; 9 B sent, 0 B received
peer 10.77.0.3: no packet yet; 0 B sent, 0 B received
packets of others, which were dropped: 7";
        assert_eq!(text(&far), expected);
        let split = json!({
            "split": {"open": 1, "opened": 3, "sent": 4096, "received": 1, "refused": {"timed_out": 1}},
        });
        let expected = "\
connections: 1 open, 3 carried; 4 KiB sent, 1 B received
refused: timed out 1";
        assert_eq!(text(&split), expected);
    }
}
