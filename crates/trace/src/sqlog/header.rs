//! The first record of a log.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{NodeInfo, TraceError};

const FILE_SCHEMA: &str = "urn:ietf:params:qlog:file:sequential";

/// The content of the first record. The order is the draft's: the fields that identify the format
/// come first.
#[derive(Serialize, Deserialize)]
pub(super) struct Header {
    file_schema: String,
    serialization_format: String,
    qlog_version: String,
    qlog_format: String,
    title: String,
    trace: Trace,
}

#[derive(Serialize, Deserialize)]
struct Trace {
    vantage_point: VantagePoint,
    common_fields: CommonFields,
    event_schemas: Vec<String>,
    /// The nodes that events name, an addition to the draft.
    nodes: Vec<NodeInfo>,
}

#[derive(Serialize, Deserialize)]
struct VantagePoint {
    name: String,
    r#type: String,
    flow: String,
}

#[derive(Serialize, Deserialize)]
struct CommonFields {
    protocol_type: Vec<String>,
    time_format: String,
    reference_time: ReferenceTime,
}

#[derive(Serialize, Deserialize)]
struct ReferenceTime {
    clock_type: String,
    epoch: String,
}

impl Header {
    pub(super) fn new(title: &str, nodes: &[NodeInfo], origin: Duration) -> Self {
        Self {
            file_schema: FILE_SCHEMA.to_owned(),
            serialization_format: "application/qlog+json-seq".to_owned(),
            qlog_version: "0.3".to_owned(),
            qlog_format: "JSON-SEQ".to_owned(),
            title: title.to_owned(),
            trace: Trace {
                vantage_point: VantagePoint {
                    name: "airtcp".to_owned(),
                    r#type: "network".to_owned(),
                    flow: "unknown".to_owned(),
                },
                common_fields: CommonFields {
                    protocol_type: vec!["TCP".to_owned()],
                    time_format: "relative_to_epoch".to_owned(),
                    reference_time: ReferenceTime {
                        clock_type: "system".to_owned(),
                        epoch: rfc3339(origin),
                    },
                },
                event_schemas: vec!["https://github.com/airtcp/airtcp/2026/qlog/tcp".to_owned()],
                nodes: nodes.to_vec(),
            },
        }
    }

    /// Returns the title, the nodes, and the time of the origin.
    pub(super) fn take(self) -> Result<(String, Vec<NodeInfo>, Duration), String> {
        if self.file_schema != FILE_SCHEMA {
            return Err(format!(
                "the file's schema is {:?}, not {FILE_SCHEMA:?}",
                self.file_schema
            ));
        }
        let Trace { common_fields, nodes, .. } = self.trace;
        crate::node_info::check_names(&nodes).map_err(|error: TraceError| error.to_string())?;
        if common_fields.time_format != "relative_to_epoch" {
            return Err("times that are not relative_to_epoch".to_owned());
        }
        let epoch = common_fields.reference_time.epoch;
        let origin = from_rfc3339(&epoch)
            .ok_or_else(|| format!("{epoch:?} is not a time such as 2026-01-31T12:00:00.5Z"))?;
        Ok((self.title, nodes, origin))
    }
}

const SECONDS_PER_DAY: u64 = 86_400;

/// Formats a time since the Unix epoch as `2026-01-31T12:00:00.000000000Z`.
fn rfc3339(since_epoch: Duration) -> String {
    let seconds = since_epoch.as_secs();
    let (mut day, second) = (seconds / SECONDS_PER_DAY, seconds % SECONDS_PER_DAY);
    // The calendar repeats every 400 years, so the loop is short.
    let mut year = 1970 + 400 * (day / DAYS_PER_400_YEARS);
    day %= DAYS_PER_400_YEARS;
    while day >= days_of_year(year) {
        day -= days_of_year(year);
        year += 1;
    }
    let mut month = 1;
    while day >= days_of_month(year, month) {
        day -= days_of_month(year, month);
        month += 1;
    }
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let nanos = since_epoch.subsec_nanos();
    format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}.{nanos:09}Z", day + 1)
}

fn from_rfc3339(text: &str) -> Option<Duration> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<u64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut time = time.splitn(3, ':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (time.next()??, time.next()??, time.next()??);
    let valid = year >= 1970 && (1..=12).contains(&month) && hour < 24 && minute < 60;
    if !valid || second > 60 || fraction.len() > 9 || day == 0 || day > days_of_month(year, month) {
        return None;
    }
    let nanos = fraction.parse::<u32>().ok()?.checked_mul(10_u32.pow(9 - fraction.len() as u32))?;
    let years = year - 1970;
    let mut days = (years / 400).checked_mul(DAYS_PER_400_YEARS)?;
    days = days.checked_add((0..years % 400).map(|after| days_of_year(1970 + after)).sum())?;
    days = days.checked_add((1..month).map(|month| days_of_month(year, month)).sum())?;
    days = days.checked_add(day - 1)?;
    let seconds = days.checked_mul(SECONDS_PER_DAY)?;
    let seconds = seconds.checked_add(hour * 3_600 + minute * 60 + second)?;
    Some(Duration::new(seconds, nanos))
}

const DAYS_PER_400_YEARS: u64 = 146_097;

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_of_year(year: u64) -> u64 {
    365 + u64::from(is_leap(year))
}

fn days_of_month(year: u64, month: u64) -> u64 {
    match month {
        2 => 28 + u64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_those_of_date() {
        // Expected values from `date -u -d @N`.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000000000Z"),
            (951_782_399, "2000-02-28T23:59:59.000000000Z"),
            (1_709_210_096, "2024-02-29T12:34:56.000000000Z"),
            (4_102_444_800, "2100-01-01T00:00:00.000000000Z"),
        ] {
            assert_eq!(rfc3339(Duration::from_secs(seconds)), text);
        }
    }

    proptest! {
        #[test]
        fn times_come_back(seconds in 0..u64::from(u32::MAX) * 60, nanos in 0..1_000_000_000_u32) {
            let time = Duration::new(seconds, nanos);
            prop_assert_eq!(from_rfc3339(&rfc3339(time)), Some(time));
        }

        #[test]
        fn no_text_panics(text in "[0-9TZ:.-]{0,40}") {
            from_rfc3339(&text);
        }
    }
}
