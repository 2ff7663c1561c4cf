//! One end of the datagrams between two gateways, as a state machine.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::ops::AddAssign;
use std::sync::Arc;
use std::time::Duration;

use airtcp_types::Instant;
use serde::Serialize;
use tokio::sync::Semaphore;
use tracing::debug;

use super::OVERHEAD;
use super::fec::{self, Decoder, Encoder, Repairs};
use super::frame::{
    Answer, Close, Data, FLOWS, Flow, Frame, HEADER, MAX_DATAGRAM, Open, PART, Part, Repair, Report,
};
use super::parts::{Key, Parts};
use super::schedule::{Item, Schedule};
use super::window::{Arrival, Window};
use crate::Destination;

/// The most bytes of frames that may wait to be sent, before repairs and messages of the channel
/// itself are omitted.
const QUEUE: usize = 1 << 20;
/// The most flows that each end may have opened. Datagrams of further flows carry their address.
const MOST_FLOWS: usize = 16_384;
/// The time between two reports.
const REPORT: Duration = Duration::from_millis(100);

/// The counters of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct DatagramCounters {
    /// Datagrams taken from programs or destinations.
    pub sent: u64,
    /// Bytes of those datagrams.
    pub sent_bytes: u64,
    /// Datagrams given to programs or destinations.
    pub received: u64,
    /// Bytes of those datagrams.
    pub received_bytes: u64,
    /// Frames sent; a datagram too long for one frame is sent in several.
    pub frames_sent: u64,
    /// Bytes of those frames, without the headers of UDP and IP.
    pub frame_bytes_sent: u64,
    /// Datagrams dropped because the send queue was full, they were too long, or their association
    /// was closed while they waited. They are not counted in `sent`.
    pub dropped_full: u64,
    /// Frames dropped because they arrived twice.
    pub duplicates: u64,
    /// Frames dropped because they arrived too late.
    pub too_late: u64,
    /// Frames dropped because their flow was unknown; the other end then sends its address again.
    pub unknown_flows: u64,
    /// Frames that could not be parsed.
    pub malformed: u64,
    /// Frames lost on the carrier.
    pub lost: u64,
    /// Lost frames that were recovered from repair frames. `lost` also counts repair frames, which
    /// are never recovered.
    pub recovered: u64,
    /// Datagrams dropped because one of their parts was lost.
    pub incomplete: u64,
    /// Repair frames sent; included in `frames_sent`.
    pub repairs_sent: u64,
    /// Bytes of those repair frames.
    pub repair_bytes_sent: u64,
}

/// A datagram that arrived over the channel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// The association's number, which the near gateway assigned.
    pub association: u32,
    /// The destination at the far gateway, the source at the near gateway. Port 0 means ICMP echo.
    pub remote: Destination,
    /// Its data, at most 65,507 bytes.
    pub data: Vec<u8>,
    /// Whether this is not a datagram but a refusal: `remote` refused one (Port Unreachable).
    pub is_refusal: bool,
}

/// One end of the datagrams between two gateways, as a state machine. The two ends work alike,
/// except that a datagram's address is its destination at the far gateway and its source at the
/// near gateway.
///
/// After each call, the caller drains [`poll_datagram`](Self::poll_datagram) and
/// [`poll_transmit`](Self::poll_transmit).
#[derive(Debug)]
pub struct Channel {
    /// The most bytes of a data frame.
    max_frame: usize,
    instance: u32,
    /// The last known instance of the other end.
    peer: Option<u32>,
    /// The last sequence number used.
    seq: u32,
    next_flow: u32,
    /// The flows that this end has opened.
    mine: HashMap<u32, Mine>,
    /// The flows that the other end has opened: their association and address.
    yours: HashMap<u32, (u32, Destination)>,
    associations: HashMap<u32, Association>,
    /// The addresses of the associations' programs.
    sources: HashMap<u32, IpAddr>,
    /// Datagrams that wait to be sent, and then the frames of at most one of them.
    schedule: Schedule,
    outbox: VecDeque<Vec<u8>>,
    queued: usize,
    window: Window,
    parts: Parts,
    encoder: Encoder,
    decoder: Decoder,
    report_at: Option<Instant>,
    highest_at: Instant,
    inbox: VecDeque<Datagram>,
    counters: DatagramCounters,
}

