//! `relaxide run`: inputs of every kind, outputs of every kind.

use crate::workplace::Workplace;

/// A folder with `model.so` of the program.
fn compiled() -> Workplace {
    let place = Workplace::with_models();
    place.ok("compile model.relax -q");
    place
}

#[test]
fn random_inputs_are_the_same_every_time_unless_the_seed_is_another() {
    let place = compiled();
    let first = place.ok("run model.so --dim n=3").out;
    assert_eq!(first, place.ok("run model.so --shape x=3,4").out);
    assert_ne!(first, place.ok("run model.so --dim n=3 --seed 1").out);
    assert!(first.starts_with("output: float32[8]  min 0."), "{first}");
}

#[test]
fn results_become_files_that_are_inputs_again() {
    let place = compiled();
    let said = place.ok("run model.so -f pair --input x=1,2 --output two.npz").out;
    assert_eq!(said, "wrote two.npz: output 0 float32[2]\nwrote two.npz: output 1 float32[2]\n");
    let named = place.run("run model.so -f pair --input x=two.npz");
    assert_eq!(named.code, 2);
    assert!(
        named.err.contains("two.npz has no array \"x\"") && named.err.contains("output_0, output_1"),
        "{}",
        named.err
    );
    place.ok("run model.so -f pair --input 3,5 --output parts");
    let answer = place.json("run model.so -f pair --input parts.0.npy");
    assert_eq!(answer["outputs"][0]["head"], serde_json::json!([12.0, 20.0]));
    assert_eq!(answer["outputs"][1]["place"], "1");
}

#[test]
fn an_archive_gives_every_input_by_name() {
    let place = compiled();
    place.write("x.txt", "1 2 3 4\n5, 6, 7, 8\n");
    let from_text = place.ok("run model.so --input x=x.txt --fill random --seed 4").out;
    assert!(from_text.starts_with("output: float32[8]"));
    // Sixteen numbers are four rows; ten are none.
    assert_eq!(place.run("run model.so --input x=1,2,3,4,5,6,7,8 --fill random").code, 0);
    let wrong = place.run("run model.so --input x=1,2,3 --fill random");
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("3 numbers do not fill input x of shape (?, 4)"), "{}", wrong.err);
}

#[test]
fn a_model_that_is_not_compiled_is_compiled_first() {
    let place = Workplace::with_models();
    place.ok("compile model.onnx -q");
    assert_eq!(place.ok("run model.onnx --dim batch=2").out, place.ok("run model.so --dim batch=2").out);
}

#[test]
fn what_does_not_fit_is_said() {
    let place = compiled();
    let cases = [
        ("run model.so", 2, "input x has the shape (n, 4), of which n is open"),
        ("run model.so --dim m=3", 2, "function main has no symbolic dimension \"m\""),
        ("run model.so --dim n=1..3", 2, "a call needs one length, not a range"),
        ("run model.so --input weigth=1", 2, "function main has no input \"weigth\""),
        ("run model.so --function mian", 2, "did you mean \"main\"?"),
        ("run model.so --shape x=3,5", 1, "input x has length 5, not 4, on axis 1"),
        ("run model.so --input x=missing.npy --fill random", 1, "missing.npy: No such file"),
        ("run model.so --input x=what.bin --fill random", 2, "what.bin is no input that is known here"),
        ("run model.so --threads 0 --dim n=1", 1, "0 threads can run nothing"),
        ("run missing.so", 1, "missing.so: No such file"),
    ];
    for (args, code, message) in cases {
        let ended = place.run(args);
        assert!(ended.code == code && ended.err.contains(message), "relaxide {args}: {} {}", ended.code, ended.err);
    }
}

#[test]
fn outputs_have_the_names_that_the_model_gives_them() {
    let place = Workplace::with_models();
    place.ok("compile model.onnx -q");
    let inspected = place.ok("inspect model.so").out;
    assert!(inspected.contains("\n    returns y\n"), "{inspected}");
    assert_eq!(place.json("inspect model.so")["functions"][0]["outputs"], serde_json::json!(["y"]));
    assert!(place.ok("run model.so --dim batch=2").out.starts_with("output y: float32[2, 5]"));
    let said = place.ok("run model.so --dim batch=2 --output results/").out;
    assert_eq!(said, "wrote results/y.npy: output y float32[2, 5]\n");
    // A folder that is there needs no slash.
    let answer = place.json("run model.so --dim batch=2 --output results");
    assert_eq!((&answer["outputs"][0]["name"], &answer["outputs"][0]["file"]), (&"y".into(), &"results/y.npy".into()));
    place.ok("run model.so --dim batch=2 --output all.npz");
    let archive = place.run("run model.so --input all.npz");
    assert!(archive.code == 2 && archive.err.contains("has no input \"y\""), "{}", archive.err);
}

