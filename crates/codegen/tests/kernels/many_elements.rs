//! Tensors of more than 2^31 elements under counters of 32 bits.
//!
//! Pages that nobody touches take no memory, so kernels that touch few elements of large tensors are cheap to run; those that
//! touch all of them run under `RELAXIDE_DEEP=1` only.

use relaxide_ir::{Buffer, DataType, PrimExpr, Ref, Var, prim};
use relaxide_tir::lower::{LowerOptions, lower_with};
use relaxide_tir::s_tir::Schedule;
use relaxide_tir::{ForKind, PrimFunc, Stmt, interp};

use crate::harness::{Kernels, Tensor, kernel};

const I8: DataType = DataType::int(8);
const I32: DataType = DataType::int(32);

/// Rows and columns of 2.4 billion elements.
const ROWS: i64 = 60_000;
const COLUMNS: i64 = 40_000;

fn small(value: i64) -> PrimExpr {
    prim::int_of(I32, value)
}

/// A loop over few rows or columns at the far end of something.
fn last(name: &str, count: i64, of: PrimExpr, kind: ForKind, body: impl FnOnce(PrimExpr) -> Stmt) -> Stmt {
    let var = Var::prim(name, I32);
    let index = of - small(count) + PrimExpr::from(&var);
    Stmt::for_loop(kind, var, small(count), body(index))
}

/// Stores to the last two rows and eight columns, by two indices, vectors among them.
fn corner(name: &str, shape: [PrimExpr; 2], lanes: ForKind) -> PrimFunc {
    let a = Buffer::new("A", I8, shape.clone());
    let [rows, columns] = shape;
    let body = last("i", 2, rows, ForKind::Serial, |i| {
        last("j", 8, columns, lanes, |j| {
            let value = prim::cast(I8, i.clone() + j.clone()) + prim::load(&a, [i.clone(), j.clone()]);
            Stmt::store(&a, [i, j], value)
        })
    });
    kernel(name, &[a], &[], body)
}

fn lowered(func: &PrimFunc, check_bounds: bool) -> PrimFunc {
    lower_with(func, LowerOptions { check_bounds, ..LowerOptions::default() }).unwrap_or_else(|error| panic!("{error}"))
}

/// One element of a tensor of bytes.
fn byte(tensor: &Tensor, at: i64) -> i8 {
    tensor.data[at as usize / 8].to_le_bytes()[at as usize % 8] as i8
}

#[test]
fn the_far_corner_of_a_large_tensor_is_reached_by_counters_of_32_bits() {
    let [n, m] = ["n", "m"].map(|name| PrimExpr::from(&Var::prim(name, I32)));
    let fixed = [small(ROWS), small(COLUMNS)];
    let funcs = [
        lowered(&corner("fixed", fixed.clone(), ForKind::Serial), false),
        lowered(&corner("vectors", fixed.clone(), ForKind::Vectorized), false),
        lowered(&corner("dynamic", [n.clone(), m.clone()], ForKind::Serial), false),
        lowered(&corner("dynamic_vectors", [n, m], ForKind::Vectorized), false),
        lowered(&corner("checked", fixed, ForKind::Serial), true),
    ];
    let kernels = Kernels::compile(&funcs);
    let mut tensors = [Tensor::zeros(I8, &[ROWS, COLUMNS])];
    for name in ["fixed", "vectors", "dynamic", "dynamic_vectors", "checked"] {
        kernels.run(name, &mut tensors);
    }
    for (i, j) in (ROWS - 2..ROWS).flat_map(|i| (COLUMNS - 8..COLUMNS).map(move |j| (i, j))) {
        let expected = ((i + j) as i8).wrapping_mul(funcs.len() as i8);
        assert_eq!(byte(&tensors[0], i * COLUMNS + j), expected, "at {i}, {j}");
    }
}

