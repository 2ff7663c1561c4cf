//! Named links, for comparable results.
//!
//! Port 0 is the side of the network, port 1 that of the user: the forward direction is down. The
//! table gives the source of the numbers; numbers without a source are chosen, not measured. Queues
//! without a source hold about one bandwidth-delay product, and at least 20 packets.
//!
//! | Name | Source of the numbers |
//! | --- | --- |
//! | `edge`, `3g`, `lte` | the profiles Edge, 3G and LTE of Apple's Network Link Conditioner, as published on the web; Apple's own source is the tool |
//! | `slow-4g` | Lighthouse's default, `docs/throttling.md` in its repository: 1.6 Mbit/s down, 750 kbit/s up, a latency (round trip) of 150 ms, no loss; the equal delays of both directions are chosen |
//! | `geo-satellite` | RFC 2488 section 2: 279.0 ms over the satellite at the edge of the view area, a bit error rate of 1e-7; the rates are chosen |
//! | `weak-4g` | chosen, not measured: a phone at the edge of its cell, loss bursts of 5 packets on average |
//! | `congested-wifi` | chosen, not measured: half duplex, a frame's spacing, preamble and acknowledgement in 150 us |
//! | `policed` | Cisco, white paper on QoS of the Catalyst 6500 (2009), section 8: a policer of 10 Mbit/s has a burst of 250 ms, 312,500 bytes, by default; the line behind it is chosen |
//! | `aggregated-wifi` | the Wi-Fi example of netem's slots (Linux commit 836af83b54e3): 200 Mbit/s, 20 ms, a queue of 512 packets, bursts of 42 packets or 64 KiB; its slots last 0.8 to 10 ms, and their mean is the time here |
//! | `very-bad` | chosen, not measured: named after a profile of the Network Link Conditioner |

use crate::spec::{LinkSpec, PARTS, SpecError, names_of, nearest_of, of_tc};

/// A named link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NamedLink {
    /// The name of the link.
    pub name: &'static str,
    /// The description of the downlink.
    pub down: &'static str,
    /// The description of the uplink.
    pub up: &'static str,
    /// The source of the numbers.
    pub source: &'static str,
}

/// All named links.
pub const LINKS: &[NamedLink] = &[
    NamedLink {
        name: "edge",
        down: "rate 240kbit delay 400ms limit 20",
        up: "rate 200kbit delay 440ms limit 20",
        source: "profile Edge of Apple's Network Link Conditioner, as published on the web",
    },
    NamedLink {
        name: "3g",
        down: "rate 780kbit delay 100ms limit 20",
        up: "rate 330kbit delay 100ms limit 20",
        source: "profile 3G of Apple's Network Link Conditioner, as published on the web",
    },
    NamedLink {
        name: "slow-4g",
        down: "rate 1600kbit delay 75ms limit 20",
        up: "rate 750kbit delay 75ms limit 20",
        source: "Lighthouse, docs/throttling.md: 1.6 Mbit/s, 750 kbit/s, 150 ms round trip; the equal delays of \
                 both directions are chosen",
    },
    NamedLink {
        name: "lte",
        down: "rate 50mbit delay 50ms limit 480",
        up: "rate 10mbit delay 65ms limit 100",
        source: "profile LTE of Apple's Network Link Conditioner, as published on the web",
    },
    NamedLink {
        name: "weak-4g",
        down: "rate 2mbit delay 60ms 15ms distribution normal inorder loss gemodel 1% 20% 30% 0.1% limit 30",
        up: "rate 500kbit delay 60ms 15ms distribution normal inorder loss gemodel 1% 20% 30% 0.1% limit 20",
        source: "chosen, not measured: a phone at the edge of its cell, loss bursts of 5 packets on average",
    },
    NamedLink {
        name: "congested-wifi",
        down: "rate 20mbit half 150us delay 5ms 4ms distribution pareto inorder loss gemodel 2% 25% 25% 0.2% limit 100",
        up: "rate 20mbit half 150us delay 5ms 4ms distribution pareto inorder loss gemodel 2% 25% 25% 0.2% limit 100",
        source: "chosen, not measured: half duplex, a frame's spacing, preamble and acknowledgement in 150 us",
    },
    NamedLink {
        name: "geo-satellite",
        down: "rate 20mbit delay 279ms biterror 1e-7 limit 930",
        up: "rate 2mbit delay 279ms biterror 1e-7 limit 100",
        source: "RFC 2488 section 2: 279.0 ms at the edge of the view area, a bit error rate of 1e-7; the \
                 rates are chosen",
    },
    NamedLink {
        name: "policed",
        down: "police rate 10mbit burst 312500b rate 100mbit delay 20ms limit 333",
        up: "rate 100mbit delay 20ms limit 333",
        source: "a Cisco Catalyst 6500 gives a policer of 10 Mbit/s a burst of 250 ms, 312,500 \
                 bytes, by default (white paper on QoS, 2009, section 8); the line behind \
                 it is chosen",
    },
    NamedLink {
        name: "aggregated-wifi",
        down: "rate 200mbit delay 20ms aggregate 5400us packets 42 bytes 64kb limit 512",
        up: "rate 200mbit delay 20ms aggregate 5400us packets 42 bytes 64kb limit 512",
        source: "the Wi-Fi example of netem's slots (Linux commit 836af83b54e3): rate, delay, queue \
                 and burst; its slots last 0.8 to 10 ms, and their mean is the time here",
    },
    NamedLink {
        name: "very-bad",
        down: "rate 1mbit delay 500ms loss 10% limit 85",
        up: "rate 1mbit delay 500ms loss 10% limit 85",
        source: "chosen, not measured: named after a profile of Apple's Network Link Conditioner",
    },
];

