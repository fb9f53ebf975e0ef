//! Products by tensor cores: the threads of a warp multiply small matrices together.
//!
//! ```text
//! C[b, m, n] = sum over k of A(b, m, k) * B(b, k, n)          float16, bfloat16, int8; float32 rounded to TF32 where it is asked for
//!   ->  block (b, 128 m, 128 n), 8 warps, each with 64 x 32 of it:
//!           own = A(…), B(…) of step 0; a[0], b[0] = own; sync
//!           for each two steps of 32 terms:
//!               own = A(…), B(…) of the next
//!               for 16 terms:  fa = warp_load_matrix(a[0] …);  fb = …;  acc = warp_multiply_add(fa, fb, acc)
//!               a[1], b[1] = own;  sync
//!               …and the same the other way round
//!           C = epilogue(acc), where it lies inside
//! ```
//!
//! Tiles of both operands are in shared memory, twice where it is large enough, so that a step has one barrier and what comes next is
//! loaded meanwhile. A tile lies there as its operand does, along the terms or along the lines, and is transposed where its fragments
//! are loaded; elements of a byte, which no instruction transposes, are transposed when they are put there. Rows of a tile are 16 bytes longer
//! than they must be, so that a fragment comes from different banks. Where neighbours of an operand are neighbours in memory, and its
//! address is a multiple of 16 bytes, they come 16 bytes at a time ([`operand`]). Sums of floats are in single precision, whatever the
//! type of the result is.
//!
//! Beyond the ends the tiles hold zeros, so lengths may be names. Where the number of rows is a name, few of them are left to the tiles of
//! [`product`](super::product). Convolutions are such products, element by element. Roof: the tensor cores.

mod fragments;
mod operand;

use relaxide_ffi::Ref;
use relaxide_ir::prim::{
    PrimExpr, VarMap, add, cast, constant, floordiv, floormod, ge, int, load, lt, mul, substitute,
};
use relaxide_ir::{Buffer, DataType, Var};

use super::super::super::affine::{ceil_div, cost, product};
use super::super::super::inline::freshen_lets;
use super::super::super::parameters::{Choices, Domain, Guess};
use super::super::super::threads::launch;
use super::super::super::{Axis, Cx, Machine, Reduce, Refusal, nest};
use super::super::contraction::Contraction;
use super::super::fallback;
use super::super::rule::Rule;
use super::team::refuse_checks;
use super::{product as tiles, reduction};
use crate::Stmt;
use crate::warp::{COLUMNS, ROWS, WARP, WarpProduct};
use operand::{Operand, Step};

/// Rows, columns or terms below which most of a product would be zeros.
const FEW: i64 = 16;
/// Blocks of large tiles from which a device is busy.
const BUSY: i64 = 64;
/// Cost of what is done to a result from which it is written down for few results of a thread only.
const DEAR: i64 = 40;
/// Bytes of a line of a tile: four accesses of a thread.
const LINE: i64 = 64;

/// The rule.
pub struct TensorCores;

/// A product of types that tensor cores multiply.
pub struct Found {
    c: Contraction,
    /// The factors in the type that they are multiplied in.
    factors: [PrimExpr; 2],
    product: WarpProduct,
    /// The type of sums.
    sum: DataType,
    /// Axes of columns, the contiguous one last.
    column_axes: Vec<Axis>,
    rows: PrimExpr,
    columns: PrimExpr,
    terms: PrimExpr,
}

/// What the rule decides.
#[derive(Clone, Copy)]
pub struct Decided {
    /// Rows of a warp.
    rows: i64,
    /// Columns of a warp.
    columns: i64,
    /// Warps of a block, one below the other.
    down: i64,
    /// Warps of a block, side by side.
    across: i64,
    /// Terms of a step.
    depth: i64,
    /// Whether tiles are there twice.
    is_double: bool,
}

impl Decided {
    fn threads(self) -> i64 {
        WARP * self.down * self.across
    }
}

impl Rule for TensorCores {
    type Work = Reduce;
    type Found<'w> = Found;
    type Decided = Decided;

    fn find(machine: &Machine, reduce: &Reduce) -> Result<Found, Refusal> {
        find(machine, reduce)
    }

    fn decide(machine: &Machine, found: &Found, choices: &mut Choices<'_>) -> Result<Decided, Refusal> {
        decide(machine, found, choices)
    }