/// A flow that this end has opened.
#[derive(Debug)]
struct Mine {
    association: u32,
    remote: Destination,
    /// Whether the other end has confirmed the flow.
    known: bool,
}

/// The flows of an association, by address.
#[derive(Debug, Default)]
struct Association {
    mine: HashMap<Destination, u32>,
    yours: HashMap<Destination, u32>,
}

/// The bytes that a frame occupies in the queue.
const fn cost(frame: &Vec<u8>) -> usize {
    frame.capacity() + OVERHEAD
}

impl Channel {
    /// Creates a channel with frames of up to `max_frame` bytes, and repair frames of up to
    /// `redundancy` percent of the bytes sent. `instance` is random, and different for each start
    /// of the gateway.
    pub fn new(max_frame: usize, redundancy: u8, instance: u32) -> Self {
        Self {
            // 600 bytes suffice for the longest name, and for the longest datagram in 255 parts.
            max_frame: fec::room(max_frame.max(600)),
            instance,
            peer: None,
            seq: 0,
            next_flow: 0,
            mine: HashMap::new(),
            yours: HashMap::new(),
            associations: HashMap::new(),
            sources: HashMap::new(),
            schedule: Schedule::default(),
            outbox: VecDeque::new(),
            queued: 0,
            window: Window::default(),
            parts: Parts::default(),
            encoder: Encoder::new(redundancy),
            decoder: Decoder::default(),
            report_at: None,
            highest_at: Instant::ZERO,
            inbox: VecDeque::new(),
            counters: DatagramCounters::default(),
        }
    }

    /// Limits the memory for repairs to the permits of `room` (bytes), which several channels
    /// share.
    pub(crate) fn share(mut self, room: Arc<Semaphore>) -> Self {
        self.decoder = Decoder::new(room);
        self
    }

    /// Whether `instance` differs from the last known instance of the other end.
    pub(crate) fn is_restarted(&self, instance: u32) -> bool {
        self.peer.is_some_and(|known| known != instance)
    }

    /// The current counters.
    pub fn counters(&self) -> DatagramCounters {
        DatagramCounters {
            lost: self.counters.lost + self.window.lost(),
            incomplete: self.counters.incomplete + self.parts.abandoned(),
            ..self.counters
        }
    }

    /// Sets the address of an association's program. If the queue is full, datagrams of the source
    /// with the most waiting bytes are dropped.
    pub fn set_source(&mut self, association: u32, source: IpAddr) {
        self.sources.insert(association, source);
    }

    /// Sends a datagram of an association, to `remote` (near gateway) or from `remote` (far
    /// gateway). Drops it if it is longer than 65,507 bytes. If the queue is full, it or others are
    /// dropped: those of the association with the most waiting bytes.
    pub fn send(&mut self, now: Instant, association: u32, remote: &Destination, data: &[u8]) {
        if data.len() > MAX_DATAGRAM {
            self.counters.dropped_full += 1;
        } else if self.is_idle() {
            self.emit(now, association, remote, data);
        } else {
            self.wait(association, Item::Datagram { remote: remote.clone(), data: data.to_vec() });
        }
    }

    /// Sends a refusal: `remote` has refused a datagram of an association (Port Unreachable).
    pub fn refuse(&mut self, now: Instant, association: u32, remote: &Destination) {
        if self.is_idle() {
            self.emit_refusal(now, association, remote);
        } else {
            self.wait(association, Item::Refusal { remote: remote.clone() });
        }
    }

    /// Whether nothing waits, so that a datagram need not wait, either.
    fn is_idle(&self) -> bool {
        self.outbox.is_empty() && self.schedule.is_empty()
    }

    fn wait(&mut self, association: u32, item: Item) {
        let source = self.sources.get(&association).copied();
        self.counters.dropped_full += self.schedule.push(association, source, item);
        self.close_ended();
    }

    /// Closes the associations that were waiting for their last datagram.
    fn close_ended(&mut self) {
        while let Some(association) = self.schedule.poll_ended() {
            self.close(association, true);
        }
    }

