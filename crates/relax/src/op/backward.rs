//! Operators that gradients are made of, and marks that the gradient pass reads.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr, cast, constant};
use relaxide_tir::{Stmt, te};

use super::index::wrapped;
use super::loops::{Cell, axes, nest};
use super::manipulate::input;
use super::pool::{ATTRS_2D, Pool};
use super::*;
use crate::BlockBuilder;

const VALUE: &[ArgDef] = &[ArgDef::any("input", "The value.")];
const GRAD: ArgDef = ArgDef::tensor("output_grad", "The gradient of the result.");

const fn mark(name: &'static str, doc: &'static str) -> OpDef {
    OpDef::decomposed(name, VALUE, &[], |cx| cx.ty(0), argument, doc)
}

const fn checkpoint(name: &'static str, doc: &'static str) -> OpDef {
    OpDef::decomposed(name, VALUE, &[], checkpointed, argument, doc)
}

/// The type of a value that a checkpoint is about: one that is computed, so no tuple of several and no constant.
fn checkpointed(cx: &CallCx) -> Result<Type, OpError> {
    match cx.arg(0)? {
        Expr::Tuple(_) | Expr::Constant(_) => {
            Err(OpError::argument(cx.name(), "input", "a variable, or a call that gets one", &cx.ty(0)?))
        }
        _ => cx.ty(0),
    }
}

/// The rows.
pub static TABLE: &[OpDef] = &[
    mark("grad.no_grad", "Its argument; no gradient flows through it."),
    checkpoint(
        "grad.start_checkpoint",
        "Its argument; what lies behind it is computed again for the gradient, not kept.",
    ),
    checkpoint("grad.end_checkpoint", "Its argument; what lies behind it is kept again."),
    OpDef::compute(
        "grad.take_backward",
        &[GRAD, ArgDef::tensor("x", "What was indexed."), ArgDef::tensor("indices", "The indices.")],
        &[
            AttrDef::absent("axis", AttrKind::Int, "The dimension that was indexed; the flattened tensor if absent."),
            AttrDef::str("mode", "", "What happened outside; it has no part in the gradient."),
        ],
        |cx| Ok(cx.tensor(1)?.ty()),
        take_backward,
        "The gradient of take for what was indexed: that of each element added up where it came from.",
    ),
    OpDef::compute(
        "grad.max_pool2d_backward",
        &[GRAD, ArgDef::tensor("data", "The image.")],
        ATTRS_2D,
        |cx| Ok(cx.tensor(1)?.ty()),
        max_pool_backward,
        "The gradient of max_pool2d: it goes to the largest element of each window, the first of equal ones.",
    ),
    OpDef::compute(
        "grad.avg_pool2d_backward",
        &[GRAD, ArgDef::tensor("data", "The image.")],
        ATTRS_2D,
        |cx| Ok(cx.tensor(1)?.ty()),
        avg_pool_backward,
        "The gradient of avg_pool2d: it goes to all elements of each window alike.",
    ),
];

fn argument(cx: &CallCx, _: &mut BlockBuilder) -> Result<Expr, OpError> {
    cx.arg(0).cloned()
}

fn take_backward(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let (grad, x, indices) = (input(cx, inputs, 0)?, input(cx, inputs, 1)?, input(cx, inputs, 2)?);
    let axis = match cx.attrs.get("axis") {
        Some(_) => Some(cx.axis("axis", x.ndim())?),
        None if x.ndim() == 1 => Some(0),
        None => None,
    };
    let out = [("T_take_grad".to_string(), x.shape().to_vec(), x.dtype())];
    Ok(te::extern_stage("take_backward", inputs, out, |source, target| {
        let (vars, at) = axes(x.shape(), "i");
        let zero = nest(&vars, x.shape(), Stmt::store(&target[0], at, constant(x.dtype(), 0.0)));
        let (vars, at) = axes(grad.shape(), "j");
        let to = match axis {
            Some(axis) => {
                let index = prim::load(&source[2], at[axis..axis + indices.ndim()].to_vec());
                let mut to = at.clone();
                to.splice(axis..axis + indices.ndim(), [wrapped(index, &x.shape()[axis])]);
                to
            }
            None => unflatten(
                &wrapped(prim::load(&source[2], at.clone()), &crate::shape::num_elements(x.shape())),
                x.shape(),
            ),
        };
        let sum = prim::load(&target[0], to.clone()) + prim::load(&source[0], at);
        Stmt::seq([zero, nest(&vars, grad.shape(), Stmt::store(&target[0], to, sum))])
    }))
}

/// The index of the element at a place in the flattened tensor.
fn unflatten(flat: &PrimExpr, dims: &[PrimExpr]) -> Vec<PrimExpr> {
    (0..dims.len())
        .map(|i| {
            let stride = crate::shape::num_elements(&dims[i + 1..]);
            let at = prim::floordiv(flat, stride);
            if i == 0 { at } else { prim::floormod(at, &dims[i]) }
        })
        .collect()
}