#[test]
fn random_integers_stay_below_the_rows_of_their_table_and_inside_of_the_range_that_is_asked_for() {
    let place = Workplace::new();
    std::fs::write(place.path("table.onnx"), relaxide_testkit::models::table()).unwrap();
    place.ok("compile table.onnx -q");
    // A row that is chosen lies in the table: row numbers would be cut off at its end otherwise.
    let firsts = |args: &str| place.ok(&format!("run table.so --dim n=400 {args}")).out;
    assert_ne!(firsts(""), firsts("--seed 2"));
    let same = place.json("run table.so --dim n=5 --input ids=random:3..3");
    let row = place.json("run table.so --input ids=3,3,3,3,3");
    assert_eq!(same["outputs"][0]["head"], row["outputs"][0]["head"]);
    // The last row is reached, and no other number than those of rows: the mean over many is that over the table.
    let mean = |args: &str| place.json(&format!("run table.so {args}"))["outputs"][0]["mean"].as_f64().unwrap();
    let (random, all) = (mean("--dim n=20000"), mean("--input ids=0,1,2,3,4,5,6"));
    assert!((random - all).abs() < 5e-3, "{random} {all}");
    for (range, message) in
        [("random:4..2", "is no range"), ("random:x..2", "is no range"), ("random:3", "is no range")]
    {
        let ended = place.run(&format!("run table.so --dim n=1 --input ids={range}"));
        assert!(ended.code == 2 && ended.err.contains(message), "{range}: {}", ended.err);
    }
    let float = Workplace::with_models();
    float.ok("compile model.relax -q");
    let figures = float.json("run model.relax -f pair --input x=random:2..3");
    assert!(
        figures["outputs"][1]["min"].as_f64().unwrap() >= 2.0 && figures["outputs"][1]["max"].as_f64().unwrap() <= 3.0
    );
}

#[test]
fn weights_may_lie_beside_the_model() {
    let place = Workplace::with_models();
    let said = place.ok("compile model.onnx --weights safetensors").err;
    assert!(said.contains("wrote model.safetensors ("), "{said}");
    place.ok("compile model.onnx -q -o whole.so");
    let expected = place.ok("run whole.so --dim batch=2").out;
    assert_eq!(place.ok("run model.so --dim batch=2").out, expected);
    let answer = place.json("compile model.onnx --weights safetensors");
    assert_eq!(answer["weights"]["file"], "model.safetensors");
    let shown = place.ok("inspect model.so").out;
    assert!(shown.contains("\nweights in model.safetensors beside it: "), "{shown}");
    assert_eq!(place.json("inspect model.so")["weights"]["file"], "model.safetensors");
    std::fs::rename(place.path("model.safetensors"), place.path("moved")).unwrap();
    let ended = place.run("run model.so --dim batch=2");
    assert!(ended.code == 1 && ended.err.contains("put it beside the library"), "{}", ended.err);
    assert_eq!(place.ok("run model.so --dim batch=2 --weights moved").out, expected);
    place.ok("bench model.so --dim batch=2 --runs 2 --weights moved");
    let ended = place.run("run whole.so --dim batch=2 --weights moved");
    assert!(ended.code == 1 && ended.err.contains("it has them inside"), "{}", ended.err);
    assert_eq!(place.run("run model.onnx --dim batch=2 --weights moved").code, 2);
}

#[test]
fn names_may_be_given_as_onnx_files_write_them() {
    let place = Workplace::new();
    place.write(
        "named.relax",
        "@I.ir_module\nclass Module:\n    @R.function\n    def main(input_1: R.Tensor((\"batch_size\", 2), \"float32\")):\n        \
         with R.dataflow():\n            gv = R.add(input_1, input_1)\n            R.output(gv)\n        return gv\n",
    );
    place.write("two=2.txt", "1 2 3 4");
    let head = |args: &str| place.json(&format!("run named.relax {args}"))["outputs"][0]["head"].clone();
    let doubled = serde_json::json!([2.0, 4.0, 6.0, 8.0]);
    for input in ["input.1=two=2.txt", "input/1=1,2,3,4", "input_1=1,2,3,4", "./two=2.txt"] {
        assert_eq!(head(&format!("--input {input} --shape input:1=2,2")), doubled, "{input}");
    }
    let said = place.ok("run named.relax --dim batch-size=3").out;
    assert!(said.contains("float32[3, 2]"), "{said}");
    place.ok("compile named.relax --dim batch-size=1..4 -q -o named.so");
    assert!(place.run("run named.so --dim batch-size=5").err.contains("batch_size"));
}

#[test]
fn who_gives_some_inputs_gives_all_or_says_that_the_others_are_random() {
    let place = Workplace::with_models();
    place.write(
        "two.relax",
        "@I.ir_module\nclass Module:\n    @R.function\n    def main(x: R.Tensor((2,), \"float32\"), bias: \
         R.Tensor((2,), \"float32\")):\n        y = R.add(x, bias)\n        return y\n",
    );
    place.ok("compile two.relax -q");
    let forgotten = place.run("run two.so --input x=1,2");
    assert_eq!(forgotten.code, 2);
    assert!(forgotten.err.contains("input bias of function main is not given"), "{}", forgotten.err);
    assert!(
        forgotten.err.contains("--input bias=FILE") && forgotten.err.contains("--fill random"),
        "{}",
        forgotten.err
    );
    place.ok("run two.so --input x=1,2 --fill random");
    place.ok("run two.so --input x=1,2 --input bias=3,4");
    place.ok("run two.so");
}

#[test]
fn options_of_compilation_are_refused_for_what_is_compiled() {
    let place = compiled();
    for option in ["--precision float16", "--target llvm"] {
        let refused = place.run(&format!("run model.so --dim n=3 {option}"));
        assert_eq!(refused.code, 2);
        assert!(refused.err.contains("is compiled already"), "{}", refused.err);
    }
}

#[test]
fn an_output_that_would_replace_what_is_read_is_refused() {
    let place = compiled();
    place.ok("run model.so -f pair --input x=1,2 --output x.npz");
    let refused = place.run("run model.so -f pair --input x=x.npz --output x.npz");
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("would replace x.npz, which is read"), "{}", refused.err);
    let missing = place.run("run model.so -f pair --input x=1,2 --output nowhere/x.npz");
    assert_ne!(missing.code, 0);
    assert!(missing.err.contains("nowhere"), "{}", missing.err);
}
