//! Programs of the text format, run.

use relaxide::ffi::Tensor;
use relaxide::{CompileOptions, VirtualMachine};

use super::*;

const TEXT: &str = "
    input x f32[n, 3]   # rows of any number
    input w f32[3, 3]
    h = tanh x
    twice = multiply w 2
    repeat 4 h
      y = matmul h twice
      h = tanh y
    end
    z = add h x
    output z
";

fn run(text: &str, inputs: &[&Tensor]) -> Vec<f32> {
    let module = import(text).unwrap_or_else(|problems| panic!("{problems}"));
    let executable = relaxide::compile(&module, &mut CompileOptions::default()).unwrap();
    let machine = VirtualMachine::of(&executable.jit().unwrap()).unwrap();
    let inputs: Vec<_> = inputs.iter().map(|&input| input.into()).collect();
    machine.invoke("main", &inputs).unwrap().to::<Tensor>().unwrap().to_vec::<f32>().unwrap()
}

#[test]
fn a_loop_carries_its_state_and_reads_what_is_around_it() {
    let w = [0.1f32, -0.2, 0.3, 0.4, 0.5, -0.6, 0.7, -0.8, 0.9];
    for rows in [1usize, 5] {
        let x: Vec<f32> = (0..rows * 3).map(|i| i as f32 * 0.25 - 1.0).collect();
        let mut h: Vec<f32> = x.iter().map(|v| v.tanh()).collect();
        for _ in 0..4 {
            let mixed = |(row, column): (usize, usize)| (0..3).map(|k| h[row * 3 + k] * 2.0 * w[k * 3 + column]).sum();
            h = (0..rows * 3).map(|i| (i / 3, i % 3)).map(mixed).map(f32::tanh).collect();
        }
        let tensor = |values: &[f32], rows: usize| Tensor::from_slice(values, &[rows as i64, 3]).unwrap();
        let found = run(TEXT, &[&tensor(&x, rows), &tensor(&w, 3)]);
        assert_eq!(found.len(), h.len());
        assert!(found.iter().zip(h.iter().zip(&x)).all(|(a, (h, x))| (a - (h + x)).abs() < 1e-5), "{found:?}");
    }
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let text = "input x f64[3]\ninput y f32[3]\na = cosh y\nb = add a y\nc = add y\nrepeat two y\nend\nrepeat 2 y\n\
                y = add y q\nend\nd = relu p\nwhat is this\nrepeat 3 y\noutput b";
    let Problems(problems) = import(text).unwrap_err();
    let lines: Vec<usize> = problems.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [1, 3, 5, 6, 9, 11, 12, 13], "{problems:?}");
    assert!(problems[1].1.contains("no operator `cosh`") && problems[4].1.contains("`q`"), "{problems:?}");
}