/// Returns the link with this name.
pub fn find(name: &str) -> Option<&'static NamedLink> {
    LINKS.iter().find(|link| link.name == name)
}

/// Parses the description of both directions of a link, forth and back: the name of a link, or one
/// description for both directions. Words after a name are added to its description, in both
/// directions.
///
/// ```
/// let (down, up) = airtcp_link::parse_pair("slow-4g")?;
/// assert_eq!(down.rate, "rate 1600kbit".parse::<airtcp_link::LinkSpec>()?.rate);
/// assert_ne!(down, up);
/// let (forth, back) = airtcp_link::parse_pair("rate 10mbit delay 5ms")?;
/// assert_eq!(forth, back);
/// let (lossy, _) = airtcp_link::parse_pair("slow-4g loss 1%")?;
/// assert_eq!(lossy, format!("{down} loss 1%").parse::<airtcp_link::LinkSpec>()?);
/// # Ok::<(), airtcp_link::SpecError>(())
/// ```
///
/// # Errors
///
/// The first unknown word, as for a [`LinkSpec`].
pub fn parse_pair(text: &str) -> Result<(LinkSpec, LinkSpec), SpecError> {
    let first = text.split_whitespace().next().unwrap_or("");
    let start = text.len() - text.trim_start().len();
    if let Some(link) = find(first) {
        let rest = text[start + first.len()..].trim_start();
        let at = text.len() - rest.len();
        let next = rest.split_whitespace().next().unwrap_or("");
        if next.starts_with(|first: char| !first.is_ascii_alphabetic()) {
            // It would be another value of the last part of the named link.
            return Err(SpecError::new(at, next, "a part of a description", "loss 1%"));
        }
        let read = |own: &str| {
            format!("{own} {rest}").parse::<LinkSpec>().map_err(|error: SpecError| {
                let offset = error.offset.saturating_sub(own.len() + 1);
                let is_wrong_alone =
                    rest.parse::<LinkSpec>().is_err_and(|alone| alone.offset == offset);
                let expected = if is_wrong_alone { error.expected } else { NOT_OF_THE_LINK };
                SpecError { offset: at + offset, expected, ..error }
            })
        };
        return Ok((read(link.down)?, read(link.up)?));
    }
    match text.parse::<LinkSpec>() {
        Ok(spec) => Ok((spec.clone(), spec)),
        // A first word that starts no description may be a misspelt name.
        Err(error) if error.offset == start && !first.is_empty() => {
            Err(SpecError::new(start, first, NAME_OR_PART, nearest(first)))
        }
        Err(error) => Err(error),
    }
}

