//! AccECN (RFC 9768) on the wire.

use airtcp_wire::ip::{CE, ECT_0, ECT_1, NOT_ECT};
use airtcp_wire::options::Order;

use super::*;

mod handshake;
mod pipe;
mod receiver;
mod sender;

/// The codes with which SYN-ACKs, and the ACKs of them, report the ECN field of the packet that
/// they answer.
const CODES: [(u8, u8); 4] = [(NOT_ECT, 0b010), (ECT_1, 0b011), (ECT_0, 0b100), (CE, 0b110)];
/// ACE before any packet was marked.
const FIRST: u8 = 5;

fn accurate() -> TcpConfig {
    TcpConfig { ecn: EcnMode::Accurate, ..plain() }
}

/// The option that reports these numbers of bytes received with ECT(0), CE and ECT(1).
fn counted(e0b: u32, ceb: u32, e1b: u32) -> Option<AccEcn> {
    Some(AccEcn::new(Order::One, &[e1b + 1, ceb, e0b + 1]))
}

/// The shortest option without ECT(1).
fn two_counted(e0b: u32, ceb: u32) -> Option<AccEcn> {
    Some(AccEcn::new(Order::Zero, &[e0b + 1, ceb]))
}

fn info(s: &Script) -> AccEcnInfo {
    s.conn.info(s.now).accecn.expect("AccECN is in use")
}

/// A server that received a SYN for AccECN with this ECN field at time zero, and has sent its
/// SYN-ACK.
#[track_caller]
fn syn_received(config: &TcpConfig, ecn: u8, code: u8) -> Script {
    let syn = Seg { ecn, ace: Some(0b111), ..Script::syn_of(config) };
    let wire = syn.to_wire();
    let conn =
        Connection::accept(Instant::ZERO, flow(), ISS, TS_OFFSET, config, &wire.segment(&syn.data));
    let mut s = Script::of(conn, Instant::ZERO);
    let expected = Seg { ack: Some(1), ace: Some(code), accecn: counted(0, 0, 0), ..syn_ack() };
    s.recv_at(0, &expected);
    s
}

/// The common fields of all SYN-ACKs here.
fn syn_ack() -> Seg {
    Seg { flags: "SA", mss: Some(1000), sack_permitted: true, ..Seg::default() }
}

/// A server with a connection.
#[track_caller]
fn server() -> Script {
    server_with(&accurate())
}

#[track_caller]
fn server_with(config: &TcpConfig) -> Script {
    let mut s = syn_received(config, NOT_ECT, 0b010);
    send!(s, 0, "A", 1, ack = 1, ace = 0b010, accecn = counted(0, 0, 0));
    assert_eq!(s.conn.state(), State::Established);
    s
}

/// A server with a connection that uses timestamps: with timestamps and two SACK blocks, an option
/// has room for two counters.
#[track_caller]
fn server_with_timestamps() -> Script {
    let mut s = Script::syn_received(&TcpConfig { timestamps: true, ..accurate() });
    let first = s.take(0).unwrap();
    assert_eq!((first.flags, first.accecn), ("SAW", counted(0, 0, 0)));
    s.timestamps = true;
    send!(s, 1, "A", 1, ack = 1, ace = 0b010);
    s
}

/// A client that received a SYN-ACK with these flags and this ECN field.
#[track_caller]
fn client(ace: u8, ecn: u8) -> Script {
    let mut s = Script::connecting(&accurate());
    recv!(s, 0, "S", 0, ace = 0b111, mss = 1000, sack_permitted = true);
    let answer = Seg { ace: Some(ace), ecn, ack: Some(1), ..syn_ack() };
    s.send_at(5, answer);
    s
}
