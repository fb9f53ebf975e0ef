//! Reductions of many terms whose neighbours in memory belong to different outputs: sums over rows, means over tokens.
//!
//! ```text
//! parallel p over the output's other axes and blocks of 512 x:
//!     acc[512] = init
//!     for reduction axes, the last in steps of 4:
//!         for t:  acc[t*16 ..] = acc[t*16 ..] op value(k, x ..) op value(k + 1, x ..) op … op value(k + 3, x ..)
//!     C[p, x ..] = epilogue(acc)
//! ```
//!
//! Four accumulators in registers would read a few lines of each row before the next row, each in a page of its own, where
//! the processor does not guess what comes next. A block's accumulators stay in the first-level cache; four terms share one
//! visit there. Terms are combined in their order.
//!
//! Parameters: a block of 512 elements is long enough for the processor to prefetch it, and leaves rows of a thousand for two
//! threads. A row times a matrix that is used once is such a sum, too, of products: its blocks are twice as long, and its steps eight
//! rows. Roof: memory bandwidth.

use relaxide_ffi::Ref;
use relaxide_ir::prim::{BufferLoad, PrimExpr, VarMap, add, binary, floordiv, int, load, min, mul, ramp, sub};
use relaxide_ir::{Buffer, Var};

use super::super::affine::{ceil_div, flat_index, loads, product, uses};
use super::super::lanes::Lanes;
use super::super::parameters::{Choices, Domain, Guess};
use super::super::{Axis, Cx, Reduce, Reduction, Refusal, nest};
use super::reduction::over;
use super::register_tile::{RegisterTile, Rows};
use crate::Stmt;

/// Columns of a block.
const BLOCK: i64 = 512;
/// Terms for which an accumulator is loaded and stored once.
const STEP: i64 = 4;
/// The same of products, whose terms take longer.
const BLOCK_OF_PRODUCTS: i64 = 1024;
const STEP_OF_PRODUCTS: i64 = 8;
/// Terms from which accumulators leave the registers.
pub(super) const MANY: i64 = 64;

/// Whether there are so many terms, and more columns than registers take at once; sizes that nobody knows are large.
fn pays(reduce: &Reduce, x: &Axis, in_registers: i64) -> bool {
    let terms = product(reduce.stage.reduce.iter().map(|a| &a.extent)).as_int();
    terms.is_none_or(|n| n >= MANY) && x.extent.as_int().is_none_or(|n| n > in_registers)
}

/// What is decided of blocks.
pub struct Blocks {
    /// Lanes of a vector.
    lanes: i64,
    /// Columns of a block.
    block: i64,
    /// Terms for which an accumulator is loaded and stored once.
    step: i64,
}

impl Blocks {
    /// Asks for the parameters.
    pub fn decide(choices: &mut Choices<'_>, reduce: &Reduce, x: &Axis, lanes: i64) -> Blocks {
        let is_factor = |load: &Ref<BufferLoad>| !uses(&flat_index(&load.buffer, &load.indices), &x.var);
        let is_of_products = loads(&reduce.stage.value).iter().any(is_factor);
        let block = choices.choose(Guess {
            name: "block",
            value: if is_of_products { BLOCK_OF_PRODUCTS } else { BLOCK },
            domain: Domain::powers_of_two(64, 4096),
            reason: "long enough for the processor to prefetch it, and rows of a thousand are left for two threads",
            limit: "a block is whole vectors, and accumulators of larger ones leave the first-level cache",
        });
        let step = choices.choose(Guess {
            name: "step",
            value: if is_of_products { STEP_OF_PRODUCTS } else { STEP },
            domain: Domain::range(1, 8),
            reason: match is_of_products {
                true => "eight terms share one visit of an accumulator in the cache, and their products wait for nothing else",
                false => "four terms share one visit of an accumulator in the cache",
            },
            limit: "each term of a step is a row of its own, and processors follow few of them at once",
        });
        Blocks { lanes, block, step }
    }
}

/// Whether accumulators leave the registers.
pub fn chosen(choices: &mut Choices<'_>, reduce: &Reduce, x: &Axis, in_registers: i64) -> bool {
    let pays = pays(reduce, x, in_registers);
    let in_cache = choices.choose(Guess {
        name: "in_cache",
        value: i64::from(pays),
        domain: if reduce.stage.reduce.is_empty() { Domain::list([0]) } else { Domain::flag() },
        reason: match pays {
            true => "with many terms and columns, whole runs of a row are read before the next one",
            false => "few terms, or few columns, are read through as they lie",
        },
        limit: "accumulators are in registers (0), or in the cache (1) where there are axes to go through again",
    });
    in_cache == 1
}

