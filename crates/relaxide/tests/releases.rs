//! Files of every release are loaded and give what they gave. What runs them here is what a program without LLVM has (`examples/run`).

use std::path::{Path, PathBuf};

use relaxide::VirtualMachine;
use relaxide::ffi::{Array, Tensor};

/// The files that this machine can run.
fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/artifacts");
    let names: &[&str] = match std::env::consts::ARCH {
        "x86_64" => &["model.so", "compiled.so", "apart.so"],
        "aarch64" => &["aarch64.so"],
        _ => &[],
    };
    let releases = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    releases.flat_map(|release| names.iter().map(move |name| release.join(name))).collect()
}

/// What the program of the files computes: whole numbers, so that every way to them gives the same.
fn expected(x: &[f32], is_positive: bool) -> Vec<f32> {
    let value = |row: &[f32], j: usize| row.iter().enumerate().map(|(i, x)| x * (2 * i + j) as f32).sum::<f32>();
    let sign = |y: f32| if is_positive { y.max(0.0) } else { -y };
    x.chunks(32).flat_map(|row| [sign(value(row, 0)), sign(value(row, 1))]).collect()
}

#[test]
fn files_of_all_releases_run() {
    let files = files();
    for file in &files {
        let about = file.display();
        let module = relaxide::load_module(file).unwrap_or_else(|error| panic!("{about}: {error}"));
        let machine = VirtualMachine::of(&module).unwrap_or_else(|error| panic!("{about}: {error}"));
        for (rows, k) in [(1, 5i64), (3, -5), (7, 1)] {
            let x: Vec<f32> = (0..32 * rows).map(|i| (i * 7 % 11) as f32 - 5.0).collect();
            let args = (Tensor::from_slice(&x, &[rows, 32]).unwrap(), Tensor::from_slice(&[k], &[]).unwrap());
            let result = machine.invoke("main", &[(&args.0).into(), (&args.1).into()]);
            let result = result.unwrap_or_else(|error| panic!("{about}: {error}")).to::<Array>().unwrap();
            let part = |i: usize| result.iter().nth(i).unwrap().to::<Tensor>().unwrap().to_vec::<f32>().unwrap();
            let wanted = expected(&x, k > 0);
            assert_eq!(part(0), wanted, "{about}");
            assert_eq!(part(1), wanted.chunks(2).map(|row| row[0] + row[1]).collect::<Vec<_>>(), "{about}");
        }
    }
    assert!(!files.is_empty() || !matches!(std::env::consts::ARCH, "x86_64" | "aarch64"));
}
