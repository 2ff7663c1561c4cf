//! Words that events hold for ever: states and causes.

use std::collections::BTreeSet;
use std::sync::Mutex;

/// More words than all nodes together know, so that a log cannot fill the memory.
const MAX_WORDS: usize = 1_024;
const MAX_LEN: usize = 100;

static WORDS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// The one copy of a word. Events name causes and states by `&'static str`, which a reader can only
/// give by keeping each word that it meets.
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
