//! Formats the comparison: a table that fits a terminal, and explanations of its columns.

use std::fmt;

use airtcp_stack::tcp::TcpConfig;
use comfy_table::Table;

use super::report::{FLOOD, Report, Row};
use super::round_trip::{FULL, IDLE, LEAST};
use crate::output;
use crate::table::{fitting, link_lines, mean, rate_unit, shown, table, wrapped};

/// The results of the shared runs that fit the table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    /// There were no shared runs.
    Nothing,
    /// The share.
    Share,
    /// The share, and the competitor's goodput.
    Both,
    /// The same, with the interval of the share.
    Whole,
}

impl Beside {
    fn has_other(self) -> bool {
        matches!(self, Self::Both | Self::Whole)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (table, beside) = self.table();
        writeln!(f, "{}\n{}\n{table}", wrapped(&self.heading(), 2), link_lines(&self.link))?;
        let notes: Vec<_> = self.notes(beside).iter().map(|note| wrapped(note, 2)).collect();
        f.write_str(&notes.join("\n"))
    }
}

impl Report {
    fn heading(&self) -> String {
        let flows = match self.flows {
            1 => "one flow alone".to_owned(),
            flows => format!("{flows} flows together"),
        };
        let spread = match self.seeds {
            _ if !self.is_random => "one run: nothing is random".to_owned(),
            1 => "seed 1: one run says nothing of the spread".to_owned(),
            seeds => format!("seeds 1 to {seeds}: means, ± 95 % intervals"),
        };
        format!("{} s of virtual time, {flows}, {spread}", self.seconds)
    }

    /// Returns the widest table that fits.
    fn table(&self) -> (String, Beside) {
        match self.beside {
            None => fitting(Beside::Nothing, &[], |layout| self.table_with(layout)),
            Some(_) => fitting(Beside::Whole, &[Beside::Both, Beside::Share], |layout| {
                self.table_with(layout)
            }),
        }
    }

    fn table_with(&self, beside: Beside) -> Table {
        let (factor, unit) = self.rate_unit();
        let (goodput, keeps) = (format!("goodput\n{unit}"), format!("keeps\n{unit}"));
        let mut header = vec!["strategies", &goodput];
        header.extend((beside != Beside::Nothing).then_some("share\n%"));
        header.extend(beside.has_other().then_some(keeps.as_str()));
        header.extend(self.polices().then_some("pol-\niced %"));
        header.extend(["queue\n%", "link\n%", "spur.\n%", "time-\nouts", "RTT\nx"]);
        header.extend((self.flows > 1).then_some("Jain"));
        table(header, 1, self.rows.iter().map(|row| self.cells(row, beside, factor)))
    }

    /// Returns the unit of all rates, and the factor that converts bit/s to it.
    pub(super) fn rate_unit(&self) -> (f64, &'static str) {
        rate_unit(self.rows.first().map_or(0.0, |row| row.goodput.mean))
    }

    /// Returns the cells of a row. `factor` converts bit/s to the unit of rates.
    fn cells(&self, row: &Row, beside: Beside, factor: f64) -> Vec<String> {
        let star = if self.is_starred(row) { "*" } else { " " };
        let flood = if row.floods(&self.rows) { " !" } else { "" };
        let broken = if row.broken_connections > 0 { " BROKEN" } else { "" };
        let mut cells = vec![
            format!("{star} {}{flood}{broken}", row.combination),
            shown(&row.goodput, factor, 3),
        ];
        match beside {
            Beside::Nothing => {}
            Beside::Whole => cells.push(shown(&row.share, 100.0, 0)),
            Beside::Share | Beside::Both => cells.push(mean(&row.share, 100.0, 0)),
        }
        if beside.has_other() {
            cells.push(mean(&row.cubic_beside, factor, 2));
        }
        cells.extend(self.polices().then(|| mean(&row.policed, 100.0, 2)));
        cells.extend([
            mean(&row.queue_dropped, 100.0, 2),
            mean(&row.link_harmed, 100.0, 2),
            mean(&row.spurious, 100.0, 2),
            mean(&row.timeouts, 1.0, 1),
            mean(&row.rtt_inflation, 1.0, 2),
        ]);
        cells.extend((self.flows > 1).then(|| mean(&row.jain, 1.0, 3)));
        cells
    }

    /// Returns whether a policer dropped packets.
    fn polices(&self) -> bool {
        self.rows.iter().any(|row| row.policed.mean > 0.0)
    }

    /// Returns whether a row is marked. Without random elements, the order is exact and needs no
    /// marks.
    fn is_starred(&self, row: &Row) -> bool {
        self.is_random && row.as_good == Some(true)
    }

