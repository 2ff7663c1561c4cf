//! Names of lines at their right ends.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use crate::svg::{INFALLIBLE, INK, SMALL, text};

use super::draw::{Area, color, mark};

/// The maximum number of lines with names at their ends; more have a legend.
pub(super) const MOST: usize = 8;
/// The maximum width of a name in pixels.
pub(super) const WIDEST: u32 = 260;
/// The width of the line and the mark before a name, with the margin behind it.
pub(super) const LEADER: u32 = 46;
/// The least distance of two names.
const GAP: i32 = 17;

/// A line with its name, and its right end in pixels.
pub(super) struct Named {
    pub(super) index: usize,
    pub(super) name: String,
    pub(super) at: (i32, i32),
}

/// Draws the names right of the ends, without overlaps, between these heights in pixels.
pub(super) fn draw(root: &Area<'_>, mut ends: Vec<Named>, between: (i32, i32)) {
    ends.sort_by_key(|end| end.at.1);
    let Some(right) = ends.iter().map(|end| end.at.0).max() else { return };
    let heights: Vec<i32> = ends.iter().map(|end| end.at.1).collect();
    for (Named { index, name, at }, y) in ends.into_iter().zip(apart(&heights, between)) {
        let leader = PathElement::new([(at.0 + 6, at.1), (right + 18, y)], color(index));
        root.draw(&leader).expect(INFALLIBLE);
        root.draw(&mark(index, (right + 22, y))).expect(INFALLIBLE);
        let style = text(SMALL, &INK, HPos::Left, VPos::Center);
        root.draw(&Text::new(name, (right + 31, y), style)).expect(INFALLIBLE);
    }
}

/// Moves sorted heights apart; each group of close ones stays around its middle.
fn apart(heights: &[i32], (highest, lowest): (i32, i32)) -> Vec<i32> {
    // Groups, each as the sum of its heights and their number.
    let mut groups: Vec<(i32, i32)> = Vec::new();
    let top = |&(sum, count): &(i32, i32)| {
        let below = GAP * (count - 1);
        (sum / count - below / 2).min(lowest - below).max(highest)
    };
    for &height in heights {
        groups.push((height, 1));
        while let [.., above, below] = groups[..]
            && top(&below) < top(&above) + GAP * above.1
        {
            groups.truncate(groups.len() - 2);
            groups.push((above.0 + below.0, above.1 + below.1));
        }
    }
    groups.iter().flat_map(|group| (0..group.1).map(move |line| top(group) + GAP * line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_overlap_and_stay_near_their_lines() {
        let within = |heights: &[i32]| apart(heights, (10, 300));
        assert_eq!(within(&[10, 100, 200]), [10, 100, 200]);
        assert_eq!(within(&[100, 100]), [92, 109]);
        assert_eq!(within(&[90, 100, 101]), [80, 97, 114]);
        assert_eq!(within(&[290, 300, 300]), [266, 283, 300]);
        assert!(within(&[]).is_empty());
        for heights in [[10; 8], [300; 8], [50, 52, 60, 61, 61, 80, 90, 300]] {
            let placed = within(&heights);
            assert!(placed.windows(2).all(|pair| pair[1] - pair[0] >= GAP), "{placed:?}");
            assert!(placed[0] >= 10 && placed[7] <= 300, "{placed:?}");
        }
    }
}
