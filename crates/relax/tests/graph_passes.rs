//! Passes that rewrite graphs keep what they compute.

use relaxide_ffi::{DataType, Tensor};
use relaxide_ir::pass::PassContext;
use relaxide_ir::{Attrs, IRModule, Type, Var};
use relaxide_relax::{BlockBuilder, BuildError, Expr, Function, constant, transform, wellformed};

use crate::machine::Machine;

/// Small different numbers.
fn numbers(shape: &[i64], seed: i64) -> Tensor {
    let count = shape.iter().product::<i64>();
    let values: Vec<f32> = (0..count).map(|i| ((i * 37 + seed * 11) % 23) as f32 / 8.0 - 1.0).collect();
    Tensor::from_slice(&values, shape).expect("the shape fits")
}

fn weight(shape: &[i64], seed: i64) -> Expr {
    Expr::constant(numbers(shape, seed))
}

/// Numbers that a variance may be.
fn positive(n: i64) -> Expr {
    let values: Vec<f32> = (0..n).map(|i| 0.5 + i as f32).collect();
    Expr::constant(Tensor::from_slice(&values, &[n]).expect("the shape fits"))
}

/// A module of one function over an image of two channels.
fn network(body: impl FnOnce(&mut BlockBuilder, Expr) -> Result<Expr, BuildError>) -> IRModule {
    let x = Var::new("x", Type::tensor([1i64, 2, 6, 6], DataType::float(32)));
    let mut b = BlockBuilder::new();
    let main = b
        .function::<BuildError>(vec![x.clone()], Attrs::new(), |b| {
            b.begin_dataflow()?;
            let result = body(b, Expr::Var(x))?;
            let result = b.emit_output(result)?;
            b.end_dataflow()?;
            Ok(result)
        })
        .expect("the network is right");
    b.module_mut().insert("main", main);
    b.finish()
}

fn apply(mut module: IRModule, passes: &[&str]) -> IRModule {
    for name in passes {
        for pass in transform::parse_passes(name).expect("the pass exists") {
            module = pass.run(module, &PassContext::default()).expect("the pass succeeds");
        }
        let broken = wellformed::check_module(&module);
        assert!(broken.is_empty(), "behind {name}: {broken:?}");
    }
    module
}

/// The names of the operators that `main` calls, in order.
fn operators(module: &IRModule) -> Vec<String> {
    let main = module.get_as::<Function>("main").expect("there is a main");
    let bindings = main.body.blocks.iter().flat_map(|b| &b.bindings);
    bindings.filter_map(|b| b.value().as_op_call().map(|(_, name)| name.to_string())).collect()
}

/// Checks that passes leave these operators and do not change the result.
fn check(module: IRModule, passes: &[&str], left: &[&str]) {
    let input = numbers(&[1, 2, 6, 6], 5);
    let cleaned: Vec<&str> = passes.iter().copied().chain(["CanonicalizeBindings", "DeadCodeElimination"]).collect();
    let rewritten = apply(module.clone(), &cleaned);
    assert_eq!(operators(&rewritten), left);
    let run = |m: IRModule| {
        let results = Machine::run(&apply(m, &["LegalizeOps"]), std::slice::from_ref(&input)).expect("it runs");
        constant::as_floats(&results[0]).expect("it gives numbers")
    };
    let (before, after) = (run(module), run(rewritten));
    let far = |(a, b): (&f64, &f64)| (a - b).abs() > 1e-4 + 1e-4 * b.abs();
    assert_eq!(before.iter().zip(&after).position(far), None, "{before:?}\n{after:?}");
}

fn conv(b: &mut BlockBuilder, x: Expr) -> Result<Expr, BuildError> {
    b.op("nn.conv2d", [x, weight(&[3, 2, 3, 3], 1)], Attrs::new().with("padding", vec![1i64, 1]))
}

fn batch_norm(b: &mut BlockBuilder, x: Expr, training: bool) -> Result<Expr, BuildError> {
    let args = [x, weight(&[3], 2), weight(&[3], 3), weight(&[3], 4), positive(3)];
    let norm = b.op("nn.batch_norm", args, Attrs::new().with("axis", 1i64).with("training", training))?;
    b.emit(Expr::field(norm, 0))
}

