//! Patterns for names.

/// Returns whether `pattern` matches `name`: `*` matches any number of characters, `?` matches one.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // The position of the last `*`, and the end of its match.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match (pattern.get(p), star) {
            (Some('*'), _) => {
                star = Some((p, n));
                p += 1;
            }
            (Some(c), _) if *c == '?' || *c == name[n] => (p, n) = (p + 1, n + 1),
            (_, Some((at, taken))) => {
                star = Some((at, taken + 1));
                (p, n) = (at + 1, taken + 1);
            }
            (_, None) => return false,
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_stand_for_others() {
        for pattern in ["self/loss", "self/*", "*", "*loss", "s*/l*s", "self/???s", "**s*s*"] {
            assert!(matches(pattern, "self/loss"), "{pattern}");
        }
        for pattern in ["", "self", "self/", "dcr/*", "self/los", "self/?", "*t", "self/loss?"] {
            assert!(!matches(pattern, "self/loss"), "{pattern}");
        }
        assert!(matches("*", "") && !matches("?", ""));
    }
}
