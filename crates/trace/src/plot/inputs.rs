//! Reads the files of a trace in parallel, in the order of time.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use airtcp_types::{Event, Instant};

use crate::capture::{self, Direction, Record};
use crate::recorder::{EVENTS, PACKETS};
use crate::segment::Segment;
use crate::{TraceError, sqlog};

/// The interface and direction at which a packet was seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Seen {
    pub(super) interface: u32,
    pub(super) direction: Direction,
}

/// A packet or an event of a trace.
pub(super) enum Item<'a> {
    /// A segment that crossed the edge of a node, or with a `fate`, that met this fate at a node.
    Packet {
        at: Instant,
        seen: Seen,
        segment: &'a Segment,
        fate: Option<&'a str>,
    },
    Event(&'a Event),
}

#[derive(Debug)]
pub(super) struct Inputs {
    packets: PathBuf,
    events: Option<PathBuf>,
    title: String,
    /// The time of [`Instant::ZERO`], since the Unix epoch.
    origin: Duration,
}

/// A file of a trace that ends within a record, because its writer was killed. The file is read up
/// to that record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cut {
    /// The file.
    pub path: PathBuf,
    /// The position of the record: the line of an event log, the byte offset in a capture.
    pub place: u64,
}

/// A note in one line, such as `packets.pcapng: cut short at byte 4096: nothing after it is drawn`.
impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = if is_log(&self.path) { "line" } else { "byte" };
        let (path, place) = (self.path.display(), self.place);
        write!(f, "{path}: cut short at {unit} {place}: nothing after it is drawn")
    }
}

fn is_log(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "sqlog")
}

impl Inputs {
    pub(super) fn find(path: &Path) -> Result<Self, TraceError> {
        let (packets, events) = if path.is_dir() {
            (path.join(PACKETS), Some(path.join(EVENTS)).filter(|events| events.exists()))
        } else if is_log(path) {
            (path.with_file_name(PACKETS), Some(path.to_owned()))
        } else {
            let own = path.file_name().is_some_and(|name| name == PACKETS);
            let events = path.with_file_name(EVENTS);
            (path.to_owned(), (own && events.exists()).then_some(events))
        };
        if let Some(log) = &events
            && !packets.exists()
        {
            return Err(TraceError::NoPackets { log: log.clone(), packets });
        }
        let mut inputs = Self { packets, events, title: String::new(), origin: Duration::ZERO };
        match &inputs.events {
            Some(events) => {
                let log = sqlog::Reader::open(events)?;
                (inputs.title, inputs.origin) = (log.title, log.origin);
            }
            None => {
                let first = capture::Reader::open(&inputs.packets)?.next()?;
                inputs.origin = Duration::from_nanos(first.map_or(0, |record| record.at));
            }
        }
        Ok(inputs)
    }

    pub(super) fn path(&self) -> &Path {
        &self.packets
    }

    pub(super) fn title(&self) -> &str {
        &self.title
    }

    pub(super) fn origin(&self) -> Duration {
        self.origin
    }

    /// Passes all items to `show`, in the order of time; at the same time, packets before events.
    /// Returns the truncated files.
    pub(super) fn walk(&self, mut show: impl FnMut(Item<'_>)) -> Result<Vec<Cut>, TraceError> {
        let mut capture = capture::Reader::open(&self.packets)?;
        let mut log = self.events.as_deref().map(sqlog::Reader::open).transpose()?;
        let mut event = next_event(&mut log)?;
        while let Some(record) = capture.next()? {
            let at = self.instant(&record);
            while let Some(earlier) = event.take_if(|event| event.at < at) {
                show(Item::Event(&earlier));
                event = next_event(&mut log)?;
            }
            if let Some(segment) = Segment::parse(&record.data) {
                let Record { interface, direction, comment, .. } = record;
                let seen = Seen { interface, direction };
                // In airtcp's captures, a comment on a packet without a direction is its fate.
                let fate =
                    comment.filter(|_| self.events.is_some() && direction == Direction::Unknown);
                show(Item::Packet { at, seen, segment: &segment, fate: fate.as_deref() });
            }
        }
        while let Some(last) = event.take() {
            show(Item::Event(&last));
            event = next_event(&mut log)?;
        }
        let packets = capture.cut().map(|place| Cut { path: self.packets.clone(), place });
        let place = log.as_ref().and_then(sqlog::Reader::cut);
        let events = self.events.clone().zip(place).map(|(path, place)| Cut { path, place });
        Ok(packets.into_iter().chain(events).collect())
    }

    fn instant(&self, record: &Record) -> Instant {
        let origin = u64::try_from(self.origin.as_nanos()).unwrap_or(u64::MAX);
        Instant::from_nanos(record.at.saturating_sub(origin))
    }
}

fn next_event(log: &mut Option<sqlog::Reader>) -> Result<Option<Event>, TraceError> {
    match log {
        Some(log) => log.next().map(|next| next.map(|(_, event)| event)),
        None => Ok(None),
    }
}
