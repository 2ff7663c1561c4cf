//! Time-sequence graphs for xplot, in tcptrace's style.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::Duration;

use airtcp_types::Instant;

use super::Sink;
use super::follower::{Kind, Mark};

/// Writes a graph, mark by mark. Sequence numbers start with the one on the wire and do not wrap.
pub(super) struct Xplot<W> {
    out: Sink<W>,
    origin: Duration,
    isn: u64,
}

impl<W: Write> Xplot<W> {
    pub(super) fn new(to: W, origin: Duration) -> Self {
        Self { out: Sink { to, error: None }, origin, isn: 0 }
    }

    pub(super) fn header(&mut self, sender: SocketAddr, receiver: SocketAddr) {
        self.out.line(format_args!("timeval double"));
        self.out.line(format_args!("title\n{sender}_==>_{receiver} (time sequence graph)"));
        self.out.line(format_args!("xlabel\ntime\nylabel\nsequence number"));
    }

    pub(super) fn mark(&mut self, at: Instant, mark: &Mark) {
        let now = self.stamp(at);
        let isn = self.isn;
        let line = |from: u64, to: u64| format!("line {now} {} {now} {}", isn + from, isn + to);
        let place = |seq: u64| format!("{now} {}", isn + seq);
        match *mark {
            Mark::Isn(wire) => self.isn = u64::from(wire),
            Mark::Data { from, to, kind, push } => {
                let letter = match kind {
                    Kind::New => None,
                    Kind::Retransmitted => Some(("red", "R")),
                    Kind::OutOfOrder => Some(("pink", "O")),
                };
                if let Some((color, letter)) = letter {
                    self.color(color);
                    self.put(format_args!("atext {}\n{letter}", place(to)));
                }
                self.color(if kind == Kind::Retransmitted { "red" } else { "white" });
                self.put(format_args!("darrow {}", place(from)));
                if push {
                    self.put(format_args!("diamond {} white\ndot {0} white", place(to)));
                } else {
                    self.put(format_args!("uarrow {}", place(to)));
                }
                self.put(format_args!("{}", line(from, to)));
            }
            Mark::Syn { seq, again } => {
                self.color(if again { "red" } else { "orange" });
                self.put(format_args!("diamond {}", place(seq)));
                let text = if again { "R SYN" } else { "SYN" };
                self.put(format_args!("atext {}\n{text}", place(seq + 1)));
                self.put(format_args!("uarrow {}\n{}", place(seq + 1), line(seq, seq + 1)));
            }
            Mark::Fin { seq, again } => {
                self.color(if again { "red" } else { "orange" });
                self.put(format_args!("{}\nbox {}", line(seq, seq + 1), place(seq + 1)));
                let text = if again { "R FIN" } else { "FIN" };
                self.put(format_args!("atext {}\n{text}", place(seq + 1)));
            }
            Mark::Reset { seq } => {
                self.color("red");
                self.put(format_args!("atext {}\nRST_OUT", place(seq)));
            }
            Mark::Ack { since, from, to } => self.step("green", "dtick", (since, at), (from, to)),
            Mark::Edge { since, from, to } => {
                self.step("yellow", "utick", (since, at), (from, to));
            }
            Mark::ZeroWindow { seq } => {
                self.color("magenta");
                self.put(format_args!("atext {}\nZ", place(seq)));
            }
            Mark::Sack { from, to, place: number, count } => {
                self.color("purple");
                self.put(format_args!("{}", line(from, to)));
                self.put(format_args!("htick {}\nhtick {}", place(from), place(to)));
                if count > 1 {
                    self.put(format_args!("rtext {}\n{number}", place(to)));
                }
                if number == 1 {
                    self.put(format_args!("atext {}\nS", place(to)));
                }
            }
            Mark::Dropped { from, to } => {
                self.color("red");
                self.put(format_args!("x {}", place(from + (to - from) / 2)));
            }
            // An xplot file has one panel; the other values are in the SVG.
            Mark::Outstanding(_)
            | Mark::RoundTrip(_)
            | Mark::Cwnd(_)
            | Mark::Ssthresh(_)
            | Mark::Pipe(_)
            | Mark::Rtt { .. }
            | Mark::Timeout => {}
        }
    }

    /// Draws a line that holds its value until now, and then steps; a tick if the value does not
    /// change.
    fn step(&mut self, color: &str, tick: &str, time: (Instant, Instant), seq: (u64, u64)) {
        let (since, now) = (self.stamp(time.0), self.stamp(time.1));
        let (from, to) = (self.isn + seq.0, self.isn + seq.1);
        self.color(color);
        self.put(format_args!("line {since} {from} {now} {from}"));
        if from == to {
            self.put(format_args!("{tick} {now} {from}"));
        } else {
            self.put(format_args!("line {now} {from} {now} {to}"));
        }
    }

    fn color(&mut self, color: &str) {
        self.put(format_args!("{color}"));
    }

    fn put(&mut self, line: std::fmt::Arguments<'_>) {
        self.out.line(line);
    }

    /// Formats a time with six decimals, as xplot expects.
    fn stamp(&self, at: Instant) -> String {
        let time = self.origin.saturating_add(Duration::from_nanos(at.as_nanos()));
        format!("{}.{:06}", time.as_secs(), time.subsec_micros())
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.put(format_args!("go"));
        match self.out.error.take() {
            Some(error) => Err(error),
            None => self.out.to.flush(),
        }
    }
}