    fn emit(cx: &mut Cx, found: &Found, decided: &Decided) -> Result<Stmt, Refusal> {
        let made = Emission::of(found, *decided).emit();
        if found.rows.as_int().is_some() {
            return Ok(made);
        }
        // Few rows are decided about as if they were all.
        let (reduce, choices) = (&found.c.reduce, &mut Choices::of(None));
        let few = tiles::apply(cx, reduce, choices).or_else(|_| reduction::apply(cx, reduce, choices));
        let few = few.or_else(|_| fallback::reduce(cx, reduce))?;
        Ok(Stmt::if_else(ge(found.rows.clone(), int(FEW)), made, few))
    }
}

fn find(machine: &Machine, reduce: &Reduce) -> Result<Found, Refusal> {
    if !machine.tensor_cores {
        return Err(Refusal::new("the target has no tensor cores of sm_80 or later"));
    }
    refuse_checks(reduce)?;
    let c = Contraction::of(reduce)?;
    let result = c.reduce.stage.output.dtype;
    let factors = [narrow(&c.row), narrow(&c.column)];
    let sum = if result.is_float() { DataType::float(32) } else { result };
    let fits = result.lanes == 1 && (!result.is_float() || result.bits <= 32) && c.row.dtype() == result;
    let product = WarpProduct::of(factors[0].dtype(), factors[1].dtype(), sum).filter(|_| fits);
    let product = product.ok_or_else(|| Refusal::new("tensor cores do not multiply such types"))?;
    let column_axes: Vec<Axis> = c.columns.iter().chain([&c.x]).cloned().collect();
    let extent = |axes: &[Axis]| self::product(axes.iter().map(|a| &a.extent));
    let (rows, columns, terms) = (extent(&c.rows), extent(&column_axes), extent(&c.inner));
    for (what, extent) in [("rows", &rows), ("columns", &columns), ("terms", &terms)] {
        if extent.as_int().is_some_and(|n| n < FEW) {
            return Err(Refusal::new(format!("few {what}")));
        }
    }
    Ok(Found { c, factors, product, sum, column_axes, rows, columns, terms })
}

/// What a factor was before it was made wider, if that loses nothing.
fn narrow(factor: &PrimExpr) -> PrimExpr {
    match factor {
        PrimExpr::Cast(n)
            if n.dtype.is_float() == n.value.dtype().is_float() && n.dtype.bits > n.value.dtype().bits =>
        {
            n.value.clone()
        }
        _ => factor.clone(),
    }
}

fn decide(machine: &Machine, found: &Found, choices: &mut Choices<'_>) -> Result<Decided, Refusal> {
    if found.product.per_register == 1 {
        let rounds = choices.choose(Guess {
            name: "tf32",
            value: 0,
            domain: Domain::flag(),
            reason: "factors would be rounded to ten bits behind the point, which has to be asked for",
            limit: "it is no or yes",
        });
        if rounds == 0 {
            return Err(Refusal::new(
                "factors of single precision are rounded where it is asked for only (`tf32 = 1`)",
            ));
        }
    }
    let guess = guess(found);
    let mut choose = |name, value, domain, reason, limit| choices.choose(Guess { name, value, domain, reason, limit });
    let sides = || Domain::list([16, 32, 64]);
    let rows = choose(
        "warp_rows",
        guess.rows,
        sides(),
        "a warp uses what it loads for many results",
        "of more a thread has no registers",
    );
    let columns = choose(
        "warp_columns",
        guess.columns,
        sides(),
        "half as many as rows where there are many, for the registers",
        "of more a thread has no registers",
    );
    let warps = || Domain::list([1, 2, 4, 8]);
    let down = choose("warps_down", guess.down, warps(), "warps share columns", "a block has few warps");
    let across = choose("warps_across", guess.across, warps(), "warps share rows", "a block has few warps");
    let depth = choose(
        "depth",
        guess.depth,
        Domain::powers_of_two(found.product.terms(), 4 * found.product.terms()),
        "a line of a tile is 64 bytes, two products deep",
        "a step is whole products, and tiles that are deeper are too large for two of them",
    );
    let mut decided = Decided { rows, columns, down, across, depth, is_double: false };
    let limits = super::limits_of(machine)?;
    let bytes = Emission::of(found, decided).shared_bytes();
    if decided.threads() > limits.threads || bytes > limits.shared_bytes {
        return Err(Refusal::new("a block has too few threads or too little shared memory"));
    }
    let fits = 2 * bytes <= limits.shared_bytes;
    let is_double = choose(
        "double_buffer",
        i64::from(fits && guess.is_double),
        if fits { Domain::flag() } else { Domain::list([0]) },
        "what comes next is loaded meanwhile where it comes in few accesses and there is room for it",
        "it is no or yes, and yes where tiles fit into shared memory twice",
    );
    decided.is_double = is_double == 1;
    Ok(decided)
}

