//! HACK (sections 3.2 and 3.3 of the paper): the special ACK for a corrupted segment, and its
//! effect at the sender.

use airtcp_types::{ExtSeq, Instant, Packet, SeqRange};
use airtcp_wire::options::{HackAck, HackForm, TcpOptions};
use airtcp_wire::tcp::{Header, Segment};

use crate::counters::Counters;
use crate::tcp::{Connection, Outlet, State};

impl Connection {
    /// Handles a segment with a wrong TCP checksum and a correct header checksum. Returns whether a
    /// special ACK will be sent. Apart from that the segment is dropped: it changes no other state,
    /// now or when the special ACK is sent.
    pub fn on_corrupted(&mut self, segment: &Segment<'_>, counters: &mut Counters) -> bool {
        let seq = self.receive.nxt().nearest(segment.seq);
        // The segment that would complete the handshake may already contain data.
        let completes = self.state == State::SynReceived
            && segment.flags.ack
            && segment.ack == self.send.first().wire();
        let in_window = (self.state.takes_data() || completes) && self.receive.offers(seq);
        // Without data, the corruption would be in the header.
        let is_data = !segment.payload.is_empty() && !segment.flags.syn && !segment.flags.rst;
        let extensions = self.extensions.as_mut().filter(|extensions| extensions.hack.is_some());
        let answered = in_window
            && is_data
            && extensions.is_some_and(|extensions| extensions.report_corrupted(seq));
        counters.tcp_ext_hack_unanswered += u64::from(!answered);
        answered
    }

    /// Builds the special ACK for the segment at `seq`: an ordinary ACK that neither offers nor
    /// reports anything new.
    pub(in crate::tcp) fn emit_special_ack(
        &self,
        now: Instant,
        seq: ExtSeq,
        form: HackForm,
        counters: &mut Counters,
        outlet: &mut Outlet,
    ) -> Packet {
        counters.tcp_out_segs += 1;
        counters.tcp_ext_hack_acks_sent += 1;
        let options = TcpOptions {
            sack: self.reports(None),
            hack_ack: Some(HackAck { form, corrupted: seq.wire() }),
            ..self.options(now)
        };
        let header = Header {
            seq: self.send.nxt().wire(),
            ack: Some(self.receive.nxt().wire()),
            flags: self.ecn.flags_now(),
            window: self.receive.offered(),
            options,
        };
        self.emit(&header, outlet)
    }

    /// Handles a special ACK; its other fields are ignored. Returns whether the segment was one.
    pub(in crate::tcp) fn on_special_ack(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        counters: &mut Counters,
    ) -> bool {
        let agreed = self.granted().hack && segment.len() == 0;
        let Some(HackAck { corrupted, .. }) = segment.options.hack_ack.filter(|_| agreed) else {
            return false;
        };
        counters.tcp_ext_hack_acks_recv += 1;
        let outstanding = SeqRange::new(self.send.una(), self.send.nxt());
        let seq = outstanding.start.nearest(corrupted);
        let believed = outstanding.contains(seq) && self.send.on_special_ack(now, seq);
        counters.tcp_ext_hack_acks_ignored += u64::from(!believed);
        self.collect_events();
        self.tally.settle(now, &self.send, counters);
        true
    }
}
