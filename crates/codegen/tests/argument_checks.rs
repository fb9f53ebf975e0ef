//! What a kernel says about arguments that do not fit. The texts are those of TVM's kernels, whose users know them.

use crate::harness::{Kernels, Packed, Tensor, kernel};
use relaxide_ir::{Buffer, DataType, PrimExpr, Ref, Var, prim};
use relaxide_tir::{ForKind, Stmt};

const F32: DataType = DataType::float(32);
const I32: DataType = DataType::int(32);

const SIGNATURE: &str = "f(A: Tensor([n, T.int64(4)], float32), B: Tensor([n, m], int32), \
                         C: Tensor([n + m, T.int64(4)], bool), k: int32)";

fn kernels() -> Kernels {
    let (n, m, k) = (Var::dim("n"), Var::dim("m"), Var::prim("k", I32));
    let (rows, columns) = (PrimExpr::from(&n), PrimExpr::from(&m));
    let a = Buffer::new("A", F32, [rows.clone(), PrimExpr::from(4)]);
    let b = Buffer::new("B", I32, [rows.clone(), columns.clone()]);
    let c = Buffer::new("C", DataType::bool(), [rows + columns, PrimExpr::from(4)]);
    Kernels::compile(&[kernel("f", &[a, b, c], &[k], Stmt::nop())])
}

fn tensors() -> [Tensor; 3] {
    [Tensor::zeros(F32, &[2, 4]), Tensor::zeros(I32, &[2, 3]), Tensor::zeros(DataType::bool(), &[5, 4])]
}

/// The error after a change to fitting tensors, without the part that all errors share.
fn error(change: impl FnOnce(&mut [Tensor; 3])) -> (String, String) {
    let mut tensors = tensors();
    change(&mut tensors);
    let (kind, message) = kernels().call("f", &mut tensors, &[Packed::int(1)]).unwrap_err();
    (kind, message.replace(&format!(" when calling:\n  `{SIGNATURE}`,\n  "), " | "))
}

#[test]
fn fitting_arguments_pass() {
    let kernels = kernels();
    kernels.call("f", &mut tensors(), &[Packed::int(1)]).unwrap();
    let mut strided = tensors();
    strided[0].strides = Some(vec![4, 1]);
    kernels.call("f", &mut strided, &[Packed::bool(true)]).unwrap();
    // The stride of a dimension of one element says nothing.
    let mut single = tensors();
    single[0] = Tensor::zeros(F32, &[1, 4]);
    single[0].strides = Some(vec![77, 1]);
    single[1] = Tensor::zeros(I32, &[1, 3]);
    single[2] = Tensor::zeros(DataType::bool(), &[4, 4]);
    kernels.call("f", &mut single, &[Packed::int(1)]).unwrap();
    // Nothing is needed where there are no elements.
    let mut empty =
        [Tensor::zeros(F32, &[0, 4]), Tensor::zeros(I32, &[0, 3]), Tensor::zeros(DataType::bool(), &[3, 4])];
    empty[0].null = true;
    empty[1].null = true;
    kernels.call("f", &mut empty, &[Packed::int(1)]).unwrap();
}

/// A change to fitting arguments, and the kind and text of the error that it causes.
type Case = (fn(&mut [Tensor; 3]), &'static str, &'static str);

