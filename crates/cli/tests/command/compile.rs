//! `relaxide compile`.

use crate::workplace::{Workplace, is_made, masked};

#[test]
fn a_compilation_says_its_stages_what_it_made_and_how_to_run_it() {
    let place = Workplace::with_models();
    let ended = place.ok("compile model.relax --dim n=1..64");
    assert_eq!(ended.out, "");
    let said = ended.err_masked();
    let stages: Vec<&str> = said.lines().take(5).map(|line| line.split(" #").next().unwrap()).collect();
    assert_eq!(stages, ["import", "passes", "kernels", "native code", "export"]);
    let rest: Vec<&str> = said.lines().skip(5).collect();
    assert!(
        rest[0].starts_with("wrote model.so (") && rest[0].ends_with(" 4 kernels) from model.relax in # s"),
        "{said}"
    );
    assert!(rest.last().unwrap().starts_with("for: this machine's processor ("), "{said}");
    assert_eq!(
        rest[1..rest.len() - 1],
        [
            "main(x: float32[n, 4], w: float32[4, 8]) -> R.Tensor((8,), dtype=\"float32\")",
            "n from 1 to 64",
            "pair(x: float32[2]) -> R.Tuple(R.Tensor((2,), dtype=\"float32\"), R.Tensor((2,), dtype=\"float32\"))",
            "next: relaxide run model.so --dim n=1",
        ]
    );
    let next = rest[rest.len() - 2].strip_prefix("next: relaxide ").unwrap();
    assert!(place.ok(next).out.starts_with("output: float32[8]"));
}

#[test]
fn quiet_is_quiet_and_json_is_one_object() {
    let place = Workplace::with_models();
    let ended = place.ok("compile model.onnx -q -o quiet.so");
    assert_eq!((ended.out.as_str(), ended.err.as_str()), ("", ""));
    let answer = place.json("compile model.onnx -o model.so");
    assert_eq!((&answer["command"], &answer["version"]), (&"compile".into(), &1.into()));
    assert_eq!(answer["output"], "model.so");
    assert_eq!(answer["functions"][0]["params"][0]["shape"], serde_json::json!(["batch", 3, 8, 8]));
    assert_eq!(answer["functions"][0]["dims"][0]["name"], "batch");
    assert_eq!(answer["stages"].as_array().unwrap().len(), 5);
    assert!(answer["bytes"].as_u64().unwrap() > 1000 && answer["kernels"].as_u64().unwrap() > 1);
    assert_eq!(answer["header"], serde_json::Value::Null);
}

#[test]
fn shapes_and_dims_rename_bound_and_fix_dimensions() {
    let place = Workplace::with_models();
    place.ok("compile model.onnx -q -o named.so --shape image=many,3,8,8 --dim many=1..4");
    assert_eq!(place.ok("run named.so --dim many=4").code, 0);
    let beyond = place.run("run named.so --dim many=5");
    assert_eq!(beyond.code, 1);
    assert!(beyond.err.starts_with("error[E0606]: many is 5, outside of"), "{}", beyond.err);
    place.ok("compile model.onnx -q -o fixed.so --dim batch=2");
    let signature = place.ok("inspect fixed.so").out;
    assert!(signature.starts_with("main(image: float32[2, 3, 8, 8]) -> "), "{signature}");
    let unknown = place.run("compile model.onnx --dim bach=2");
    assert_eq!(unknown.code, 2);
    assert!(unknown.err.contains("there is no symbolic dimension \"bach\"") && unknown.err.contains("batch"));
}

#[test]
fn half_precision_gives_nearly_the_same() {
    let place = Workplace::with_models();
    place.ok("compile model.onnx -q -o full.so");
    place.ok("compile model.onnx -q -o half.so --precision float16");
    let head = |file: &str| place.json(&format!("run {file} --dim batch=1"))["outputs"][0]["head"].clone();
    let numbers = |head: serde_json::Value| -> Vec<f64> { serde_json::from_value(head).unwrap() };
    let (full, half) = (numbers(head("full.so")), numbers(head("half.so")));
    assert_ne!(full, half);
    assert!(full.iter().zip(&half).all(|(a, b)| (a - b).abs() < 1e-2), "{full:?} {half:?}");
    // Its matrices are too small to be kept in fewer bits.
    for precision in ["int8-weights", "int4-weights", "bf16"] {
        place.ok(&format!("compile model.onnx -q -o weights.so --precision {precision}"));
        assert_eq!(numbers(head("weights.so")), full);
    }
}

