//! Crates use only what stands below them.

use super::{File, Problem};

/// The crates from the ground up. A crate may use those before it.
const FLOORS: &[&str] = &[
    "ffi-derive",
    "ffi",
    "runtime",
    "vm",
    "relay-vm",
    "rpc",
    "serve",
    "ir",
    "tir",
    "relax",
    "relay",
    "script",
    "codegen",
    "frontend",
    "onnx",
    "torch",
    "relaxide",
    "cli",
    "capi",
    "onnxruntime",
    "python",
    "testkit",
    "xtask",
];

/// Floors that know nothing of each other although one stands above the other: user, used, why.
const WALLS: &[(&str, &str, &str)] = &[
    ("codegen", "relax", "a back end turns kernels into machine code and knows no graphs"),
    ("codegen", "script", "a back end reads no text"),
    ("frontend", "codegen", "what importers share makes programs and compiles none"),
    ("frontend", "script", "what importers share reads no format"),
    ("frontend", "vm", "programs are data; what runs them stands apart"),
    ("onnx", "codegen", "an importer makes programs and compiles none"),
    ("torch", "codegen", "an importer makes programs and compiles none"),
    ("torch", "onnx", "importers know nothing of each other"),
    ("ir", "runtime", "programs are data; what runs them stands apart"),
    ("ir", "vm", "programs are data; what runs them stands apart"),
    ("tir", "runtime", "programs are data; what runs them stands apart"),
    ("tir", "vm", "kernels know no bytecode"),
    ("script", "vm", "text is about programs, not bytecode"),
];

/// Crates that a deployed model needs: no compiler may come in through them.
const DEPLOYED: &[&str] = &["ffi", "runtime", "vm", "relay-vm", "rpc", "capi"];

/// Libraries that only compilers need.
const COMPILER_ONLY: &[&str] = &["inkwell", "llvm-sys", "prost", "ruff_python_parser"];

/// Rooms of one crate that do not use another: the room, how the other is named in code, why.
const ROOMS: &[(&str, &str, &str)] = &[
    ("crates/relax/src/op/", "crate::transform", "an operator is a row, and passes read rows"),
    ("crates/relax/src/compute.rs", "crate::transform", "what operators compute stands below passes"),
    ("crates/vm/src/builtins/", "crate::machine", "builtins see a `Host`, which the machine is"),
    ("crates/vm/src/closure.rs", "crate::machine", "a closure sees a `Host`, which the machine is"),
    ("crates/relax/src/dpl/", "crate::transform", "patterns are found there, and passes rewrite by them"),
    ("crates/codegen/src/c/", "crate::cuda", "back ends know nothing of each other"),
    ("crates/codegen/src/c/", "crate::opencl", "back ends know nothing of each other"),
    ("crates/codegen/src/llvm/", "crate::opencl", "back ends know nothing of each other"),
    ("crates/codegen/src/opencl/", "crate::cuda", "back ends know nothing of each other"),
];

/// Checks the dependencies of every crate, and those between rooms of one.
pub(super) fn check(files: &[File]) -> Vec<Problem> {
    let manifests = files.iter().filter_map(|file| Some((file, crate_of(&file.path)?)));
    let mut problems: Vec<Problem> = manifests.flat_map(|(file, name)| manifest(file, name)).collect();
    problems.extend(files.iter().flat_map(rooms));
    problems
}

/// Uses of rooms that a file must not know.
fn rooms(file: &File) -> Vec<Problem> {
    let closed: Vec<_> = ROOMS.iter().filter(|(room, _, _)| file.path.starts_with(room)).collect();
    let mut problems = Vec::new();
    for (i, line) in file.text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
        let used = closed.iter().filter(|(_, other, _)| line.contains(&format!("{other}::")));
        problems.extend(
            used.map(|(room, other, why)| file.problem(i + 1, format!("`{room}` does not use `{other}`: {why}"))),
        );
    }
    problems
}

/// The crate whose manifest a path is.
fn crate_of(path: &str) -> Option<&str> {
    path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml").filter(|name| !name.contains('/'))
}

fn manifest(file: &File, user: &str) -> Vec<Problem> {
    let Some(floor) = FLOORS.iter().position(|name| *name == user) else {
        return vec![file.whole(format!("the crate `{user}` has no place in the order of crates (xtask, layers.rs)"))];
    };
    let mut problems = Vec::new();
    for (line, used) in dependencies(&file.text) {
        if DEPLOYED.contains(&user) && COMPILER_ONLY.contains(&used) {
            problems
                .push(file.problem(line, format!("`{user}` is part of every deployed model and cannot use {used}")));
        }
        let used = match used {
            "relaxide" => "relaxide",
            other => match other.strip_prefix("relaxide-") {
                Some(used) => used,
                None => continue,
            },
        };
        match FLOORS.iter().position(|name| *name == used) {
            Some(below) if below < floor => {}
            _ => problems
                .push(file.problem(line, format!("`{user}` cannot use `{used}`, which does not stand below it"))),
        }
        if let Some((_, _, why)) = WALLS.iter().find(|(a, b, _)| *a == user && *b == used) {
            problems.push(file.problem(line, format!("`{user}` cannot use `{used}`: {why}")));
        }
    }
    problems
}

/// The names in `[dependencies]` and `[build-dependencies]`, with their lines; tests may use what they like.
fn dependencies(text: &str) -> Vec<(usize, &str)> {
    let mut inside = false;
    let mut found = Vec::new();
    for (i, line) in text.lines().enumerate() {
        if line.starts_with('[') {
            let section = line.trim_matches(['[', ']']);
            let target = section.starts_with("target.") && !section.ends_with("dev-dependencies");
            inside = matches!(section, "dependencies" | "build-dependencies") || target;
        } else if inside && let Some((key, _)) = line.split_once('=') {
            let name = key.trim().split('.').next().unwrap_or_default();
            if !name.is_empty() && !name.starts_with('#') {
                found.push((i + 1, name));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(name: &str, dependencies: &str) -> Vec<String> {
        let text = format!(
            "[package]\nname = \"x\"\n\n[dependencies]\n{dependencies}\n[dev-dependencies]\nrelaxide = \"1\"\n"
        );
        check(&[File { path: format!("crates/{name}/Cargo.toml"), text }]).iter().map(Problem::to_string).collect()
    }

    #[test]
    fn a_crate_uses_what_stands_below_it() {
        assert!(problems("tir", "relaxide-ir.workspace = true\nrelaxide-ffi.workspace = true").is_empty());
        assert_eq!(
            problems("ir", "relaxide-tir.workspace = true"),
            ["crates/ir/Cargo.toml:5: `ir` cannot use `tir`, which does not stand below it"]
        );
    }

    #[test]
    fn rooms_of_a_crate_are_closed_to_each_other() {
        let of = |path: &str, text: &str| check(&[File { path: path.into(), text: text.into() }]).len();
        assert_eq!(of("crates/relax/src/op/a.rs", "use crate::transform::b;\n"), 1);
        assert_eq!(of("crates/relax/src/op/a.rs", "// as crate::transform::b\nuse crate::shape::b;\n"), 0);
        assert_eq!(of("crates/relax/src/transform/a.rs", "use crate::transform::b;\n"), 0);
    }

    #[test]
    fn walls_hold_between_floors() {
        assert_eq!(problems("codegen", "relaxide-relax.workspace = true").len(), 1);
        assert_eq!(problems("vm", "inkwell.workspace = true").len(), 1);
        assert_eq!(problems("unheard_of", "").len(), 1);
    }
}
