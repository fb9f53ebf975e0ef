//! Loops that rules share: parallel loops that pay, fused outer axes, vector loops with their tails.

use relaxide_ffi::Ref;
use relaxide_ir::prim::{PrimExpr, add, floordiv, floormod, ge, gt, int, int_of, min, mul, sub};
use relaxide_ir::{Attrs, Var};

use super::Machine;
use super::affine::{ceil_div, product};
use super::lanes::Mask;
use super::stage::Axis;
use super::threads::{BLOCK, THREADS};
use crate::{AttrStmt, For, ForKind, Stmt};

/// The attribute that says when a parallel loop is worth its threads; else one thread runs it.
pub const PARALLEL_IF: &str = "relaxide.parallel_if";

/// The annotation of a loop that says by how much it is unrolled where code is made of it.
pub const UNROLL_COUNT: &str = "unroll_count";

/// The attribute of a statement that is to be a function of its own, where code is made of it: then its constants take no registers from what
/// stands around it.
pub const OUTLINED: &str = "relaxide.outlined";

/// A statement as a function of its own.
pub fn outlined(body: Stmt) -> Stmt {
    Ref::new(AttrStmt { node: None, key: OUTLINED.into(), value: int(1), body }).into()
}

/// A parallel loop over `0 .. extent`, serial where the whole costs less than threads do.
///
/// `work` is the cost of all iterations together in simple operations. Where it is known, the choice is made here.
pub fn parallel(machine: &Machine, var: Ref<Var>, extent: PrimExpr, work: PrimExpr, body: Stmt) -> Stmt {
    if extent.is_int(1) {
        return Stmt::seq([Stmt::bind(var, int(0)), body]);
    }
    let Some(threshold) = machine.parallel_threshold else { return Stmt::serial(var, extent, body) };
    let parallel = |var: Ref<Var>, extent, body| {
        let block = machine.block.filter(|threads| *threads != THREADS);
        let annotations = block.map_or_else(Attrs::new, |threads| Attrs::new().with(BLOCK, threads));
        let min = int_of(var.dtype(), 0);
        Stmt::from(Ref::new(For { annotations, ..For::new(ForKind::Parallel, var, min, extent, body) }))
    };
    match work.as_int() {
        Some(work) if work < threshold => Stmt::serial(var, extent, body),
        Some(_) => parallel(var, extent, body),
        None => {
            let body = parallel(var, extent, body);
            Ref::new(AttrStmt { node: None, key: PARALLEL_IF.into(), value: gt(work, int(threshold)), body }).into()
        }
    }
}

/// One loop counter for several axes: the extent of the fused axis, and what each axis is in terms of the counter.
pub fn fuse(axes: &[Axis], counter: &Ref<Var>) -> (PrimExpr, Vec<Stmt>) {
    let mut binds = Vec::new();
    let mut rest = PrimExpr::from(counter);
    for (position, axis) in axes.iter().enumerate().rev() {
        if position == 0 {
            binds.push(Stmt::bind(axis.var.clone(), rest.clone()));
        } else {
            binds.push(Stmt::bind(axis.var.clone(), floormod(&rest, &axis.extent)));
            rest = floordiv(rest, &axis.extent);
        }
    }
    (product(axes.iter().map(|a| &a.extent)), binds)
}

/// Serial loops over some axes, the last innermost.
pub fn serial(axes: &[Axis], body: Stmt) -> Stmt {
    axes.iter().rev().fold(body, |body, a| Stmt::serial(a.var.clone(), a.extent.clone(), body))
}

/// Nested loops, the innermost of which stays one: unrolled, iterations that load the same would keep it in registers, where there are none left.
pub fn kept(nest: Stmt) -> Stmt {
    let Stmt::For(n) = nest else { return nest };
    let (annotations, body) = match &n.body {
        Stmt::For(_) => (n.annotations.clone(), kept(n.body.clone())),
        body => (n.annotations.clone().with(UNROLL_COUNT, 1), body.clone()),
    };
    Ref::new(For { annotations, body, ..For::clone(&n) }).into()
}

