//! Operators whose kernels are others on devices: over threads they compute what a processor's kernel does, in the interpreter and on a
//! driver of OpenCL, where there is one.

use crate::devices::{F32, Trial, named};
use crate::opencl::{OPENCL, has_device};
use relaxide_ffi::{DataType, Tensor};
use relaxide_ir::Target;
use relaxide_ir::pass::PassContext;
use relaxide_relax::transform;
use relaxide_script::parse_module;
use relaxide_tir::testing::Sample;
use relaxide_tir::{PrimFunc, schedule};

const I32: DataType = DataType::int(32);
const I64: DataType = DataType::int(64);

/// A call of an operator, the types of its arguments and results, and a rule that takes a piece of it.
struct Case {
    call: &'static str,
    inputs: Vec<(&'static str, Tensor)>,
    outputs: Vec<(Vec<i64>, DataType)>,
    rule: &'static str,
}

/// The kernel of the call for a target.
fn kernel(case: &Case, target: &str) -> PrimFunc {
    let type_of = |tensor: &Tensor| {
        let dims = tensor.shape().iter().map(|n| format!("{n}, ")).collect::<String>();
        format!("R.Tensor(({dims}), \"{}\")", tensor.dtype())
    };
    let params = case.inputs.iter().map(|(name, tensor)| format!("{name}: {}", type_of(tensor)));
    let params = params.collect::<Vec<_>>().join(", ");
    let text = format!(
        "@I.ir_module\nclass Module:\n    @R.function\n    def main({params}):\n        y = {}\n        return y\n",
        case.call
    );
    let module = parse_module(&text, "program.py").unwrap_or_else(|error| panic!("{error:?}\n{text}"));
    let context = PassContext { target: target.parse::<Target>().unwrap(), ..PassContext::default() };
    let legalize = transform::parse_passes("LegalizeOps(fast=True)").unwrap();
    let module = legalize.into_iter().fold(module, |module, pass| pass.run(module, &context).unwrap());
    let mut kernels = module.functions_of::<PrimFunc>();
    let (_, kernel) = kernels.next().unwrap();
    assert!(kernels.next().is_none(), "{text}");
    PrimFunc::clone(&kernel)
}

/// Numbers with many that are equal, and some that are none.
fn floats(shape: &[i64], step: i64) -> Tensor {
    let count: i64 = shape.iter().product();
    let number = |i: i64| match i * 7919 % 97 {
        13 => f32::NAN,
        29 => -0.0,
        of => (of % step) as f32 * 0.5 - 4.0,
    };
    Tensor::from_slice(&(0..count).map(number).collect::<Vec<_>>(), shape).unwrap()
}

/// Numbers of a range.
fn between(shape: &[i64], low: f32, high: f32) -> Tensor {
    let count: i64 = shape.iter().product();
    let number = |i: i64| low + (high - low) * ((i * 7919 % 1009) as f32 / 1009.0);
    Tensor::from_slice(&(0..count).map(number).collect::<Vec<_>>(), shape).unwrap()
}

fn scans() -> Vec<Case> {
    let one = |call, tensor: Tensor, shape: &[i64]| Case {
        call,
        inputs: vec![("x", tensor)],
        outputs: vec![(shape.to_vec(), F32)],
        rule: "shared scan",
    };
    vec![
        one("R.cumsum(x, axis=1)", between(&[3, 1500], -1.0, 1.0), &[3, 1500]),
        one("R.cumsum(x, axis=0, exclusive=True)", between(&[130, 3], -1.0, 1.0), &[130, 3]),
        one("R.cumprod(x, axis=1)", between(&[2, 70], 0.9, 1.1), &[2, 70]),
        one("R.cumsum(x)", between(&[2, 9000], 0.0, 1.0), &[18000]),
    ]
}

fn sorts() -> Vec<Case> {
    let one = |call, tensor: Tensor, outputs: Vec<(Vec<i64>, DataType)>| Case {
        call,
        inputs: vec![("x", tensor)],
        outputs,
        rule: "shared sort",
    };
    vec![
        one("R.sort(x, axis=1)", floats(&[2, 300], 40), vec![(vec![2, 300], F32)]),
        one("R.argsort(x, axis=0, descending=True)", floats(&[1100, 2], 90), vec![(vec![1100, 2], I32)]),
        one("R.topk(x, k=5, axis=1)", floats(&[3, 700], 97), vec![(vec![3, 5], F32), (vec![3, 5], I32)]),
        one(
            "R.topk(x, k=20, axis=0, largest=False)",
            floats(&[90, 2], 97),
            vec![(vec![20, 2], F32), (vec![20, 2], I32)],
        ),
        one("R.median(x, axis=[1])", between(&[2, 65], -3.0, 3.0), vec![(vec![2], F32), (vec![2], I64)]),
    ]
}

fn choices() -> Vec<Case> {
    let rows: Vec<i64> = vec![0, 1, 1, 0, 1, 0, 0];
    let draws = Case {
        call: "R.multinomial_from_uniform(p, u, r)",
        inputs: vec![
            ("p", between(&[2, 600], 0.001, 0.002)),
            ("u", between(&[7, 1], 0.0, 1.0)),
            ("r", Tensor::from_slice(&rows, &[7, 1]).unwrap()),
        ],
        outputs: vec![(vec![7, 1], I64)],
        rule: "shared scan",
    };
    vec![draws]
}

fn suppressions() -> Vec<Case> {
    let places: Vec<i32> = (0..40).collect();
    let boxes = |call, batch: i64, outputs| Case {
        call,
        inputs: vec![
            ("x", between(&[batch, 40, 6], 0.0, 4.0)),
            ("n", Tensor::from_slice(&[33_i32, 40][..batch as usize], &[batch]).unwrap()),
            ("i", Tensor::from_slice(&places.repeat(batch as usize), &[batch, 40]).unwrap()),
        ],
        outputs,
        rule: "shared loops",
    };
    let (data, chosen) = ((vec![2, 40, 6], F32), (vec![2, 40], I32));
    let one = |number: f32| Tensor::from_slice(&[number], &[1]).unwrap();
    let of_classes = Case {
        call: "R.vision.all_class_non_max_suppression(x, s, n, o, t, output_format=\"tensorflow\")",
        inputs: vec![
            ("x", between(&[2, 50, 4], 0.0, 1.0)),
            ("s", floats(&[2, 3, 50], 19)),
            ("n", Tensor::from_slice(&[7_i64], &[1]).unwrap()),
            ("o", one(0.4)),
            ("t", one(-2.0)),
        ],
        outputs: vec![(vec![2, 150, 2], I64), (vec![2, 150], F32), (vec![2], I64)],
        rule: "shared loops",
    };
    vec![
        of_classes,
        boxes("R.vision.non_max_suppression(x, n, i, iou_threshold=0.3, return_indices=False)", 2, vec![data.clone()]),
        boxes(
            "R.vision.non_max_suppression(x, n, i, iou_threshold=0.2, force_suppress=True, max_output_size=5, \
             invalid_to_bottom=True, return_indices=False)",
            2,
            vec![data.clone()],
        ),
        boxes("R.vision.non_max_suppression(x, n, i, iou_threshold=0.3)", 2, vec![chosen.clone(), (vec![2, 1], I32)]),
        boxes(
            "R.vision.non_max_suppression(x, n, i, iou_threshold=0.6, soft_nms_sigma=0.5, score_threshold=0.1, \
             force_suppress=True)",
            2,
            vec![data, chosen, (vec![2, 1], I32)],
        ),
    ]
}

fn check(cases: Vec<Case>) {
    let mut trials = Vec::new();
    for (at, case) in cases.into_iter().enumerate() {
        let (name, inputs) = (format!("case{at}"), case.inputs.iter().map(|(_, tensor)| tensor.clone()).collect());
        let (alone, together) = (kernel(&case, "llvm"), named(&kernel(&case, "opencl"), &name));
        let notes = schedule::apply(&together, &OPENCL.target()).unwrap().notes;
        assert!(notes.iter().any(|note| note.rule == case.rule), "{}: {notes:?}\n{together}", case.call);
        let sample = Sample { func: together, inputs, outputs: case.outputs, scalars: Vec::new() };
        let (expected, lowered) = (sample.interpret(&alone).unwrap(), OPENCL.lowered(&sample.func).1);
        let found = sample.interpret(&lowered).unwrap_or_else(|error| panic!("{}: {error}\n{lowered}", case.call));
        assert!(sample.difference(&found, &expected).is_none(), "{}: {found:?} for {expected:?}", case.call);
        trials.push(Trial { name, sample, expected, lowered });
    }
    if has_device() {
        OPENCL.agrees(&trials);
    }
}

#[test]
fn running_sums_and_products() {
    check(scans());
}

#[test]
fn orders_and_the_largest_of_them() {
    check(sorts());
}

#[test]
fn draws() {
    check(choices());
}

#[test]
fn boxes_without_those_that_overlap_better_ones() {
    check(suppressions());
}
