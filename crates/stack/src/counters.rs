//! Counters of the stack, with the names of `nstat`.

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $field:ident: $name:literal,)+) => {
        /// Counters of a host since its creation.
        ///
        /// Fields are `nstat`'s names in snake case. TCP and UDP counters count both IP versions, as
        /// the kernel's TCP counters do.
        #[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize)]
        #[non_exhaustive]
        pub struct Counters {
            $($(#[doc = $doc])+ #[serde(rename = $name)] pub $field: u64,)+
        }

        impl Counters {
            /// Every counter's name, as `nstat` spells it, and its value, in a fixed order.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$(($name, self.$field),)+].into_iter()
            }

            /// Every counter's name, and its meaning in one sentence, in the order of
            /// [`iter`](Self::iter).
            pub fn meanings() -> impl Iterator<Item = (&'static str, &'static str)> {
                [$(($name, concat!($($doc),+).trim_ascii()),)+].into_iter()
            }
        }

        /// What several hosts have counted together.
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
    /// IPv4 packets dropped for their header: version, lengths, checksum.
    ip_in_hdr_errors: "IpInHdrErrors",
    /// IPv4 packets dropped for an address: not for this host, or a source that no host may have.
    ip_in_addr_errors: "IpInAddrErrors",
    /// IPv4 packets of a protocol that the host does not speak.
    ip_in_unknown_protos: "IpInUnknownProtos",
    /// IPv4 packets given to a protocol.
    ip_in_delivers: "IpInDelivers",
    /// IPv4 packets sent.
    ip_out_requests: "IpOutRequests",
    /// IPv4 packets of the host's own (RST, ICMP, cookies) dropped because too many waited to leave.
    ip_out_discards: "IpOutDiscards",
    /// IPv4 fragments that arrived.
    ip_reasm_reqds: "IpReasmReqds",
    /// IPv4 packets put together of fragments.
    ip_reasm_oks: "IpReasmOKs",
    /// IPv4 fragments refused, and packets given up of which some fragments had come.
    ip_reasm_fails: "IpReasmFails",
    /// Of these, packets whose other fragments did not come in time.
    ip_reasm_timeout: "IpReasmTimeout",
    /// Of these, packets of which fragments overlapped.
    ip_ext_reasm_overlaps: "IpExtReasmOverlaps",
    /// IPv4 packets not sent because they would have had to be fragmented.
    ip_frag_fails: "IpFragFails",
    /// IPv4 packets shorter than their header says.
    ip_ext_in_truncated_pkts: "IpExtInTruncatedPkts",
    /// Packets, of either version, that a queue has marked (RFC 3168).
    ip_ext_in_ce_pkts: "IpExtInCEPkts",
    /// IPv4 headers with a bad checksum.
    ip_ext_in_csum_errors: "IpExtInCsumErrors",
    /// IPv4 multicast and broadcast packets that arrived; the host listens to none.
    ip_ext_in_mcast_pkts: "IpExtInMcastPkts",
    /// Packets of either version that were handed to the next sibling, because they are nobody's here.
    ip_ext_handed_over: "IpExtHandedOver",
    /// Packets that should have been, and were dropped: too many wait there, or the sibling has ended.
    ip_ext_hand_over_drops: "IpExtHandOverDrops",
    /// IPv6 packets that arrived.
    ip6_in_receives: "Ip6InReceives",
    /// IPv6 packets dropped for their header.
    ip6_in_hdr_errors: "Ip6InHdrErrors",
    /// IPv6 packets dropped for an address.
    ip6_in_addr_errors: "Ip6InAddrErrors",
    /// IPv6 packets of a protocol that the host does not speak.
    ip6_in_unknown_protos: "Ip6InUnknownProtos",
    /// IPv6 packets shorter than their header says.
    ip6_in_truncated_pkts: "Ip6InTruncatedPkts",
    /// IPv6 multicast packets that arrived; the host listens to none.
    ip6_in_mcast_pkts: "Ip6InMcastPkts",
    /// IPv6 packets given to a protocol.
    ip6_in_delivers: "Ip6InDelivers",
    /// IPv6 packets sent.
    ip6_out_requests: "Ip6OutRequests",
    /// IPv6 packets of the host's own (RST, ICMP, cookies) dropped because too many waited to leave.
    ip6_out_discards: "Ip6OutDiscards",
    /// IPv6 fragments that arrived.
    ip6_reasm_reqds: "Ip6ReasmReqds",
    /// IPv6 packets put together of fragments.
    ip6_reasm_oks: "Ip6ReasmOKs",
    /// IPv6 fragments refused, and packets given up of which some fragments had come.
    ip6_reasm_fails: "Ip6ReasmFails",
    /// Of these, packets whose other fragments did not come in time.
    ip6_reasm_timeout: "Ip6ReasmTimeout",
    /// Of these, packets of which fragments overlapped.
    ip6_reasm_overlaps: "Ip6ReasmOverlaps",
    /// IPv6 packets not sent because they would have had to be fragmented.
    ip6_frag_fails: "Ip6FragFails",

    /// ICMP messages that arrived.
    icmp_in_msgs: "IcmpInMsgs",
    /// ICMP messages that could not be read, or are about nothing that is known here.
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
    /// ICMP Time Exceeded sent: fragments did not all come.
    icmp_out_time_excds: "IcmpOutTimeExcds",
    /// ICMP Echo Reply sent.
    icmp_out_echo_reps: "IcmpOutEchoReps",
    /// ICMP errors not sent because too many were due at once.
    icmp_out_rate_limit_host: "IcmpOutRateLimitHost",
    /// ICMP Echo not answered because too many came at once.
    icmp_out_rate_limit_echo: "IcmpOutRateLimitEcho",
    /// ICMPv6 messages that arrived.
    icmp6_in_msgs: "Icmp6InMsgs",
    /// ICMPv6 messages that could not be read, or are about nothing that is known here.
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
    /// ICMPv6 Time Exceeded sent: fragments did not all come.
    icmp6_out_time_excds: "Icmp6OutTimeExcds",
    /// ICMPv6 Parameter Problem sent.
    icmp6_out_parm_problems: "Icmp6OutParmProblems",
    /// ICMPv6 Echo Reply sent.
    icmp6_out_echo_replies: "Icmp6OutEchoReplies",
    /// ICMPv6 errors not sent because too many were due at once.
    icmp6_out_rate_limit_host: "Icmp6OutRateLimitHost",
    /// ICMPv6 Echo Request not answered because too many came at once.
    icmp6_out_rate_limit_echo: "Icmp6OutRateLimitEcho",

    /// UDP datagrams put on a socket's queue.
    udp_in_datagrams: "UdpInDatagrams",
    /// UDP datagrams to a port that nobody has.
    udp_no_ports: "UdpNoPorts",
    /// UDP datagrams dropped for any other reason.
    udp_in_errors: "UdpInErrors",
    /// UDP sockets not bound because every port was taken.
    udp_ports_taken: "UdpPortsTaken",
    /// Messages of a router about datagrams too large: nothing smaller would be a whole datagram.
    udp_pmtu_ignored: "UdpPmtuIgnored",
    /// UDP datagrams sent.
    udp_out_datagrams: "UdpOutDatagrams",
    /// UDP datagrams dropped because the socket's queue was full.
    udp_rcvbuf_errors: "UdpRcvbufErrors",
    /// UDP datagrams with a bad checksum.
    udp_in_csum_errors: "UdpInCsumErrors",

    /// Connections opened from here.
    tcp_active_opens: "TcpActiveOpens",
    /// Connections opened by a peer.
    tcp_passive_opens: "TcpPassiveOpens",
    /// Connections that ended in SYN-SENT or SYN-RECEIVED.
    tcp_attempt_fails: "TcpAttemptFails",
    /// Connections reset in ESTABLISHED or CLOSE-WAIT.
    tcp_estab_resets: "TcpEstabResets",
    /// Connections now in ESTABLISHED or CLOSE-WAIT.
    tcp_curr_estab: "TcpCurrEstab",
    /// Segments that arrived, bad ones too.
    tcp_in_segs: "TcpInSegs",
    /// Segments sent, without those that only repeat data.
    tcp_out_segs: "TcpOutSegs",
    /// Segments sent again.
    tcp_retrans_segs: "TcpRetransSegs",
    /// Segments that could not be read.
    tcp_in_errs: "TcpInErrs",
    /// RSTs sent.
    tcp_out_rsts: "TcpOutRsts",
    /// Segments with a bad checksum.
    tcp_in_csum_errors: "TcpInCsumErrors",
    /// SYN cookies sent, where a backlog was full.
    tcp_ext_syncookies_sent: "TcpExtSyncookiesSent",
    /// SYN cookies that came back.
    tcp_ext_syncookies_recv: "TcpExtSyncookiesRecv",
    /// ACKs without a connection, at a time of cookies, that brought none back.
    tcp_ext_syncookies_failed: "TcpExtSyncookiesFailed",
    /// Half-open connections that made way for a cookie that was sent before them.
    tcp_ext_syncookies_late: "TcpExtSyncookiesLate",
    /// Segments that would have opened a connection, dropped because too many wait to be accepted.
    tcp_ext_listen_overflows: "TcpExtListenOverflows",
    /// Segments that would have opened a connection, dropped for any reason.
    tcp_ext_listen_drops: "TcpExtListenDrops",
    /// Connections refused because there are as many as may be.
    tcp_ext_conn_quota: "TcpExtConnQuota",
    /// Connections refused because the peer has as many as it may have.
    tcp_ext_conn_quota_peer: "TcpExtConnQuotaPeer",
    /// SYNs of which nothing is kept because there are as many half-open connections as may be.
    tcp_ext_half_open_quota: "TcpExtHalfOpenQuota",
    /// SYNs of which nothing is kept because the peer has as many half-open connections as it may have.
    tcp_ext_half_open_quota_peer: "TcpExtHalfOpenQuotaPeer",
    /// Connections refused because the host's memory was used up.
    tcp_ext_memory_pressures: "TcpExtTCPMemoryPressures",
    /// Connections refused because those of the peer hold all they may.
    tcp_ext_memory_quota_peer: "TcpExtMemoryQuotaPeer",
    /// Segments of which data was dropped because the host, or the peer's connections, hold all they may.
    tcp_ext_rcv_q_drop: "TcpExtTCPRcvQDrop",
    /// Connections not opened from here, and sockets not bound, because every port was taken.
    tcp_ext_no_ports: "TcpExtNoPorts",
    /// ICMP errors about segments that are not outstanding.
    tcp_ext_out_of_window_icmps: "TcpExtOutOfWindowIcmps",
    /// How often a connection's packets became smaller because a router said so.
    tcp_ext_pmtu_lowered: "TcpExtPmtuLowered",
    /// Messages of a router about packets too large that cannot be true.
    tcp_ext_pmtu_refused: "TcpExtPmtuRefused",
    /// How often they became smaller because large ones timed out again and again.
    tcp_ext_pmtu_black_holes: "TcpExtPmtuBlackHoles",
    /// How often they became what they were before, since it had been an outage.
    tcp_ext_pmtu_restored: "TcpExtPmtuRestored",
    /// Connections whose TIME-WAIT ended.
    tcp_ext_tw: "TcpExtTW",
    /// Connections that ended without a TIME-WAIT because there were as many as may be.
    tcp_ext_time_wait_overflow: "TcpExtTCPTimeWaitOverflow",
    /// Connections in TIME-WAIT replaced by a new one.
    tcp_ext_tw_recycled: "TcpExtTWRecycled",
    /// Segments refused by their timestamp (PAWS).
    tcp_ext_paws_estab: "TcpExtPAWSEstab",
    /// Segments refused for having no timestamp, where both ends agreed on them.
    tcp_ext_timestamp_missing: "TcpExtTimestampMissing",
    /// Segments refused for having no ACK.
    tcp_ext_ack_missing: "TcpExtAckMissing",
    /// RSTs outside the window, or in SYN-SENT without the number of our SYN.
    tcp_ext_out_of_window_rsts: "TcpExtOutOfWindowRsts",
    /// ACKs during a handshake of what was not sent; each gets a RST.
    tcp_ext_handshake_bad_ack: "TcpExtHandshakeBadAck",
    /// ACKs of a SYN-ACK that brought no data where that is waited for.
    tcp_ext_defer_accept_drop: "TcpExtTCPDeferAcceptDrop",
    /// Segments at a listener or in SYN-SENT that had to be a SYN and were none, or were a FIN too.
    tcp_ext_not_a_syn: "TcpExtNotASyn",
    /// SYNs with data or a FIN, which the peer has to send again.
    tcp_ext_data_in_syn: "TcpExtDataInSyn",
    /// Segments with TCP options that cannot be read; they count without them.
    tcp_ext_bad_options: "TcpExtBadOptions",
    /// Segments with the urgent flag; their data is as any other.
    tcp_ext_urgent: "TcpExtUrgent",
    /// How often a peer took back some of the window that it had offered.
    tcp_ext_window_shrunk: "TcpExtWindowShrunk",
    /// Delayed ACKs sent by their timer.
    tcp_ext_delayed_acks: "TcpExtDelayedACKs",
    /// Segments that were wholly old: our ACK was lost or late.
    tcp_ext_delayed_ack_lost: "TcpExtDelayedACKLost",
    /// ACKs that carried no data.
    tcp_ext_pure_acks: "TcpExtTCPPureAcks",
    /// Retransmission time-outs.
    tcp_ext_timeouts: "TcpExtTCPTimeouts",
    /// Fast retransmissions.
    tcp_ext_fast_retrans: "TcpExtTCPFastRetrans",
    /// SYN or SYN-ACK retransmissions.
    tcp_ext_syn_retrans: "TcpExtTCPSynRetrans",
    /// Reductions taken back by time stamps, or because what was to be sent again had arrived.
    tcp_ext_full_undo: "TcpExtTCPFullUndo",
    /// Reductions taken back because all that was sent again came twice.
    tcp_ext_dsack_undo: "TcpExtTCPDSACKUndo",
    /// Time-outs taken back by F-RTO.
    tcp_ext_spurious_rtos: "TcpExtTCPSpuriousRTOs",
    /// DSACKs sent for data below the cumulative ACK.
    tcp_ext_dsack_old_sent: "TcpExtTCPDSACKOldSent",
    /// DSACKs sent for data above it.
    tcp_ext_dsack_ofo_sent: "TcpExtTCPDSACKOfoSent",
    /// DSACKs received.
    tcp_ext_dsack_recv: "TcpExtTCPDSACKRecv",
    /// SACK blocks that lied and were ignored.
    tcp_ext_sack_discard: "TcpExtTCPSACKDiscard",
    /// Segments queued out of order.
    tcp_ext_ofo_queue: "TcpExtTCPOFOQueue",
    /// Segments dropped because there was no room to queue them.
    tcp_ext_ofo_drop: "TcpExtTCPOFODrop",
    /// Of these, segments dropped because as much as may be is out of order, of the peer or of all.
    tcp_ext_ofo_quota: "TcpExtOFOQuota",
    /// Data that came against a closed window.
    tcp_ext_zero_window_drop: "TcpExtTCPZeroWindowDrop",
    /// How often the offered window closed.
    tcp_ext_to_zero_window_adv: "TcpExtTCPToZeroWindowAdv",
    /// How often the offered window opened again.
    tcp_ext_from_zero_window_adv: "TcpExtTCPFromZeroWindowAdv",
    /// Window probes sent.
    tcp_ext_win_probe: "TcpExtTCPWinProbe",
    /// Keep-alive probes sent.
    tcp_ext_keep_alive: "TcpExtTCPKeepAlive",
    /// Challenge ACKs sent (RFC 5961).
    tcp_ext_challenge_ack: "TcpExtTCPChallengeACK",
    /// Challenge ACKs not sent because one had just been.
    tcp_ext_ack_skipped_challenge: "TcpExtTCPACKSkippedChallenge",
    /// Challenge ACKs not sent because the host's limit was reached.
    tcp_ext_challenge_ack_limit: "TcpExtChallengeACKLimit",
    /// Segments outside the window that were not answered because one had just been.
    tcp_ext_ack_skipped_seq: "TcpExtTCPACKSkippedSeq",
    /// Segments refused by PAWS that were not answered because one had just been.
    tcp_ext_ack_skipped_paws: "TcpExtTCPACKSkippedPAWS",
    /// Repeated SYNs that were not answered because one had just been.
    tcp_ext_ack_skipped_syn_recv: "TcpExtTCPACKSkippedSynRecv",
    /// Segments that begin beyond the window.
    tcp_ext_beyond_window: "TcpExtBeyondWindow",
    /// SYNs in a synchronised state (RFC 5961 section 4).
    tcp_ext_syn_challenge: "TcpExtTCPSYNChallenge",
    /// Segments with bad data whose header checksum is wrong too (HACK).
    tcp_ext_hack_hdr_errors: "TcpExtHackHdrErrors",
    /// Corrupted segments with a good header that were not answered: outside the window, of no
    /// connection, or of one that does not speak HACK.
    tcp_ext_hack_unanswered: "TcpExtHackUnanswered",
    /// Special ACKs sent: segments that arrived with a good header and bad data.
    tcp_ext_hack_acks_sent: "TcpExtHackAcksSent",
    /// Special ACKs received.
    tcp_ext_hack_acks_recv: "TcpExtHackAcksRecv",
    /// Of these, those that name nothing that can have been corrupted.
    tcp_ext_hack_acks_ignored: "TcpExtHackAcksIgnored",
    /// Handshakes in which HACK was refused because a device vouches for checksums.
    tcp_ext_hack_offloaded: "TcpExtHackOffloaded",
    /// Duplicate ACKs withheld: what they would ask for is the radio's to repair.
    tcp_ext_dup_acks_withheld: "TcpExtDupAcksWithheld",
    /// How often the peer was told after all of a hole whose duplicate ACKs had been withheld.
    tcp_ext_withholding_ended: "TcpExtWithholdingEnded",
    /// Connections aborted because data came after the application let go.
    tcp_ext_abort_on_data: "TcpExtTCPAbortOnData",
    /// Connections aborted because the application let go with data unread.
    tcp_ext_abort_on_close: "TcpExtTCPAbortOnClose",
    /// Connections aborted because what was written was not acknowledged in the time that closing may take.
    tcp_ext_abort_on_linger: "TcpExtTCPAbortOnLinger",
    /// Connections given up after too many time-outs, or probes without an answer.
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
        assert!(Counters::meanings().map(|(name, _)| name).eq(counters.iter().map(|(name, _)| name)));
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
