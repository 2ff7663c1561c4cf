//! SYN cookies (RFC 4987 section 3.6): stateless SYN-ACKs, and the connections that their ACKs
//! open.
//!
//! For a peer with timestamps, its options are encoded in the low bits of TSval, which return in
//! TSecr, as in Linux. For other peers no options are granted. AccECN is granted: the ACK of the
//! SYN-ACK shows that it was (RFC 9768 section 5.1). HACK, transmission numbers and RFC 3168 ECN
//! are never granted.

use airtcp_types::{FlowId, Instant, Packet, SeqNumber};
use airtcp_wire::ip;
use airtcp_wire::options::{TcpOptions, Timestamps as Wire};
use airtcp_wire::payload::Payload;
use airtcp_wire::tcp::{Flags, Header, Segment, emit};

use crate::tcp::config::default_mss;
use crate::tcp::ecn::{ACCURATE_SYN, Form, ReceivedMarks};
use crate::tcp::{Connection, TcpConfig};

/// The bits of TSval that encode the peer's options: four for its window scale, one for SACK.
const BITS: u32 = 5;
const MASK: u32 = (1 << BITS) - 1;
const SACK: u32 = 1 << 4;
/// The code for a peer that offered no window scale.
const NO_SCALE: u32 = 15;

/// Encodes `options` in a clock of `ticks`. The result is at most 2^[`BITS`] ticks behind the clock
/// and never ahead, so that the next timestamp is later.
fn encode(ticks: u32, options: &TcpOptions) -> u32 {
    let scale = options.window_scale.map_or(NO_SCALE, |shift| u32::from(shift.min(14)));
    let bits = if options.sack_permitted { scale | SACK } else { scale };
    let slow = if ticks & MASK < bits { 1 << BITS } else { 0 };
    (ticks & !MASK | bits).wrapping_sub(slow)
}

/// Decodes the options in a timestamp.
fn decode(ticks: u32) -> TcpOptions {
    let scale = ticks & NO_SCALE;
    TcpOptions {
        window_scale: (scale != NO_SCALE).then_some(scale as u8),
        sack_permitted: ticks & SACK != 0,
        ..TcpOptions::default()
    }
}

/// The MSS of a SYN, or the default without the option.
pub(crate) fn mss_of(flow: &FlowId, syn: &Segment<'_>) -> u16 {
    syn.options.mss.unwrap_or(default_mss(flow))
}

/// Builds the SYN-ACK that answers `syn` with the cookie `isn`.
pub(crate) fn syn_ack(
    now: Instant,
    flow: &FlowId,
    isn: SeqNumber,
    ts_offset: u32,
    config: &TcpConfig,
    syn: &Segment<'_>,
) -> Packet {
    let theirs = syn.options.timestamps.filter(|_| config.timestamps);
    let mut options = TcpOptions { mss: Some(config.mss(flow)), ..TcpOptions::default() };
    if let Some(theirs) = theirs {
        let offered = config.window_scaling && syn.options.window_scale.is_some();
        options.window_scale = offered.then(|| config.window_scale());
        options.sack_permitted = config.sack && syn.options.sack_permitted;
        let ticks = encode(now.as_millis() as u32, &syn.options);
        options.timestamps = Some(Wire { val: ts_offset.wrapping_add(ticks), ecr: theirs.val });
    }
    let window = config.initial_window.min(config.receive_buffer);
    let mut ecn = config.ecn();
    let mut flags = Flags { syn: true, ..Flags::default() };
    if ecn.on_syn(syn, false) == Form::Accurate {
        flags = ecn.syn_ack(0);
        options.accecn = ReceivedMarks::first_option(options.room());
    }
    let header = Header {
        seq: isn,
        ack: Some(syn.seq + 1),
        flags,
        window: u16::try_from(window.0).unwrap_or(u16::MAX),
        options,
    };
    emit(flow, config.hop_limit, &header, &[])
}

impl Connection {
    /// Creates the connection that the segment `ack` opens with a valid cookie. It is in
    /// SYN-RECEIVED with its SYN-ACK sent, as if its state had been kept; the caller passes it
    /// `ack` next.
    pub(crate) fn accept_cookie(
        now: Instant,
        flow: FlowId,
        ts_offset: u32,
        config: &TcpConfig,
        mss: u16,
        ack: &Segment<'_>,
    ) -> Self {
        let theirs = ack.options.timestamps.filter(|_| config.timestamps);
        let offered = theirs.map(|theirs| decode(theirs.ecr.wrapping_sub(ts_offset)));
        let options = TcpOptions {
            mss: Some(mss),
            timestamps: theirs.map(|theirs| Wire { val: theirs.val, ecr: 0 }),
            ..offered.unwrap_or_default()
        };
        // RFC 9768 section 5.1: only a peer that requested AccECN sends these codes.
        let asked = config.ecn.grants() == Form::Accurate && ack.flags.ace() >= 0b010;
        let flags = Flags { syn: true, ..Flags::default() };
        let syn = Segment {
            seq: ack.seq - 1,
            ack: SeqNumber(0),
            flags: if asked { flags.with_ace(ACCURATE_SYN) } else { flags },
            reserved: 0,
            ecn: ip::NOT_ECT,
            window: ack.window,
            options,
            payload: Payload::default(),
            size: None,
        };
        let mut connection = Self::accept(now, flow, ack.ack - 1, ts_offset, config, &syn);
        if let Some(handshake) = &mut connection.handshake {
            handshake.on_cookie_sent();
        }
        connection
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_timestamp_encodes_options_and_is_never_ahead() {
        for ticks in (0..200).chain([u32::MAX - 3, u32::MAX]) {
            for (scale, sack) in (0..=15).flat_map(|scale| [(scale, false), (scale, true)]) {
                let options = TcpOptions {
                    window_scale: (scale < 15).then_some(scale),
                    sack_permitted: sack,
                    ..TcpOptions::default()
                };
                let clock = encode(ticks, &options);
                assert_eq!(decode(clock), options);
                assert!(ticks.wrapping_sub(clock) <= MASK, "{ticks} {clock}");
            }
        }
    }

    #[test]
    fn a_shift_above_fourteen_counts_as_fourteen() {
        let options = TcpOptions { window_scale: Some(200), ..TcpOptions::default() };
        assert_eq!(decode(encode(9, &options)).window_scale, Some(14));
    }
}
