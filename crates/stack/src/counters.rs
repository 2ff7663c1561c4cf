//! Counters of the stack, named as in `nstat`.

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $field:ident: $name:literal,)+) => {
        /// Counters of a host since its creation.
        ///
        /// Field names are `nstat`'s names in snake case. TCP and UDP counters include both IP
        /// versions, as the kernel's TCP counters do.
        #[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize)]
        #[non_exhaustive]
        pub struct Counters {
            $($(#[doc = $doc])+ #[serde(rename = $name)] pub $field: u64,)+
        }

        impl Counters {
            /// Returns the name, as `nstat` spells it, and the value of every counter, in a fixed
            /// order.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$(($name, self.$field),)+].into_iter()
            }

            /// Returns the name of every counter and its meaning in one sentence, in the order of
            /// [`iter`](Self::iter).
            pub fn meanings() -> impl Iterator<Item = (&'static str, &'static str)> {
                [$(($name, concat!($($doc),+).trim_ascii()),)+].into_iter()
            }
        }

        /// Adds up the counters of several hosts.
        impl std::iter::Sum for Counters {
            fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
                all.fold(Self::default(), |sum, one| Self { $($field: sum.$field + one.$field,)+ })
            }
        }
    };
}

counters! {
    /// IPv4 packets that arrived.
    ip_in_receives: "IpInReceives",
    /// IPv4 packets dropped because of an invalid header: version, lengths, checksum.
    ip_in_hdr_errors: "IpInHdrErrors",
    /// IPv4 packets dropped because they are not for this host, or have an invalid source address.
    ip_in_addr_errors: "IpInAddrErrors",
    /// IPv4 packets of a protocol that the host does not support.
    ip_in_unknown_protos: "IpInUnknownProtos",
    /// IPv4 packets delivered to a protocol.
    ip_in_delivers: "IpInDelivers",
    /// IPv4 packets sent.
    ip_out_requests: "IpOutRequests",
    /// IPv4 packets of the host's own (RST, ICMP, cookies) dropped because the queue was full.
    ip_out_discards: "IpOutDiscards",
    /// IPv4 fragments that arrived.
    ip_reasm_reqds: "IpReasmReqds",
    /// IPv4 packets reassembled.
    ip_reasm_oks: "IpReasmOKs",
    /// IPv4 fragments refused, and incomplete packets dropped.
    ip_reasm_fails: "IpReasmFails",
    /// IPv4 packets dropped because their reassembly timed out.
    ip_reasm_timeout: "IpReasmTimeout",
    /// IPv4 packets dropped because fragments overlapped.
    ip_ext_reasm_overlaps: "IpExtReasmOverlaps",
    /// IPv4 packets not sent because they would need fragmentation.
    ip_frag_fails: "IpFragFails",
    /// IPv4 packets shorter than their header says.
    ip_ext_in_truncated_pkts: "IpExtInTruncatedPkts",
    /// Packets of both IP versions that a queue has marked with CE (RFC 3168).
    ip_ext_in_ce_pkts: "IpExtInCEPkts",
    /// IPv4 headers with a bad checksum.
    ip_ext_in_csum_errors: "IpExtInCsumErrors",
    /// IPv4 multicast and broadcast packets that arrived; the host listens to none.
    ip_ext_in_mcast_pkts: "IpExtInMcastPkts",
    /// Packets of both IP versions passed to the next sibling because they match no flow here.
    ip_ext_handed_over: "IpExtHandedOver",
    /// Packets for the next sibling dropped because its queue was full, or it has ended.
    ip_ext_hand_over_drops: "IpExtHandOverDrops",
    /// IPv6 packets that arrived.
    ip6_in_receives: "Ip6InReceives",
    /// IPv6 packets dropped because of an invalid header.
    ip6_in_hdr_errors: "Ip6InHdrErrors",
    /// IPv6 packets dropped because they are not for this host, or have an invalid source address.
    ip6_in_addr_errors: "Ip6InAddrErrors",
    /// IPv6 packets of a protocol that the host does not support.
    ip6_in_unknown_protos: "Ip6InUnknownProtos",
    /// IPv6 packets shorter than their header says.
    ip6_in_truncated_pkts: "Ip6InTruncatedPkts",
    /// IPv6 multicast packets that arrived; the host listens to none.
    ip6_in_mcast_pkts: "Ip6InMcastPkts",
    /// IPv6 packets delivered to a protocol.
    ip6_in_delivers: "Ip6InDelivers",
    /// IPv6 packets sent.
    ip6_out_requests: "Ip6OutRequests",
    /// IPv6 packets of the host's own (RST, ICMP, cookies) dropped because the queue was full.
    ip6_out_discards: "Ip6OutDiscards",
    /// IPv6 fragments that arrived.
    ip6_reasm_reqds: "Ip6ReasmReqds",
    /// IPv6 packets reassembled.
    ip6_reasm_oks: "Ip6ReasmOKs",
    /// IPv6 fragments refused, and incomplete packets dropped.
    ip6_reasm_fails: "Ip6ReasmFails",
    /// IPv6 packets dropped because their reassembly timed out.
    ip6_reasm_timeout: "Ip6ReasmTimeout",
    /// IPv6 packets dropped because fragments overlapped.
    ip6_reasm_overlaps: "Ip6ReasmOverlaps",
    /// IPv6 packets not sent because they would need fragmentation.
    ip6_frag_fails: "Ip6FragFails",

    /// ICMP messages that arrived.
    icmp_in_msgs: "IcmpInMsgs",
    /// ICMP messages that are malformed, or match no socket.
    icmp_in_errors: "IcmpInErrors",
    /// ICMP messages with a bad checksum.
    icmp_in_csum_errors: "IcmpInCsumErrors",
    /// ICMP Destination Unreachable that arrived.
    icmp_in_dest_unreachs: "IcmpInDestUnreachs",
    /// ICMP Time Exceeded that arrived.
    icmp_in_time_excds: "IcmpInTimeExcds",
    /// ICMP Parameter Problem that arrived.
    icmp_in_parm_probs: "IcmpInParmProbs",
    /// ICMP Echo that arrived.
    icmp_in_echos: "IcmpInEchos",
    /// ICMP Echo Reply that arrived.
    icmp_in_echo_reps: "IcmpInEchoReps",
    /// ICMP messages sent.
    icmp_out_msgs: "IcmpOutMsgs",
    /// ICMP Destination Unreachable sent.
    icmp_out_dest_unreachs: "IcmpOutDestUnreachs",
    /// ICMP Time Exceeded sent for incomplete packets.
    icmp_out_time_excds: "IcmpOutTimeExcds",
    /// ICMP Echo Reply sent.
    icmp_out_echo_reps: "IcmpOutEchoReps",
    /// ICMP errors not sent because of the rate limit.
    icmp_out_rate_limit_host: "IcmpOutRateLimitHost",
    /// ICMP Echo not answered because of the rate limit.
    icmp_out_rate_limit_echo: "IcmpOutRateLimitEcho",
    /// ICMPv6 messages that arrived.
    icmp6_in_msgs: "Icmp6InMsgs",
    /// ICMPv6 messages that are malformed, or match no socket.
    icmp6_in_errors: "Icmp6InErrors",
    /// ICMPv6 messages with a bad checksum.
    icmp6_in_csum_errors: "Icmp6InCsumErrors",
    /// ICMPv6 Destination Unreachable that arrived.
    icmp6_in_dest_unreachs: "Icmp6InDestUnreachs",
    /// ICMPv6 Packet Too Big that arrived.
    icmp6_in_pkt_too_bigs: "Icmp6InPktTooBigs",
    /// ICMPv6 Time Exceeded that arrived.
    icmp6_in_time_excds: "Icmp6InTimeExcds",
    /// ICMPv6 Parameter Problem that arrived.
    icmp6_in_parm_problems: "Icmp6InParmProblems",
    /// ICMPv6 Echo Request that arrived.
    icmp6_in_echos: "Icmp6InEchos",
    /// ICMPv6 Echo Reply that arrived.
    icmp6_in_echo_replies: "Icmp6InEchoReplies",
    /// ICMPv6 messages sent.
    icmp6_out_msgs: "Icmp6OutMsgs",
    /// ICMPv6 Destination Unreachable sent.
    icmp6_out_dest_unreachs: "Icmp6OutDestUnreachs",
    /// ICMPv6 Time Exceeded sent for incomplete packets.
    icmp6_out_time_excds: "Icmp6OutTimeExcds",
    /// ICMPv6 Parameter Problem sent.
    icmp6_out_parm_problems: "Icmp6OutParmProblems",
    /// ICMPv6 Echo Reply sent.
    icmp6_out_echo_replies: "Icmp6OutEchoReplies",
    /// ICMPv6 errors not sent because of the rate limit.
    icmp6_out_rate_limit_host: "Icmp6OutRateLimitHost",
    /// ICMPv6 Echo Request not answered because of the rate limit.
    icmp6_out_rate_limit_echo: "Icmp6OutRateLimitEcho",

    /// UDP datagrams added to a socket's queue.
    udp_in_datagrams: "UdpInDatagrams",
    /// UDP datagrams to a port without a socket.
    udp_no_ports: "UdpNoPorts",
    /// UDP datagrams dropped for any other reason.
    udp_in_errors: "UdpInErrors",
    /// UDP sockets not bound because every port was in use.
    udp_ports_taken: "UdpPortsTaken",
    /// ICMP errors about a datagram above the path MTU, which are ignored.
    udp_pmtu_ignored: "UdpPmtuIgnored",
    /// UDP datagrams sent.
    udp_out_datagrams: "UdpOutDatagrams",
    /// UDP datagrams dropped because the socket's queue was full.
    udp_rcvbuf_errors: "UdpRcvbufErrors",
    /// UDP datagrams with a bad checksum.
    udp_in_csum_errors: "UdpInCsumErrors",

    /// Connections opened by this host.
    tcp_active_opens: "TcpActiveOpens",
    /// Connections opened by a peer.
    tcp_passive_opens: "TcpPassiveOpens",
    /// Connections that ended in SYN-SENT or SYN-RECEIVED.
    tcp_attempt_fails: "TcpAttemptFails",
    /// Connections reset in ESTABLISHED or CLOSE-WAIT.
    tcp_estab_resets: "TcpEstabResets",
    /// Connections now in ESTABLISHED or CLOSE-WAIT.
    tcp_curr_estab: "TcpCurrEstab",
    /// Segments that arrived, including invalid ones.
    tcp_in_segs: "TcpInSegs",
    /// Segments sent, without those that only retransmit data.
    tcp_out_segs: "TcpOutSegs",
    /// Segments retransmitted.
    tcp_retrans_segs: "TcpRetransSegs",
    /// Malformed segments.
    tcp_in_errs: "TcpInErrs",
    /// RSTs sent.
    tcp_out_rsts: "TcpOutRsts",
    /// Segments with a bad checksum.
    tcp_in_csum_errors: "TcpInCsumErrors",
    /// SYN cookies sent.
    tcp_ext_syncookies_sent: "TcpExtSyncookiesSent",
    /// Valid SYN cookies received.
    tcp_ext_syncookies_recv: "TcpExtSyncookiesRecv",
    /// ACKs without a connection and without a valid cookie, while cookies are in use.
    tcp_ext_syncookies_failed: "TcpExtSyncookiesFailed",
    /// Half-open connections replaced because a cookie sent before them was returned.
    tcp_ext_syncookies_late: "TcpExtSyncookiesLate",
    /// Segments that would have opened a connection, dropped because the backlog was full.
    tcp_ext_listen_overflows: "TcpExtListenOverflows",
    /// Segments that would have opened a connection, dropped for any reason.
    tcp_ext_listen_drops: "TcpExtListenDrops",
    /// Connections refused because of the quota of all peers.
    tcp_ext_conn_quota: "TcpExtConnQuota",
    /// Connections refused because of the quota of the peer.
    tcp_ext_conn_quota_peer: "TcpExtConnQuotaPeer",
    /// SYNs without a half-open connection because of the quota of all peers.
    tcp_ext_half_open_quota: "TcpExtHalfOpenQuota",
    /// SYNs without a half-open connection because of the quota of the peer.
    tcp_ext_half_open_quota_peer: "TcpExtHalfOpenQuotaPeer",
    /// Connections refused because the memory of the host was exhausted.
    tcp_ext_memory_pressures: "TcpExtTCPMemoryPressures",
    /// Connections refused because the memory of the peer was exhausted.
    tcp_ext_memory_quota_peer: "TcpExtMemoryQuotaPeer",
    /// Segments whose data was dropped because the memory of the host or peer was exhausted.
    tcp_ext_rcv_q_drop: "TcpExtTCPRcvQDrop",
    /// Connections not opened, and sockets not bound, because every port was in use.
    tcp_ext_no_ports: "TcpExtNoPorts",
    /// ICMP errors about segments that are not outstanding.
    tcp_ext_out_of_window_icmps: "TcpExtOutOfWindowIcmps",
    /// Reductions of a connection's packet size because of an ICMP error.
    tcp_ext_pmtu_lowered: "TcpExtPmtuLowered",
    /// ICMP errors with an invalid path MTU, which were ignored.
    tcp_ext_pmtu_refused: "TcpExtPmtuRefused",
    /// Reductions of a connection's packet size because large packets timed out repeatedly.
    tcp_ext_pmtu_black_holes: "TcpExtPmtuBlackHoles",
    /// Packet sizes restored because an outage had caused the time-outs.
    tcp_ext_pmtu_restored: "TcpExtPmtuRestored",
    /// Connections whose TIME-WAIT ended.
    tcp_ext_tw: "TcpExtTW",
    /// Connections that ended without TIME-WAIT because of its limit.
    tcp_ext_time_wait_overflow: "TcpExtTCPTimeWaitOverflow",
    /// Connections in TIME-WAIT replaced by a new one.
    tcp_ext_tw_recycled: "TcpExtTWRecycled",
    /// Segments refused because of an old timestamp (PAWS).
    tcp_ext_paws_estab: "TcpExtPAWSEstab",
    /// Segments refused because the negotiated timestamp was missing.
    tcp_ext_timestamp_missing: "TcpExtTimestampMissing",
    /// Segments refused because they had no ACK.
    tcp_ext_ack_missing: "TcpExtAckMissing",
    /// RSTs outside the window, or in SYN-SENT without an ACK of the SYN.
    tcp_ext_out_of_window_rsts: "TcpExtOutOfWindowRsts",
    /// ACKs of data that was not sent, during a handshake; each gets a RST.
    tcp_ext_handshake_bad_ack: "TcpExtHandshakeBadAck",
    /// ACKs of a SYN-ACK without data, at a listener with deferred accept.
    tcp_ext_defer_accept_drop: "TcpExtTCPDeferAcceptDrop",
    /// Segments at a listener or in SYN-SENT that were not a SYN, or a SYN with FIN.
    tcp_ext_not_a_syn: "TcpExtNotASyn",
    /// SYNs with data or a FIN, which the peer has to retransmit.
    tcp_ext_data_in_syn: "TcpExtDataInSyn",
    /// Segments with malformed TCP options, processed without them.
    tcp_ext_bad_options: "TcpExtBadOptions",
    /// Segments with the urgent flag, which is ignored.
    tcp_ext_urgent: "TcpExtUrgent",
    /// Segments that advertised a smaller window than before.
    tcp_ext_window_shrunk: "TcpExtWindowShrunk",
    /// Delayed ACKs sent by their timer.
    tcp_ext_delayed_acks: "TcpExtDelayedACKs",
    /// Segments with old data only: an ACK was lost or late.
    tcp_ext_delayed_ack_lost: "TcpExtDelayedACKLost",
    /// ACKs received without data.
    tcp_ext_pure_acks: "TcpExtTCPPureAcks",
    /// Retransmission time-outs.
    tcp_ext_timeouts: "TcpExtTCPTimeouts",
    /// Fast retransmissions.
    tcp_ext_fast_retrans: "TcpExtTCPFastRetrans",
    /// Transmissions marked lost.
    tcp_ext_segs_lost: "TcpExtSegsLost",
    /// Transmissions marked lost that a judge considers random, which do not reduce the window.
    tcp_ext_segs_lost_random: "TcpExtSegsLostRandom",
    /// SYN or SYN-ACK retransmissions.
    tcp_ext_syn_retrans: "TcpExtTCPSynRetrans",
    /// Window reductions undone because of timestamps, or because the segments to retransmit had
    /// arrived.
    tcp_ext_full_undo: "TcpExtTCPFullUndo",
    /// Window reductions undone because all retransmissions arrived twice (DSACK).
    tcp_ext_dsack_undo: "TcpExtTCPDSACKUndo",
    /// Time-outs undone by F-RTO.
    tcp_ext_spurious_rtos: "TcpExtTCPSpuriousRTOs",
    /// DSACKs sent for data below the cumulative ACK.
    tcp_ext_dsack_old_sent: "TcpExtTCPDSACKOldSent",
    /// DSACKs sent for data above the cumulative ACK.
    tcp_ext_dsack_ofo_sent: "TcpExtTCPDSACKOfoSent",
    /// DSACKs received.
    tcp_ext_dsack_recv: "TcpExtTCPDSACKRecv",
    /// Invalid SACK blocks, which were ignored.
    tcp_ext_sack_discard: "TcpExtTCPSACKDiscard",
    /// Segments queued out of order.
    tcp_ext_ofo_queue: "TcpExtTCPOFOQueue",
    /// Out-of-order segments dropped because there was no room to queue them.
    tcp_ext_ofo_drop: "TcpExtTCPOFODrop",
    /// Out-of-order segments dropped because of the quota of the peer or of all peers.
    tcp_ext_ofo_quota: "TcpExtOFOQuota",
    /// Segments with data that arrived while the window was closed.
    tcp_ext_zero_window_drop: "TcpExtTCPZeroWindowDrop",
    /// Transitions of the offered window to zero.
    tcp_ext_to_zero_window_adv: "TcpExtTCPToZeroWindowAdv",
    /// Transitions of the offered window from zero.
    tcp_ext_from_zero_window_adv: "TcpExtTCPFromZeroWindowAdv",
    /// Window probes sent.
    tcp_ext_win_probe: "TcpExtTCPWinProbe",
    /// Keep-alive probes sent.
    tcp_ext_keep_alive: "TcpExtTCPKeepAlive",
    /// Challenge ACKs sent (RFC 5961).
    tcp_ext_challenge_ack: "TcpExtTCPChallengeACK",
    /// Challenge ACKs not sent because of the limit of the connection.
    tcp_ext_ack_skipped_challenge: "TcpExtTCPACKSkippedChallenge",
    /// Challenge ACKs not sent because of the limit of the host.
    tcp_ext_challenge_ack_limit: "TcpExtChallengeACKLimit",
    /// Segments outside the window not answered because of the limit of the connection.
    tcp_ext_ack_skipped_seq: "TcpExtTCPACKSkippedSeq",
    /// Segments refused by PAWS not answered because of the limit of the connection.
    tcp_ext_ack_skipped_paws: "TcpExtTCPACKSkippedPAWS",
    /// Repeated SYNs not answered because of the limit of the connection.
    tcp_ext_ack_skipped_syn_recv: "TcpExtTCPACKSkippedSynRecv",
    /// Segments that start beyond the window.
    tcp_ext_beyond_window: "TcpExtBeyondWindow",
    /// SYNs in a synchronised state (RFC 5961 section 4).
    tcp_ext_syn_challenge: "TcpExtTCPSYNChallenge",
    /// Corrupted segments with a corrupted header (HACK).
    tcp_ext_hack_hdr_errors: "TcpExtHackHdrErrors",
    /// Corrupted segments with an intact header that were not answered: outside the window, without
    /// a connection, or on a connection without HACK.
    tcp_ext_hack_unanswered: "TcpExtHackUnanswered",
    /// Special ACKs sent for segments with an intact header and corrupted data (HACK).
    tcp_ext_hack_acks_sent: "TcpExtHackAcksSent",
    /// Special ACKs received (HACK).
    tcp_ext_hack_acks_recv: "TcpExtHackAcksRecv",
    /// Special ACKs ignored because they name no segment that can be corrupted (HACK).
    tcp_ext_hack_acks_ignored: "TcpExtHackAcksIgnored",
    /// Handshakes without HACK because the device verifies checksums.
    tcp_ext_hack_offloaded: "TcpExtHackOffloaded",
    /// Duplicate ACKs withheld because the radio repairs the loss.
    tcp_ext_dup_acks_withheld: "TcpExtDupAcksWithheld",
    /// Holes reported to the peer after their duplicate ACKs had been withheld.
    tcp_ext_withholding_ended: "TcpExtWithholdingEnded",
    /// Connections aborted because data arrived after the application had closed them.
    tcp_ext_abort_on_data: "TcpExtTCPAbortOnData",
    /// Connections aborted because the application closed them with unread data.
    tcp_ext_abort_on_close: "TcpExtTCPAbortOnClose",
    /// Connections aborted because data was not acknowledged within the linger time.
    tcp_ext_abort_on_linger: "TcpExtTCPAbortOnLinger",
    /// Connections aborted after too many time-outs or unanswered probes.
    tcp_ext_abort_on_timeout: "TcpExtTCPAbortOnTimeout",
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_values_are_the_fields() {
        let counters = Counters { tcp_in_segs: 7, ..Default::default() };
        let names: BTreeSet<_> = counters.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), counters.iter().count());
        let seven: Vec<_> = counters.iter().filter(|(_, value)| *value == 7).collect();
        assert_eq!(seven, [("TcpInSegs", 7)]);
        assert!(
            Counters::meanings().map(|(name, _)| name).eq(counters.iter().map(|(name, _)| name))
        );
        let is_sentence = |meaning: &str| meaning.ends_with('.') && !meaning.contains("  ");
        assert!(Counters::meanings().all(|(_, meaning)| is_sentence(meaning)));
    }

    #[test]
    fn a_sum_is_that_of_each_counter() {
        let one = Counters { tcp_in_segs: 7, udp_no_ports: 1, ..Default::default() };
        let other = Counters { tcp_in_segs: 2, tcp_out_rsts: 5, ..Default::default() };
        let sum: Counters = [one, other].into_iter().sum();
        let counted: Vec<_> = sum.iter().filter(|(_, value)| *value > 0).collect();
        assert_eq!(counted, [("UdpNoPorts", 1), ("TcpInSegs", 9), ("TcpOutRsts", 5)]);
    }
}