#[test]
fn each_mismatch_is_named() {
    let cases: [Case; 13] = [
        (|t| t[0] = Tensor::zeros(F32, &[8]), "ValueError", "Mismatched A.ndim on argument #0 | expected 2"),
        (|t| t[1] = Tensor::zeros(F32, &[2, 3]), "TypeError", "Mismatched B.dtype on argument #1 | expected int32"),
        (|t| t[0].device_type = 2, "ValueError", "Mismatched A.device_type on argument #0 | expected cpu"),
        (
            |t| t[1].strides = Some(vec![1, 2]),
            "ValueError",
            "Mismatched B.strides on argument #1 | expected to be compact array",
        ),
        (
            |t| t[1] = Tensor::zeros(I32, &[3, 3]),
            "ValueError",
            "Mismatched B.shape[0] on argument #1 | expected to match A.shape[0]",
        ),
        (|t| t[2].device_id = 1, "ValueError", "Mismatched C.device_id on argument #2 | expected to match A.device_id"),
        (|t| t[2].null = true, "ValueError", "C data pointer is NULL on argument #2 | expected non-NULL data pointer"),
        (|t| t[0] = Tensor::zeros(F32, &[2, 5]), "ValueError", "Invalid A.shape[1] on argument #0 | expected 4"),
        (
            |t| t[2] = Tensor::zeros(DataType::bool(), &[4, 4]),
            "ValueError",
            "Invalid C.shape[0] on argument #2 | expected A.shape[0] + B.shape[1]",
        ),
        (|t| t[1].byte_offset = 4, "ValueError", "Invalid B.byte_offset on argument #1 | expected 0"),
        (|t| t[0].skip = 2, "ValueError", "Misaligned Tensor data on argument #0 | expected data alignment=4 bytes"),
        (|t| t[1].skip = 1, "ValueError", "Misaligned Tensor data on argument #1 | expected data alignment=4 bytes"),
        (|t| t[0].dtype = F32.with_lanes(2), "TypeError", "Mismatched A.dtype on argument #0 | expected float32"),
    ];
    let mut wrong = Vec::new();
    for (change, kind, message) in cases {
        let got = error(change);
        if got != (kind.to_string(), message.to_string()) {
            wrong.push(format!("expected {kind}: {message}\n     got {}: {}", got.0, got.1));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn number_and_type_of_arguments_are_checked_first() {
    let kernels = kernels();
    let (kind, message) = kernels.call("f", &mut tensors(), &[]).unwrap_err();
    assert_eq!((kind.as_str(), message), ("TypeError", format!("Expected 4 arguments when calling:\n  `{SIGNATURE}`")));
    let (kind, message) = kernels.call_packed("f", &[Packed::int(1); 4]).unwrap_err();
    let expected = format!("Mismatched type on argument #0 when calling:\n  `{SIGNATURE}`,\n  expected Tensor");
    assert_eq!((kind.as_str(), message), ("TypeError", expected.clone()));
    let nothing = [Packed::none(), Packed::none(), Packed::none(), Packed::int(1)];
    assert_eq!(kernels.call_packed("f", &nothing).unwrap_err().1, expected);
}

/// `C = A * B` by vectors as wide as the machine has, over a buffer that may begin anywhere.
#[test]
fn tensors_may_begin_at_any_element() {
    let (n, offset) = (Var::dim("n"), Var::dim("offset"));
    let [a, b, c] = ["A", "B", "C"].map(|name| Buffer::new(name, F32, [PrimExpr::from(&n)]));
    let placed = Ref::new(Buffer {
        name: a.name.clone(),
        data: a.data.clone(),
        dtype: F32,
        shape: a.shape.clone(),
        strides: Vec::new(),
        elem_offset: PrimExpr::from(&offset),
        scope: a.scope.clone(),
        alignment: 4,
        offset_factor: 1,
        layout: relaxide_ir::layout::Placement::Strided,
        producer: None,
    });
    let i = Var::dim("i");
    let [block, lane] = ["block", "lane"].map(Var::dim);
    let at = PrimExpr::from(&block) * 8 + PrimExpr::from(&lane);
    let product = prim::load(&placed, [at.clone()]) * prim::load(&b, [at.clone()]);
    let lanes = Stmt::for_loop(ForKind::Vectorized, lane, 8, Stmt::store(&c, [at], product));
    let vectors = Stmt::serial(block, prim::floordiv(&n, 8), lanes);
    let value = prim::load(&placed, [&i]) * prim::load(&b, [&i]);
    let scalars = Stmt::serial(i.clone(), &n, Stmt::store(&c, [&i], value));
    let lowered = |name: &str, body: Stmt| {
        relaxide_tir::lower::lower(&kernel(name, &[placed.clone(), b.clone(), c.clone()], &[], body)).unwrap()
    };
    let kernels = Kernels::compile(&[lowered("vectors", vectors), lowered("scalars", scalars)]);
    let values: Vec<f32> = (0..80).map(|i| i as f32).collect();
    for (name, skip) in ["vectors", "scalars"].into_iter().flat_map(|name| (0..8).map(move |skip| (name, skip))) {
        let mut tensors = [Tensor::f32(&values, &[80]), Tensor::f32(&values, &[80]), Tensor::zeros(F32, &[80])];
        tensors.iter_mut().for_each(|t| t.shape = vec![64]);
        (tensors[0].byte_offset, tensors[1].skip, tensors[2].skip) = (4 * skip, 4 * (7 - skip as usize), 4 * 3);
        kernels.run(name, &mut tensors);
        tensors[2].shape = vec![80];
        let found = &tensors[2].values::<f32>()[3..67];
        let expected: Vec<f32> = (0..64).map(|i| ((i + skip) * (i + 7 - skip)) as f32).collect();
        assert_eq!(found, expected, "{name} from element {skip} on");
    }
    let mut tensors = [Tensor::zeros(F32, &[80]), Tensor::zeros(F32, &[80]), Tensor::zeros(F32, &[80])];
    tensors[0].byte_offset = 6;
    let (kind, message) = kernels.call("scalars", &mut tensors, &[]).unwrap_err();
    assert!(kind == "ValueError" && message.contains("Misaligned Tensor data on argument #0"), "{kind}: {message}");
    assert!(message.ends_with("expected data alignment=4 bytes"), "{message}");
}
