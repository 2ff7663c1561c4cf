//! Recommends a combination for the link, with its cost for other flows.

use std::fmt;

use airtcp_sim::Sender;
use serde::Serialize;

use super::report::Row;

/// The minimum that a combination must leave to a competing flow of `rack/cubic`, as a share of
/// what that flow gets beside another one of its kind. Combinations that leave less are not
/// recommended.
const LEAST_LEFT: f64 = 0.4;

/// With few seeds, large differences can be insignificant. A combination that is chosen for its
/// delay must also have this share of the best goodput.
const NEAR: f64 = 0.9;

/// The recommendation.
#[derive(Serialize, Debug)]
pub(super) struct Recommendation {
    /// `None` if every combination that delivered data is rejected.
    #[serde(flatten)]
    chosen: Option<Chosen>,
    /// Combinations with a higher goodput, and why they are not recommended.
    #[serde(rename = "better_but_rejected")]
    rejected: Vec<Rejection>,
}

/// The recommended combination.
#[derive(Serialize, PartialEq, Debug)]
struct Chosen {
    combination: String,
    #[serde(rename = "goodput_bits_per_second")]
    goodput: f64,
    rtt_inflation: Option<f64>,
    /// The goodput of a competing flow of cubic, relative to its goodput beside another flow of
    /// cubic.
    cubic_keeps_share: Option<f64>,
}

#[derive(Serialize, Debug)]
struct Rejection {
    combination: String,
    because: Reason,
}

#[derive(Clone, Copy, Serialize, PartialEq, Debug)]
#[serde(rename_all = "snake_case")]
enum Reason {
    FloodsTheQueue,
    BreaksConnections,
    StarvesCubic,
}

impl Recommendation {
    /// Chooses among `rows`, which are sorted by goodput, best first. Combinations that flood the
    /// queue or the policer, break connections or starve a flow of cubic are rejected. Among the
    /// best remaining one and those not significantly worse, it takes the one with the shortest mean
    /// round-trip time. `beside_itself` is the goodput of a flow of cubic beside another one in
    /// bit/s, if it was measured. Returns `None` if no row delivered data.
    pub(super) fn of(rows: &[Row], beside_itself: Option<f64>) -> Option<Self> {
        let kept = |row: &Row| {
            let whole = beside_itself.filter(|goodput| *goodput > 0.0)?;
            (row.cubic_beside.n > 0).then(|| row.cubic_beside.mean / whole)
        };
        let reason = |row: &Row| {
            if row.broken_connections > 0 {
                Some(Reason::BreaksConnections)
            } else if row.floods(rows) {
                Some(Reason::FloodsTheQueue)
            } else if kept(row).is_some_and(|kept| kept < LEAST_LEFT) {
                Some(Reason::StarvesCubic)
            } else {
                None
            }
        };
        let carried = || rows.iter().filter(|row| row.carried());
        carried().next()?;
        let best = carried().find(|row| reason(row).is_none());
        let delay = |row: &Row| Some(row.rtt_inflation).filter(|rtt| rtt.n > 0).map(|rtt| rtt.mean);
        let chosen = best.and_then(|best| {
            carried()
                .filter(|row| reason(row).is_none() && row.may_match(best))
                .filter(|row| row.goodput.mean >= best.goodput.mean * NEAR)
                .min_by(|a, b| {
                    let of = |row| delay(row).unwrap_or(f64::INFINITY);
                    of(a).total_cmp(&of(b))
                })
        });
        let rejected = carried()
            .take_while(|row| best.is_none_or(|best| row.combination != best.combination))
            .filter_map(|row| {
                let because = reason(row)?;
                Some(Rejection { combination: row.combination.clone(), because })
            });
        Some(Self {
            chosen: chosen.map(|row| Chosen {
                combination: row.combination.clone(),
                goodput: row.goodput.mean,
                rtt_inflation: delay(row),
                cubic_keeps_share: kept(row),
            }),
            rejected: rejected.collect(),
        })
    }

