//! A pass asks for what an operator's row says, not for its name, unless it is about that operator.
//!
//! Operators are those that compute: `docs/operators.md` says which. Forms of the language (calls of kernels, allocations, closures) are
//! not among them, and what a pass makes of an operator it names anyway (`b.op("add", …)`).

use std::collections::HashSet;

use super::{File, Problem};

const PASSES: &str = "crates/relax/src/transform/";

/// Passes that name operators, each with what it is about.
const ABOUT: &[(&str, &str)] = &[
    ("append/in_place.rs", "reshapes of tensors that were lengthened"),
    ("append/keep.rs", "concatenations that lengthen a parameter"),
    ("checkpoints.rs", "the marks of checkpoints"),
    ("combine_parallel_matmul.rs", "products, and what follows them"),
    ("decompose_inference.rs", "normalization and dropout when a network is used"),
    ("decompose_training.rs", "normalization when a network is trained"),
    ("dispatch.rs", "sorts, scans and sampling that a library has"),
    ("fast_math.rs", "functions that have a faster approximation"),
    ("fold_conv.rs", "convolutions, and what is folded into their weights"),
    ("fold_repeat_to_matmul.rs", "copies of a matrix, and products with them"),
    ("fuse_transpose_matmul.rs", "products with a transposed matrix"),
    ("gradient.rs", "kernels that have a gradient of their own"),
    ("legalize.rs", "an attribute of kernels, which has the name of what they do"),
    ("lower_runtime_builtin.rs", "operators that the VM has as builtins"),
    ("narrow_weights/mod.rs", "weights of products and tables that become narrower"),
    ("optimize_layout_transform.rs", "pairs of changes of a layout"),
    ("pack_weights/mod.rs", "weights of products and convolutions in panels"),
    ("plain_conv.rs", "convolutions of one group"),
    ("redundant_reshape.rs", "reshapes"),
    ("reorder_products.rs", "chains of products"),
    ("vdevice/crossings.rs", "copies between devices, and hints where values are"),
    ("vdevice/device_groups.rs", "copies between devices, and hints where values are"),
];

/// What stands in front of the name of an operator that is made.
const MADE: &[&str] = &[
    "call(",
    ".op(b, ",
    "b.op(",
    "call_typed(",
    "Op::get(",
    "call_te(",
    "call_op(",
    "te::compute(",
    "math(",
    "filled(",
];

/// Checks the passes over Relax.
pub(super) fn check(files: &[File]) -> Vec<Problem> {
    let Some(page) = files.iter().find(|file| file.path == "docs/operators.md") else { return Vec::new() };
    let operators: HashSet<&str> = page.text.lines().filter_map(computing).collect();
    let passes = files.iter().filter(|file| file.path.starts_with(PASSES) && file.path.ends_with(".rs"));
    passes.flat_map(|file| of_pass(file, &operators)).collect()
}

/// The name in a row of the table of operators, if it is one that a kernel computes, or other operators.
fn computing(row: &str) -> Option<&str> {
    let mut cells = row.split(" | ");
    let name = cells.next()?.strip_prefix("| `")?.split('(').next()?;
    matches!(cells.nth(1)?, "kernel" | "operators").then_some(name)
}

fn of_pass(file: &File, operators: &HashSet<&str>) -> Vec<Problem> {
    let path = &file.path[PASSES.len()..];
    let asked = |line: &str| {
        texts(line).into_iter().find(|name| operators.contains(name.trim_start_matches("relax."))).map(str::to_string)
    };
    let named: Vec<(usize, String)> = super::code(file).filter_map(|(at, line)| Some((at, asked(line)?))).collect();
    match ABOUT.iter().any(|(own, _)| *own == path) {
        true if named.is_empty() => vec![file.whole("names no operator any more: remove it from the list (xtask, operators.rs)")],
        true => Vec::new(),
        false => named
            .into_iter()
            .map(|(at, name)| file.problem(at, format!("a pass asks for the operator `{name}` by name: ask its row, or say that the pass is about it (xtask, operators.rs)")))
            .collect(),
    }
}

/// The texts of a line that are not the name of something made.
fn texts(line: &str) -> Vec<&str> {
    let pieces: Vec<&str> = line.split('"').collect();
    let is_asked = |before: &str| !MADE.iter().any(|made| before.ends_with(made));
    (1..pieces.len()).step_by(2).filter(|at| is_asked(pieces[at - 1])).map(|at| pieces[at]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str =
        "| `add(x1, x2)` | x1 + x2. | kernel | B | g |  |\n| `call_tir(func, args)` | Calls. | pass |  |  |  |\n";

    fn problems(pass: &str, text: &str) -> usize {
        let file = |path: String, text: &str| File { path, text: text.into() };
        check(&[file("docs/operators.md".into(), PAGE), file(format!("{PASSES}{pass}"), text)]).len()
    }

    #[test]
    fn passes_name_what_they_are_about() {
        assert_eq!(problems("a.rs", "if name == \"add\" {\n"), 1);
        assert_eq!(problems("a.rs", "if name == Some(\"relax.add\") {\n"), 1);
        assert_eq!(problems("fold_conv.rs", "if name == \"add\" {\n"), 0);
        assert_eq!(problems("fold_conv.rs", "b.op(\"add\", args)\n"), 1);
    }

    #[test]
    fn forms_of_the_language_and_what_is_made_are_free() {
        assert_eq!(problems("a.rs", "if name == \"call_tir\" {\n"), 0);
        assert_eq!(problems("a.rs", "let sum = b.op(\"add\", [x, y], Attrs::new())?;\n"), 0);
        assert_eq!(problems("a.rs", "// as \"add\" does\n"), 0);
    }
}
