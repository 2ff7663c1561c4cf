//! Links by name, so that results on them can be compared.
//!
//! Port 0 is the side of the network, port 1 that of the user: the forward direction is down. Where a source
//! gives a number it is taken as it is; the source says which numbers are round figures of our own. Queues
//! are round figures throughout: about what the rate carries in a round trip, and at least 20 packets.

use crate::spec::LinkSpec;

/// A link with a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NamedLink {
    /// The name.
    pub name: &'static str,
    /// What is done to packets to the user, as a description.
    pub down: &'static str,
    /// What is done to packets from the user, as a description.
    pub up: &'static str,
    /// Where the numbers are from.
    pub source: &'static str,
}

/// All of them.
pub const LINKS: &[NamedLink] = &[
    NamedLink {
        name: "edge",
        down: "rate 240kbit delay 400ms limit 20",
        up: "rate 200kbit delay 440ms limit 20",
        source: "Apple's Network Link Conditioner, profile Edge, as commonly listed",
    },
    NamedLink {
        name: "3g",
        down: "rate 780kbit delay 100ms limit 20",
        up: "rate 330kbit delay 100ms limit 20",
        source: "Apple's Network Link Conditioner, profile 3G, as commonly listed",
    },
    NamedLink {
        name: "slow-4g",
        down: "rate 1600kbit delay 75ms limit 20",
        up: "rate 750kbit delay 75ms limit 20",
        source: "Lighthouse's Slow 4G: 1.6 Mbit/s, 750 kbit/s, 150 ms round trip; its half each way is ours",
    },
    NamedLink {
        name: "lte",
        down: "rate 50mbit delay 50ms limit 480",
        up: "rate 10mbit delay 65ms limit 100",
        source: "Apple's Network Link Conditioner, profile LTE, as commonly listed",
    },
    NamedLink {
        name: "weak-4g",
        down: "rate 2mbit delay 60ms 15ms distribution normal inorder loss gemodel 1% 20% 30% 0.1% limit 30",
        up: "rate 500kbit delay 60ms 15ms distribution normal inorder loss gemodel 1% 20% 30% 0.1% limit 20",
        source: "round figures: a phone at the edge of its cell, bad spells of 5 packets on average",
    },
    NamedLink {
        name: "congested-wifi",
        down: "rate 20mbit half 150us delay 5ms 4ms distribution pareto inorder loss gemodel 2% 25% 25% 0.2% limit 100",
        up: "rate 20mbit half 150us delay 5ms 4ms distribution pareto inorder loss gemodel 2% 25% 25% 0.2% limit 100",
        source: "round figures: half duplex, a frame's spacing, preamble and acknowledgement in 150 us",
    },
    NamedLink {
        name: "geo-satellite",
        down: "rate 20mbit delay 279ms biterror 1e-7 limit 930",
        up: "rate 2mbit delay 279ms biterror 1e-7 limit 100",
        source: "RFC 2488 section 2: 279.0 ms at the edge of the view area, a bit error rate of 1e-7; the \
                 rates are round figures",
    },
    NamedLink {
        name: "very-bad",
        down: "rate 1mbit delay 500ms loss 10% limit 85",
        up: "rate 1mbit delay 500ms loss 10% limit 85",
        source: "Apple's Network Link Conditioner, profile Very Bad Network, as commonly listed",
    },
];

impl NamedLink {
    /// The link of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        LINKS.iter().find(|link| link.name == name)
    }

    /// Its two directions, down and up.
    ///
    /// ```
    /// use airtcp_link::named::NamedLink;
    ///
    /// let (down, up) = NamedLink::find("geo-satellite").unwrap().specs();
    /// assert_eq!((down.delay.base.as_millis(), up.delay.base.as_millis()), (279, 279));
    /// ```
    ///
    /// # Panics
    ///
    /// If a description in the table is wrong, which a test makes sure of.
    pub fn specs(&self) -> (LinkSpec, LinkSpec) {
        let read = |text: &str| text.parse().expect("descriptions in the table are right");
        (read(self.down), read(self.up))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Link;

    #[test]
    fn every_link_can_be_made_and_has_its_name_once() {
        for (index, link) in LINKS.iter().enumerate() {
            let (down, up) = link.specs();
            assert!(Link::new(&down, &up).is_ok() && !link.source.is_empty());
            assert!(LINKS[..index].iter().all(|other| other.name != link.name));
        }
    }
}
