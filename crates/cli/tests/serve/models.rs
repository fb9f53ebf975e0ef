//! Models whose results are exact, so that every way to them must give the same.

use std::path::Path;
use std::process::Command;

/// `x * factor` of floats, row by row.
pub fn scale(factor: u32) -> String {
    program("x: R.Tensor((\"n\", 3), \"float32\")", &format!("gv = R.multiply(x, R.const({factor}, \"float32\"))"))
}

/// Two inputs and two outputs of different types.
pub fn pair() -> String {
    let body = "lv = R.add(x, R.astype(k, \"float32\"))\n            lv1 = R.multiply(k, R.const(2, \"int64\"))\n            gv = (lv, lv1)";
    program("x: R.Tensor((\"n\", 2), \"float32\"), k: R.Tensor((\"n\", 2), \"int64\")", body)
}

/// A sum over all rows: not to be joined.
pub fn total() -> String {
    program("x: R.Tensor((\"n\", 3), \"float32\")", "gv = R.sum(x, axis=0)")
}

/// Twice `x`, and the sum of each row where the mask is 1.
pub fn masked() -> String {
    let body = "lv = R.sum(R.multiply(x, mask), axis=1)\n            lv1 = R.multiply(x, R.const(2, \"float32\"))\n            gv = (lv1, lv)";
    program("x: R.Tensor((\"n\", \"m\"), \"float32\"), mask: R.Tensor((\"n\", \"m\"), \"float32\")", body)
}

/// The mean of each row, whatever its length is.
pub fn mean() -> String {
    program("x: R.Tensor((\"n\", \"m\"), \"float32\")", "gv = R.mean(x, axis=1)")
}

/// Returns what it is given, after some hundred million products for 256 rows.
pub fn slow() -> String {
    let mut body = String::from("w = R.full((512, 512), R.const(0.001953125, \"float32\"), \"float32\")\n            ");
    body.push_str("a0 = R.matmul(x, R.ones((1, 512), \"float32\"))\n            ");
    for i in 0..12 {
        body.push_str(&format!("a{} = R.matmul(a{i}, w)\n            ", i + 1));
    }
    body.push_str("gv = R.matmul(a12, R.full((512, 1), R.const(0.001953125, \"float32\"), \"float32\"))");
    program("x: R.Tensor((\"n\", 1), \"float32\")", &body)
}

fn program(params: &str, body: &str) -> String {
    format!(
        "@I.ir_module\nclass Module:\n    @R.function\n    def main({params}):\n        with R.dataflow():\n            {body}\n            \
         R.output(gv)\n        return gv\n"
    )
}

/// Compiles a program to a file, which is replaced whole where there is one.
pub fn compile(text: &str, library: &Path, options: &[&str]) {
    let source = library.with_extension("relax");
    std::fs::write(&source, text).unwrap();
    let command = Command::new(env!("CARGO_BIN_EXE_relaxide"))
        .args(["compile".as_ref(), source.as_os_str(), "-o".as_ref(), library.as_os_str()])
        .args(options)
        .output()
        .unwrap();
    assert!(command.status.success(), "{}", String::from_utf8_lossy(&command.stderr));
}