fn guess(found: &Found) -> Decided {
    let per = |extent: &PrimExpr, side: i64| Some((extent.as_int()? + side - 1) / side);
    let large = |side: i64| {
        let batch = product(found.c.batch.iter().map(|a| &a.extent)).as_int()?;
        Some(per(&found.rows, side)? * per(&found.columns, side)? * batch)
    };
    let is_large = large(128).is_some_and(|blocks| blocks >= BUSY) && cost(&found.c.reduce.epilogue) < DEAR;
    let (rows, columns, down, across) = if is_large { (64, 32, 2, 4) } else { (32, 32, 2, 2) };
    let depth = LINE * found.product.per_register / 4;
    let mut decided = Decided { rows, columns, down, across, depth, is_double: true };
    decided.is_double = Emission::of(found, decided).operands.iter().all(|operand| operand.group > 1);
    decided
}

/// A product that is written down.
struct Emission<'f> {
    found: &'f Found,
    decided: Decided,
    /// The rows' and the columns'.
    operands: [Operand<'f>; 2],
}

/// The names of a thread and of its place.
struct Names {
    thread: Ref<Var>,
    /// The thread's number in its warp.
    lane: Ref<Var>,
    /// First rows and columns of the block.
    first: [Ref<Var>; 2],
    /// First rows and columns of the warp within the block.
    of_warp: [Ref<Var>; 2],
    /// Whether what is loaded 16 bytes at a time may be, of both operands.
    aligned: [Ref<Var>; 2],
}

