//! Interned strings of events: states and causes.

use std::collections::BTreeSet;
use std::sync::Mutex;

/// The maximum number of strings, above that of all nodes together, to bound the memory.
const MAX_WORDS: usize = 1_024;
const MAX_LEN: usize = 100;

static WORDS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// Returns the interned string. Events contain causes and states as `&'static str`, so a reader
/// must leak each different one.
pub(super) fn word(text: &str) -> Result<&'static str, String> {
    let mut words = WORDS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(word) = words.get(text) {
        return Ok(word);
    }
    if text.len() > MAX_LEN || words.len() == MAX_WORDS {
        return Err("too many or too long names of causes".to_owned());
    }
    let word: &'static str = Box::leak(text.to_owned().into_boxed_str());
    words.insert(word);
    Ok(word)
}