    /// Sends a datagram now.
    fn emit(&mut self, now: Instant, association: u32, remote: &Destination, data: &[u8]) {
        let flow = self.flow(association, remote);
        self.counters.sent += 1;
        self.counters.sent_bytes += data.len() as u64;
        let open = match &flow {
            Flow::Open(_, open) => Open::len(&open.remote),
            Flow::Mine(_) | Flow::Yours(_) => 0,
        };
        let room = self.max_frame - HEADER - open;
        if data.len() <= room {
            return self.emit_data(now, flow, None, false, data);
        }
        let count = data.len().div_ceil(room - PART);
        let parts = data.chunks(data.len().div_ceil(count));
        // Rounding may yield fewer parts. `MAX_DATAGRAM` limits `data`, so there are at most 255.
        let count = u8::try_from(parts.len()).unwrap_or(u8::MAX);
        // Repairs between the parts would take sequence numbers.
        let repairs = self.encoder.keep_together(now, count);
        self.emit_repairs(now, repairs);
        for (index, data) in (0..count).zip(parts) {
            self.emit_data(now, flow.clone(), Some(Part { index, count }), false, data);
        }
    }

    fn emit_refusal(&mut self, now: Instant, association: u32, remote: &Destination) {
        let flow = self.flow(association, remote);
        self.emit_data(now, flow, None, true, &[]);
    }

    /// Returns the flow of a datagram, and opens it if necessary.
    fn flow(&mut self, association: u32, remote: &Destination) -> Flow {
        let open = || Open { instance: self.instance, association, remote: remote.clone() };
        let flows = self.associations.entry(association).or_default();
        if let Some(&flow) = flows.yours.get(remote) {
            return Flow::Yours(flow);
        }
        if let Some(&flow) = flows.mine.get(remote) {
            let known = self.mine.get(&flow).is_some_and(|mine| mine.known);
            return if known { Flow::Mine(flow) } else { Flow::Open(flow, open()) };
        }
        if self.mine.len() >= MOST_FLOWS {
            return Flow::Open(0, open());
        }
        let flow = loop {
            self.next_flow = (self.next_flow + 1) % FLOWS;
            if self.next_flow != 0 && !self.mine.contains_key(&self.next_flow) {
                break self.next_flow;
            }
        };
        flows.mine.insert(remote.clone(), flow);
        let remote = remote.clone();
        let open = open();
        self.mine.insert(flow, Mine { association, remote, known: false });
        Flow::Open(flow, open)
    }

    fn emit_data(
        &mut self,
        now: Instant,
        flow: Flow,
        part: Option<Part>,
        is_refusal: bool,
        data: &[u8],
    ) {
        self.seq = self.seq.wrapping_add(1);
        let data = Data { flow, seq: self.seq, part, is_refusal, data };
        let bytes = Frame::Data(data).to_bytes();
        let repairs = self.encoder.on_sent(now, self.seq, &bytes);
        self.push(bytes);
        self.emit_repairs(now, repairs);
    }

    /// Sends the repairs of a group, directly after its last frame: their sequence numbers imply
    /// the group's.
    fn emit_repairs(&mut self, now: Instant, repairs: Option<Repairs>) {
        let Some(Repairs { count, shards }) = repairs else { return };
        if self.queued > QUEUE {
            return;
        }
        // The encoder produces at most 255 shards.
        let repairs = u8::try_from(shards.len()).unwrap_or(u8::MAX);
        for (index, shard) in (0..repairs).zip(&shards) {
            self.seq = self.seq.wrapping_add(1);
            let repair = Repair { seq: self.seq, count, repairs, index, shard };
            let bytes = Frame::Repair(repair).to_bytes();
            self.counters.repairs_sent += 1;
            self.counters.repair_bytes_sent += bytes.len() as u64;
            self.encoder.stamp(now, self.seq);
            self.push(bytes);
        }
    }

    fn push(&mut self, bytes: Vec<u8>) {
        self.queued += cost(&bytes);
        self.counters.frames_sent += 1;
        self.counters.frame_bytes_sent += bytes.len() as u64;
        self.outbox.push_back(bytes);
    }

    /// Closes an association. With `notify`, the queued datagrams are sent and then the peer closes it
    /// as well; without, the queued datagrams are dropped.
    pub fn close(&mut self, association: u32, notify: bool) {
        if notify && self.schedule.close(association) {
            return;
        }
        self.counters.dropped_full += self.schedule.remove(association);
        self.sources.remove(&association);
        if let Some(flows) = self.associations.remove(&association) {
            flows.mine.values().for_each(|flow| drop(self.mine.remove(flow)));
            flows.yours.values().for_each(|flow| drop(self.yours.remove(flow)));
        }
        if notify && self.queued < QUEUE {
            let close = Close { instance: self.instance, association };
            self.push(Frame::Close(close).to_bytes());
        }
    }

