//! Operators whose counterpart in Relax is made of several, in the interpreter, on values that are known by hand.

use relaxide_ffi::{AnyView, Tensor};
use relaxide_relay::text::{Source, parse};
use relaxide_relay::{Interpreter, infer};
use relaxide_relay_vm::Adt;

/// The results of `main`, each as numbers.
fn results(text: &str, args: &[Tensor]) -> Vec<Vec<f64>> {
    let module = parse(&Source::new("op", format!("#[version = \"0.0.5\"]\n{text}"))).unwrap_or_else(|d| panic!("{d}"));
    assert!(infer(&module).is_ok(), "{text}");
    let views: Vec<AnyView<'_>> = args.iter().map(AnyView::from).collect();
    let result = Interpreter::new(&module).run("main", &views).unwrap_or_else(|e| panic!("{text}: {e}"));
    let numbers = |tensor: &Tensor| -> Vec<f64> {
        let wide = |found: Option<Vec<i32>>| found.map(|v| v.into_iter().map(f64::from).collect());
        let floats = || tensor.to_vec::<f32>().map(|v| v.into_iter().map(f64::from).collect());
        wide(tensor.to_vec::<i32>().ok()).unwrap_or_else(|| floats().unwrap())
    };
    match result.downcast_ref::<Adt>() {
        Some(adt) => adt.fields.iter().map(|field| numbers(field.as_tensor().unwrap())).collect(),
        None => vec![numbers(result.as_tensor().unwrap())],
    }
}

fn floats(values: &[f32], shape: &[i64]) -> Tensor {
    Tensor::from_slice(values, shape).unwrap()
}

#[test]
fn the_place_of_the_largest_over_several_dimensions_counts_in_their_order() {
    let x = floats(&[0.0, 9.0, 2.0, 3.0, 4.0, 5.0, 7.0, 1.0, 9.0, 8.0, 6.0, 5.0], &[2, 3, 2]);
    let place = |attrs: &str| {
        let text = format!("def @main(%x: Tensor[(2, 3, 2), float32]) {{ argmax(%x, {attrs}) }}");
        results(&text, std::slice::from_ref(&x)).concat()
    };
    assert_eq!(place("axis=[1]"), [2.0, 0.0, 1.0, 1.0]);
    assert_eq!(place("axis=[1], keepdims=True"), [2.0, 0.0, 1.0, 1.0]);
    // Along the first and the last dimension: rows of four.
    assert_eq!(place("axis=[0, 2]"), [1.0, 2.0, 2.0]);
    assert_eq!(place("axis=[0, 2], keepdims=True"), [1.0, 2.0, 2.0]);
    assert_eq!(place("axis=None"), [1.0]);
    assert_eq!(place("axis=None, select_last_index=True"), [8.0]);
}

#[test]
fn values_are_searched_in_the_sorted_row_of_their_place() {
    let text = "def @main(%s: Tensor[(2, 4), float32], %v: Tensor[(2, 3), float32]) {
        (searchsorted(%s, %v), searchsorted(%s, %v, right=True)) }";
    let sorted = floats(&[1.0, 3.0, 5.0, 7.0, 0.0, 0.0, 2.0, 4.0], &[2, 4]);
    let found = results(text, &[sorted, floats(&[3.0, 0.0, 9.0, 0.0, 3.0, -1.0], &[2, 3])]);
    assert_eq!(found, [[1.0, 0.0, 4.0, 0.0, 3.0, 0.0], [2.0, 0.0, 4.0, 2.0, 3.0, 0.0]]);
}

#[test]
fn boxes_of_each_class_are_kept_unless_one_that_was_kept_overlaps_them() {
    let text = "def @main(%b: Tensor[(1, 4, 4), float32], %s: Tensor[(1, 4, 3), float32]) {
        vision.regular_non_max_suppression(%b, %s, max_detections_per_class=2, max_detections=4, num_classes=2, iou_threshold=0.5f, \
         score_threshold=0.2f) }";
    // The second box lies nearly on the first; the third and the fourth lie apart. The first score is the background's.
    let boxes = [0.0, 0.0, 10.0, 10.0, 0.0, 1.0, 10.0, 10.0, 20.0, 20.0, 30.0, 30.0, 40.0, 40.0, 50.0, 50.0];
    let scores = [0.9, 0.6, 0.1, 0.9, 0.8, 0.3, 0.9, 0.5, 0.1, 0.9, 0.4, 0.7];
    let found = results(text, &[floats(&boxes, &[1, 4, 4]), floats(&scores, &[1, 4, 3])]);
    let rounded = |values: &[f64]| values.iter().map(|v| (v * 10.0).round() / 10.0).collect::<Vec<f64>>();
    assert_eq!(rounded(&found[2]), [0.8, 0.7, 0.5, 0.3]);
    assert_eq!(found[1], [0.0, 1.0, 0.0, 1.0]);
    let corners = [boxes[4..8].to_vec(), boxes[12..].to_vec(), boxes[8..12].to_vec(), boxes[4..8].to_vec()].concat();
    assert_eq!(found[0], corners.iter().map(|v| f64::from(*v)).collect::<Vec<f64>>());
    assert_eq!(found[3], [4.0]);
}

