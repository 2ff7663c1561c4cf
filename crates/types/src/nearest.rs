//! Suggests a known name for an unknown word.

/// The maximum number of characters that are compared: no name is longer.
const LONGEST: usize = 64;

/// Returns the number of insertions, deletions, substitutions and transpositions of adjacent
/// letters that turn `word` into `name`, ignoring case.
pub fn distance(name: &str, word: &str) -> usize {
    let lower = |text: &str| -> Vec<char> {
        text.chars().take(LONGEST).map(|c| c.to_ascii_lowercase()).collect()
    };
    let (name, word) = (lower(name), lower(word));
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=name.len()).collect();
    for (row, letter) in word.iter().enumerate() {
        let mut here = vec![row + 1];
        for (at, own) in name.iter().enumerate() {
            let changed = above[at] + usize::from(own != letter);
            let mut least = changed.min(above[at + 1] + 1).min(here[at] + 1);
            if row > 0 && at > 0 && name[at - 1] == *letter && word[row - 1] == *own {
                least = least.min(before[at - 1] + 1);
            }
            here.push(least);
        }
        (before, above) = (above, here);
    }
    above[name.len()]
}

/// Returns the name closest to `word`, if at most a third of the name's letters differ. Of equally
/// close names, it returns the one whose length differs least.
///
/// ```
/// let names = ["reno", "cubic", "westwood"];
/// assert_eq!(airtcp_types::nearest("cubci", names), Some("cubic"));
/// assert_eq!(airtcp_types::nearest("vegas", names), None);
/// ```
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distances = names.into_iter().map(|name| (distance(name, word), name));
    let near = distances.filter(|(distance, name)| distance * 3 <= name.chars().count());
    let length = word.chars().count();
    near.min_by_key(|(distance, name)| (*distance, name.chars().count().abs_diff(length)))
        .map(|(_, name)| name)
}

/// Returns a suggestion to append to serde's message about an unknown name; empty if no accepted
/// name is close, or the message is about something else.
///
/// ```
/// let message = "unknown field `losss`, expected `loss` or `delay`";
/// assert_eq!(airtcp_types::suggestion(message), "; did you mean `loss`?");
/// ```
pub fn suggestion(message: &str) -> String {
    // serde's form: unknown field `a`, expected one of `b`, `c`.
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = quoted.next().filter(|_| message.starts_with("unknown "));
    let meant = unknown.and_then(|word| nearest(word, quoted));
    meant.map_or(String::new(), |name| format!("; did you mean `{name}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_unknown_name_has_a_suggestion() {
        let names = "expected one of `plain`, `tcp-ecn`, `snoop`";
        assert_eq!(
            suggestion(&format!("unknown variant `snop`, {names}")),
            "; did you mean `snoop`?"
        );
        assert_eq!(
            suggestion(&format!("unknown variant `TCP-ECN`, {names}")),
            "; did you mean `tcp-ecn`?"
        );
        for other in ["unknown field `a`, there are no fields", "missing field `a`", "unknown ", ""]
        {
            assert_eq!(suggestion(other), "", "{other}");
        }
        assert_eq!(suggestion(&format!("unknown variant `vegas`, {names}")), "");
    }

    #[test]
    fn each_kind_of_slip_is_one() {
        for word in ["reno", "RENO"] {
            assert_eq!(distance("reno", word), 0);
        }
        for word in ["ren", "renoo", "remo", "erno", "reon"] {
            assert_eq!((distance("reno", word), distance(word, "reno")), (1, 1), "{word}");
        }
        assert_eq!((distance("", "abc"), distance("abc", ""), distance("", "")), (3, 3, 0));
        assert!(distance("reno", &"x".repeat(100_000)) <= LONGEST);
    }

    #[test]
    fn of_equally_close_names_the_one_of_the_same_length_is_meant() {
        assert_eq!(nearest("bbr4", ["bbr", "bbr3"]), Some("bbr3"));
        assert_eq!(nearest("bbrr", ["bbr3", "bbr"]), Some("bbr3"));
        assert_eq!(nearest("bb", ["bbr", "bbr3"]), Some("bbr"));
    }

    #[test]
    fn what_is_too_far_is_no_hint() {
        let names = ["rr", "fack", "sack", "warm_up"];
        assert_eq!(nearest("sakc", names), Some("sack"));
        assert_eq!(nearest("warmup", names), Some("warm_up"));
        for word in ["", "r", "x", "back-off", "newreno"] {
            assert_eq!(nearest(word, names), None, "{word}");
        }
    }
}