/// The nest: vectors along `x`, block by block.
pub fn emit(
    cx: &mut Cx,
    reduce: &Reduce,
    reduction: &Reduction,
    x: &Axis,
    &Blocks { lanes, block: size, step }: &Blocks,
) -> Result<Stmt, Refusal> {
    let stage = &reduce.stage;
    let Some((last, further)) = stage.reduce.split_last() else { return Err(Refusal::new("it does not reduce")) };
    let block = Var::dim("block");
    let start = mul(PrimExpr::from(&block), int(size));
    let length = Var::dim("length");
    let whole = x.extent.as_int().is_some_and(|n| n % size == 0);
    let (bind, extent) = match whole {
        true => (Stmt::nop(), int(size)),
        false => {
            let length_of = min(int(size), sub(&x.extent, &start));
            (Stmt::bind(length.clone(), length_of), PrimExpr::from(&length))
        }
    };
    let columns = Columns { reduce, reduction, x: &x.var, lanes, start, extent };
    let acc = Buffer::scoped("acc", stage.output.dtype, [int(size)], "local");
    let steps = floordiv(&last.extent, int(step));
    let (k, single) = (Var::dim("k"), Var::dim("k"));
    let (at, behind) = (mul(PrimExpr::from(&k), int(step)), mul(&steps, int(step)));
    let rest = sub(&last.extent, &behind);
    let mut terms = vec![Stmt::serial(k.clone(), steps, columns.add(cx, &acc, &last.var, &at, step)?)];
    if !rest.is_int(0) {
        let at = add(behind, PrimExpr::from(&single));
        terms.push(Stmt::serial(single.clone(), rest, columns.add(cx, &acc, &last.var, &at, 1)?));
    }
    let body = Stmt::seq([
        bind,
        Stmt::alloc(&acc),
        columns.begin(cx, &acc)?,
        nest::serial(further, Stmt::seq(terms)),
        columns.emit_epilogue(cx, &acc)?,
    ]);
    let blocks = Axis { var: block, extent: ceil_div(&x.extent, size) };
    let axes: Vec<Axis> = stage.spatial.iter().filter(|a| a.var != x.var).cloned().chain([blocks]).collect();
    Ok(over(cx, reduce, &axes, body))
}

/// The columns of one block.
struct Columns<'a> {
    reduce: &'a Reduce,
    reduction: &'a Reduction,
    /// The axis of the columns.
    x: &'a Ref<Var>,
    /// Lanes of a vector.
    lanes: i64,
    /// The first column, and how many there are.
    start: PrimExpr,
    extent: PrimExpr,
}

impl Columns<'_> {
    fn tiles(&self, mut body: impl FnMut(&nest::Tile, PrimExpr) -> Result<Stmt, Refusal>) -> Result<Stmt, Refusal> {
        nest::tiles(self.start.clone(), &self.extent, self.lanes, 1, |tile| {
            let place = ramp(sub(&tile.base, &self.start), int(1), self.lanes);
            body(&tile, place)
        })
    }

    /// The vector of an expression at a tile.
    fn vector(&self, cx: &mut Cx, tile: &nest::Tile, e: &PrimExpr, map: &VarMap) -> Result<PrimExpr, Refusal> {
        Lanes::new(&mut cx.views, self.x, tile.base.clone(), self.lanes, tile.mask_of(0), map).vector(e)
    }

    /// What the accumulators are before any term.
    fn begin(&self, cx: &mut Cx, acc: &Ref<Buffer>) -> Result<Stmt, Refusal> {
        self.tiles(|tile, place| {
            Ok(Stmt::store(acc, [place], self.vector(cx, tile, &self.reduction.init, &VarMap::new())?))
        })
    }

    /// Combines `count` terms, from `first` on along the axis `k`.
    fn add(&self, cx: &mut Cx, acc: &Ref<Buffer>, k: &Ref<Var>, first: &PrimExpr, count: i64) -> Result<Stmt, Refusal> {
        self.tiles(|tile, place| {
            let mut sum = load(acc, [place.clone()]);
            for term in 0..count {
                let map: VarMap = [(k.clone(), add(first, int(term)))].into_iter().collect();
                sum = binary(self.reduction.op, sum, self.vector(cx, tile, &self.reduce.stage.value, &map)?);
            }
            Ok(Stmt::store(acc, [place], sum))
        })
    }

    /// The epilogue and the store.
    fn emit_epilogue(&self, cx: &mut Cx, acc: &Ref<Buffer>) -> Result<Stmt, Refusal> {
        let none = VarMap::new();
        self.tiles(|tile, place| {
            let tile = RegisterTile {
                reduce: self.reduce,
                row_axis: None,
                column_axis: self.x,
                lanes: self.lanes,
                rows: &Rows::full(int(0), 1),
                tile,
                at: &none,
                sums: None,
                by_row: false,
                beside: None,
            };
            tile.emit_epilogue(cx, int(0), 0, load(acc, [place]))
        })
    }
}
