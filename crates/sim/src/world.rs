//! The event loop: nodes, wires and virtual time.

use airtcp_types::{Crossing, Instant, Node, NodeId, Observer, PortId};

use crate::agenda::Agenda;
use crate::{Cancel, SimError};

/// The maximum number of calls at one instant before the run counts as stuck.
const MAX_AT_ONCE: u64 = 20_000_000;

/// Nodes, the wires between their ports, and virtual time.
///
/// A wire delivers at once; delay is in links. Time advances from deadline to deadline; of several
/// nodes due at the same time, the one added first runs first. Only nodes with something to do are
/// called, so the cost of an event does not depend on the number of idle nodes.
///
/// ```
/// use airtcp_link::Link;
/// use airtcp_sim::World;
/// use airtcp_types::{Instant, Node, Packet, PortId};
///
/// // Two links in a row: 5 ms and 7 ms.
/// let mut world: World<Link> = World::new();
/// let links = ["delay 5ms", "delay 7ms"].map(|text| {
///     let spec = text.parse().unwrap();
///     world.add(Link::new(&spec, &spec).unwrap())
/// });
/// world.connect((links[0], PortId(1)), (links[1], PortId(0)));
/// world.deliver(links[0], PortId(0), Packet::new(vec![0x45; 100]), &mut ());
/// world.run_until(Instant::from_millis(11), &mut ())?;
/// assert_eq!(world.unwired(), 0);
/// world.run_until(Instant::from_millis(12), &mut ())?;
/// assert_eq!(world.unwired(), 1, "it came out at the end, where nobody is");
/// # Ok::<(), airtcp_sim::Stuck>(())
/// ```
#[derive(Debug)]
pub struct World<N> {
    now: Instant,
    places: Vec<Place<N>>,
    agenda: Agenda,
    /// The stack of nodes that are polled for packets; each was called with a packet from the one
    /// before it.
    asked: Vec<u32>,
    touches: u64,
    /// The value of `touches` when time last advanced.
    touched_before: u64,
    unwired: u64,
    cancel: Option<Cancel>,
}

#[derive(Debug)]
struct Place<N> {
    node: N,
    /// The node and port at the other end of each port's wire.
    wires: Vec<Option<(u32, PortId)>>,
}

/// The error if nodes keep sending at one instant, so that time does not advance.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the simulated time does not advance at {0:?}: give the links a rate or a delay")]
pub struct Stuck(pub Instant);

impl<N: Node> World<N> {
    /// Creates an empty world at [`Instant::ZERO`].
    pub const fn new() -> Self {
        Self {
            now: Instant::ZERO,
            places: Vec::new(),
            agenda: Agenda::new(),
            asked: Vec::new(),
            touches: 0,
            touched_before: 0,
            unwired: 0,
            cancel: None,
        }
    }

    /// Sets a flag that ends [`run_until`](Self::run_until) before its time.
    pub(crate) fn set_cancel(&mut self, cancel: Cancel) {
        self.cancel = Some(cancel);
    }

    /// Returns an error if the flag is set.
    pub(crate) fn check_cancelled(&self) -> Result<(), SimError> {
        self.cancel.as_ref().map_or(Ok(()), Cancel::check)
    }

    fn is_cancelled(&self) -> bool {
        self.cancel.as_ref().is_some_and(Cancel::is_cancelled)
    }

    /// Adds a node.
    ///
    /// # Panics
    ///
    /// If there are more than 2^32 nodes.
    pub fn add(&mut self, node: N) -> NodeId {
        let id = u32::try_from(self.places.len()).expect("memory ends long before 2^32 nodes");
        self.agenda.set(id, node.poll_timeout());
        self.places.push(Place { node, wires: Vec::new() });
        NodeId(id)
    }

    /// Connects two ports, replacing their earlier wires. A node that does not exist has no ports.
    pub fn connect(&mut self, one: (NodeId, PortId), other: (NodeId, PortId)) {
        for ((from, port), (to, far)) in [(one, other), (other, one)] {
            let Some(place) = self.places.get_mut(from.0 as usize) else { return };
            let port = usize::from(port.0);
            if place.wires.len() <= port {
                place.wires.resize(port + 1, None);
            }
            place.wires[port] = Some((to.0, far));
        }
    }

    /// Returns the virtual time.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Returns a node.
    pub fn node(&self, id: NodeId) -> Option<&N> {
        self.places.get(id.0 as usize).map(|place| &place.node)
    }

    /// Returns a node for changes. The effects of a change wait until the node is called next.
    pub fn node_mut(&mut self, id: NodeId) -> Option<&mut N> {
        self.places.get_mut(id.0 as usize).map(|place| &mut place.node)
    }

    /// Returns all nodes, in the order of their ids.
    pub fn nodes(&self) -> impl Iterator<Item = &N> {
        self.places.iter().map(|place| &place.node)
    }

    /// Returns the number of packets and timers that were processed.
    pub const fn touches(&self) -> u64 {
        self.touches
    }

    /// Returns the number of packets sent through ports without a wire.
    pub const fn unwired(&self) -> u64 {
        self.unwired
    }

    /// Delivers a packet to a node now, and processes the consequences.
    pub fn deliver(
        &mut self,
        id: NodeId,
        port: PortId,
        packet: airtcp_types::Packet,
        observer: &mut (impl Observer + ?Sized),
    ) {
        if let Some(place) = self.places.get_mut(id.0 as usize) {
            self.touches += 1;
            observer.on_packet(self.now, id, Crossing::In, &packet);
            place.node.handle_packet(self.now, port, packet);
            self.drain(id.0, observer);
        }
    }

