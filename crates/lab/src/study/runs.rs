//! The runs of one case, and the records of an earlier run that replace them.

use std::fs::File;
use std::io::{self, Read};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use airtcp_sim::Interval;
use serde_json::value::RawValue;

use super::{Fields, Value};
use crate::{LabError, theory};

/// The maximum size of a file of records, in bytes.
const LONGEST: u64 = 1 << 30;

/// Runs, and figures calculated from them.
pub(crate) trait Runs {
    /// Returns every run, case by case, in the order of the seeds.
    fn runs(&self) -> impl Iterator<Item = &Fields>;

    /// Returns the result of `value` for every run that has one, in the order of
    /// [`runs`](Self::runs).
    fn of(&self, value: impl Fn(&Fields) -> Option<f64>) -> Vec<f64> {
        self.runs().filter_map(value).collect()
    }

    /// Returns the values of a field, of every run that measured it.
    fn values(&self, field: &str) -> Vec<f64> {
        self.of(|fields| fields.number(field))
    }

    /// Returns the mean of a field over the runs that measured it.
    fn mean(&self, field: &str) -> Interval {
        Interval::of(&self.values(field))
    }

    /// Returns the sum of a field over the runs.
    fn sum(&self, field: &str) -> f64 {
        self.values(field).iter().sum()
    }

    /// Returns the mean of a field as text, multiplied by `unit`.
    fn show(&self, field: &str, unit: f64, decimals: usize) -> String {
        theory::show(&self.mean(field), unit, decimals)
    }

    /// Returns the means of several fields as text, each given as the field, a factor and the
    /// number of decimals.
    fn cells(&self, fields: &[(&str, f64, usize)]) -> Vec<String> {
        fields.iter().map(|&(field, unit, decimals)| self.show(field, unit, decimals)).collect()
    }
}

/// All runs of one case, in the order of the seeds.
#[derive(Clone, Debug)]
pub(crate) struct Sample(pub(crate) Vec<Fields>);

impl Runs for Sample {
    fn runs(&self) -> impl Iterator<Item = &Fields> {
        self.0.iter()
    }
}

/// The records of an earlier run, which an experiment takes in their order instead of running.
#[derive(Debug)]
pub(crate) struct Recorded {
    path: PathBuf,
    records: Vec<Box<RawValue>>,
    /// The number of records that were taken.
    taken: Mutex<usize>,
    /// A field that a record lacks.
    missing: OnceLock<String>,
}

impl Recorded {
    /// Reads the records of a file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or a line is not JSON.
    pub(crate) fn read(path: &Path) -> Result<Self, LabError> {
        let failed = |source| LabError::Read { path: path.to_owned(), source };
        let mut text = String::new();
        let file = File::open(path).map_err(failed)?;
        file.take(LONGEST + 1).read_to_string(&mut text).map_err(failed)?;
        if text.len() as u64 > LONGEST {
            let what = format!("more than {LONGEST} bytes: use fewer seeds");
            return Err(failed(io::Error::new(io::ErrorKind::FileTooLarge, what)));
        }
        let record = |(index, line)| {
            serde_json::from_str(line).map_err(|error| {
                let what = format!("not a record: {error}");
                LabError::Records { path: path.to_owned(), line: index + 1, what }
            })
        };
        let records = text.lines().enumerate().map(record).collect::<Result<_, _>>()?;
        let (taken, missing) = (Mutex::default(), OnceLock::new());
        Ok(Self { path: path.to_owned(), records, taken, missing })
    }

