//! A target's kind is asked for in the table of kinds and in the back end of that kind, nowhere else.

use super::{File, Problem};

/// Where kinds are told apart.
const OWNERS: &[&str] = &["crates/ir/src/target/", "crates/codegen/src/"];

/// Other files that name a kind, each with the reason.
const NAMED: &[(&str, &str)] = &[
    ("crates/relax/src/transform/pipeline.rs", "TVM's choice of a default pipeline is by kind"),
    (
        "crates/tir/src/lower/lower_intrin.rs",
        "calls of LLVM's functions are for its kind, as in TVM's pass of this name",
    ),
    ("crates/tir/src/lower/promote_floats.rs", "types that generations of NVIDIA's devices compute in"),
    ("crates/tir/src/schedule/machine.rs", "what a machine can do follows from its kind"),
];

/// Checks the sources of every crate.
pub(super) fn check(files: &[File]) -> Vec<Problem> {
    let is_read = |file: &&File| {
        file.path.starts_with("crates/")
            && file.path.ends_with(".rs")
            && file.path.contains("/src/")
            && !file.path.starts_with("crates/xtask/")
            && !OWNERS.iter().any(|owner| file.path.starts_with(owner))
    };
    files.iter().filter(is_read).flat_map(of_file).collect()
}

fn of_file(file: &File) -> Vec<Problem> {
    let named: Vec<usize> = super::code(file).filter(|(_, line)| names_kind(line)).map(|(at, _)| at).collect();
    match NAMED.iter().any(|(path, _)| *path == file.path) {
        true if named.is_empty() => {
            vec![file.whole("names no target's kind any more: remove it from the list (xtask, targets.rs)")]
        }
        true => Vec::new(),
        false => {
            let message = "a target's kind is known to the table of kinds and to its back end: ask the table what the kind is among, or the back end's profile";
            named.into_iter().map(|at| file.problem(at, message)).collect()
        }
    }
}

/// Whether a line has a kind by name (`TargetKind::Cuda`), not a function of the type (`TargetKind::named`), or compares a text with one.
fn names_kind(line: &str) -> bool {
    let variant = |(at, name): (usize, &str)| {
        line[at + name.len()..].chars().next().is_some_and(|first| first.is_ascii_uppercase())
    };
    line.match_indices(concat!("Target", "Kind::")).any(variant)
        || ["target.kind == \"", "target.kind.name() == \"", "target.kind() == \""]
            .iter()
            .any(|asked| line.contains(asked))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_named_where_they_are_known() {
        let of = |path: &str, text: &str| check(&[File { path: path.into(), text: text.into() }]).len();
        let line = concat!("    if target.kind == Target", "Kind::Cuda {\n");
        assert_eq!(of("crates/tir/src/lower/a.rs", line), 1);
        assert_eq!(of("crates/tir/src/lower/a.rs", "    if target.kind.name() == \"c\" {\n"), 1);
        assert_eq!(of("crates/codegen/src/cuda/a.rs", line), 0);
        assert_eq!(of("crates/tir/src/lower/a.rs", concat!("    Target", "Kind::named(kind)\n")), 0);
        assert_eq!(of("crates/tir/src/lower/a.rs", concat!("// as Target", "Kind::Cuda\n")), 0);
        // A reason that has become none is found, too.
        assert_eq!(of("crates/tir/src/schedule/machine.rs", "fn f() {}\n"), 1);
    }
}
