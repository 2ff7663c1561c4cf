//! Runs every real experiment as a small run, if namespaces are available.

use airtcp_lab::{EXPERIMENTS, Experiment, Ground, LabError, Plan, Report};
use airtcp_testbed::{or_skip, requirements};

fn small(experiment: &Experiment) -> Result<Report, LabError> {
    experiment.run(&Plan { seeds: Some(1), is_small: true, ..Plan::default() })
}

#[test]
fn every_real_experiment_moves_bytes_and_leaves_records_and_a_table() {
    let Some(()) = or_skip(requirements()) else { return };
    for experiment in EXPERIMENTS.iter().filter(|e| e.ground == Ground::Real) {
        let report = small(experiment).unwrap_or_else(|e| panic!("{}: {e}", experiment.name));
        let findings = &report.findings;
        let mut moved = 0;
        for record in &findings.records {
            let record: serde_json::Value = serde_json::from_str(record.get()).unwrap();
            assert_eq!(record["seed"], 1);
            let goodput = record["goodput"].as_f64().expect("a record has its goodput");
            moved += u32::from(goodput > 0.0);
            // Only runs with real packets have a lateness.
            let is_simulated = record.get("ground").is_some_and(|ground| ground == "simulator");
            assert_eq!(record["lateness"].is_null(), is_simulated, "{record}");
        }
        // A busy machine can delay a single transfer of a second, but not half of them.
        let of = findings.records.len();
        assert!(moved as usize > of / 2, "{}: {moved} of {of}", experiment.name);
        assert!(!findings.table.rows().is_empty() && !findings.pictures.is_empty());
        assert!(report.to_text(None).contains("1 run of each case, real."));
    }
}
