//! Imported graphs: names and symbolic dimensions of inputs, checks at run time, weights.

use crate::model::{Build, float};
use relaxide_ir::AttrValue;
use relaxide_onnx::ImportOptions;
use relaxide_onnx::options::{InputDim, Weights};
use relaxide_onnx::signature::OUTPUT_NAMES;

#[test]
fn dimensions_of_one_name_are_one_variable_and_unnamed_ones_are_their_own() {
    let build = Build::new(13)
        .input("input.1", float(&["batch.0", "3", "?", "-1"]))
        .input("2nd", float(&["batch.0", "3", "1", "1"]))
        .node("Add", &["input.1", "2nd"], &["y"], &[]);
    let main = build.import(&["y"]).unwrap();
    assert_eq!(
        main.params(),
        [
            "input_1: R.Tensor((batch_0, 3, input_1_dim2, input_1_dim3), dtype=\"float32\")",
            "input_2nd: R.Tensor((batch_0, 3, 1, 1), dtype=\"float32\")",
        ]
    );
    assert_eq!(main.result(), "R.Tensor((batch_0, 3, input_1_dim2, input_1_dim3), dtype=\"float32\")");
    assert_eq!(main.ops(), ["add"]);
}

#[test]
fn shapes_given_by_the_caller_replace_those_of_the_file() {
    let shape = vec![InputDim::Fixed(2), InputDim::Named("rows".into())];
    let options = ImportOptions { shapes: [("x".to_string(), shape)].into_iter().collect(), ..Default::default() };
    let build = Build::new(13).input("x", float(&["n", "m"])).node("Relu", &["x"], &["y"], &[]);
    let main = build.import_with(&["y"], &options).unwrap();
    assert_eq!(main.result(), "R.Tensor((2, rows), dtype=\"float32\")");
}

#[test]
fn of_two_open_dimensions_one_may_be_1_when_the_program_runs() {
    let build = Build::new(13).input("x", float(&["n", "4"])).input("y", float(&["m", "4"])).node(
        "Add",
        &["x", "y"],
        &["z"],
        &[],
    );
    let main = build.import(&["z"]).unwrap();
    // The common dimension is bound and checked, both sides are spread over it.
    assert_eq!(main.ops(), ["match_cast", "call_tir", "call_tir", "add"]);
    assert_eq!(main.result(), "R.Tensor((d0, 4), dtype=\"float32\")");
}

#[test]
fn a_dimension_computed_from_another_is_taken_to_be_equal_and_checked() {
    let build = Build::new(13)
        .input("x", float(&["n", "4"]))
        .ints("start", &[0])
        .ints("end", &[1 << 40])
        .ints("axis", &[0])
        .ints("step", &[2])
        .node("Slice", &["x", "start", "end", "axis", "step"], &["y"], &[])
        .node("Concat", &["y", "y"], &["w"], &[("axis", &[0])])
        .node("Add", &["x", "w"], &["z"], &[]);
    let main = build.import(&["z"]).unwrap();
    assert!(main.ops().ends_with(&["match_cast".to_string(), "add".to_string()]), "{:?}", main.ops());
}

#[test]
fn a_dimension_that_is_never_that_from_which_it_was_computed_is_it_or_1() {
    let build = Build::new(13)
        .input("x", float(&["n", "4"]))
        .node("Concat", &["x", "x"], &["y"], &[("axis", &[0])])
        .node("Add", &["x", "y"], &["z"], &[]);
    let main = build.import(&["z"]).unwrap();
    assert_eq!(main.ops(), ["concat", "match_cast", "call_tir", "call_tir", "add"]);
}

#[test]
fn several_outputs_are_a_tuple_and_unused_inputs_stay() {
    let build = Build::new(13)
        .input("x", float(&["n"]))
        .input("unused", float(&["3"]))
        .node("Relu", &["x"], &["y"], &[])
        .node("Exp", &["x"], &["z"], &[]);
    let main = build.import(&["y", "z"]).unwrap();
    assert_eq!(main.params().len(), 2);
    let names = main.0.attrs.get(OUTPUT_NAMES).cloned();
    assert_eq!(names, Some(AttrValue::List(vec!["y".into(), "z".into()])));
    assert_eq!(main.result(), "R.Tuple(R.Tensor((n,), dtype=\"float32\"), R.Tensor((n,), dtype=\"float32\"))");
}

#[test]
fn weights_are_constants_or_parameters() {
    let build = || Build::new(13).input("x", float(&["n", "4"])).zeros("w", &[4]).node("Add", &["x", "w"], &["y"], &[]);
    assert_eq!(build().import(&["y"]).unwrap().params().len(), 1);
    let options = ImportOptions { weights: Weights::Parameters, ..Default::default() };
    let main = build().import_with(&["y"], &options).unwrap();
    assert_eq!(main.params()[1], "w: R.Tensor((4,), dtype=\"float32\")");
    assert_eq!(main.0.attrs.int("num_input"), Some(1));
    assert!(main.0.attrs.get("params").is_some());
}

#[test]
fn initializers_listed_as_inputs_are_not_parameters() {
    let build = Build::new(13).input("x", float(&["n", "4"])).input("w", float(&["4"])).zeros("w", &[4]).node(
        "Add",
        &["x", "w"],
        &["y"],
        &[],
    );
    assert_eq!(build.import(&["y"]).unwrap().params().len(), 1);
}
