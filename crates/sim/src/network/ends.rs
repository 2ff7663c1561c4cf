//! Hosts, and the ends of flows on them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use airtcp_recovery::{Combination, SenderConfig};
use airtcp_rrtp::Config;
use airtcp_stack::host::{Cidr, Host, HostConfig, Quota};
use airtcp_stack::tcp::{MarkAware, TcpConfig};
use airtcp_types::rng::Stream;
use airtcp_types::{ByteCount, Instant, NodeId, Rate};

use crate::app::{
    Answerer, Application, Caller, Crowd, EndHost, Habits, Meter, Role, RrtpEnd, Script, UdpEnd,
};
use crate::{App, FlowDirection, FlowSpec, Rrtp, Sender};

use super::build::{Builder, address};
use super::{FLOWS, HOSTS, KEYS, Placed};

/// The bytes of an IPv4 and a UDP header.
pub(crate) const UDP_HEADERS: u16 = 28;
/// The maximum of data that a flow with a stop time has written and not sent: more than a quantum
/// of the pacer.
const NOT_SENT: ByteCount = ByteCount(128 * 1024);
/// So high that the path limits an RRTP flow, not the configured cap.
const RRTP_CAP: Rate = Rate::from_bits_per_sec(10_000_000_000);

/// A host that has not been added to the world.
pub(super) struct Bench {
    pub(super) host: EndHost,
    address: Ipv4Addr,
}

impl Builder<'_> {
    pub(super) fn bench(&mut self, side: Ipv4Addr, index: u32) -> Bench {
        let address = address(side, index);
        let cidr = Cidr::new(IpAddr::V4(address), 32).expect("a host's address");
        let mut random = Stream::new(self.scenario.seed, HOSTS | self.hosts);
        self.hosts += 1;
        let host = Host::new(HostConfig {
            secret: key(&mut random),
            mtu: ByteCount(u16::MAX.into()),
            // No limit is needed: each connection's buffers are bounded.
            quota: Quota::UNLIMITED,
            peer_quota: Quota::UNLIMITED,
            events: true,
            ..HostConfig::new([cidr])
        });
        Bench { host: EndHost::new(host), address }
    }

    /// Installs both ends of a flow on the hosts on the left and the right; returns the indices of
    /// the applications, the caller's first.
    pub(super) fn install(
        &self,
        sides: [&mut Bench; 2],
        spec: usize,
        copy: u32,
        index: u32,
        port: u16,
    ) -> [usize; 2] {
        let flow = &self.scenario.flows[spec];
        let [left, right] = sides;
        left.host.delay_wake_ups(flow.wake_up_delay);
        right.host.delay_wake_ups(flow.wake_up_delay);
        let (caller, answerer) = match flow.way {
            FlowDirection::LeftToRight => (left, right),
            FlowDirection::RightToLeft => (right, left),
        };
        let remote = SocketAddr::new(answerer.address.into(), port);
        let meter = Meter::new(Instant::ZERO + self.scenario.warm_up, self.scenario.samples);
        let start = start(flow, copy);
        let stop = flow.stop.map(|stop| Instant::ZERO + stop);
        let size = match &flow.app {
            App::Bulk { size } => size.map(|size| size.0),
            _ => None,
        };
        let roles =
            [Role::Sends { start, stop, remote, size }, Role::Takes { port, expected: size }];
        let combination = match &flow.sender {
            Sender::Tcp(combination) => combination,
            Sender::Udp(rate) => {
                let [sends, takes] = roles.map(|role| {
                    let end = UdpEnd::new(role, *rate, flow.mtu, UDP_HEADERS, meter.clone());
                    Application::Udp(Box::new(end))
                });
                return [caller.host.add(sends), answerer.host.add(takes)];
            }
            Sender::Rrtp(rrtp) => {
                let mut random = Stream::new(self.scenario.seed, KEYS | u64::from(index));
                let [sends, takes] = roles.map(|role| {
                    let key = key(&mut random);
                    RrtpEnd::new(role, rrtp_config(flow, rrtp), key, meter.clone())
                });
                return [
                    caller.host.add(Application::Rrtp(Box::new(sends))),
                    answerer.host.add(Application::Rrtp(Box::new(takes))),
                ];
            }
        };
        // Mobiles are on the right.
        let plain = tcp_config(flow, combination);
        let aware = flow.mark_aware.then(MarkAware::default);
        let mobile = TcpConfig { mark_aware: aware, ..plain.clone() };
        let (calls_with, answers_with) = match flow.way {
            FlowDirection::LeftToRight => (plain, mobile),
            FlowDirection::RightToLeft => (mobile, plain),
        };
        let random = Stream::new(self.scenario.seed, FLOWS | u64::from(index));
        let script = |request, response: ByteCount, think, count| Script {
            stop,
            request,
            response: response.0,
            think,
            count,
        };
        let (script, answers, expected) = match &flow.app {
            App::Bulk { size } => {
                let size = size.map(|size| size.0);
                let nothing = ByteCount::ZERO;
                (script(size, nothing, std::time::Duration::ZERO, size.map(|_| 1)), None, size)
            }
            App::RequestResponse { request, response, think, count } => {
                let answers = Some((request.0, response.0));
                (script(Some(request.0), *response, *think, *count), answers, None)
            }
            App::PingPong { size, count } => {
                let think = std::time::Duration::ZERO;
                (script(Some(size.0), *size, think, *count), Some((size.0, size.0)), None)
            }
            App::ShortFlows { size, gap, pareto, users } => {
                let size = (size.0.0, size.1.0);
                let habits = Habits { size, gap: *gap, pareto: *pareto, stop };
                let crowd =
                    Crowd::new(start, *users, remote, calls_with, habits, random, meter.clone());
                let answers = Answerer::new(remote, answers_with, None, None, meter);
                return [
                    caller.host.add(Application::Crowd(crowd)),
                    answerer.host.add(Application::Answerer(answers)),
                ];
            }
        };
        let answers = Answerer::new(remote, answers_with, answers, expected, meter.clone());
        let calls = Caller::new(start, remote, calls_with, script, random, meter);
        let calls = caller.host.add(Application::Caller(calls));
        let answers = answerer.host.add(Application::Answerer(answers));
        for change in &flow.changes {
            caller.host.change(calls, change);
            answerer.host.change(answers, change);
        }
        [calls, answers]
    }

    pub(super) fn place(&mut self, spec: usize, copy: u32, hosts: [NodeId; 2], ends: [usize; 2]) {
        let flow = &self.scenario.flows[spec];
        let [left, right] = hosts;
        let (caller, answerer) = match flow.way {
            FlowDirection::LeftToRight => (left, right),
            FlowDirection::RightToLeft => (right, left),
        };
        self.network.flows.push(Placed {
            spec,
            copy,
            start: start(flow, copy),
            caller: (caller, ends[0]),
            answerer: (answerer, ends[1]),
        });
    }
}

