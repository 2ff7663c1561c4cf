//! All experiments by name.

use crate::{
    Experiment, LabError, checks, dcr, glob, grid, hack, le, rrtp, senders, tcp_ecn, westwood,
};

/// Every experiment, in the order in which they are listed and run.
pub const EXPERIMENTS: &[Experiment] = &[
    checks::loss::EXPERIMENT,
    checks::bursts::EXPERIMENT,
    checks::bit_errors::EXPERIMENT,
    checks::rate::EXPERIMENT,
    checks::trace::EXPERIMENT,
    checks::delay::EXPERIMENT,
    checks::md1::EXPERIMENT,
    checks::half_duplex::EXPERIMENT,
    checks::mathis::EXPERIMENT,
    checks::full_pipe::EXPERIMENT,
    checks::fairness::EXPERIMENT,
    checks::packets::EXPERIMENT,
    checks::kernel_senders::EXPERIMENT,
    checks::cubic::EXPERIMENT,
    checks::long_haul::EXPERIMENT,
    grid::lossy::EXPERIMENT,
    senders::goodput::EXPERIMENT,
    senders::goodput::SIMULATED,
    senders::links::EXPERIMENT,
    senders::links::SIMULATED,
    senders::harm::EXPERIMENT,
    senders::harm::SIMULATED,
    senders::fairness::EXPERIMENT,
    senders::fairness::SIMULATED,
    senders::delay::EXPERIMENT,
    senders::delay::SIMULATED,
    senders::jitter::EXPERIMENT,
    senders::short::EXPERIMENT,
    senders::short::SIMULATED,
    senders::receiver::EXPERIMENT,
    senders::changes::EXPERIMENT,
    senders::changes::SIMULATED,
    hack::fig7::EXPERIMENT,
    hack::fig12::EXPERIMENT,
    hack::fig20::EXPERIMENT,
    hack::fig26::EXPERIMENT,
    hack::section7::EXPERIMENT,
    hack::long_path::EXPERIMENT,
    hack::table1::EXPERIMENT,
    hack::wire::EXPERIMENT,
    rrtp::table32::EXPERIMENT,
    rrtp::fig41::EXPERIMENT,
    rrtp::table42::EXPERIMENT,
    rrtp::table46::EXPERIMENT,
    rrtp::fig46::EXPERIMENT,
    rrtp::table51::EXPERIMENT,
    rrtp::table52::EXPERIMENT,
    dcr::eq6::EXPERIMENT,
    dcr::fig4::EXPERIMENT,
    dcr::fig5::EXPERIMENT,
    dcr::fig6::EXPERIMENT,
    dcr::fig7::EXPERIMENT,
    dcr::fig8::EXPERIMENT,
    dcr::fig9::EXPERIMENT,
    dcr::fig10::EXPERIMENT,
    dcr::fig11::EXPERIMENT,
    dcr::fig12::EXPERIMENT,
    dcr::fig13::EXPERIMENT,
    dcr::fig14::EXPERIMENT,
    dcr::table16::EXPERIMENT,
    dcr::fig17::EXPERIMENT,
    dcr::fig18::EXPERIMENT,
    dcr::table20::EXPERIMENT,
    dcr::table20_real::EXPERIMENT,
    le::fig4::EXPERIMENT,
    le::fig5::EXPERIMENT,
    le::fig6::EXPERIMENT,
    le::fig6::WIDE,
    le::fig9::EXPERIMENT,
    le::fig9_real::EXPERIMENT,
    tcp_ecn::fig10::EXPERIMENT,
    tcp_ecn::fig11::EXPERIMENT,
    tcp_ecn::fig12::EXPERIMENT,
    tcp_ecn::fig13::EXPERIMENT,
    tcp_ecn::fig17::EXPERIMENT,
    tcp_ecn::fig20::EXPERIMENT,
    tcp_ecn::fig22::EXPERIMENT,
    tcp_ecn::fig24::EXPERIMENT,
    tcp_ecn::disconnect::EXPERIMENT,
    tcp_ecn::real::EXPERIMENT,
    tcp_ecn::fig31::EXPERIMENT,
    westwood::loss::EXPERIMENT,
    westwood::compression::EXPERIMENT,
];

/// Returns the experiments that match any of `patterns`, without duplicates and in the registry's
/// order. In a pattern, `*` matches any characters and `?` matches one; `all` matches every
/// experiment.
///
/// # Errors
///
/// [`LabError::Unknown`] with the first pattern that matches no experiment.
pub fn select<S: AsRef<str>>(patterns: &[S]) -> Result<Vec<&'static Experiment>, LabError> {
    let names = |pattern: &S, experiment: &Experiment| {
        pattern.as_ref() == "all" || glob::matches(pattern.as_ref(), experiment.name)
    };
    if let Some(unknown) =
        patterns.iter().find(|pattern| !EXPERIMENTS.iter().any(|e| names(pattern, e)))
    {
        return Err(LabError::Unknown { pattern: unknown.as_ref().to_owned() });
    }
    let wanted = |e: &&Experiment| patterns.iter().any(|pattern| names(pattern, e));
    Ok(EXPERIMENTS.iter().filter(wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_say_the_paper() {
        for (index, experiment) in EXPERIMENTS.iter().enumerate() {
            let (paper, figure) = experiment.name.split_once('/').expect("paper/figure");
            let papers =
                ["self", "grid", "senders", "hack", "rrtp", "dcr", "le", "tcp-ecn", "westwood"];
            assert!(papers.contains(&paper));
            let allowed =
                |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c);
            assert!(!figure.is_empty() && figure.chars().all(allowed), "{figure}");
            assert!(EXPERIMENTS[..index].iter().all(|other| other.name != experiment.name));
            assert!(!experiment.what.is_empty() && !experiment.source.is_empty());
            assert!(experiment.seeds > 0 && experiment.seconds > 0, "{figure}");
        }
    }

    #[test]
    fn patterns_select_in_the_order_of_the_list_and_once() {
        let names = |patterns: &[&str]| -> Vec<&str> {
            select(patterns).unwrap().iter().map(|e| e.name).collect()
        };
        assert_eq!(names(&["self/rate", "self/los*", "self/loss"]), ["self/loss", "self/rate"]);
        assert_eq!(names(&["*"]).len(), EXPERIMENTS.len());
        assert_eq!(names(&["all"]).len(), EXPERIMENTS.len());
        let error = select(&["self/loss", "self/los"]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no experiment `self/los`: use names of `airtcp lab list`, or a pattern such as 'self/*'; did you mean \
             `self/loss`?"
        );
    }

    #[test]
    fn a_name_without_its_group_suggests_every_experiment_of_that_name() {
        let error = |pattern: &str| select(&[pattern]).unwrap_err().to_string();
        for pattern in ["fig4", "Fig4"] {
            let error = error(pattern);
            assert!(error.ends_with("; did you mean `dcr/fig4` or `le/fig4`?"), "{error}");
        }
        let three = error("fig12");
        assert!(
            three.ends_with("; did you mean `hack/fig12`, `dcr/fig12` or `tcp-ecn/fig12`?"),
            "{three}"
        );
        let one = error("table16");
        assert!(one.ends_with("; did you mean `dcr/table16`?"), "{one}");
        let group = error("dcr");
        assert!(group.ends_with("; for all of this group: 'dcr/*'"), "{group}");
        assert!(error("fig99").ends_with("such as 'self/*'"));
    }
}