    /// Returns the recommendation as text. `factor` and `unit` are those of rates; `beside` is the
    /// name of the competing combination, if there was one.
    pub(super) fn text(&self, factor: f64, unit: &str, beside: Option<&str>) -> String {
        let mut text = match &self.chosen {
            Some(chosen) => chosen.text(factor, unit, beside),
            None => "No combination is recommended.".to_owned(),
        };
        for Rejection { combination, because } in &self.rejected {
            let more = if self.chosen.is_some() { "has more goodput, but " } else { "" };
            text += &format!(" {combination} {more}{because}.");
        }
        text
    }
}

impl Chosen {
    fn text(&self, factor: f64, unit: &str, beside: Option<&str>) -> String {
        let rtt = self.rtt_inflation.map(|rtt| format!(" at {rtt:.2} times the round-trip time"));
        let cost = match (self.cubic_keeps_share, beside) {
            (Some(share), Some(beside)) => format!(
                "; a competing {beside} flow keeps {:.0} % of what it gets beside another {beside} flow.",
                share * 100.0
            ),
            (None, Some(_)) => ". Two flows of cubic beside each other had no goodput.".to_owned(),
            (_, None) => ". Its effect on other flows was not measured.".to_owned(),
        };
        let goodput = self.goodput * factor;
        let combination = &self.combination;
        let rtt = rtt.unwrap_or_default();
        let what = match combination.parse::<Sender>() {
            Ok(Sender::Rrtp(_)) => {
                format!("{combination} (airtcp quickserve and airtcp quickget)")
            }
            Ok(Sender::Udp(_)) => combination.clone(),
            Ok(Sender::Tcp(_)) | Err(_) => format!("--strategies {combination}"),
        };
        format!("Recommended: {what}, with {goodput:.3} {unit}{rtt}{cost}")
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FloodsTheQueue => f.write_str("floods the queue or policer"),
            Self::BreaksConnections => f.write_str("breaks connections"),
            Self::StarvesCubic => {
                let least = LEAST_LEFT * 100.0;
                write!(
                    f,
                    "leaves a competing rack/cubic flow less than {least:.0} % of what it gets beside \
                     another rack/cubic flow"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use airtcp_sim::Interval;

    use super::super::report::FLOOD;
    use super::super::report::tests::row;
    use super::*;

    /// Returns a row with the goodputs of two seeds, the mean round-trip time, and the goodput of a
    /// competing flow of cubic.
    fn measured(name: &str, goodput: [f64; 2], rtt: f64, beside: f64) -> Row {
        let mut row = row(name, &goodput);
        row.rtt_inflation = Interval::of(&[rtt, rtt]);
        row.cubic_beside = Interval::of(&[beside, beside]);
        row
    }

    #[test]
    fn among_equals_the_shortest_queue_is_recommended() {
        let rows = [
            measured("best", [9.0, 10.0], 2.0, 5.0),
            measured("level", [9.1, 9.8], 1.5, 4.0),
            measured("behind", [8.0, 9.0], 1.0, 5.0),
        ];
        let recommended = Recommendation::of(&rows, Some(5.0)).unwrap();
        let chosen = recommended.chosen.as_ref().unwrap();
        assert_eq!((&*chosen.combination, chosen.cubic_keeps_share), ("level", Some(0.8)));
        assert!(recommended.rejected.is_empty());
        let text = recommended.text(1.0, "bit/s", Some("rack/cubic"));
        assert!(text.contains("--strategies level, with 9.450 bit/s at 1.50 times"), "{text}");
        let cost = "a competing rack/cubic flow keeps 80 % of what it gets beside another rack/cubic flow.";
        assert!(text.ends_with(cost), "{text}");
    }

    #[test]
    fn a_combination_that_harms_others_is_rejected_with_the_reason() {
        let mut flooding = measured("floods", [30.0, 30.0], 1.0, 5.0);
        flooding.queue_dropped = Interval::of(&[FLOOD * 2.0, FLOOD * 2.0]);
        let mut policed = measured("policed", [25.0, 25.0], 1.0, 5.0);
        policed.policed = Interval::of(&[FLOOD * 2.0, FLOOD * 2.0]);
        let mut breaking = measured("breaks", [15.0, 15.0], 1.0, 5.0);
        breaking.broken_connections = 1;
        let rows = [
            flooding,
            policed,
            measured("starves", [20.0, 20.0], 1.0, 1.9),
            breaking,
            measured("fair", [10.0, 10.0], 1.0, 2.1),
        ];
        let recommended = Recommendation::of(&rows, Some(5.0)).unwrap();
        assert_eq!(recommended.chosen.unwrap().combination, "fair");
        let reasons: Vec<_> = recommended.rejected.iter().map(|one| one.because).collect();
        let expected = [
            Reason::FloodsTheQueue,
            Reason::FloodsTheQueue,
            Reason::StarvesCubic,
            Reason::BreaksConnections,
        ];
        assert_eq!(reasons, expected);
        let none = Recommendation::of(&rows[..4], Some(5.0)).unwrap();
        assert_eq!(none.chosen, None);
        let text = none.text(1.0, "bit/s", Some("default"));
        assert!(
            text.starts_with("No combination is recommended. floods floods the queue or policer."),
            "{text}"
        );
        assert!(Recommendation::of(&[], Some(5.0)).is_none());
    }

    #[test]
    fn drops_of_a_policer_count_if_they_are_a_fifth_and_twice_the_least() {
        let policed = |share: f64| {
            let mut row = measured(&share.to_string(), [10.0, 10.0], 1.0, 5.0);
            row.policed = Interval::of(&[share, share]);
            row
        };
        let marked = |shares: &[f64]| {
            let rows: Vec<_> = shares.iter().map(|share| policed(*share)).collect();
            rows.iter().map(|row| row.floods(&rows)).collect::<Vec<_>>()
        };
        assert_eq!(marked(&[0.239, 0.355, 0.327]), [false; 3]);
        assert_eq!(marked(&[0.239, 0.75, 0.327]), [false, true, false]);
        assert_eq!(marked(&[0.05, 0.15, 0.25]), [false, false, true]);
        assert_eq!(marked(&[0.75]), [false]);
        // A row without data is not the one with the least.
        let mut silent = measured("silent", [0.0, 0.0], 1.0, 5.0);
        silent.policed = Interval::of(&[0.0, 0.0]);
        let rows = [policed(0.355), policed(0.239), silent];
        assert!(!rows[0].floods(&rows));
    }

    #[test]
    fn with_few_seeds_one_that_carries_far_less_is_not_chosen_for_its_delay() {
        let rows =
            [measured("best", [10.0, 9.0], 2.0, 5.0), measured("slow", [5.0, 8.0], 1.0, 5.0)];
        assert!(rows[1].may_match(&rows[0]));
        let recommended = Recommendation::of(&rows, Some(5.0)).unwrap();
        assert_eq!(recommended.chosen.unwrap().combination, "best");
    }

    #[test]
    fn rrtp_is_recommended_with_its_own_commands() {
        let text = |name: &str| {
            let recommended = Recommendation::of(&[row(name, &[1.0, 1.0])], None).unwrap();
            recommended.text(1.0, "bit/s", None)
        };
        let rrtp = text("rrtp:general+rate=10mbit");
        assert!(
            rrtp.starts_with(
                "Recommended: rrtp:general+rate=10mbit (airtcp quickserve and airtcp quickget), with "
            ),
            "{rrtp}"
        );
        assert!(text("rack/cubic").starts_with("Recommended: --strategies rack/cubic, with "));
        assert!(!text("udp+rate=2mbit").contains("--strategies"));
    }

    #[test]
    fn without_a_competing_flow_the_cost_is_not_measured() {
        let recommended = Recommendation::of(&[row("alone", &[1.0, 1.0])], None).unwrap();
        assert_eq!(recommended.chosen.as_ref().unwrap().cubic_keeps_share, None);
        assert!(recommended.text(1.0, "bit/s", None).contains("was not measured"));
    }
}