    /// Handles a frame that has arrived; returns the association that it closes.
    pub fn handle_frame(&mut self, now: Instant, bytes: &[u8]) -> Option<u32> {
        match Frame::parse(bytes) {
            Ok(Frame::Data(data)) => self.on_data(now, &data, bytes),
            Ok(Frame::Repair(repair)) => {
                if self.arrive(now, repair.seq) {
                    let recovered = self.decoder.on_repair(&repair);
                    self.on_recovered(now, recovered);
                }
            }
            Ok(Frame::Report(report)) => self.encoder.on_report(now, report),
            Ok(Frame::Answer(answer)) => self.on_answer(answer),
            Ok(Frame::Close(close)) if self.peer == Some(close.instance) => {
                self.close(close.association, false);
                return Some(close.association);
            }
            Ok(Frame::Close(_)) => {}
            Err(error) => {
                debug!(%error, "frame dropped");
                self.counters.malformed += 1;
            }
        }
        None
    }

    fn on_data(&mut self, now: Instant, data: &Data<'_>, bytes: &[u8]) {
        if let Flow::Open(_, open) = &data.flow {
            self.meet(open.instance);
        }
        if !self.arrive(now, data.seq) {
            return;
        }
        if self.decoder.has_recovered(data.seq) {
            self.counters.duplicates += 1;
            return;
        }
        let recovered = self.decoder.on_frame(data.seq, bytes);
        self.accept(now, data);
        self.on_recovered(now, recovered);
    }

    /// Records the arrival of a sequence number; returns whether it is new.
    fn arrive(&mut self, now: Instant, seq: u32) -> bool {
        let arrival = self.window.on_arrival(seq);
        match arrival {
            Arrival::Fresh => {
                if self.window.highest() == seq {
                    self.highest_at = now;
                }
                self.report_at.get_or_insert(now + REPORT);
            }
            Arrival::Duplicate => self.counters.duplicates += 1,
            Arrival::TooLate => self.counters.too_late += 1,
        }
        arrival == Arrival::Fresh
    }

    fn on_recovered(&mut self, now: Instant, recovered: Vec<Vec<u8>>) {
        for bytes in recovered {
            // Only data frames have shards. A frame that arrived before the decoder kept frames was
            // not lost.
            if let Ok(Frame::Data(data)) = Frame::parse(&bytes)
                && !self.window.has_arrived(data.seq)
            {
                self.counters.recovered += 1;
                self.accept(now, &data);
            }
        }
    }

    fn accept(&mut self, now: Instant, data: &Data<'_>) {
        let Some((association, remote)) = self.resolve(&data.flow) else {
            self.counters.unknown_flows += 1;
            return;
        };
        let whole = match data.part {
            None => Some(data.data.to_vec()),
            Some(part) => {
                let first = data.seq.wrapping_sub(part.index.into());
                self.parts.on_part(now, Key { first, association }, part, data.data)
            }
        };
        let is_refusal = data.is_refusal;
        if let Some(data) = whole {
            self.counters.received += u64::from(!is_refusal);
            self.counters.received_bytes += data.len() as u64;
            self.inbox.push_back(Datagram { association, remote, data, is_refusal });
        }
    }

    /// Returns the association and the address of a frame.
    fn resolve(&mut self, flow: &Flow) -> Option<(u32, Destination)> {
        match flow {
            Flow::Open(flow, open) => {
                if *flow != 0 && self.remember(*flow, open) {
                    self.answer(true, *flow);
                }
                Some((open.association, open.remote.clone()))
            }
            Flow::Mine(flow) => {
                let known = self.yours.get(flow).cloned();
                if known.is_none() {
                    self.answer(false, *flow);
                }
                known
            }
            Flow::Yours(flow) => {
                self.mine.get(flow).map(|mine| (mine.association, mine.remote.clone()))
            }
        }
    }