/// Expected after a name, instead of a part that the named link already has.
const NOT_OF_THE_LINK: &str = "a part that the named link does not have: to replace one, write the whole \
                               description, which `airtcp link --help` has";

/// The name of a link, or the part of a description, that is most similar to `word`.
fn nearest(word: &str) -> &'static str {
    let names = LINKS.iter().map(|link| (link.name, link.name));
    of_tc(word).unwrap_or_else(|| nearest_of(names.chain(names_of(PARTS)), word))
}

/// The accepted first words; a test checks that the list is complete.
const NAME_OR_PART: &str = "a link (edge, 3g, slow-4g, lte, weak-4g, congested-wifi, \
                            geo-satellite, policed, aggregated-wifi, very-bad) or the words of a \
                            description";

impl NamedLink {
    /// Parses both directions: the downlink and the uplink.
    ///
    /// ```
    /// let (down, up) = airtcp_link::named::find("geo-satellite").unwrap().specs();
    /// assert_eq!((down.delay.base.as_millis(), up.delay.base.as_millis()), (279, 279));
    /// ```
    ///
    /// # Panics
    ///
    /// If a description in the table is invalid; a test parses all of them.
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

    #[test]
    fn a_pair_is_a_name_or_words() {
        for link in LINKS {
            assert_eq!(parse_pair(&format!(" {} ", link.name)), Ok(link.specs()));
            assert!(NAME_OR_PART.contains(link.name), "{}", link.name);
        }
        let words = "rate 1mbit loss 1%";
        let spec: LinkSpec = words.parse().unwrap();
        assert_eq!(parse_pair(words), Ok((spec.clone(), spec)));
        assert_eq!(parse_pair(""), Ok(Default::default()));
        let error = |text: &str| parse_pair(text).unwrap_err().to_string();
        assert_eq!(
            error(" weak-5g"),
            format!("at byte 1, `weak-5g`: expected {NAME_OR_PART}; did you mean `weak-4g`?")
        );
        for link in LINKS.iter().filter(|link| !link.down.contains("loss")) {
            let both = [link.down, link.up]
                .map(|own| format!("{own} loss 1% only forth").parse::<LinkSpec>());
            let [Ok(down), Ok(up)] = both else { panic!("{}", link.name) };
            assert_eq!(parse_pair(&format!(" {}  loss 1% only forth", link.name)), Ok((down, up)));
        }
        assert_eq!(
            error(" lte  loss 1% rate 1mbit"),
            format!("at byte 14, `rate`: expected {NOT_OF_THE_LINK}")
        );
        assert_eq!(
            error("lte loss 1% loss 2%"),
            "at byte 12, `loss`: expected this part only once"
        );
        let expected = "expected a share from 0% to 100%, such as `1%`";
        assert_eq!(error("lte  loss"), format!("at byte 9, the end: {expected}"));
        assert_eq!(error("edge loss 2"), format!("at byte 10, `2`: {expected}"));
        assert!(error("rate lte").starts_with("at byte 5, `lte`: expected a rate"));
        for (word, meant) in [
            ("geo-satelite", "; did you mean `geo-satellite`?"),
            ("Weak4G", "; did you mean `weak-4g`?"),
            ("4g", ", such as `slow-4g`"),
            ("LTE", "; did you mean `lte`?"),
            ("wifi", ", such as `congested-wifi`"),
            ("verybad", "; did you mean `very-bad`?"),
            ("rat", "; did you mean `rate`?"),
            ("dealy", "; did you mean `delay`?"),
            ("limt 50", "; did you mean `limit`?"),
            ("reorder", ", such as `delayed 5% 25ms 8ms`"),
            ("netem", ", such as `delay 10ms`"),
        ] {
            let error = error(word);
            assert!(error.ends_with(meant), "{error}");
        }
        assert!(error(&"x".repeat(100_000)).len() < 300);
    }
}