#[test]
fn the_target_c_makes_a_file_of_c_and_a_header() {
    let place = Workplace::with_models();
    let ended = place.ok("compile model.relax --target c");
    assert!(masked(&ended.err).ends_with("next: include model.h and link model.c"), "{}", ended.err);
    assert!(is_made(&place.path("model.c")) && is_made(&place.path("model.h")));
    let source = std::fs::read_to_string(place.path("model.c")).unwrap();
    assert!(source.contains("TVMFFI"), "it is C for the runtime");
    let wrong = place.run("compile model.relax --target c -o model.so");
    assert_eq!(wrong.code, 1, "{}", wrong.err);
    assert!(wrong.err.contains("write a file that ends in .c"), "{}", wrong.err);
}

#[test]
fn archives_have_headers_and_kernels_are_explained() {
    let place = Workplace::with_models();
    place.ok("compile model.relax -q -o libmodel.a --prefix my_");
    assert!(is_made(&place.path("libmodel.a")));
    assert!(std::fs::read_to_string(place.path("libmodel.h")).unwrap().contains("my_"));
    let explained = place.ok("compile model.relax -q --explain").out;
    assert!(explained.contains("matmul:"), "{explained}");
}

#[test]
fn what_becomes_of_weights_is_explained() {
    let place = Workplace::new();
    let rows: Vec<String> = (0..64).map(|row| format!("[{}]", vec![format!("{}.0", row % 7); 64].join(", "))).collect();
    let program = format!(
        "@I.ir_module\nclass Module:\n    @R.function\n    def main(x: R.Tensor((2, 64), \"float32\"), \
         y: R.Tensor((64, 64), \"float32\")):\n        with R.dataflow():\n            \
         narrow = R.matmul(x, R.const([{rows}], \"float32\"))\n            \
         kept = R.add(y, R.const([{rows}], \"float32\"))\n            R.output(narrow, kept)\n        \
         return (narrow, kept)\n",
        rows = rows.join(", ")
    );
    place.write("weights.relax", &program);
    let said = place.ok("compile weights.relax -q --precision int8 --explain").out;
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("weights 64x64")).collect();
    let kept = "main: kept: weights 64x64 stay float32: add reads it, which is no product and no lookup of rows";
    assert_eq!(lines, ["main: narrow: weights 64x64 in int8", kept], "{said}");
    let answer = place.json("compile weights.relax --precision int4-weights --explain");
    assert_eq!(answer["narrowed"][0]["dtype"], "int4");
    assert!(answer["narrowed"][1]["stays"].as_str().unwrap().starts_with("add reads it"), "{answer}");
}

/// The parameter of the only convolution in what a compilation says of its decisions.
fn rows_of(answer: &mut serde_json::Value) -> &mut serde_json::Value {
    let kernels = answer["schedule"].as_array_mut().unwrap().iter_mut();
    let mut pieces = kernels.flat_map(|kernel| kernel["pieces"].as_array_mut().unwrap());
    let conv = pieces.find(|piece| piece["rule"] == "conv").unwrap();
    conv["parameters"].as_array_mut().unwrap().iter_mut().find(|parameter| parameter["name"] == "rows").unwrap()
}

#[test]
fn decisions_of_schedule_rules_are_printed_and_replaced() {
    let place = Workplace::with_models();
    let explained = place.ok("compile model.onnx -q -o guessed.so --dim batch=1 --explain").out;
    assert!(explained.contains(" rows = ") && explained.contains("registers"), "{explained}");
    let mut answer = place.json("compile model.onnx -o guessed.so --dim batch=1 --explain");
    let guess = rows_of(&mut answer)["value"].as_i64().unwrap();
    let other = if guess == 2 { 3 } else { 2 };
    rows_of(&mut answer)["value"] = other.into();
    place.write("kernels.json", &answer.to_string());
    let mut changed = place.json("compile model.onnx -o changed.so --dim batch=1 --explain --schedule kernels.json");
    let rows = rows_of(&mut changed);
    assert_eq!((rows["value"].as_i64(), rows["guess"].as_i64()), (Some(other), Some(guess)));
    let run = |file: &str| place.json(&format!("run {file}"))["outputs"].clone();
    assert_eq!(run("guessed.so"), run("changed.so"));
    let said = place.ok("compile model.onnx -q -o changed.so --dim batch=1 --explain --schedule kernels.json").out;
    assert!(said.contains(&format!("as asked; the guess is {guess}")), "{said}");
    // Values that it cannot have, and files that are no decisions.
    rows_of(&mut answer)["value"] = 9999.into();
    place.write("wrong.json", &answer.to_string());
    let refused = place.run("compile model.onnx -q -o wrong.so --dim batch=1 --schedule wrong.json");
    assert_eq!(refused.code, 1, "{}", refused.err);
    let said = "rule conv: rows = 9999 is refused: the value is one of 1 to 4, because";
    assert!(
        refused.err.starts_with("error[E0608]: s_tir.transform.ApplyScheduleRules: kernel ")
            && refused.err.contains(said),
        "{}",
        refused.err
    );
    place.write("none.json", "{}");
    let refused = place.run("compile model.onnx -q --schedule none.json");
    assert!(refused.code == 1 && refused.err.contains("is expected to be a list, and is missing"), "{}", refused.err);
    assert_eq!(place.run("compile model.onnx --schedule nowhere.json").code, 1);
}

