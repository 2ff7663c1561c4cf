//! The output of `airtcp compare --json`.

use serde::Deserialize;

use crate::command::quoted;
use crate::figures::{Interval, micros, shown};
use crate::page::{Axis, Block, Chart, Table, color};
use crate::series::{Look, Series};

#[derive(Debug, Deserialize)]
pub(crate) struct Comparison {
    link: [String; 2],
    seconds: f64,
    warm_up_seconds: f64,
    seeds: u64,
    flows: u64,
    base_rtt_seconds: Option<f64>,
    beside: Option<String>,
    combinations: Vec<Row>,
    recommendation: Option<Recommendation>,
}

#[derive(Debug, Deserialize)]
struct Row {
    combination: String,
    goodput_bits_per_second: Interval,
    as_good: Option<bool>,
    share_beside_cubic: Option<Interval>,
    sent_again_share: Option<Interval>,
    spurious_share: Option<Interval>,
    queue_dropped_share: Option<Interval>,
    link_harmed_share: Option<Interval>,
    timeouts: Option<Interval>,
    rtt_seconds: Option<Interval>,
    jain: Option<Interval>,
}

#[derive(Debug, Deserialize)]
struct Recommendation {
    combination: String,
}

impl Comparison {
    pub(crate) fn title(&self) -> String {
        format!("Comparison: {}", self.link[0])
    }

    pub(crate) fn blocks(&self) -> Vec<Block> {
        let Self { link: [forth, back], seconds, warm_up_seconds, seeds, flows, .. } = self;
        let mut text = format!(
            "Flows of a combination: {flows}. {seconds} s of simulated time, the first {warm_up_seconds} s as warm-up; seeds 1 to {seeds}. \
             Means with 95 % intervals. A tick marks what may be as good as the best."
        );
        if let Some(rtt) = self.base_rtt_seconds {
            text += &format!(" Round-trip time of the idle link: {:.1} ms.", rtt * 1e3);
        }
        if let Some(best) = &self.recommendation {
            text += &format!(" Recommended: {}.", best.combination);
        }
        vec![
            Block::Text(text),
            Block::Code(format!(
                "airtcp compare {} --back {} --flows {flows} --seeds {seeds} --seconds {seconds} --with {}",
                quoted(forth),
                quoted(back),
                quoted(&self.names())
            )),
            Block::Table(self.table()),
            Block::Chart(self.chart()),
        ]
    }

    fn names(&self) -> String {
        let names: Vec<&str> =
            self.combinations.iter().map(|row| row.combination.as_str()).collect();
        names.join(",")
    }

    fn table(&self) -> Table {
        let beside = format!("share beside {}", self.beside.as_deref().unwrap_or("rack/cubic"));
        let mut table = Table::new([
            "combination",
            "as good as the best",
            "goodput, Mbit/s",
            &beside,
            "RTT, ms",
            "sent again, %",
            "spurious, %",
            "dropped by the queue, %",
            "lost on the link, %",
            "time-outs",
            "Jain",
        ]);
        for row in &self.combinations {
            let share = |of: &Option<Interval>| shown(of.as_ref(), 100.0, 2);
            table.rows.push(vec![
                row.combination.clone(),
                if row.as_good == Some(true) { "✓".to_owned() } else { String::new() },
                row.goodput_bits_per_second.shown(1e-6, 3),
                shown(row.share_beside_cubic.as_ref(), 1.0, 2),
                shown(row.rtt_seconds.as_ref(), 1e3, 1),
                share(&row.sent_again_share),
                share(&row.spurious_share),
                share(&row.queue_dropped_share),
                share(&row.link_harmed_share),
                shown(row.timeouts.as_ref(), 1.0, 1),
                shown(row.jain.as_ref(), 1.0, 3),
            ]);
        }
        table.without_empty_columns()
    }

    /// Returns the chart of goodput over round-trip time.
    fn chart(&self) -> Chart {
        let mut series = Vec::new();
        for (index, row) in self.combinations.iter().enumerate() {
            let Some(rtt) = row.rtt_seconds else { continue };
            let mut dot = Series::new(Look::Dots, 1);
            dot.point(micros(rtt.mean), row.goodput_bits_per_second.mean.round() as i64);
            series.push(dot.named(&row.combination, color(index)));
        }
        Chart {
            title: "Goodput over round-trip time".to_owned(),
            group: String::new(),
            x: Axis { label: "round-trip time, less is better", ..Axis::RTT },
            y: Axis { label: "goodput, more is better", ..Axis::RATE },
            height: 360,
            series,
        }
    }
}