#[test]
fn rows_that_lie_far_apart_are_reached_by_counters_of_32_bits() {
    let stride = 1i64 << 30;
    let strided = |name: &str| {
        let template = Buffer::new(name, I8, [small(3), small(4)]);
        let strides = vec![small(stride), small(1)];
        let (name, data, shape) = (template.name.clone(), template.data.clone(), template.shape.clone());
        let (scope, elem_offset) = (template.scope.clone(), PrimExpr::from(0));
        Ref::new(Buffer {
            name,
            data,
            dtype: I8,
            shape,
            strides,
            elem_offset,
            scope,
            alignment: 1,
            offset_factor: 1,
            layout: relaxide_ir::layout::Placement::Strided,
            producer: None,
        })
    };
    let a = strided("A");
    let body = last("i", 3, small(3), ForKind::Serial, |i| {
        last("j", 4, small(4), ForKind::Serial, |j| {
            Stmt::store(&a, [i.clone(), j.clone()], prim::cast(I8, i * small(4) + j))
        })
    });
    let kernels = Kernels::compile(&[lowered(&kernel("strided", &[a], &[], body), false)]);
    let mut memory = Tensor::zeros(I8, &[2 * stride + 4]);
    (memory.shape, memory.strides) = (vec![3, 4], Some(vec![stride, 1]));
    let mut tensors = [memory];
    kernels.run("strided", &mut tensors);
    for (i, j) in (0..3).flat_map(|i| (0..4).map(move |j| (i, j))) {
        assert_eq!(byte(&tensors[0], i * stride + j), (i * 4 + j) as i8);
    }
}

#[test]
fn a_dimension_that_its_variable_does_not_hold_is_refused() {
    let n = PrimExpr::from(&Var::prim("n", I32));
    let a = Buffer::new("A", I8, [n]);
    let body = Stmt::store(&a, [small(0)], prim::int_of(I8, 1));
    let kernels = Kernels::compile(&[kernel("first", &[a], &[], body)]);
    let mut tensors = [Tensor::zeros(I8, &[8])];
    tensors[0].shape = vec![(1 << 32) + 8];
    let (kind, message) = kernels.call("first", &mut tensors, &[]).unwrap_err();
    assert_eq!(kind, "ValueError");
    assert!(message.contains("Invalid A.shape[0] on argument #0"), "{message}");
    assert!(message.contains("expected a number that int32 holds"), "{message}");
}

/// `B[i, j] = A[i, j] + 1` in block form.
fn increment(rows: PrimExpr, columns: PrimExpr) -> PrimFunc {
    use relaxide_tir::te;
    let a = te::placeholder("A", [rows.clone(), columns.clone()], I8);
    let b = te::compute("B", [rows, columns], |i| a.at(i) + prim::int_of(I8, 1));
    te::create_prim_func(&[a, b]).unwrap()
}

#[test]
fn every_element_of_a_large_tensor_is_reached_by_one_loop() {
    if std::env::var_os("RELAXIDE_DEEP").is_none() {
        return eprintln!("skipped: takes 5 GB of memory; RELAXIDE_DEEP=1 runs it");
    }
    let [n, m] = ["n", "m"].map(|name| PrimExpr::from(&Var::prim(name, I32)));
    let fuse = |name: &str, rows: PrimExpr, columns: PrimExpr| {
        let func = increment(rows, columns);
        let mut sch = Schedule::of_func(func);
        let block = sch.get_sblock("B", None).unwrap();
        let loops = sch.get_loops(&block).unwrap();
        let fused = sch.fuse(&loops).unwrap();
        let parts = sch.split(&fused, &[None, Some(64.into())]).unwrap();
        sch.parallel(&parts[0]).unwrap();
        let func = sch.func("main").unwrap();
        lowered(&PrimFunc { attrs: func.attrs.clone().with("global_symbol", name), ..(*func).clone() }, false)
    };
    let funcs = [fuse("fixed", small(ROWS), small(COLUMNS)), fuse("dynamic", n, m)];
    let kernels = Kernels::compile(&funcs);
    for name in ["fixed", "dynamic"] {
        let mut tensors = [Tensor::zeros(I8, &[ROWS, COLUMNS]), Tensor::zeros(I8, &[ROWS, COLUMNS])];
        tensors[0].data.fill(0x0706_0504_0302_0100);
        kernels.run(name, &mut tensors);
        assert!(tensors[1].data.iter().all(|word| *word == 0x0807_0605_0403_0201), "{name}");
    }
}

#[test]
fn the_interpreter_reaches_the_far_corner_too() {
    if std::env::var_os("RELAXIDE_DEEP").is_none() {
        return eprintln!("skipped: takes 5 GB of memory; RELAXIDE_DEEP=1 runs it");
    }
    let func = corner("fixed", [small(ROWS), small(COLUMNS)], ForKind::Vectorized);
    for func in [&func, &lowered(&func, false)] {
        let tensor = relaxide_ffi::Tensor::zeros(&[ROWS, COLUMNS], I8).unwrap();
        interp::run(func, &[tensor.clone().into()]).unwrap();
        let bytes = tensor.to_bytes().unwrap();
        assert_eq!(bytes.last().copied(), Some((ROWS - 1 + COLUMNS - 1) as u8));
        assert_eq!(bytes.iter().filter(|b| **b != 0).count(), 16);
    }
}