#[test]
fn all_that_keeps_a_model_from_being_imported_is_listed_with_what_to_do() {
    let place = Workplace::new();
    std::fs::write(place.path("odd.onnx"), relaxide_testkit::models::unsupported()).unwrap();
    let ended = place.run("compile odd.onnx");
    assert_eq!(ended.code, 1);
    assert!(ended.err.contains("error[E0502]: the ONNX model cannot be imported: 2 problems"), "{}", ended.err);
    assert!(ended.err.contains("Frobnicate (node `Frobnicate_of_a`"), "{}", ended.err);
    assert!(ended.err.contains("Grumble (node `Grumble_of_c`") && ended.err.contains("docs/onnx.md"), "{}", ended.err);
    let answer = place.run("compile odd.onnx --json");
    let error: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
    assert_eq!(error["error"]["code"], "E0502");
    assert_eq!(error["error"]["details"].as_array().unwrap().len(), 2);
}

#[test]
fn nothing_is_destroyed_that_was_not_written_here() {
    let place = Workplace::with_models();
    let model = std::fs::read(place.path("model.onnx")).unwrap();
    let same = place.run("compile model.onnx -o model.onnx");
    assert_eq!(same.code, 2, "{}", same.err);
    std::os::unix::fs::symlink(place.path("model.onnx"), place.path("link.so")).unwrap();
    let linked = place.run("compile model.onnx -o link.so");
    assert_eq!(linked.code, 2, "{}", linked.err);
    assert!(linked.err.contains("would replace"), "{}", linked.err);
    assert_eq!(std::fs::read(place.path("model.onnx")).unwrap(), model);
    for (file, args) in [("net.h", "-o net.o"), ("model.safetensors", "--weights safetensors")] {
        place.write(file, "somebody else's");
        let refused = place.run(&format!("compile model.onnx {args}"));
        assert_eq!(refused.code, 1, "{}", refused.err);
        assert!(refused.err.contains(file) && refused.err.contains("was not written by Relaxide"), "{}", refused.err);
        assert_eq!(std::fs::read_to_string(place.path(file)).unwrap(), "somebody else's");
    }
    // Its own files of another time are replaced.
    (0..2).for_each(|_| drop(place.ok("compile model.onnx -q -o own.o")));
}

#[test]
fn endings_that_mean_something_else_and_places_that_are_no_files_are_refused() {
    let place = Workplace::with_models();
    for output in ["m.dll", "m.dylib", "m.exe", "m.onnx", "m.py", "m.safetensors", "m.tar", "/dev/null"] {
        let refused = place.run(&format!("compile model.relax -o {output}"));
        assert_ne!(refused.code, 0, "{output}");
        assert!(refused.err.contains(output), "{output}: {}", refused.err);
    }
}

#[test]
fn a_file_says_which_processor_it_is_for_and_is_refused_elsewhere() {
    let place = Workplace::with_models();
    let said = place.ok("compile model.relax -o here.so").err;
    assert!(said.lines().last().unwrap().starts_with("for: this machine's processor ("), "{said}");
    let target = place.json("inspect here.so")["target"].as_str().unwrap().to_string();
    assert!(target.contains("-mcpu="), "{target}");
    place.ok_with("compile model.relax -q -o other.so --target", "llvm -mtriple=x86_64-linux-gnu -mcpu=diamondrapids");
    let refused = place.run("run other.so --dim n=1");
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("this one lacks") || refused.err.contains("architecture"), "{}", refused.err);
}

