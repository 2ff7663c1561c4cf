//! An hour of virtual time in which connections open, move data, stay idle, are aborted, and vanish
//! with their host. Afterwards nothing may be left of them.
//!
//! There is only one test, so that the allocator counts only its memory.

mod allocator;
mod side;

use std::time::Duration;

use airtcp_link::{Link, LinkSpec};
use airtcp_types::rng::Stream;
use airtcp_types::{Instant, Node, PortId};

use side::{Side, Tally};

const PATH: &str = "rate 2mbit delay 15ms 3ms loss 1% duplicate 1% delayed 2% 10ms 2ms limit 30 down 8s 4s every 90s";
/// Six spells are an hour.
const SPELL: Duration = Duration::from_secs(600);
const SPELLS: u32 = 6;
const STEP: Duration = Duration::from_millis(50);
/// How long closed connections may take to disappear: a connection to a vanished peer is given up
/// after a minute and a half, and TIME-WAIT lasts one minute.
const ENDS_WITHIN: Duration = Duration::from_secs(600);

struct World {
    now: Instant,
    sides: [Side; 2],
    link: Link,
}

impl World {
    fn new(seed: u64) -> Self {
        let spec = |cause| -> LinkSpec { format!("{PATH} seed {}", seed + cause).parse().unwrap() };
        let link = Link::new(&spec(1), &spec(2)).unwrap();
        let sides = [0, 1].map(|which| Side::new(which, seed));
        Self { now: Instant::ZERO, sides, link }
    }

    /// Carries packets and runs timers until `end`.
    fn run_until(&mut self, end: Instant) {
        loop {
            self.exchange();
            let of_hosts = self.sides.iter().filter_map(|side| side.host.poll_timeout());
            let next = of_hosts.chain(self.link.poll_timeout()).min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            self.link.handle_timeout(self.now);
            for side in &mut self.sides {
                if side.host.poll_timeout().is_some_and(|at| at <= self.now) {
                    side.host.handle_timeout(self.now);
                }
            }
        }
        self.now = self.now.max(end);
    }

    fn exchange(&mut self) {
        let mut moved = true;
        while std::mem::take(&mut moved) {
            for (side, port) in self.sides.iter_mut().zip([PortId(0), PortId(1)]) {
                while let Some((_, packet)) = side.host.poll_transmit(self.now) {
                    self.link.handle_packet(self.now, port, packet);
                    moved = true;
                }
            }
            while let Some((port, packet)) = self.link.poll_transmit(self.now) {
                self.sides[usize::from(port.0)].host.handle_packet(self.now, PortId(0), packet);
                moved = true;
            }
        }
    }

    /// Runs the applications for a spell, closes everything, and checks that nothing is left.
    fn spell(&mut self, draws: &mut Stream) {
        let end = self.now + SPELL;
        while self.now < end {
            self.run_until(self.now + STEP);
            for side in &mut self.sides {
                side.act(self.now, draws);
            }
        }
        for side in &mut self.sides {
            side.let_go(self.now);
        }
        let end = self.now + ENDS_WITHIN;
        while self.now < end
            && self.sides.iter().any(|side| side.host.tcp_connections().count() > 0)
        {
            self.run_until(self.now + Duration::from_secs(1));
            // Close connections whose handshakes were in progress.
            self.sides.iter_mut().for_each(|side| side.let_go(self.now));
        }
        // Let packets in flight arrive.
        self.run_until(self.now + Duration::from_secs(1));
        for side in &mut self.sides {
            let left: Vec<_> = side.host.tcp_connections().collect();
            assert!(left.is_empty(), "{left:?}");
            assert_eq!(side.host.held().0, 0);
            while side.host.poll_ready().is_some() {}
            assert_eq!(side.host.poll_timeout(), None, "nothing is waited for");
        }
    }
}

#[test]
fn nothing_is_left_of_connections_that_come_and_go_for_an_hour() {
    let seed = std::env::var("AIRTCP_SEED").map_or(1, |seed| seed.parse().expect("a number"));
    println!("AIRTCP_SEED={seed}");
    let mut world = World::new(seed);
    let mut draws = Stream::new(seed, 3);
    let mut live = Vec::new();
    for _ in 0..SPELLS {
        world.spell(&mut draws);
        live.push(allocator::live());
    }
    let mut tally = Tally::default();
    for side in &world.sides {
        tally += side.tally;
    }
    println!("{tally:?}, bytes in use after each spell: {live:?}");
    assert!(tally.opened > 2000 && tally.vanished > 0 && tally.aborted > 0, "{tally:?}");
    // A table may have grown meanwhile. A leak of 64 bytes per connection would exceed this.
    allocator::assert_no_trend(&live, 128 << 10);
}
