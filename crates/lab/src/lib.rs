//! Experiments by name: records, tables, pictures and verdicts.
#![forbid(unsafe_code)]