/// A file for several processors gives the same with the kernels of each that this machine has, and says which it takes.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_file_for_several_processors_takes_the_best_of_them() {
    const LEVELS: [&str; 3] = ["x86-64-v2", "x86-64-v3", "x86-64-v4"];
    let place = Workplace::with_models();
    place.ok("compile model.onnx -q -o one.so --target x86-64-v2");
    let said = place.ok("compile model.onnx -o all.so --target x86-64-v4,x86-64-v2,x86-64-v3").err;
    assert!(said.contains("for: x86-64-v2, x86-64-v3, x86-64-v4, the best of which"), "{said}");
    place.ok("compile model.onnx -q -o native.so --exec-mode compiled --target x86-64-v2,x86-64-v3,x86-64-v4");
    let kernels = |file: &str| place.json(&format!("inspect {file}"))["kernels"].clone();
    assert_eq!(kernels("one.so"), kernels("all.so"));
    let head = |forced: Option<&str>, file: &str| -> Vec<f64> {
        let ended = place.run_for(forced, &format!("run {file} --dim batch=2 --json"));
        assert_eq!(ended.code, 0, "{}", ended.err);
        let answer: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
        serde_json::from_value(answer["outputs"][0]["head"].clone()).unwrap()
    };
    let expected = head(None, "one.so");
    let mut ran = 0;
    for level in LEVELS {
        let taken = place.run_for(Some(level), "inspect all.so --json");
        let answer: serde_json::Value = serde_json::from_str(&taken.out).unwrap();
        let rows = answer["processors"].as_array().unwrap();
        assert_eq!(rows.iter().map(|row| row["variant"].as_str().unwrap()).collect::<Vec<_>>(), LEVELS);
        // A machine without the instructions refuses, and names them.
        let Some(_) = rows.iter().find(|row| row["variant"] == level && row["taken_here"] == true) else {
            let refused = place.run_for(Some(level), "run all.so --dim batch=2");
            assert!(refused.code == 1 && refused.err.contains("this one lacks"), "{}", refused.err);
            continue;
        };
        ran += 1;
        for file in ["all.so", "native.so"] {
            let found = head(Some(level), file);
            assert!(expected.iter().zip(&found).all(|(a, b)| (a - b).abs() < 1e-4), "{level} {file}: {found:?}");
        }
    }
    assert!(ran >= 1);
    let text = place.ok("inspect all.so").out;
    assert!(text.matches("(taken here)").count() == 1, "{text}");
    let unknown = place.run_for(Some("i486"), "run all.so --dim batch=2");
    assert!(unknown.code == 1 && unknown.err.contains("x86-64-v2, x86-64-v3, x86-64-v4"), "{}", unknown.err);
    // A library for one processor is as it is.
    assert_eq!(head(Some("i486"), "one.so"), expected);
}

#[test]
fn processors_that_cannot_be_in_one_file_are_refused() {
    let place = Workplace::with_models();
    for (target, code, said) in [
        ("c,llvm", 1, "is no native code"),
        ("llvm -mtriple=x86_64-linux-gnu,llvm -mtriple=aarch64-linux-gnu", 1, "are different machines"),
        ("wasm,wasm", 1, "a WebAssembly module has kernels for one machine"),
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=corei7,nehalem", 1, "have the same instructions"),
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=corei7,nehalam", 2, "did you mean nehalem"),
    ] {
        let refused = place.run_with("compile model.relax -q -o model.so --target", target);
        assert!(refused.err.contains(said), "{target}: {} {}", refused.code, refused.err);
        assert!(refused.code > 0 && refused.code <= code.max(2), "{target}: {}", refused.code);
    }
    let one = place.run_with("run model.relax --dim n=1 --target", "x86-64-v2,x86-64-v3");
    assert!(one.code == 2 && one.err.contains("names several processors"), "{}", one.err);
}

#[test]
fn a_target_may_be_a_dictionary() {
    let place = Workplace::with_models();
    place.ok_with("compile model.relax -q -o model.so --target", r#"{"kind": "llvm", "opt-level": 1}"#);
    let wrong = place.run_with("compile model.relax -q -o model.so --target", "{\"kind\": 3");
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("no dictionary of JSON"), "{}", wrong.err);
}

#[test]
fn a_program_in_relay_is_compiled_like_any_other() {
    let place = Workplace::new();
    place.write(
        "twice.relay",
        "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {\n  add(%x, %x)\n}\n",
    );
    place.ok("compile twice.relay -q -o twice.so");
    place.write("x.txt", "1 2 3\n4 5 6\n");
    let answer = place.json("run twice.so --input x.txt");
    assert_eq!(answer["outputs"][0]["head"], serde_json::json!([2.0, 4.0, 6.0, 8.0, 10.0, 12.0]));
    place.write("wrong.relay", "#[version = \"0.0.5\"]\ndef @main(%x: Tensor[(2, 3), float32]) { ad(%x, %x) }\n");
    let refused = place.run("compile wrong.relay");
    assert!(refused.code == 1 && refused.err.contains("wrong.relay"), "{} {}", refused.code, refused.err);
}