#[test]
fn a_normalization_goes_into_the_convolution_in_front() {
    let module = network(|b, x| {
        let c = conv(b, x)?;
        batch_norm(b, c, false)
    });
    check(module, &["FoldBatchnormToConv2D"], &["nn.conv2d", "add"]);
}

#[test]
fn a_bias_between_the_two_is_scaled_too() {
    let module = network(|b, x| {
        let c = conv(b, x)?;
        let biased = b.op("add", [c, weight(&[1, 3, 1, 1], 7)], Attrs::new())?;
        batch_norm(b, biased, false)
    });
    check(module, &["FoldBatchnormToConv2D"], &["nn.conv2d", "add"]);
}

#[test]
fn a_normalization_in_training_that_is_to_stay_or_behind_a_shared_convolution_stays() {
    let training = network(|b, x| {
        let c = conv(b, x)?;
        batch_norm(b, c, true)
    });
    check(training.clone(), &["FoldBatchnormToConv2D(keep_training=True)"], &["nn.conv2d", "nn.batch_norm"]);
    // Folded, it has other statistics.
    let folded = apply(training, &["FoldBatchnormToConv2D", "CanonicalizeBindings", "DeadCodeElimination"]);
    assert_eq!(operators(&folded), ["nn.conv2d", "add"]);
    let shared = network(|b, x| {
        let c = conv(b, x)?;
        let norm = batch_norm(b, c.clone(), false)?;
        b.op("add", [c, norm], Attrs::new())
    });
    check(shared, &["FoldBatchnormToConv2D"], &["nn.conv2d", "nn.batch_norm", "add"]);
}

#[test]
fn a_fixed_normalization_alone_becomes_arithmetic() {
    let module = network(|b, x| {
        let c = conv(b, x)?;
        let r = b.op("nn.relu", [c], Attrs::new())?;
        batch_norm(b, r, false)
    });
    let statistics = ["add", "sqrt", "divide", "multiply", "subtract", "expand_dims", "expand_dims"];
    let left: Vec<&str> = ["nn.conv2d", "nn.relu"].into_iter().chain(statistics).chain(["multiply", "add"]).collect();
    check(module.clone(), &["DecomposeOpsForInference(scale_first=True)"], &left);
    let steps = ["expand_dims", "subtract", "expand_dims", "add", "sqrt", "divide"];
    let left: Vec<&str> = ["nn.conv2d", "nn.relu"].into_iter().chain(steps).collect();
    let ends = ["expand_dims", "multiply", "expand_dims", "add"];
    check(module, &["DecomposeOpsForInference"], &left.into_iter().chain(ends).collect::<Vec<_>>());
}

#[test]
fn constants_that_scale_and_shift_channels_go_into_the_convolution() {
    let module = network(|b, x| {
        let c = conv(b, x)?;
        let biased = b.op("add", [c, weight(&[1, 3, 1, 1], 7)], Attrs::new())?;
        let scaled = b.op("multiply", [weight(&[1], 8), biased], Attrs::new())?;
        let shifted = b.op("add", [scaled, weight(&[3, 1, 1], 9)], Attrs::new())?;
        b.op("nn.relu", [shifted], Attrs::new())
    });
    check(module, &["FoldScaleToConv2D"], &["nn.conv2d", "add", "nn.relu"]);
}

#[test]
fn a_scale_along_another_dimension_stays() {
    let module = network(|b, x| {
        let c = conv(b, x)?;
        b.op("multiply", [c, weight(&[6], 8)], Attrs::new())
    });
    check(module, &["FoldScaleToConv2D"], &["nn.conv2d", "multiply"]);
}

#[test]
fn what_is_computed_twice_is_computed_once() {
    let module = network(|b, x| {
        let a = b.op("exp", [x.clone()], Attrs::new())?;
        let c = b.op("exp", [x], Attrs::new())?;
        b.op("add", [a, c], Attrs::new())
    });
    check(module, &["EliminateCommonSubexpr"], &["exp", "add"]);
}