fn start(flow: &FlowSpec, copy: u32) -> Instant {
    Instant::ZERO + flow.start + flow.stagger.saturating_mul(copy)
}

fn key(random: &mut Stream) -> [u8; 16] {
    let mut key = [0; 16];
    for half in key.chunks_mut(8) {
        half.copy_from_slice(&random.next_u64().to_le_bytes());
    }
    key
}

fn rrtp_config(flow: &FlowSpec, rrtp: &Rrtp) -> Config {
    let default = Config::default();
    let patience = |usual| flow.user_timeout.unwrap_or(usual);
    Config {
        kind: rrtp.kind,
        profile: rrtp.profile,
        biaz: rrtp.biaz,
        rate_cap: RRTP_CAP,
        asked_rate_cap: RRTP_CAP,
        packet_size: flow.mtu - UDP_HEADERS,
        receive_buffer: flow.receive_buffer.unwrap_or(default.receive_buffer),
        send_buffer: flow.send_buffer.unwrap_or(default.send_buffer),
        handshake_timeout: patience(default.handshake_timeout),
        idle_timeout: patience(default.idle_timeout),
        progress_timeout: patience(default.progress_timeout),
        // An idle connection must send keepalives before the idle time-out.
        keepalive: default.keepalive.min(patience(default.idle_timeout) / 3),
    }
}

fn tcp_config(flow: &FlowSpec, combination: &Combination) -> TcpConfig {
    let default = TcpConfig::default();
    TcpConfig {
        sender: SenderConfig {
            combination: combination.clone(),
            profile: flow.profile.clone(),
            pacing: flow.pacing,
            events: true,
        },
        mtu: flow.mtu,
        // As with SO_RCVBUF, an explicit size applies from the start and does not change.
        initial_window: flow.receive_buffer.unwrap_or(default.initial_window),
        receive_buffer: flow.receive_buffer.unwrap_or(default.receive_buffer),
        send_buffer: flow.send_buffer.unwrap_or(default.send_buffer),
        user_timeout: flow.user_timeout.or(default.user_timeout),
        // Links do not drop packets by size, so repeated time-outs do not mean an MTU black hole.
        black_holes: false,
        nodelay: !matches!(flow.app, App::Bulk { .. }),
        timestamps: flow.timestamps,
        sack: flow.sack,
        path_memory: flow.path_memory,
        // Data written before a flow stops is still sent, so it must be limited.
        not_sent_low_water: flow.stop.map(|_| NOT_SENT).or(default.not_sent_low_water),
        ..default
    }
}
