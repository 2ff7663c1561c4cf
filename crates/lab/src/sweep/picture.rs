//! Pictures of a sweep: those of its file, or by default one for each measure.

use std::collections::BTreeSet;

use airtcp_sim::Interval;
use airtcp_trace::figure::{Figure, Point as Dot, Scale, Style};

use crate::draw;
use crate::study::{Axis, Design, Drawn, Point, Where};

/// The maximum number of pictures for each measure. There is one for each combination of the axes
/// that are not in the picture.
const MOST: usize = 12;

/// A picture whose points are added one by one.
pub(super) struct Plot {
    drawn: Drawn,
    /// For each line, the mean at each value of the horizontal axis.
    means: Vec<Vec<Interval>>,
}

impl Plot {
    /// Returns the pictures of the file. If it has none, returns one for each measure: the
    /// horizontal axis is the numeric axis with the most values, and the longest of the other axes
    /// gives the lines.
    ///
    /// # Errors
    ///
    /// The reason why there are no pictures.
    pub(super) fn all(design: &Design) -> Result<Vec<Self>, String> {
        let mut drawn = match design.pictures.as_slice() {
            [] => chosen(design)?,
            own => own.to_vec(),
        };
        // Names of flows can differ in characters that file names cannot contain, and some file
        // systems ignore case.
        let mut names = BTreeSet::new();
        for Drawn { name, .. } in &mut drawn {
            let others = (2..).map(|number| format!("{name}-{number}"));
            let mut all = [name.clone()].into_iter().chain(others);
            *name = all.find(|name| names.insert(name.to_ascii_lowercase())).unwrap_or_default();
        }
        let length = |name: &String| axis(design, name).map_or(1, |axis| axis.values.len());
        let plot = |drawn: Drawn| {
            let lines = drawn.series.as_ref().map_or(1, length);
            let means = vec![vec![Interval::default(); length(&drawn.x)]; lines];
            Self { drawn, means }
        };
        Ok(drawn.into_iter().map(plot).collect())
    }

    /// Adds the mean at a point, if the picture includes the point.
    pub(super) fn add(&mut self, design: &Design, point: &Point, mean: impl Fn(&str) -> Interval) {
        let Drawn { x, y, series, at, .. } = &self.drawn;
        if at.0.iter().any(|(axis, value)| point.value(axis) != value) {
            return;
        }
        let place = |name: &String| point.place(&design.axes, name);
        let line = series.as_ref().map_or(Some(0), place);
        let mean_of = line.zip(place(x)).and_then(|(line, x)| self.means.get_mut(line)?.get_mut(x));
        if let Some(known) = mean_of {
            *known = mean(&y.name());
        }
    }

    /// Returns the file name and the figure.
    pub(super) fn figure(&self, design: &Design) -> (String, Figure) {
        let Drawn { name, x, y, series, .. } = &self.drawn;
        let numbers = axis(design, x).into_iter().flat_map(|axis| &axis.values);
        let numbers: Vec<f64> = numbers.map(|value| value.number().unwrap_or_default()).collect();
        let lines = series.as_ref().and_then(|series| axis(design, series));
        let words =
            |line: usize| lines.map_or_else(|| y.name(), |axis| axis.values[line].to_string());
        let series = self.means.iter().enumerate().map(|(line, means)| {
            let points = numbers.iter().zip(means).filter(|(_, mean)| mean.n > 0);
            let points: Vec<Dot> =
                points.map(|(x, mean)| draw::interval(*x, mean, y.measure.scale)).collect();
            draw::series(words(line), Style::LineAndMarks, points)
        });
        (format!("{name}.svg"), design.figure(&self.drawn, series.collect()))
    }
}

fn axis<'a>(design: &'a Design, name: &str) -> Option<&'a Axis> {
    design.axes.iter().find(|axis| axis.name == name)
}

/// Returns a picture of each measure for each combination of the axes that are not in the picture.
fn chosen(design: &Design) -> Result<Vec<Drawn>, String> {
    let has_numbers = |axis: &&Axis| axis.values.iter().all(|value| value.number().is_some());
    let is_long = |axis: &&Axis| axis.values.len() > 1;
    let length = |axis: &&Axis| axis.values.len();
    let axes = design.axes.iter().filter(is_long);
    let Some(x) = axes.clone().filter(has_numbers).max_by_key(length) else {
        return Err("no pictures: no axis has several numbers".to_owned());
    };
    let axes = axes.filter(|axis| axis.name != x.name);
    let series = axes.clone().max_by_key(length).map(|axis| &axis.name);
    let rest: Vec<Axis> = design
        .axes
        .iter()
        .filter(|axis| axis.name != x.name && Some(&axis.name) != series)
        .cloned()
        .collect();
    let combinations = rest.iter().map(|axis| axis.values.len()).product::<usize>();
    if combinations > MOST {
        return Err(format!(
            "no pictures: the axes make {combinations} of each measure; describe those that you want by [[picture]]"
        ));
    }
    let mut all: Vec<Drawn> = Vec::new();
    for (place, asked) in design.measures.iter().enumerate() {
        // A measure that is listed twice gives one picture.
        if design.measures[..place].iter().any(|known| known.name() == asked.name()) {
            continue;
        }
        for index in 0..combinations {
            let point = crate::study::point(&rest, index);
            let at: Vec<_> =
                point.iter().map(|(name, value)| (name.to_owned(), value.clone())).collect();
            let varied = at.iter().filter(|(name, _)| {
                rest.iter().any(|axis| axis.name == *name && axis.values.len() > 1)
            });
            let title: Vec<_> = varied.map(|(name, value)| format!("{name} {value}")).collect();
            let title = [vec![design.heading.what.clone()], title].concat().join(", ");
            let name = file_name(&asked.name());
            let name = if combinations == 1 { name } else { format!("{name}-{}", index + 1) };
            all.push(Drawn {
                name,
                title: Some(title),
                x: x.name.clone(),
                y: asked.clone(),
                series: series.cloned(),
                at: Where(at),
                scales: [Scale::Linear; 2],
            });
        }
    }
    Ok(all)
}

/// Converts the name of a measure, which can contain the name of a flow, to a file name.
fn file_name(measure: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    measure.chars().map(|c| if is_word(c) { c } else { '-' }).collect()
}