    /// Stores a flow of the other end; returns whether there was room.
    fn remember(&mut self, flow: u32, open: &Open) -> bool {
        let known = self.yours.get(&flow);
        if known.is_some_and(|(association, remote)| {
            *association == open.association && *remote == open.remote
        }) {
            return true;
        }
        if known.is_none() && self.yours.len() >= MOST_FLOWS {
            return false;
        }
        let value = (open.association, open.remote.clone());
        if let Some((association, remote)) = self.yours.insert(flow, value)
            && let Some(flows) = self.associations.get_mut(&association)
        {
            flows.yours.remove(&remote);
            if flows.yours.is_empty() && flows.mine.is_empty() {
                self.associations.remove(&association);
            }
        }
        let flows = self.associations.entry(open.association).or_default();
        if let Some(old) = flows.yours.insert(open.remote.clone(), flow) {
            self.yours.remove(&old);
        }
        true
    }

    fn answer(&mut self, known: bool, flow: u32) {
        if self.queued < QUEUE {
            let echo = self.peer.unwrap_or(0);
            let answer = Answer { known, flow, instance: self.instance, echo };
            self.push(Frame::Answer(answer).to_bytes());
        }
    }

    fn on_answer(&mut self, answer: Answer) {
        if answer.echo != self.instance && (answer.known || answer.echo != 0) {
            debug!(flow = answer.flow, "an answer to an earlier life of this gateway");
            return;
        }
        self.meet(answer.instance);
        if let Some(mine) = self.mine.get_mut(&answer.flow) {
            mine.known = answer.known;
        }
    }

    /// Records the instance of the other end. If it replaces another one, discards all state that
    /// came from the earlier instance.
    fn meet(&mut self, instance: u32) {
        if self.peer.replace(instance).is_none_or(|before| before == instance) {
            return;
        }
        debug!("the other gateway was restarted");
        let DatagramCounters { lost, incomplete, .. } = self.counters();
        (self.counters.lost, self.counters.incomplete) = (lost, incomplete);
        self.window = Window::default();
        self.parts = Parts::default();
        self.decoder.clear();
        self.report_at = None;
        self.yours.clear();
        self.associations.retain(|_, flows| {
            flows.yours.clear();
            !flows.mine.is_empty()
        });
        self.mine.values_mut().for_each(|mine| mine.known = false);
    }

    /// Returns the next datagram that arrived.
    pub fn poll_datagram(&mut self) -> Option<Datagram> {
        self.inbox.pop_front()
    }

    /// Returns the next frame to send.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Vec<u8>> {
        while self.outbox.is_empty() {
            let (association, item) = self.schedule.pop()?;
            match item {
                Item::Datagram { remote, data } => self.emit(now, association, &remote, &data),
                Item::Refusal { remote } => self.emit_refusal(now, association, &remote),
            }
            self.close_ended();
        }
        let frame = self.outbox.pop_front()?;
        self.queued -= cost(&frame);
        Some(frame)
    }

    /// Puts back a frame that could not be sent yet.
    pub(crate) fn untransmit(&mut self, frame: Vec<u8>) {
        self.queued += cost(&frame);
        self.outbox.push_front(frame);
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        let times = [self.report_at, self.encoder.due()];
        times.into_iter().flatten().min()
    }

    /// Sends a report, and closes the encoder's group, if they are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.report_at.take_if(|at| *at <= now).is_some() && self.queued < QUEUE {
            let hold = u32::try_from(now.since(self.highest_at).as_millis()).unwrap_or(u32::MAX);
            let report = Report {
                highest: self.window.highest(),
                hold,
                lost: self.window.lost() as u32,
                runs: self.window.runs() as u32,
            };
            self.push(Frame::Report(report).to_bytes());
        }
        if self.encoder.due().is_some_and(|due| due <= now) {
            let repairs = self.encoder.close(now);
            self.emit_repairs(now, repairs);
        }
    }
}

impl AddAssign for DatagramCounters {
    fn add_assign(&mut self, other: Self) {
        self.sent += other.sent;
        self.sent_bytes += other.sent_bytes;
        self.received += other.received;
        self.received_bytes += other.received_bytes;
        self.frames_sent += other.frames_sent;
        self.frame_bytes_sent += other.frame_bytes_sent;
        self.dropped_full += other.dropped_full;
        self.duplicates += other.duplicates;
        self.too_late += other.too_late;
        self.unknown_flows += other.unknown_flows;
        self.malformed += other.malformed;
        self.lost += other.lost;
        self.recovered += other.recovered;
        self.incomplete += other.incomplete;
        self.repairs_sent += other.repairs_sent;
        self.repair_bytes_sent += other.repair_bytes_sent;
    }
}

#[cfg(test)]
mod tests;