/// How the last vector of a row is stored. Masked stores are slow on many processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// Only the elements that are left.
    Masked,
    /// Whole: what follows the row is written later, or never read.
    Padded,
    /// Whole, and moved back to end with the row: elements may be made twice, from what is not written meanwhile.
    Overlapped,
}

/// A tile of a vector loop: where it starts, how many vectors it has, and the mask of the last of them.
pub struct Tile {
    /// First element.
    pub base: PrimExpr,
    /// Vectors.
    pub vectors: i64,
    /// Which lanes of the last vector count, where not all do.
    pub mask: Option<Mask>,
}

impl Tile {
    /// The mask of one of its vectors.
    pub fn mask_of(&self, vector: i64) -> Option<&Mask> {
        self.mask.as_ref().filter(|_| vector + 1 == self.vectors)
    }

    /// The first element of one of its vectors.
    pub fn at(&self, vector: i64, lanes: i64) -> PrimExpr {
        add(&self.base, int(vector * lanes))
    }
}

/// A loop over `start .. start + extent` in tiles of `vectors` vectors: full tiles, then one smaller tile for the rest.
///
/// ```text
/// for t in range(extent // 16):  body(start + t*16, 2 vectors)
/// rest = extent % 16
/// if rest > 8:    body(…, 2 vectors, mask = first rest - 8)
/// elif rest > 0:  body(…, 1 vector,  mask = first rest)
/// ```
///
/// A constant extent leaves only the branches that are taken. Tiles of many vectors leave their rest to single vectors.
pub fn tiles<E>(
    start: PrimExpr,
    extent: &PrimExpr,
    lanes: i64,
    vectors: i64,
    mut body: impl FnMut(Tile) -> Result<Stmt, E>,
) -> Result<Stmt, E> {
    tiles_by(start, extent, lanes, vectors, &mut body)
}

/// Vectors of a tile up to which each number of remaining vectors has a branch of its own.
const MOST_TAILS: i64 = 4;

fn tiles_by<E>(
    start: PrimExpr,
    extent: &PrimExpr,
    lanes: i64,
    vectors: i64,
    body: &mut dyn FnMut(Tile) -> Result<Stmt, E>,
) -> Result<Stmt, E> {
    let step = lanes * vectors;
    let full = floordiv(extent, int(step));
    let mut list = Vec::new();
    if full.is_int(1) {
        list.push(body(Tile { base: start.clone(), vectors, mask: None })?);
    } else if !full.is_int(0) {
        let t = Var::dim("t");
        let base = add(&start, mul(PrimExpr::from(&t), int(step)));
        let inner = body(Tile { base, vectors, mask: None })?;
        list.push(Stmt::serial(t, full.clone(), inner));
    }
    let base = add(&start, mul(&full, int(step)));
    if vectors > MOST_TAILS {
        let rest = sub(extent, mul(&full, int(step)));
        if !rest.is_int(0) {
            list.push(tiles_by(base, &rest, lanes, 1, body)?);
        }
        return Ok(Stmt::seq(list));
    }
    match extent.as_int() {
        Some(extent) => {
            let rest = extent % step;
            let vectors = (rest + lanes - 1) / lanes;
            if rest > 0 {
                let mask = (rest % lanes != 0).then(|| Mask::first(int(rest - (vectors - 1) * lanes)));
                list.push(body(Tile { base, vectors, mask })?);
            }
        }
        None => {
            let rest = Var::dim("rest");
            list.push(Stmt::bind(rest.clone(), sub(extent, mul(&full, int(step)))));
            let mut branch = Stmt::nop();
            for count in 1..=vectors {
                let before = int((count - 1) * lanes);
                let mask = Some(Mask::first(sub(PrimExpr::from(&rest), before.clone())));
                let tile = body(Tile { base: base.clone(), vectors: count, mask })?;
                let condition = gt(PrimExpr::from(&rest), before);
                branch =
                    if branch.is_nop() { Stmt::when(condition, tile) } else { Stmt::if_else(condition, tile, branch) };
            }
            list.push(branch);
        }
    }
    Ok(Stmt::seq(list))
}