    fn notes(&self, beside: Beside) -> Vec<String> {
        let mut notes = Vec::new();
        if self.rows.iter().any(|row| self.is_starred(row)) {
            notes.push(
                "*: the best goodput, or not significantly different from it in paired runs \
                 (95 %)"
                    .to_owned(),
            );
        }
        notes.extend(self.hint());
        notes.extend(self.nothing_arrived());
        notes.extend(self.floods());
        notes.push(self.about_beside(beside));
        let policed = if self.polices() { "; policed: share that the policer dropped" } else { "" };
        notes.push(format!(
            "queue, link: share of packets that the queue dropped, and that the \
             link lost or damaged{policed}"
        ));
        let base = self.base_rtt_seconds.map(|rtt| {
            format!("; RTT x: mean RTT relative to {:.2} ms, the RTT of the idle link", rtt * 1e3)
        });
        notes.push(format!(
            "spur.: share of spurious retransmissions in the segments with data{}",
            base.unwrap_or_default()
        ));
        let broken: u64 = self.rows.iter().map(|row| row.broken_connections).sum();
        if broken > 0 {
            notes.push(format!(
                "BROKEN: {broken} connections were reset or timed out before the end; --json shows \
                 which"
            ));
        }
        if self.is_usual_length && self.seconds > LEAST.as_secs_f64() {
            let change = match self.last_change_seconds {
                0.0 => String::new(),
                at => format!(", after the change at {at} s"),
            };
            notes.push(format!(
                "{} s cover at least {IDLE} round trips of the idle link ({:.0} ms) and {FULL} with a \
                 full queue ({:.0} ms){change}; --seconds sets another time",
                self.seconds,
                self.base_rtt_seconds.unwrap_or_default() * 1e3,
                self.full_rtt_seconds * 1e3,
            ));
        }
        notes.extend(self.buffers());
        notes.extend(self.all.map(|all| {
            format!(
                "These are the usual {} combinations; --with all runs {all}, --with usual,A,B adds others \
                 (see `airtcp names`). --json has all intervals.",
                self.rows.len()
            )
        }));
        notes.extend(self.recommendation.as_ref().map(|recommendation| {
            let (factor, unit) = self.rate_unit();
            recommendation.text(factor, unit, self.beside.as_deref())
        }));
        notes
    }

    /// Returns how to separate the rows further, if most are not significantly different from the
    /// best.
    fn hint(&self) -> Option<String> {
        if self.is_random && self.seeds == 1 {
            return Some("One seed gives no ranking: use --seeds 10".to_owned());
        }
        let starred = self.rows.iter().filter(|row| self.is_starred(row)).count();
        (starred > 2 && starred * 2 > self.rows.len()).then(|| {
            format!(
                "{starred} of {} are not significantly different from the best: --seconds {} --seeds {} \
                 separates more of them",
                self.rows.len(),
                self.seconds * 2.0,
                self.seeds * 2
            )
        })
    }

    /// Returns the note about the buffers of real hosts.
    fn buffers(&self) -> Option<String> {
        let usual = TcpConfig::default();
        self.buffer_bytes.map(|buffer| {
            format!(
                "The link holds {} (bandwidth-delay product and queue). The buffers of the simulated hosts \
                 have {}, so that they limit no flow of TCP below that; those of `serve`, `get`, `put` and `connect` have \
                 up to {} (send) and {} (receive): see --send-buffer and --receive-buffer",
                output::bytes(self.capacity.0),
                output::bytes(buffer.0),
                output::bytes(usual.send_buffer.0),
                output::bytes(usual.receive_buffer.0),
            )
        })
    }

    fn nothing_arrived(&self) -> Option<String> {
        let none: Vec<_> = self.rows.iter().filter(|row| !row.carried()).collect();
        let who = match none.len() {
            0 => return None,
            all if all == self.rows.len() => "all of them".to_owned(),
            _ => names(&none),
        };
        Some(format!(
            "NO DATA arrived from {} s to {} s with {who}",
            self.warm_up_seconds, self.seconds
        ))
    }

    fn floods(&self) -> Option<String> {
        let floods: Vec<_> = self.rows.iter().filter(|row| row.floods(&self.rows)).collect();
        (!floods.is_empty()).then(|| {
            format!(
                "!: floods the queue or policer, which drops more than {:.0} % of its packets: do not use it \
                 on a shared link",
                FLOOD * 100.0
            )
        })
    }

    fn about_beside(&self, columns: Beside) -> String {
        let Some(beside) = &self.beside else {
            return "The share beside rack/cubic is measured with one flow only: omit --flows"
                .to_owned();
        };
        let seeds = match self.shared_seeds {
            _ if !self.is_random => String::new(),
            1 => ", seed 1".to_owned(),
            seeds => format!(", seeds 1 to {seeds}"),
        };
        let keeps = if columns.has_other() {
            "; keeps: the goodput of the other flow"
        } else {
            "; --json also shows the goodput of the other flow"
        };
        format!(
            "share: share of the total goodput beside one flow of {beside}{seeds}; above 50 it uses capacity \
             that the other leaves unused, or takes it from the other{keeps}"
        )
    }
}

fn names(rows: &[&Row]) -> String {
    rows.iter().map(|row| row.combination.as_str()).collect::<Vec<_>>().join(", ")
}
