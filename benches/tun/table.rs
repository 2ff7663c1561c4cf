//! Prints the results as lines of a table, and returns them as JSON.

use serde_json::{Value, json};

/// The median and the range of a series of numbers.
struct Spread {
    median: f64,
    least: f64,
    most: f64,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
        Self {
            median: at(values.len() / 2),
            least: at(0),
            most: at(values.len().saturating_sub(1)),
        }
    }
}

/// Prints the head of the columns.
pub(crate) fn print_head([first, second]: [&str; 2], pairs: usize) {
    println!("\n{first} beside {second}, medians of {pairs} pairs:");
    println!("{:<31} {:<9} {first:>15} {second:>15} {:>7}  min to max", "", "", "ratio");
}

/// Prints one quantity of a measurement and returns it as JSON.
pub(crate) fn print_row(
    kinds: [&str; 2],
    measurement: &str,
    quantity: &str,
    pairs: &[[f64; 2]],
) -> Value {
    let of = |index: usize| Spread::of(pairs.iter().map(move |pair| pair[index])).median;
    let medians = [of(0), of(1)];
    let ratio = Spread::of(pairs.iter().map(|[first, second]| first / second));
    println!(
        "{measurement:<31} {quantity:<9} {:>15.2} {:>15.2} {:>7.2}  {:.2} to {:.2}",
        medians[0], medians[1], ratio.median, ratio.least, ratio.most
    );
    json!({
        "kinds": kinds,
        "measurement": measurement,
        "quantity": quantity,
        "medians": medians,
        "ratio": ratio.median,
        "min": ratio.least,
        "max": ratio.most,
        "pairs": pairs,
    })
}
