//! Counting and logging of rejected segments, for TIME-WAIT and all other states.

use airtcp_types::FlowId;
use airtcp_wire::tcp::Segment;
use tracing::debug;

use crate::counters::Counters;

/// Rejects a RST outside the window, which cannot come from the peer (RFC 5961 section 3.2).
pub(super) fn refuse_rst(flow: &FlowId, counters: &mut Counters) {
    debug!(remote = %flow.remote, "RST dropped: outside the window");
    counters.tcp_ext_out_of_window_rsts += 1;
}

/// Rejects a segment without ACK (RFC 9293 section 3.10.7.4, fifth).
pub(super) fn refuse_without_ack(flow: &FlowId, counters: &mut Counters) {
    debug!(remote = %flow.remote, "segment dropped: no ACK");
    counters.tcp_ext_ack_missing += 1;
}

/// Rejects a segment by PAWS (RFC 7323 section 5.3).
pub(super) fn refuse_old_stamp(flow: &FlowId, counters: &mut Counters) {
    debug!(remote = %flow.remote, "segment dropped: old timestamp (PAWS)");
    counters.tcp_ext_paws_estab += 1;
}

/// Rejects a segment without a timestamp: once negotiated, every segment has one (RFC 7323 section
/// 3.2).
pub(super) fn refuse_without_stamp(flow: &FlowId, counters: &mut Counters) {
    debug!(remote = %flow.remote, "segment dropped: no timestamp");
    counters.tcp_ext_timestamp_missing += 1;
}

/// Counts an answer that is not sent because of the rate limit.
pub(super) fn skip_answer(flow: &FlowId, skipped: &mut u64) {
    debug!(remote = %flow.remote, "segment not answered: ACK rate limit reached");
    *skipped += 1;
}

/// Counts data or a FIN in a SYN, which is ignored: the peer has to retransmit it.
pub(crate) fn note_data_in_syn(flow: &FlowId, syn: &Segment<'_>, counters: &mut Counters) {
    if !syn.payload.is_empty() || syn.flags.fin {
        debug!(remote = %flow.remote, "data or FIN in SYN ignored");
        counters.tcp_ext_data_in_syn += 1;
    }
}

/// Rejects a segment that is not a SYN, or is a SYN with other flags.
pub(crate) fn refuse_no_syn(flow: &FlowId, counters: &mut Counters) {
    debug!(remote = %flow.remote, "segment dropped: not a valid SYN");
    counters.tcp_ext_not_a_syn += 1;
}
