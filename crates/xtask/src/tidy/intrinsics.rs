//! Back ends match the table of intrinsics, never a name: a new intrinsic is found by the compiler or refused with its name.

use super::{File, Problem};

/// Where intrinsics are compiled.
const BACK_ENDS: &str = "crates/codegen/src/";

/// Where the names of intrinsics are told.
const TABLE: &str = "crates/tir/src/intrin.rs";

/// Texts that begin like a name and are that of an attribute.
const ATTRIBUTES: &[&str] = &["tirx.noalias"];

/// Names that are those of something else, too, each with the file that asks for it.
const OTHERS: &[(&str, &str)] = &[("llvm/convert.rs", "trunc")];

/// Checks the back ends.
pub(super) fn check(files: &[File]) -> Vec<Problem> {
    let Some(table) = files.iter().find(|file| file.path == TABLE) else { return Vec::new() };
    let names = names(&table.text);
    if names.is_empty() {
        return vec![
            table.whole("no row of the table of intrinsics is read any more: mend the rule (xtask, intrinsics.rs)"),
        ];
    }
    let back_ends = files.iter().filter(|file| file.path.starts_with(BACK_ENDS) && file.path.ends_with(".rs"));
    back_ends.flat_map(|file| of_back_end(file, &names)).collect()
}

/// The names in rows of the table: `Exp = "exp", …`, `Fabs = "fabs" or "abs", …`.
fn names(table: &str) -> Vec<&str> {
    let rows = table.lines().filter(|line| line.starts_with("    ") && line.ends_with(';'));
    let named = rows.filter_map(|row| row.split_once(" = \"")).map(|(_, rest)| rest);
    named.flat_map(|rest| rest.split('"').step_by(2)).filter(|name| is_name(name)).collect()
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

fn of_back_end(file: &File, names: &[&str]) -> Vec<Problem> {
    let path = &file.path[BACK_ENDS.len()..];
    let is_other = |text: &str| OTHERS.contains(&(path, text));
    let asked = |line: &str| {
        let pieces: Vec<&str> = line.split('"').collect();
        let mut texts = (1..pieces.len()).step_by(2).map(|at| (pieces[at - 1], pieces[at], pieces.get(at + 1)));
        texts
            .find(|(before, text, behind)| !is_other(text) && is_asked(before, text, behind.unwrap_or(&""), names))
            .map(|(_, t, _)| t.to_string())
    };
    let found = super::code(file).filter_map(|(at, line)| Some((at, asked(line)?)));
    let message =
        |name: &str| format!("a back end asks for the intrinsic {name:?} by name: match `Intrinsic` (tir, intrin.rs)");
    found.map(|(at, name)| file.problem(at, message(&name))).collect()
}

/// Whether a text is compared with the name of an intrinsic: one with the prefix anywhere, one without it as a pattern or beside `==`.
fn is_asked(before: &str, text: &str, behind: &str, names: &[&str]) -> bool {
    if ["tirx.", "tir."].iter().any(|prefix| text.starts_with(prefix)) {
        return !ATTRIBUTES.contains(&text);
    }
    let (before, behind) = (before.trim_end(), behind.trim_start());
    let compared = before.ends_with("==") || before.ends_with("!=") || behind.starts_with("==");
    let is_alternative = behind.starts_with("| ") || before.ends_with(" |");
    let is_first = before.ends_with('(') && behind.starts_with(", [");
    let is_pattern = behind.starts_with("=>") || behind.starts_with("if ") || is_alternative || is_first;
    names.contains(&text) && (compared || is_pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &str = "intrinsics! {\n    /// e to the power of x.\n    Exp = \"exp\", Exactly(1);\n    Fabs = \"fabs\" or \"abs\", Exactly(1);\n}\n";

    fn problems(path: &str, text: &str) -> usize {
        let file = |path: &str, text: &str| File { path: path.into(), text: text.into() };
        check(&[file(TABLE, ROWS), file(path, text)]).len()
    }

    #[test]
    fn names_of_intrinsics_are_not_asked_for() {
        let here = "crates/codegen/src/c/a.rs";
        assert_eq!(problems(here, "    if name == \"exp\" {\n"), 1);
        assert_eq!(problems(here, "        \"abs\" => absolute(),\n"), 1);
        assert_eq!(problems(here, "        (\"fabs\" | \"other\", [x]) => one(),\n"), 1);
        assert_eq!(problems(here, "        (\"exp\", [x]) => one(),\n"), 1);
        assert_eq!(problems(here, "    call.op == \"tirx.unheard_of\"\n"), 1);
        assert_eq!(problems("crates/tir/src/lower/a.rs", "    call.op == \"tirx.exp\"\n"), 0);
    }

    #[test]
    fn names_of_functions_that_are_called_are_free() {
        let here = "crates/codegen/src/c/a.rs";
        assert_eq!(problems(here, "    (Intrinsic::Exp, \"exp\"),\n    f.intrinsic(\"fabs\", x.ty);\n"), 0);
        assert_eq!(problems(here, "    func.attrs.bool(\"tirx.noalias\")\n"), 0);
        assert_eq!(problems(here, "// \"tirx.exp\" is one\n"), 0);
    }

    #[test]
    fn a_table_that_is_written_in_another_way_is_told() {
        let table = File { path: TABLE.into(), text: "enum Intrinsic {}\n".into() };
        assert_eq!(check(&[table]).len(), 1);
    }
}