/// Loops over every window of a pooling, and what is done for each: with the window's place, the gradient at it, and a loop
/// over the elements of the image under it.
fn scatter(
    cx: &CallCx,
    inputs: &[te::Tensor],
    state: [DataType; 2],
    body: impl FnOnce(&Pool, &[PrimExpr], PrimExpr, &Scatter) -> Stmt,
) -> Result<Vec<te::Tensor>, OpError> {
    let (grad, x) = (input(cx, inputs, 0)?, input(cx, inputs, 1)?);
    let pool = Pool::of(cx)?;
    let image = window::unpacked(cx, "data", &pool.data, x.shape())?;
    let windows = pool.dims(&image);
    let one = || vec![PrimExpr::from(1)];
    let outs = [
        ("T_pool_grad".to_string(), x.shape().to_vec(), x.dtype()),
        ("best".to_string(), one(), state[0]),
        ("place".to_string(), one(), state[1]),
    ];
    let mut outs = te::extern_stage("pool_backward", &[grad.clone(), x.clone()], outs, |source, target| {
        let (vars, at) = axes(x.shape(), "i");
        let zero = nest(&vars, x.shape(), Stmt::store(&target[0], at, constant(x.dtype(), 0.0)));
        let (vars, at) = axes(&windows, "j");
        let own = prim::load(&source[0], pool.out_packing().place(&at));
        let walk = Scatter { pool: &pool, image: &image, source: &source[1], target };
        Stmt::seq([zero, nest(&vars, &windows, body(&pool, &at, own, &walk))])
    });
    Ok(vec![outs.swap_remove(0)])
}

/// The buffers that a pooling's gradient reads and writes.
struct Scatter<'a> {
    pool: &'a Pool,
    image: &'a [PrimExpr],
    source: &'a Ref<relaxide_ir::Buffer>,
    target: &'a [Ref<relaxide_ir::Buffer>],
}

impl Scatter<'_> {
    /// A loop over the elements under the window at `at`: `body` gets an element's index and its number in the window.
    fn elements(&self, at: &[PrimExpr], body: impl FnOnce(&[PrimExpr], &PrimExpr) -> Stmt) -> Stmt {
        let extents: Vec<PrimExpr> = self.pool.windows.iter().map(|w| w.kernel.clone()).collect();
        let (vars, taps) = axes(&extents, "k");
        let mut index = at[..2].to_vec();
        let mut inside = Vec::new();
        for (i, (w, tap)) in self.pool.windows.iter().zip(&taps).enumerate() {
            let place = w.element(&at[i + 2], tap) - w.before;
            inside.extend([prim::ge(&place, 0), prim::lt(&place, &self.image[i + 2])]);
            index.push(place);
        }
        let number = taps.iter().zip(&extents).fold(PrimExpr::from(0), |n, (tap, extent)| n * extent + tap);
        let index = self.pool.data.place(&index);
        nest(&vars, &extents, Stmt::when(window::all(inside), body(&index, &number)))
    }

    fn element(&self, index: &[PrimExpr]) -> PrimExpr {
        prim::load(self.source, index.to_vec())
    }

    fn add(&self, index: &[PrimExpr], value: PrimExpr) -> Stmt {
        let sum = prim::load(&self.target[0], index.to_vec()) + value;
        Stmt::store(&self.target[0], index.to_vec(), sum)
    }
}

fn max_pool_backward(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let dtype = input(cx, inputs, 1)?.dtype();
    scatter(cx, inputs, [dtype, DataType::int(64)], |_, at, grad, walk| {
        let (best, place) = (Cell::new(&walk.target[1], 0), Cell::new(&walk.target[2], 0));
        let find = walk.elements(at, |index, number| {
            let value = walk.element(index);
            let better = prim::or(prim::lt(place.get(), 0), prim::gt(&value, best.get()));
            Stmt::when(better, Stmt::seq([best.set(value), place.set(number)]))
        });
        let give = walk.elements(at, |index, number| Stmt::when(prim::eq(number, place.get()), walk.add(index, grad)));
        // The first element is better than none; it is compared with all the same.
        Stmt::seq([place.set(-1), best.set(prim::lowest(dtype)), find, give])
    })
}

fn avg_pool_backward(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let dtype = input(cx, inputs, 1)?.dtype();
    scatter(cx, inputs, [dtype, dtype], |pool, at, grad, walk| {
        let count = match pool.count(at, walk.image) {
            Some(count) => cast(dtype, count),
            None => constant(dtype, pool.volume() as f64),
        };
        let share = Cell::new(&walk.target[1], 0);
        let give = walk.elements(at, |index, _| walk.add(index, share.get()));
        Stmt::seq([share.set(prim::div(grad, count)), give])
    })
}