impl<'f> Emission<'f> {
    fn of(found: &'f Found, decided: Decided) -> Emission<'f> {
        let operands = [
            Operand::rows(found, decided.rows * decided.down, decided.depth),
            Operand::columns(found, decided.columns * decided.across, decided.depth),
        ];
        Emission { found, decided, operands }
    }

    /// Bytes of a pair of tiles.
    fn shared_bytes(&self) -> i64 {
        self.operands.iter().map(Operand::tile_bytes).sum()
    }

    fn emit(&self) -> Stmt {
        let Decided { rows, columns, down, across, .. } = self.decided;
        let (found, c) = (self.found, &self.found.c);
        let [block, row_block, column_block] = ["block", "rows", "columns"].map(Var::dim);
        let names = Names {
            thread: Var::dim("thread"),
            lane: Var::dim("lane"),
            first: ["m0", "n0"].map(Var::dim),
            of_warp: ["m1", "n1"].map(Var::dim),
            aligned: ["aligned_a", "aligned_b"].map(|name| Var::prim(name, DataType::bool())),
        };
        let mut axes = c.batch.clone();
        axes.push(Axis { var: row_block.clone(), extent: ceil_div(&found.rows, rows * down) });
        axes.push(Axis { var: column_block.clone(), extent: ceil_div(&found.columns, columns * across) });
        let (blocks, mut body) = nest::fuse(&axes, &block);
        let warp = floordiv(PrimExpr::from(&names.thread), int(WARP));
        let sum = Buffer::scoped("acc", found.sum, [int(self.results())], "local");
        body.extend([
            Stmt::bind(names.first[0].clone(), mul(PrimExpr::from(&row_block), int(rows * down))),
            Stmt::bind(names.first[1].clone(), mul(PrimExpr::from(&column_block), int(columns * across))),
            Stmt::bind(names.lane.clone(), floormod(PrimExpr::from(&names.thread), int(WARP))),
            Stmt::bind(names.of_warp[0].clone(), mul(floordiv(&warp, int(across)), int(rows))),
            Stmt::bind(names.of_warp[1].clone(), mul(floormod(&warp, int(across)), int(columns))),
            Stmt::alloc(&sum),
        ]);
        for (operand, aligned) in self.operands.iter().zip(&names.aligned) {
            body.extend(operand.address_check().map(|check| Stmt::bind(aligned.clone(), check)));
        }
        body.extend((0..self.results()).map(|i| Stmt::store(&sum, [int(i)], constant(found.sum, 0.0))));
        body.extend(self.steps(&names, &sum));
        body.push(self.store(&names, &sum));
        launch(&block, blocks, &names.thread, self.decided.threads(), Stmt::seq(body))
    }

    /// Results of a thread.
    fn results(&self) -> i64 {
        self.decided.rows * self.decided.columns / WARP
    }

    fn steps(&self, names: &Names, sum: &Ref<Buffer>) -> Vec<Stmt> {
        let Decided { depth, is_double, .. } = self.decided;
        let pairs: Vec<[Ref<Buffer>; 2]> =
            (0..1 + i64::from(is_double)).map(|_| self.operands.each_ref().map(Operand::tile)).collect();
        let own = self.operands.each_ref().map(|operand| operand.own(self.decided.threads()));
        let mut list: Vec<Stmt> = pairs.iter().flatten().chain(&own).map(Stmt::alloc).collect();
        let fetch = |step: PrimExpr, beyond: bool| {
            let k0 = Var::dim("k0");
            let each = (0..2).map(|i| {
                let (thread, first, aligned) = (&names.thread, &names.first[i], &names.aligned[i]);
                let step = Step { thread, threads: self.decided.threads(), first, k0: &k0, beyond };
                self.operands[i].fetch(&own[i], &step, aligned)
            });
            Stmt::seq([Stmt::bind(k0.clone(), mul(step, int(depth)))].into_iter().chain(each))
        };
        let put = |pair: &[Ref<Buffer>; 2]| {
            Stmt::seq((0..2).map(|i| self.operands[i].put(&own[i], &pair[i], &names.thread, self.decided.threads())))
        };
        let multiply = |pair: &[Ref<Buffer>; 2]| fragments::multiply(self, names, pair, sum);
        let step = Var::dim("step");
        let at = PrimExpr::from(&step);
        if let [pair] = pairs.as_slice() {
            let inside = [fetch(at, false), put(pair), Stmt::barrier(), multiply(pair), Stmt::barrier()];
            list.push(Stmt::serial(step, ceil_div(&self.found.terms, depth), Stmt::seq(inside)));
            return list;
        }
        list.extend([fetch(int(0), true), put(&pairs[0]), Stmt::barrier()]);
        let mut inside = Vec::new();
        for (here, there) in [(0, 1), (1, 0)] {
            let next = add(mul(at.clone(), int(2)), int(here as i64 + 1));
            inside.extend([fetch(next, true), multiply(&pairs[here]), put(&pairs[there]), Stmt::barrier()]);
        }
        list.push(Stmt::serial(step, ceil_div(&self.found.terms, 2 * depth), Stmt::seq(inside)));
        list
    }

    /// The thread's results, where they lie inside.
    fn store(&self, names: &Names, sum: &Ref<Buffer>) -> Stmt {
        let (found, reduce) = (self.found, &self.found.c.reduce);
        let (group, own) =
            (floordiv(PrimExpr::from(&names.lane), int(4)), floormod(PrimExpr::from(&names.lane), int(4)));
        let line = |name: &str, side: usize, place: PrimExpr| {
            let var = Var::dim(name);
            let (axes, extent) = [(&found.c.rows, &found.rows), (&found.column_axes, &found.columns)][side];
            let first = add(PrimExpr::from(&names.first[side]), PrimExpr::from(&names.of_warp[side]));
            let whole = extent.as_int().is_some_and(|n| n % self.operands[side].side == 0);
            let inside = (!whole).then(|| lt(PrimExpr::from(&var), extent.clone()));
            let (_, binds) = nest::fuse(axes, &var);
            (Stmt::bind(var, add(first, place)), binds, inside)
        };
        let under =
            |inside: Option<PrimExpr>, body: Stmt| inside.map_or(body.clone(), |inside| Stmt::when(inside, body));
        let across = self.decided.columns / COLUMNS;
        let mut list = Vec::new();
        for i in 0..self.decided.rows / (ROWS / 2) {
            let (bind, row_binds, row_inside) = line("m", 0, add(&group, int(i * ROWS / 2)));
            let mut of_row = row_binds;
            for j in 0..2 * across {
                let place = add(mul(&own, int(2)), int(j / 2 * COLUMNS + j % 2));
                let (bind, binds, inside) = line("n", 1, place);
                // Two rows of a product are eight apart.
                let at = ((i / 2) * across + j / 2) * 4 + (i % 2) * 2 + j % 2;
                let total = cast(reduce.acc.dtype(), load(sum, [int(at)]));
                let epilogue = substitute(&reduce.epilogue, &VarMap::from([(reduce.acc.clone(), total)]));
                let store = Stmt::store(&reduce.output, reduce.indices.clone(), freshen_lets(&epilogue));
                of_row.push(bind);
                of_row.push(under(inside, Stmt::seq(binds.into_iter().chain([store]))));
            }
            list.extend([bind, under(row_inside, Stmt::seq(of_row))]);
        }
        Stmt::seq(list)
    }
}