#[test]
fn diagonals_are_set_from_rows_that_end_or_begin_with_them() {
    let text =
        "def @main(%x: Tensor[(3, 4), float32], %d: Tensor[(4, 3), float32]) { matrix_set_diag(%x, %d, k1=-1, k2=2) }";
    let diagonals = [0.0, 9.0, 1.0, 6.0, 5.0, 8.0, 1.0, 2.0, 3.0, 4.0, 5.0, 0.0];
    let found = results(text, &[floats(&[7.0; 12], &[3, 4]), floats(&diagonals, &[4, 3])]).concat();
    assert_eq!(found, [1.0, 6.0, 9.0, 7.0, 4.0, 2.0, 5.0, 1.0, 7.0, 5.0, 3.0, 8.0]);
    let text =
        "def @main(%x: Tensor[(2, 2), float32], %d: Tensor[(1), float32]) { matrix_set_diag(%x, %d, k1=1, k2=1) }";
    let found = results(text, &[floats(&[7.0; 4], &[2, 2]), floats(&[5.0], &[1])]).concat();
    assert_eq!(found, [7.0, 5.0, 7.0, 7.0]);
}

#[test]
fn what_is_mirrored_or_cut_by_sizes_may_be_data() {
    let ints = |values: &[i64], shape: &[i64]| Tensor::from_slice(values, shape).unwrap();
    let pad = |mode: &str| {
        let text = format!(
            "def @main(%x: Tensor[(3), float32], %w: Tensor[(1, 2), int64]) {{ dyn.nn.pad(%x, %w, 0f, pad_width=None, pad_mode=\"{mode}\") }}"
        );
        results(&text, &[floats(&[1.0, 2.0, 3.0], &[3]), ints(&[2, 1], &[1, 2])]).concat()
    };
    assert_eq!(pad("reflect"), [3.0, 2.0, 1.0, 2.0, 3.0, 2.0]);
    assert_eq!(pad("edge"), [1.0, 1.0, 1.0, 2.0, 3.0, 3.0]);
    assert_eq!(pad("constant"), [0.0, 0.0, 1.0, 2.0, 3.0, 0.0]);
    let text = "def @main(%x: Tensor[(2, 4), float32], %b: Tensor[(2), int64], %e: Tensor[(2), int64], %s: Tensor[(2), int64]) {
        dyn.strided_slice(%x, %b, %e, %s, slice_mode=\"size\") }";
    let x = floats(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], &[2, 4]);
    let found = results(text, &[x, ints(&[0, 1], &[2]), ints(&[-1, 2], &[2]), ints(&[1, 1], &[2])]).concat();
    assert_eq!(found, [1.0, 2.0, 5.0, 6.0]);
}

#[test]
fn a_sparse_matrix_is_multiplied_from_either_side() {
    let product = |attrs: &str| {
        let text = format!(
            "def @main(%x: Tensor[(2, 3), float32], %v: Tensor[(3), float32], %i: Tensor[(3), int32], %p: Tensor[(4), int32]) {{
             nn.sparse_dense(%x, %v, %i, %p{attrs}) }}"
        );
        let ints = |values: &[i32]| Tensor::from_slice(values, &[values.len() as i64]).unwrap();
        // Rows (1, 0, 2), (0, 3, 0), (0, 0, 0).
        let dense = floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]);
        results(&text, &[dense, floats(&[1.0, 2.0, 3.0], &[3]), ints(&[0, 2, 1]), ints(&[0, 2, 3, 3])]).concat()
    };
    assert_eq!(product(""), [7.0, 6.0, 0.0, 16.0, 15.0, 0.0]);
    assert_eq!(product(", sparse_lhs=True"), [7.0, 16.0, 6.0, 15.0, 0.0, 0.0]);
}

/// What a type says in a few digits, nobody writes out.
#[test]
fn more_dimensions_or_parts_than_fit_into_memory_are_refused() {
    for (call, args) in [
        ("dyn.zeros(%s, dtype=\"float32\")", "%s: Tensor[(1099511627776), int64]"),
        ("dyn.reshape(%x, %s)", "%x: Tensor[(2, 3), float32], %s: Tensor[(1099511627776), int64]"),
        (
            "dyn.one_hot(%x, %a, %a, %s, axis=-1, dtype=\"float32\")",
            "%x: Tensor[(2), int32], %a: int32, %s: Tensor[(1099511627776), int32]",
        ),
        ("expand_dims(%x, axis=0, num_newaxis=1099511627776)", "%x: Tensor[(2, 3), float32]"),
        ("split(%x, indices_or_sections=1099511627776, axis=0)", "%x: Tensor[(1099511627776), float32]"),
    ] {
        let text = format!("#[version = \"0.0.5\"]\ndef @main({args}) {{ {call} }}");
        let module = parse(&Source::new("op", text.clone()));
        assert!(module.is_err() || infer(&module.unwrap()).is_err(), "{text}");
    }
}
