//! Whose fault it is: the exit codes, and errors in both forms.

use crate::workplace::Workplace;

#[test]
fn exit_codes_say_whose_fault_it_is() {
    let place = Workplace::with_models();
    place.write("wrong.relax", "@I.ir_module\nclass Module:\n    @R.function\n    def main(x: R.Tensor((4,), \"float32\")):\n        return R.foo(x)\n");
    place.write("cut.onnx", "not a model");
    let cases = [
        ("compile model.relax -q", 0),
        ("compile wrong.relax", 1),
        ("compile cut.onnx", 1),
        ("compile missing.onnx", 1),
        ("compile model.relax -o no/such/folder/m.so", 1),
        ("compile model.relax --target nothing", 2),
        ("compile model.relax --precision float12", 2),
        ("compile model.txt", 2),
        ("compile old.rly", 1),
        ("compile model.so", 2),
        ("compile model.relax --shape x=1", 2),
        ("nonsense", 2),
        ("", 2),
    ];
    for (args, code) in cases {
        let ended = place.run(args);
        assert_eq!(ended.code, code, "relaxide {args}: {}", ended.err);
    }
}

#[test]
fn a_model_that_cannot_be_read_is_named() {
    let place = Workplace::new();
    place.write("cut.onnx", "not a model");
    let text = place.run("compile cut.onnx").err;
    assert!(text.starts_with("error[E0501]: cut.onnx: not a readable ONNX file: "), "{text}");
    assert!(text.contains("= help: check that it was downloaded or copied to its end"), "{text}");
}

#[test]
fn an_error_has_a_code_a_place_and_help() {
    let place = Workplace::new();
    place.write("wrong.relax", "@I.ir_module\nclass Module:\n    @R.function\n    def main(x: R.Tensor((4,), \"float32\")):\n        return R.ad(x, x)\n");
    let text = place.run("compile wrong.relax").err;
    // The stage that failed did not end, and has no line.
    assert_eq!(
        text,
        "error[E0111]: no operator is called `R.ad`\n --> wrong.relax:5:16\n  |\n5 |         return R.ad(x, x)\n  |                ^^^^\n  = help: did you mean `R.add`?\n"
    );
    let answer: serde_json::Value = serde_json::from_str(&place.run("compile wrong.relax --json").out).unwrap();
    assert_eq!(answer["error"]["place"], serde_json::json!({ "file": "wrong.relax", "line": 5, "column": 16 }));
    assert_eq!(answer["error"]["exit_code"], 1);
}

#[test]
fn nobody_who_stops_reading_is_an_error() {
    let place = Workplace::new();
    let command = env!("CARGO_BIN_EXE_relaxide");
    let script = format!("'{command}' opt --list | head -1; exit ${{PIPESTATUS[0]}}");
    let status =
        std::process::Command::new("bash").args(["-c", &script]).current_dir(place.path(".")).output().unwrap();
    assert_eq!(status.status.code(), Some(0), "{}", String::from_utf8_lossy(&status.stderr));
}

#[test]
fn a_wrong_command_line_is_one_object_too() {
    let place = Workplace::with_models();
    for args in ["run model.so --json --bogus", "--json nonsense", "compile --json"] {
        let ended = place.run(args);
        assert_eq!(ended.code, 2, "{args}");
        let answer: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
        assert_eq!(answer["error"]["exit_code"], 2, "{args}: {answer}");
        assert!(answer["error"]["message"].as_str().is_some_and(|message| !message.is_empty()), "{args}");
    }
    assert!(place.ok("--help --json").out.contains("Usage"), "help is asked for and given");
}