    /// Calls a function on a node now, and processes the consequences; `None` if there is no such
    /// node.
    pub fn act<T>(
        &mut self,
        id: NodeId,
        observer: &mut (impl Observer + ?Sized),
        act: impl FnOnce(&mut N, Instant) -> T,
    ) -> Option<T> {
        let place = self.places.get_mut(id.0 as usize)?;
        self.touches += 1;
        let done = act(&mut place.node, self.now);
        self.drain(id.0, observer);
        Some(done)
    }

    /// Runs until `end`.
    ///
    /// # Errors
    ///
    /// [`Stuck`] if time does not advance.
    pub fn run_until(
        &mut self,
        end: Instant,
        observer: &mut (impl Observer + ?Sized),
    ) -> Result<(), Stuck> {
        while let Some((at, id)) = self.agenda.first().filter(|(at, _)| *at <= end) {
            if at > self.now {
                self.now = at;
                self.touched_before = self.touches;
            }
            if self.is_stuck() {
                return Err(Stuck(self.now));
            }
            if self.is_cancelled() {
                return Ok(());
            }
            self.touches += 1;
            self.places[id as usize].node.handle_timeout(self.now);
            self.drain(id, observer);
        }
        if self.is_stuck() {
            return Err(Stuck(self.now));
        }
        if end > self.now {
            self.now = end;
            self.touched_before = self.touches;
        }
        Ok(())
    }

    fn is_stuck(&self) -> bool {
        self.touches - self.touched_before > MAX_AT_ONCE
    }

    /// Delivers the packets that a node has to send, and those sent in response at the same time.
    ///
    /// A node that received a packet is polled before the next packet is delivered: packets that
    /// arrive at the same time are not batched.
    fn drain(&mut self, first: u32, observer: &mut (impl Observer + ?Sized)) {
        let now = self.now;
        self.asked.push(first);
        // Nodes that respond to each other forever would never get to the next deadline.
        while let Some(&id) = self.asked.last() {
            if self.is_stuck() || self.is_cancelled() {
                self.asked.clear();
                return;
            }
            let Place { node, wires } = &mut self.places[id as usize];
            let packet = node.poll_transmit(now);
            while let Some(event) = node.poll_event() {
                observer.on_event(NodeId(id), &event);
            }
            let Some((port, packet)) = packet else {
                self.agenda.set(id, node.poll_timeout());
                self.asked.pop();
                continue;
            };
            observer.on_packet(now, NodeId(id), Crossing::Out, &packet);
            let Some((to, far)) = wires.get(usize::from(port.0)).copied().flatten() else {
                self.unwired += 1;
                continue;
            };
            self.touches += 1;
            observer.on_packet(now, NodeId(to), Crossing::In, &packet);
            let Some(peer) = self.places.get_mut(to as usize) else { continue };
            peer.node.handle_packet(now, far, packet);
            self.asked.push(to);
        }
    }
}

impl<N: Node> Default for World<N> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use airtcp_types::{Event, Packet};

    use super::*;

    /// A node that stores received packets, and sends its own.
    #[derive(Default)]
    struct Mailbox(Vec<Packet>, Option<Packet>);

    impl Node for Mailbox {
        fn handle_packet(&mut self, _: Instant, _: PortId, packet: Packet) {
            self.0.push(packet);
        }

        fn handle_timeout(&mut self, _: Instant) {}

        fn poll_transmit(&mut self, _: Instant) -> Option<(PortId, Packet)> {
            self.1.take().map(|packet| (PortId(0), packet))
        }

        fn poll_timeout(&self) -> Option<Instant> {
            None
        }

        fn poll_event(&mut self) -> Option<Event> {
            None
        }
    }

    #[test]
    fn an_action_on_a_node_takes_effect_at_once_and_never_stops_time() {
        let mut world = World::new();
        let [one, other] = [(); 2].map(|()| world.add(Mailbox::default()));
        world.connect((one, PortId(0)), (other, PortId(0)));
        let packet = Packet::new(vec![0x45; 20]);
        world.act(one, &mut (), |node, _| node.1 = Some(packet.clone()));
        assert_eq!(world.node(other).map(|node| node.0.as_slice()), Some([packet].as_slice()));
        assert_eq!(world.act(NodeId(2), &mut (), |_, now| now), None);
        // No limit on such calls in total, as time advances between them.
        for millis in 1..=3 {
            world.touches += MAX_AT_ONCE / 2;
            let now = Instant::from_millis(millis);
            assert_eq!(world.run_until(now, &mut ()), Ok(()));
            assert_eq!(world.act(one, &mut (), |_, now| now), Some(now));
        }
    }

    /// A node that always has a packet to send.
    struct Spring;

    impl Node for Spring {
        fn handle_packet(&mut self, _: Instant, _: PortId, _: Packet) {}

        fn handle_timeout(&mut self, _: Instant) {}

        fn poll_transmit(&mut self, _: Instant) -> Option<(PortId, Packet)> {
            Some((PortId(0), Packet::default()))
        }

        fn poll_timeout(&self) -> Option<Instant> {
            None
        }

        fn poll_event(&mut self) -> Option<Event> {
            None
        }
    }

    #[test]
    fn time_that_stands_still_is_an_error() {
        let mut world = World::new();
        let [one, other] = [Spring, Spring].map(|spring| (world.add(spring), PortId(0)));
        world.connect(one, other);
        world.deliver(one.0, one.1, Packet::default(), &mut ());
        assert_eq!(world.run_until(Instant::MAX, &mut ()), Err(Stuck(Instant::ZERO)));
    }
}