    /// Returns the next records: for each case, one of each seed.
    ///
    /// # Errors
    ///
    /// One is missing, or of another seed or case.
    pub(crate) fn take<'a>(
        self: &Arc<Self>,
        seeds: RangeInclusive<u64>,
        places: impl IntoIterator<Item = impl Iterator<Item = (&'a str, &'a Value)>>,
    ) -> Result<Vec<Fields>, LabError> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = Vec::new();
        for place in places {
            let place: Vec<_> = place.collect();
            for seed in seeds.clone() {
                let of_place = place.iter().map(|(name, value)| format!("{name} {value}, "));
                let case = || of_place.clone().chain([format!("seed {seed}")]).collect::<String>();
                let refuse = |what| Err(self.refuse(*taken, what));
                let Some(record) = self.records.get(*taken) else {
                    return refuse(format!("the record of {} is missing", case()));
                };
                let fields = match Fields::read(record.get(), Some(self)) {
                    Ok(fields) => fields,
                    Err(error) => return refuse(format!("not a record: {error}")),
                };
                let is =
                    |name: &str, value: &Value| fields.get(name).is_none_or(|own| own == value);
                if !is("seed", &seed.into()) || !place.iter().all(|(name, value)| is(name, value)) {
                    return refuse(format!("expected the record of {}", case()));
                }
                all.push(fields);
                *taken += 1;
            }
        }
        Ok(all)
    }

    /// Returns the number in a field of the next record.
    pub(crate) fn peek(self: &Arc<Self>, field: &str) -> Option<f64> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        Fields::read(self.records.get(*taken)?.get(), Some(self)).ok()?.get(field)?.number()
    }

    /// Remembers that a record lacks a field.
    pub(super) fn lacks(&self, field: &str) {
        let _ = self.missing.set(field.to_owned());
    }

    /// Returns all records.
    ///
    /// # Errors
    ///
    /// A record lacks a field, or the experiment did not take all records.
    pub(crate) fn end(&self) -> Result<Vec<Box<RawValue>>, LabError> {
        let taken = *self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        match self.missing.get() {
            Some(field) => Err(self.refuse(0, format!("a record lacks the field `{field}`"))),
            None if taken == self.records.len() => Ok(self.records.clone()),
            None if taken == 0 => Err(self.incomplete()),
            None => Err(self.refuse(taken, "the experiment has no such run".to_owned())),
        }
    }

    /// Returns the error of an experiment that shows what no record has.
    pub(crate) fn incomplete(&self) -> LabError {
        let taken = *self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        self.refuse(taken, "the experiment shows more than its records have".to_owned())
    }

    fn refuse(&self, taken: usize, what: String) -> LabError {
        LabError::Records { path: self.path.clone(), line: taken + 1, what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Run;
    use crate::study::{Axis, Grid, fields};

    /// Runs a grid of two losses with two seeds, or judges `records` of it.
    fn judged(records: Option<&[&str]>) -> Result<Vec<Box<RawValue>>, LabError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("records.jsonl");
        std::fs::write(&path, records.unwrap_or_default().join("\n")).unwrap();
        let recorded = Arc::new(Recorded::read(&path)?);
        let run = Run { seeds: 2, recorded: records.map(|_| recorded.clone()), ..Run::default() };
        let mut findings = crate::Findings::new("");
        let grid = Grid::run(&run, vec![Axis::new("loss", [0.1, 5.0])], |point, seed| {
            let rate = point.number("loss") / 3.0 + seed as f64;
            Ok(
                fields! { rate, link: fields! { lost: seed }, each: vec![0.5, 2.0], bins: vec![0u64, 7] },
            )
        })?;
        grid.record(&mut findings, &["loss"])?;
        let sample = findings.measure(&run, &fields! { sender: "rack" }, |seed| {
            Ok(fields! { rate: f64::from(seed as u32) / 7.0 })
        })?;
        // Whatever was read is what was measured.
        assert_eq!(grid.all().values("rate")[2], 5.0 / 3.0 + 1.0);
        assert_eq!((grid.all().sum("link.lost"), grid.all().sum("each")), (6.0, 10.0));
        assert_eq!(grid.all().counts("bins"), [0, 28]);
        assert_eq!(sample.values("rate")[0], 1.0 / 7.0);
        match records {
            Some(_) => recorded.end(),
            None => Ok(findings.records),
        }
    }

    #[test]
    fn records_give_what_was_measured_and_name_the_cell_that_they_lack() {
        let written = judged(None).unwrap();
        let lines: Vec<&str> = written.iter().map(|record| record.get()).collect();
        let cell = r#"{"seed":1,"loss":0.1,"rate":1.0333333333333334,"link":{"lost":1},"each":[0.5,2.0],"bins":[0,7]}"#;
        assert_eq!((lines.len(), lines[0]), (6, cell));
        let again = judged(Some(&lines)).unwrap();
        assert!(again.iter().map(|record| record.get()).eq(lines.iter().copied()));

        let refused = |lines: &[&str]| judged(Some(lines)).unwrap_err().to_string();
        let says = |lines: &[&str], what: &str| {
            let error = refused(lines);
            let end = format!("records.jsonl:{what}: run the experiment again, without --records");
            assert!(error.ends_with(&end), "{error}");
        };
        says(&lines[..5], "6: the record of sender rack, seed 2 is missing");
        says(&lines[1..], "1: expected the record of loss 0.1, seed 1");
        says(&[&lines[..2], &lines[3..]].concat(), "3: expected the record of loss 5, seed 1");
        says(&[&lines[..], &lines[5..]].concat(), "7: the experiment has no such run");
        let nested = r#"{"seed":1,"loss":0.1,"link":{"lost":{"much":1}}}"#;
        assert!(refused(&[nested]).contains("records.jsonl:1: not a record: "));
        assert!(refused(&["[1]"]).contains("records.jsonl:1: not a record: "));
        assert!(refused(&["{"]).contains("records.jsonl:1: not a record: "));
    }

    #[test]
    fn a_field_that_a_record_lacks_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("records.jsonl");
        std::fs::write(&path, r#"{"seed":1,"rate":2}"#).unwrap();
        let recorded = Arc::new(Recorded::read(&path).unwrap());
        let runs = recorded.take(1..=1, [Fields::default().iter()]).unwrap();
        assert_eq!((runs[0].number("rate"), runs[0].number("rtt")), (Some(2.0), None));
        let error = recorded.end().unwrap_err().to_string();
        assert!(
            error.contains("a record lacks the field `rtt`: run the experiment again"),
            "{error}"
        );
    }
}
