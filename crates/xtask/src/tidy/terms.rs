//! Standard terms in the place of coined ones, so that who knows compilers reads on without a stop.

use super::{File, Problem};

/// What is not written, and what is. They are put together here so that this file passes its own rule.
const COINED: &[(&str, &str)] = &[
    (concat!("land", "lord"), "the storage, or the plan of the storage"),
    (concat!("ten", "ant"), "an alias, or a tensor in a storage"),
    (concat!("ho", "med"), "with a register of its own"),
    (concat!("carried", " out"), "executed, or done"),
    (concat!("carries", " out"), "executes, or does"),
    (concat!("Carries", " out"), "executes, or does"),
    (concat!("Carrying", " out"), "executing"),
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
    (concat!("turn of", " the loop"), "an iteration"),
    (concat!("turns of", " the loop"), "iterations"),
    (concat!("turns of", " a loop"), "iterations"),
    (concat!("tuples", " opened"), "tuples flattened"),
    (concat!("operator is", " opened"), "decomposed"),
    (concat!("operators are", " opened"), "decomposed"),
    (concat!("sequences", " opened"), "sequences flattened"),
    (concat!("Va", "cate"), "Release"),
    (concat!("Re", "cycle"), "CachedAllocation"),
];

/// Words that English needs, but that no name in a source has; and what is in their place. Others of their kind (opened, raised, saved, finish,
/// turn) have a meaning that programs know (a file, an error, a queue), and are left to who reads a change.
const COINED_NAMES: &[(&str, &str)] = &[
    (concat!("Tu", "rns"), "iterations"),
    (concat!("Bound", "ary"), "captures"),
    (concat!("Ag", "ain"), "a cached allocation"),
    (concat!("Toge", "ther"), "cooperative threads, or a row batch"),
    (concat!("Spi", "lled"), "padded"),
    (concat!("Repe", "ated"), "overlapping"),
    (concat!("pic", "ked"), "gathered, chosen, or shuffled"),
    (concat!("le", "nd"), "export, borrow, or copy"),
    (concat!("le", "nt"), "exported, or borrowed"),
    (concat!("pa", "ce"), "a rate"),
    (concat!("reg", "roup"), "partition"),
    (concat!("sha", "ping"), "shape options"),
    (concat!("grow", "ing"), "resized"),
    (concat!("tur", "ned"), "transposed, reversed, or rotated"),
    (concat!("is_tur", "ned"), "is_transposed, is_reversed, or is_rotated"),
];

/// Names that are words of sentences, too, as code declares them.
const COINED_DECLARATIONS: &[(&str, &str)] = &[
    (concat!("let re", "ach"), "dilated_extent, covered, or support"),
    (concat!("fn re", "ach"), "dilated_extent"),
    (concat!("re", "ach:"), "dilated_extent"),
    (concat!("fn ope", "ned(stmt"), "decomposed, or flattened"),
];

/// Modules by the name of their file.
const COINED_MODULES: &[(&str, &str)] = &[
    (concat!("pha", "ses"), "polyphase"),
    (concat!("pla", "ces"), "gather_scatter"),
    (concat!("ven", "dor"), "com_microsoft"),
    (concat!("tu", "rns"), "loops"),
    (concat!("bound", "ary"), "captures"),
];

/// Checks the sources and the documents.
pub(super) fn check(files: &[File]) -> Vec<Problem> {
    let mut problems = written(files);
    let sources = files.iter().filter(|file| file.path.ends_with(".rs"));
    for file in sources.filter(|file| !file.path.ends_with("xtask/src/tidy/terms.rs")) {
        problems.extend(module(file));
        for (at, line) in super::code(file) {
            let coined = names(line).filter_map(|found| COINED_NAMES.iter().find(|(name, _)| *name == found));
            problems.extend(
                coined
                    .chain(COINED_DECLARATIONS.iter().filter(|(declared, _)| has_word(line, declared)))
                    .map(|(name, standard)| file.problem(at, format!("the name {name:?} is coined: {standard}"))),
            );
        }
    }
    problems
}

/// A module whose name is coined.
fn module(file: &File) -> Option<Problem> {
    let path = file.path.trim_end_matches("/mod.rs").trim_end_matches(".rs");
    let name = path.rsplit('/').next().unwrap_or(path);
    let (_, standard) = COINED_MODULES.iter().find(|(coined, _)| *coined == name)?;
    Some(file.whole(format!("the module's name is coined: {standard}")))
}

/// The names in a line of code, without those in texts.
fn names(line: &str) -> impl Iterator<Item = &str> {
    line.split('"').step_by(2).flat_map(|code| code.split(|c: char| !c.is_alphanumeric() && c != '_'))
}

fn written(files: &[File]) -> Vec<Problem> {
    let read = |file: &&File| [".rs", ".py", ".md"].iter().any(|ending| file.path.ends_with(ending));
    let words = |file: &'_ File| -> Vec<Problem> {
        let lines = file.text.lines().enumerate();
        let found = lines.flat_map(|(at, line)| {
            let coined = COINED.iter().filter(move |(coined, _)| {
                has_word(line, coined) || coined.contains(' ') && has_word(line, &coined.replace(' ', "_"))
            });
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
    fn names_are_found_in_code_alone() {
        let problems = |path: &str, text: &str| check(&[File { path: path.into(), text: text.into() }]).len();
        let name = concat!("pic", "ked");
        assert_eq!(problems("a.rs", &format!("    let {name} = all;\n")), 1);
        assert_eq!(problems("a.rs", &format!("    // what was {name}\n    f(\"{name}\", {name}_up);\n")), 0);
        assert_eq!(problems("a.rs", concat!("    let re", "ach = a + b;\n    // as far as windows reach\n")), 1);
        assert_eq!(problems(concat!("a/pha", "ses.rs"), ""), 1);
        assert_eq!(problems(concat!("a/tu", "rns/mod.rs"), ""), 1);
    }

    #[test]
    fn words_are_found_and_parts_of_words_are_not() {
        let problems = |text: &str| check(&[File { path: "a.rs".into(), text: text.into() }]).len();
        assert_eq!(problems(concat!("// the land", "lords of a ten", "ant")), 2);
        assert_eq!(problems(concat!("// lieutenants, sights, is executed, ten", "ants_of")), 1);
        assert_eq!(problems("// Insight"), 0);
        assert_eq!(problems(concat!("fn is_carried", "_out() {}")), 1);
    }
}