/// A loop over `start .. start + extent` in tiles of `vectors` vectors, then single vectors, all of them masked.
///
/// ```text
/// for t in range(extent // 16):            body(start + t*16, 2 vectors)
/// rest = extent % 16
/// for v in range(ceil(rest / 8)):          body(…, 1 vector, mask = first rest - v*8)
/// ```
///
/// For bodies that are long beside a masked store, along an extent that nobody knows: [`tiles`] would write them down once
/// for each number of vectors that may be left. A constant extent is cut as [`tiles`] cuts it.
pub fn tiles_then_vectors<E>(
    start: PrimExpr,
    extent: &PrimExpr,
    lanes: i64,
    vectors: i64,
    mut body: impl FnMut(Tile) -> Result<Stmt, E>,
) -> Result<Stmt, E> {
    if extent.as_int().is_some() {
        return tiles(start, extent, lanes, vectors, body);
    }
    let step = lanes * vectors;
    let full = floordiv(extent, int(step));
    let (t, v, rest) = (Var::dim("t"), Var::dim("v"), Var::dim("rest"));
    let base = add(&start, mul(PrimExpr::from(&t), int(step)));
    let inner = body(Tile { base, vectors, mask: None })?;
    let done = mul(&full, int(step));
    let before = mul(PrimExpr::from(&v), int(lanes));
    let mask = Mask::first(sub(PrimExpr::from(&rest), &before));
    let single = body(Tile { base: add(add(start, &done), before), vectors: 1, mask: Some(mask) })?;
    Ok(Stmt::seq([
        Stmt::serial(t, full, inner),
        Stmt::bind(rest.clone(), sub(extent, done)),
        Stmt::serial(v, ceil_div(&PrimExpr::from(&rest), lanes), single),
    ]))
}

/// A loop over `0 .. extent` in tiles of `vectors` vectors that ends with whole vectors moved back, which compute some
/// elements twice; only an extent of less than a vector is masked.
///
/// ```text
/// if extent >= 8:
///     for t in range(extent // 16):            body(t*16, 2 vectors)
///     for v in range(ceil(extent % 16 / 8)):   body(min(done + v*8, extent - 8), 1 vector)
/// else:                                        body(0, 1 vector, mask = first extent)
/// ```
///
/// For bodies that are short beside a masked store, and whose elements may be computed twice.
pub fn overlapping_tiles<E>(
    extent: &PrimExpr,
    lanes: i64,
    vectors: i64,
    mut body: impl FnMut(Tile) -> Result<Stmt, E>,
) -> Result<Stmt, E> {
    let step = lanes * vectors;
    let masked = |body: &mut dyn FnMut(Tile) -> Result<Stmt, E>| {
        body(Tile { base: int(0), vectors: 1, mask: Some(Mask::first(extent.clone())) })
    };
    if extent.as_int().is_some_and(|n| n < lanes) {
        return masked(&mut body);
    }
    let full = floordiv(extent, int(step));
    let mut list = Vec::new();
    if !full.is_int(0) {
        let t = Var::dim("t");
        let tile = body(Tile { base: mul(PrimExpr::from(&t), int(step)), vectors, mask: None })?;
        list.push(Stmt::serial(t, full.clone(), tile));
    }
    let done = mul(full, int(step));
    let rest = sub(extent, &done);
    if !rest.is_int(0) {
        let v = Var::dim("v");
        let base = min(add(done, mul(PrimExpr::from(&v), int(lanes))), sub(extent, int(lanes)));
        let tile = body(Tile { base, vectors: 1, mask: None })?;
        list.push(Stmt::serial(v, ceil_div(&rest, lanes), tile));
    }
    let wide = Stmt::seq(list);
    if extent.as_int().is_some() {
        return Ok(wide);
    }
    let narrow = masked(&mut body)?;
    Ok(Stmt::if_else(ge(extent.clone(), int(lanes)), wide, narrow))
}
