//! Standard terms in the place of coined ones, so that who knows compilers reads on without a stop.

use super::{File, Problem};

/// What is not written, and what is. They are put together here so that this file passes its own rule.
const COINED: &[(&str, &str)] = &[
    (concat!("land", "lord"), "the storage, or the plan of the storage"),
    (concat!("ten", "ant"), "an alias, or a tensor in a storage"),
    (concat!("ho", "med"), "with a register of its own"),
    (concat!("carried", " out"), "executed, or done"),
    (concat!("truth", " value"), "a bool"),
    (concat!("Sig", "ht"), "Visibility"),
    (concat!("kept", "_row"), "cached_row"),
    (concat!("read", "_ahead"), "prefetch"),
    (concat!("put", "_together"), "shuffle, or combine"),
    (concat!("filled", "_before_read"), "written before read"),
    (concat!("long", "_columns"), "the name of what the columns are reduced by"),
    (concat!("schedules by", " hand"), "schedule primitives"),
    (concat!("scheduled by", " hand"), "scheduled manually"),
    (concat!("next", " turn"), "the next iteration"),
    (concat!("each", " turn"), "each iteration"),
    (concat!("Va", "cate"), "Release"),
    (concat!("Re", "cycle"), "CachedAllocation"),
];

/// Checks the sources and the documents.
pub(super) fn check(files: &[File]) -> Vec<Problem> {
    let read = |file: &&File| [".rs", ".py", ".md"].iter().any(|ending| file.path.ends_with(ending));
    let words = |file: &'_ File| -> Vec<Problem> {
        let lines = file.text.lines().enumerate();
        let found = lines.flat_map(|(at, line)| {
            let coined = COINED.iter().filter(move |(coined, _)| has_word(line, coined));
            coined.map(move |(coined, standard)| file.problem(at + 1, format!("{coined:?} is written as {standard}")))
        });
        found.collect()
    };
    files.iter().filter(read).flat_map(words).collect()
}

/// Whether a line has a word, or several, that are no part of longer ones.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line.get(..at).and_then(|head| head.chars().last());
        let behind = line.get(at + word.len()..).and_then(|tail| tail.chars().next());
        !before.is_some_and(char::is_alphanumeric) && !behind.is_some_and(|c| c.is_alphanumeric() && c != 's')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_and_parts_of_words_are_not() {
        let problems = |text: &str| check(&[File { path: "a.rs".into(), text: text.into() }]).len();
        assert_eq!(problems(concat!("// the land", "lords of a ten", "ant")), 2);
        assert_eq!(problems(concat!("// lieutenants, sights, is executed, ten", "ants_of")), 1);
        assert_eq!(problems("// Insight"), 0);
    }
}
