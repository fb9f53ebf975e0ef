//! Kernels that outlive the compilation that made them.

use relaxide::codegen::{Cache, CacheUse};
use relaxide::{CompileOptions, Executable, Target};
use relaxide_testkit::models::PROGRAM;

fn compile(cache: &Cache, target: Target) -> Executable {
    let module = relaxide::parse_script(PROGRAM, "program").unwrap();
    let cache = Some(cache.clone());
    relaxide::compile(&module, &mut CompileOptions { cache, target, ..CompileOptions::default() }).unwrap()
}

#[test]
fn kernels_are_compiled_once() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path().join("kernels"));
    let file_of = |executable: &Executable| {
        let path = folder.path().join("model.so");
        executable.export_library(&path).unwrap();
        std::fs::read(path).unwrap()
    };
    let first = compile(&cache, Target::default());
    let objects = first.cache_use().kept;
    assert!(objects > 0 && first.cache_use().found == 0, "{:?}", first.cache_use());
    let again = compile(&cache, Target::default());
    assert_eq!(*again.cache_use(), CacheUse { found: objects, ..CacheUse::default() });
    assert!(file_of(&first) == file_of(&again));
    // Another processor needs other code, perhaps in more parts.
    let other = compile(&cache, "llvm -mtriple=x86_64-linux-gnu -mcpu=nehalem".parse().unwrap());
    assert!(other.cache_use().kept > 0 && other.cache_use().found == 0, "{:?}", other.cache_use());
    // Whatever is damaged is made anew, and whole again afterwards.
    for entry in std::fs::read_dir(cache.folder()).unwrap() {
        std::fs::write(entry.unwrap().path(), b"RLXOBJ01 and nothing that fits").unwrap();
    }
    let repaired = compile(&cache, Target::default());
    assert_eq!(*repaired.cache_use(), CacheUse { kept: objects, ..CacheUse::default() });
    assert!(file_of(&first) == file_of(&repaired));
    assert_eq!(compile(&cache, Target::default()).cache_use().found, objects);
}

#[test]
fn a_folder_that_cannot_be_written_is_said_and_costs_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, b"in the way").unwrap();
    let executable = compile(&Cache::at(file.join("kernels")), Target::default());
    let used = executable.cache_use();
    assert!(used.problem.is_some() && used.kept == 0, "{used:?}");
    executable.jit().unwrap();
}

#[test]
fn kernels_are_shown_as_llvm_and_as_assembly() {
    let folder = tempfile::tempdir().unwrap();
    let executable = compile(&Cache::at(folder.path()), Target::default());
    let text = executable.inspect_source("").unwrap();
    assert!(text.contains("target triple") && text.contains("define dso_local i32 @__tvm_ffi_matmul("), "{text}");
    assert_eq!(executable.inspect_source("ll").unwrap(), text);
    let assembly = executable.inspect_source("asm").unwrap();
    assert!(assembly.contains("__tvm_ffi_matmul:") && assembly.contains("ret"), "{assembly}");
    let error = executable.inspect_source("cobol").unwrap_err();
    assert!(error.to_string().contains("not as \"cobol\""), "{error}");
}
