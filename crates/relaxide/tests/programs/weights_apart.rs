//! Programs whose weights are in a file of their own.

use std::path::{Path, PathBuf};

use relaxide::ffi::Tensor;
use relaxide::vm::executable::weights::WeightsApart;
use relaxide::{CompileOptions, ExportOptions, VirtualMachine, WeightsIn};

/// A product with a matrix, and a bias whose size is no multiple of the alignment.
fn program() -> String {
    let row =
        |from: usize, count: usize| (from..from + count).map(|i| format!("{}.0", i % 7)).collect::<Vec<_>>().join(", ");
    let matrix: Vec<String> = (0..8).map(|i| format!("[{}]", row(i, 20))).collect();
    format!(
        r#"
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 8), "float32")):
        with R.dataflow():
            lv = R.matmul(x, R.const([{}], "float32"))
            lv1 = R.add(lv, R.const([{}], "float32"))
            gv = R.multiply(lv1, R.const(0.5, "float32"))
            R.output(gv)
        return gv
"#,
        matrix.join(", "),
        row(3, 20)
    )
}

fn export(path: &Path, weights: WeightsIn) {
    let module = relaxide::parse_script(&program(), "program").unwrap();
    let executable = relaxide::compile(&module, &mut CompileOptions::default()).unwrap();
    executable.export_with(path, ExportOptions { weights, ..ExportOptions::default() }).unwrap();
}

fn run(path: &Path, weights: Option<&Path>) -> Result<Vec<f32>, String> {
    let module = relaxide::load_module(path).map_err(|error| error.to_string())?;
    if let Some(file) = weights {
        relaxide::load_weights(&module, file).map_err(|error| error.to_string())?;
    }
    let machine = VirtualMachine::of(&module).map_err(|error| error.to_string())?;
    let x: Vec<f32> = (0..24).map(|i| i as f32 * 0.25).collect();
    let x = Tensor::from_slice(&x, &[3, 8]).unwrap();
    let result = machine.invoke("main", &[(&x).into()]).map_err(|error| error.to_string())?;
    Ok(result.to::<Tensor>().unwrap().to_vec().unwrap())
}

/// A folder with `model.so` and `model.safetensors`, and what the model computes with its weights inside.
fn exported() -> (tempfile::TempDir, PathBuf, Vec<f32>) {
    let folder = tempfile::tempdir().unwrap();
    export(&folder.path().join("whole.so"), WeightsIn::Library);
    let expected = run(&folder.path().join("whole.so"), None).unwrap();
    assert!(!folder.path().join("whole.safetensors").exists());
    let path = folder.path().join("model.so");
    export(&path, WeightsIn::Safetensors);
    (folder, path, expected)
}

fn described(path: &Path) -> WeightsApart {
    let module = relaxide::load_module(path).unwrap();
    relaxide::vm::Executable::of_module(&module).unwrap().weights_apart().unwrap().unwrap()
}

#[test]
fn weights_beside_the_library_are_those_inside() {
    let (folder, path, expected) = exported();
    assert_eq!(run(&path, None).unwrap(), expected);
    let weights = described(&path);
    assert_eq!(weights.file, "model.safetensors");
    let mut shapes: Vec<Vec<i64>> = weights.tensors.iter().map(|tensor| tensor.shape.clone()).collect();
    shapes.sort();
    // The scalar stays inside.
    assert_eq!(shapes, [vec![8, 20], vec![20]]);
    // From elsewhere, under another name.
    let elsewhere = folder.path().join("elsewhere");
    std::fs::rename(folder.path().join("model.safetensors"), &elsewhere).unwrap();
    assert_eq!(run(&path, Some(&elsewhere)).unwrap(), expected);
    let error = run(&path, None).unwrap_err();
    assert!(error.contains("model.safetensors") && error.contains("put it beside the library"), "{error}");
}

#[test]
fn other_weights_are_refused() {
    let (folder, path, expected) = exported();
    let file = folder.path().join("model.safetensors");
    let whole = std::fs::read(&file).unwrap();
    let refusal = |bytes: &[u8]| {
        std::fs::write(&file, bytes).unwrap();
        run(&path, None).unwrap_err()
    };
    let mut damaged = whole.clone();
    *damaged.last_mut().unwrap() ^= 1;
    let error = refusal(&damaged);
    assert!(error.contains("its checksum is") && error.contains("compile the model again"), "{error}");
    let error = refusal(&whole[..whole.len() - 1]);
    assert!(error.contains("cut off"), "{error}");
    let text = String::from_utf8_lossy(&whole).into_owned();
    let header = |from: &str, to: &str| {
        assert!(text.contains(from) && from.len() == to.len());
        let at = whole.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
        let mut bytes = whole.clone();
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        bytes
    };
    let error = refusal(&header("[8,", "[4,").to_vec());
    assert!(error.contains("has the bytes from"), "{error}");
    let error = refusal(&header("[8, 20]", "[20, 8]"));
    assert!(error.contains("is F32 of shape [20, 8]; the program wants F32 of shape [8, 20]"), "{error}");
    let error = refusal(&header("\"F32\"", "\"I32\""));
    assert!(error.contains("is I32 of shape"), "{error}");
    let error = refusal(&header("constant_", "Constant_"));
    assert!(error.contains("is missing"), "{error}");
    let error = refusal(b"");
    assert!(error.contains("cut off"), "{error}");
    std::fs::write(&file, &whole).unwrap();
    assert_eq!(run(&path, None).unwrap(), expected);
}

#[test]
fn weights_for_a_program_that_has_them_are_refused() {
    let (folder, path, _) = exported();
    let file = folder.path().join("model.safetensors");
    let error = run(&folder.path().join("whole.so"), Some(&file)).unwrap_err();
    assert!(error.contains("it has them inside"), "{error}");
    let module = relaxide::load_module(&path).unwrap();
    VirtualMachine::of(&module).unwrap();
    let error = relaxide::load_weights(&module, &file).unwrap_err().to_string();
    assert!(error.contains("loaded with them already"), "{error}");
}

#[test]
fn a_program_without_weights_is_written_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let text = "@I.ir_module\nclass Module:\n    @R.function\n    def main(x: R.Tensor((3, 8), \"float32\")):\n        \
                with R.dataflow():\n            gv = R.add(x, x)\n            R.output(gv)\n        return gv\n";
    let module = relaxide::parse_script(text, "program").unwrap();
    let executable = relaxide::compile(&module, &mut CompileOptions::default()).unwrap();
    let path = folder.path().join("plain.so");
    let options = ExportOptions { weights: WeightsIn::Safetensors, ..ExportOptions::default() };
    executable.export_with(&path, options).unwrap();
    assert!(!folder.path().join("plain.safetensors").exists());
    assert_eq!(run(&path, None).unwrap()[23], 11.5);
}
