//! Properties of every combination of strategies, on a [`Net`]. Each function panics if its
//! property is violated.
//!
//! ```
//! use airtcp_recovery::{Combination, Profile, testkit::laws};
//!
//! let combination: Combination = "rack/cubic".parse()?;
//! laws::fills_the_window(&combination, &Profile::modern());
//! laws::repairs_one_loss(&combination, &Profile::modern());
//! (0..5).for_each(|seed| laws::delivers_everything(&combination, &Profile::modern(), seed));
//! # Ok::<(), airtcp_recovery::CombinationError>(())
//! ```

use std::time::Duration;

use airtcp_types::{ByteCount, SendRule, rng::Stream};

use super::{Net, SMSS, sender_of};
use crate::{Combination, Profile};

/// Without losses, the bytes in flight reach min(cwnd, the peer's window) to within a segment and
/// never exceed it, and nothing is retransmitted.
pub fn fills_the_window(combination: &Combination, profile: &Profile) {
    for rwnd in [20, 64] {
        let mut net = Net::new(sender_of(combination.clone(), profile.clone()), 3_000, rwnd);
        net.run();
        // The net itself asserts that no more was in flight at any time.
        let limit = net.most_allowed;
        assert!(
            net.most_in_flight <= limit && net.most_in_flight + ByteCount(SMSS) > limit,
            "{combination} {profile}: {} of {limit}",
            net.most_in_flight
        );
        assert!(limit <= ByteCount(rwnd * SMSS), "{combination} {profile}: {limit}");
        let stats = net.sender.stats();
        assert_eq!(
            (stats.segments_sent, stats.segments_retransmitted),
            (3_000, 0),
            "{combination} {profile}"
        );
        assert_eq!((stats.reductions, stats.timeouts), (0, 0), "{combination} {profile}");
    }
}

/// One loss is retransmitted once, without a time-out, and reduces the window once. Combinations
/// with judges may differ.
pub fn repairs_one_loss(combination: &Combination, profile: &Profile) {
    let mut net = Net::new(sender_of(combination.clone(), profile.clone()), 1_000, 64);
    net.losses.insert((200, 0));
    net.run();
    let stats = net.sender.stats();
    // If only the peer's window stops new data, rule 4 of RFC 6675 retransmits the last segment.
    let rescues = net.sent.iter().filter(|(_, t)| t.rule == SendRule::Rescue).count() as u64;
    assert!(rescues <= 1, "{combination} {profile}");
    assert_eq!(
        (stats.segments_retransmitted - rescues, stats.reductions, stats.timeouts, stats.undos),
        (1, 1, 0, 0),
        "{combination} {profile}"
    );
}

/// All data arrives, whatever is lost and delayed. The seed selects the losses, the delays, and
/// whether the receiver supports SACK.
pub fn delivers_everything(combination: &Combination, profile: &Profile, seed: u64) {
    let mut stream = Stream::new(7, seed);
    let mut net = Net::new(sender_of(combination.clone(), profile.clone()), 300, 40);
    net.options = stream.chance(0.8);
    for segment in 0..300 {
        for sending in 0..3 {
            if stream.chance(0.1) {
                net.losses.insert((segment, sending));
            }
        }
        if stream.chance(0.1) {
            net.delays.insert(segment, Duration::from_millis(stream.below(90)));
        }
    }
    net.run();
    assert!(net.sender.board().is_empty(), "{combination} {profile}, seed {seed}");
}
