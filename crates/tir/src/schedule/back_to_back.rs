//! Products of matrices with rows between them, block of rows by block: attention.
//!
//! ```text
//! S[h, m, l] = sum over d of Q[h, m, d] * K[h, l, d]       BackToBack { batch: [h], rows: m,
//! P[h, m, :] = softmax(S[h, m, :])                  ->         pieces: S[r, l] = …, P[r, :] = …, O[h, first + r, n] = …,
//! O[h, m, n] = sum over l of P[h, m, l] * V[h, l, n]           scratch: [S: rows a block × l, …] }
//! ```
//!
//! Piece after piece, `S` is written to memory and read again, twice: of long sequences it is larger than any cache (Dao et al. 2022 say what
//! that costs). A block of its rows stays in the second-level cache.
//!
//! What all terms of the second product have as a factor in a row, which is one over the softmax's total, is multiplied with the sum.
//!
//! A chain begins with a product whose row operand alone has the axis of rows, goes on with pieces that read at each row what the chain has made
//! at the same, and ends with a product whose row operand the chain has made and whose column operand it has not. What lies between is read
//! by nobody else.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::prim::{BinaryOp, BufferLoad, PrimExpr, PrimMutator, VarMap, add, binary, int, load, substitute};
use relaxide_ir::{Buffer, Var};

use super::affine::{ceil_div, loads, product, same, uses_any};
use super::group::{Reduce, Work};
use super::machine::elements_in_line;
use super::parameters::{Choices, Domain, Guess, Parameter};
use super::record::Record;
use super::rules::{Contraction, threads_from};
use super::stage::{Axis, Program, Reduction, Stage};
use super::{Machine, ScheduleError, rows};

/// The name of the rule.
pub(super) const NAME: &str = "back_to_back";
/// Lines of the cache in a page of memory.
const LINES_OF_PAGE: i64 = 64;
/// Rows of a block at most.
const MOST_ROWS: i64 = 256;

/// Elements between two products from which memory is what they wait for: a megabyte of float32, half of the second-level cache of large
/// processors.
const FEWEST_ELEMENTS: i64 = 256 << 10;
/// Rows from which a block shares what it reads of the other matrices.
const FEWEST_ROWS: i64 = 32;

/// Whether a kernel of two products pays, between which so many rows lie, of so many elements in all (`docs/performance/attention.md`).
pub fn pays(rows: i64, elements: i64) -> bool {
    rows >= FEWEST_ROWS && elements >= FEWEST_ELEMENTS
}

/// A chain of pieces, over a block of rows.
#[derive(Clone, Debug)]
pub struct BackToBack {
    /// The axes that all pieces have besides the rows.
    pub batch: Vec<Axis>,
    /// The axis whose rows are taken block by block.
    pub rows: Axis,
    /// Rows of a block.
    pub block: i64,
    /// The first row of a block, and how many it has.
    pub first: Ref<Var>,
    /// See `first`.
    pub count: PrimExpr,
    /// The pieces, over the rows of a block.
    pub pieces: Vec<Work>,
    /// What lies between the pieces, as large as a block.
    pub scratch: Vec<Ref<Buffer>>,
    /// From which work on threads share it.
    pub threads_from: Option<i64>,
    /// The name under which it is noted.
    pub key: String,
    /// All parameters.
    pub parameters: Vec<Parameter>,
}

/// Makes chains of neighbours. Devices have none: their blocks of threads share other memory.
pub fn join(
    program: &Program,
    work: Vec<Work>,
    machine: &Machine,
    record: &mut Record<'_>,
) -> Result<Vec<Work>, ScheduleError> {
    if machine.device.is_some() {
        return Ok(work);
    }
    let mut joined = Vec::new();
    let mut position = 0;
    while let Some(piece) = work.get(position) {
        match Chain::of(&work[position..]).filter(|chain| chain.is_private(program, &work, position)) {
            Some(chain) => {
                joined.extend(chain.aside.iter().map(|piece| (*piece).clone()));
                joined.push(Work::BackToBack(Box::new(chain.laid_out(program, machine, record)?)));
                position += chain.len();
            }
            None => {
                joined.push(piece.clone());
                position += 1;
            }
        }
    }
    Ok(joined)
}

/// What an axis is in the chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    Batch(usize),
    Row,
}

/// A piece of a chain.
struct Piece<'a> {
    work: &'a Work,
    stage: &'a Stage,
    output: &'a Ref<Buffer>,
    indices: &'a [PrimExpr],
    roles: HashMap<Ref<Var>, Role>,
}

impl<'a> Piece<'a> {
    fn of(work: &'a Work) -> Option<Piece<'a>> {
        let (stage, output, indices) = match work {
            Work::Map(stage) => (stage, &stage.output, &stage.indices),
            Work::Reduce(r) => (&r.stage, &r.output, &r.indices),
            _ => return None,
        };
        let is_plain = stage.is_identity() && indices.iter().all(|i| i.as_var().is_some() || i.is_int(0));
        is_plain.then(|| Piece { work, stage, output, indices, roles: HashMap::new() })
    }

    fn loads(&self) -> Vec<Ref<BufferLoad>> {
        let init = self.stage.reduction.as_ref().map(|r| &r.init);
        let epilogue = match self.work {
            Work::Reduce(r) => Some(&r.epilogue),
            _ => None,
        };
        std::iter::once(&self.stage.value).chain(init).chain(epilogue).flat_map(loads).collect()
    }

    /// The role of each dimension of the output.
    fn dims(&self) -> Vec<Option<Role>> {
        self.indices.iter().map(|i| i.as_var().and_then(|v| self.roles.get(v).copied())).collect()
    }

    fn contraction(&self) -> Option<Contraction> {
        match self.work {
            Work::Reduce(reduce) => Contraction::of_numbers_or_words(reduce).ok(),
            _ => None,
        }
    }
}

struct Chain<'a> {
    batch: Vec<Axis>,
    rows: Axis,
    pieces: Vec<Piece<'a>>,
    /// What stands between the pieces and reads none of them, as a mask that is made for all heads: it goes first.
    aside: Vec<&'a Work>,
}

impl<'a> Chain<'a> {
    /// The chain that begins with the first piece.
    fn of(work: &'a [Work]) -> Option<Chain<'a>> {
        let mut first = Piece::of(work.first()?)?;
        let product = first.contraction()?;
        let rows = product.rows.last().filter(|a| !a.extent.is_int(1))?.clone();
        let is_short = first.stage.spatial.iter().chain(&first.stage.reduce).any(|a| a.extent.is_int(0));
        if is_short || !product.columns.is_empty() {
            return None;
        }
        let others = first.stage.spatial.iter().filter(|a| a.var != rows.var && a.var != product.x.var);
        let batch: Vec<Axis> = others.cloned().collect();
        first.roles = batch.iter().enumerate().map(|(i, a)| (a.var.clone(), Role::Batch(i))).collect();
        first.roles.insert(rows.var.clone(), Role::Row);
        let mut chain = Chain { batch, rows, pieces: vec![first], aside: Vec::new() };
        for work in &work[1..] {
            let mut piece = Piece::of(work)?;
            let is_apart = piece.loads().iter().all(|l| chain.maker(&l.buffer).is_none());
            if is_apart && !chain.pieces.iter().any(|p| p.output == piece.output || reads(p, piece.output)) {
                chain.aside.push(work);
                continue;
            }
            piece.roles = chain.roles_of(&piece)?;
            let contraction = piece.contraction();
            let ends = contraction.as_ref().is_some_and(|c| chain.is_end(&piece, c));
            // A product is the end, or none of this chain.
            if contraction.is_some() && !ends {
                return None;
            }
            chain.pieces.push(piece);
            if ends {
                return Some(chain).filter(|chain| chain.pieces.len() > 2);
            }
        }
        None
    }

    /// How many pieces of work it takes the place of.
    fn len(&self) -> usize {
        self.pieces.len() + self.aside.len()
    }

    fn extent(&self, role: Role) -> &PrimExpr {
        match role {
            Role::Batch(i) => &self.batch[i].extent,
            Role::Row => &self.rows.extent,
        }
    }

    fn maker(&self, buffer: &Ref<Buffer>) -> Option<&Piece<'a>> {
        self.pieces.iter().find(|p| p.output == buffer)
    }

    /// Which roles the axes of a piece have, from where it reads what the chain has made; none where it reads nothing of that, or of another row.
    fn roles_of(&self, piece: &Piece<'a>) -> Option<HashMap<Ref<Var>, Role>> {
        let mut roles: HashMap<Ref<Var>, Role> = HashMap::new();
        for read in piece.loads() {
            let Some(maker) = self.maker(&read.buffer) else { continue };
            for (role, index) in maker.dims().into_iter().zip(&read.indices) {
                let Some(role) = role else { continue };
                let axis = piece.stage.spatial.iter().find(|a| index.as_var() == Some(&a.var))?;
                let is_new = roles.insert(axis.var.clone(), role).is_none_or(|known| known == role);
                if !is_new || !same(&axis.extent, self.extent(role)) {
                    return None;
                }
            }
        }
        let rewrites = self.maker(piece.output).is_some() || self.pieces.iter().any(|p| reads(p, piece.output));
        (roles.len() == self.batch.len() + 1 && !rewrites).then_some(roles)
    }

    /// Whether a product ends the chain: what the chain has made is its row operand alone.
    fn is_end(&self, piece: &Piece<'a>, product: &Contraction) -> bool {
        let makes = |e: &PrimExpr| loads(e).iter().any(|l| self.maker(&l.buffer).is_some());
        let is_row = |a: &Axis| piece.roles.get(&a.var) == Some(&Role::Row);
        makes(&product.row) && !makes(&product.column) && product.rows.iter().any(is_row)
    }

    /// Whether nobody else sees what lies between the pieces.
    fn is_private(&self, program: &Program, work: &[Work], position: usize) -> bool {
        let end = position + self.len();
        let others: HashSet<Ref<Buffer>> =
            work[..position].iter().chain(&work[end..]).flat_map(Work::buffers).collect();
        let is_own = |p: &Piece<'_>| program.intermediates.contains(p.output) && !others.contains(p.output);
        self.pieces.split_last().is_some_and(|(_, between)| between.iter().all(is_own))
    }

    /// Rows of a block: as many as leave the longest row of scratch room in the cache, so that blocks are equal where that can be.
    fn block(&self, machine: &Machine, choices: &mut Choices<'_>) -> i64 {
        let bytes = |p: &Piece<'_>| {
            let inner = p.indices.iter().zip(p.dims()).zip(&p.output.shape).filter(|((_, role), _)| role.is_none());
            let elements = product(inner.map(|(_, extent)| extent)).as_int().unwrap_or(1024);
            elements.saturating_mul(i64::from(p.output.dtype.bits) / 8)
        };
        let row = self.pieces.iter().map(bytes).max().unwrap_or(1).max(1);
        let most = (machine.l2_share() / row).clamp(8, MOST_ROWS);
        let equal = |rows: i64| (most / 2..=most).rev().find(|block| rows % block == 0);
        let value = match self.rows.extent.as_int() {
            Some(rows) if rows <= most => rows,
            Some(rows) => equal(rows).unwrap_or(most / 8 * 8),
            None => most / 8 * 8,
        };
        choices.choose(Guess {
            name: "block_rows",
            value,
            domain: Domain::range(1, 1024),
            reason: "so many rows between the products stay in the second-level cache, and blocks are equal where that can be",
            limit: "fewer rows read the other matrices more often, and more do not stay in the cache",
        })
    }

    fn laid_out(
        &self,
        program: &Program,
        machine: &Machine,
        record: &mut Record<'_>,
    ) -> Result<BackToBack, ScheduleError> {
        let name = self.pieces.iter().map(|p| p.work.name()).collect::<Vec<_>>().join(", ");
        let key = record.reserve(&name);
        let mut choices = Choices::of(record.asked(&key));
        let block = self.block(machine, &mut choices);
        let threads_from = threads_from(machine, &mut choices);
        record.check_only(&key, NAME, &choices)?;
        let is_even = self.rows.extent.as_int().is_some_and(|rows| rows % block == 0);
        let count = if is_even { int(block) } else { PrimExpr::from(&Var::dim("count")) };
        let named = |axis: &Axis| Axis { var: Var::dim(axis.var.name.clone()), extent: axis.extent.clone() };
        let (batch, first): (Vec<Axis>, _) = (self.batch.iter().map(named).collect(), Var::dim("first"));
        let between = &self.pieces[..self.pieces.len() - 1];
        let scratch: HashMap<Ref<Buffer>, Scratch> =
            between.iter().map(|p| (p.output.clone(), Scratch::of(p, block))).collect();
        let pieces = self.pieces.iter().map(|piece| {
            let row = Var::dim("row");
            let mut map = VarMap::new();
            for (var, role) in &piece.roles {
                let to = match role {
                    Role::Batch(i) => PrimExpr::from(&batch[*i].var),
                    Role::Row => add(PrimExpr::from(&first), PrimExpr::from(&row)),
                };
                map.insert(var.clone(), to);
            }
            InBlock { scratch: &scratch, roles: &piece.roles, map, row, count: &count }.of(piece.work)
        });
        let mut pieces: Vec<Work> = pieces.collect();
        if let Some(Work::Reduce(last)) = pieces.last_mut() {
            scale_behind(last);
        }
        let mut inner = program.clone();
        let own: Vec<Ref<Buffer>> = scratch.values().map(|s| s.buffer.clone()).collect();
        inner.intermediates.extend(own.iter().cloned());
        let pieces = rows::join(&inner, pieces, &machine.one_thread(), record)?;
        let used: HashSet<Ref<Buffer>> = pieces.iter().flat_map(Work::buffers).collect();
        let order = between.iter().filter_map(|p| scratch.get(p.output)).map(|s| s.buffer.clone());
        let scratch = order.filter(|buffer| used.contains(buffer)).collect();
        let parameters = choices.into_parameters();
        let rows = named(&self.rows);
        Ok(BackToBack { batch, rows, block, first, count, pieces, scratch, threads_from, key, parameters })
    }
}

/// Multiplies a product's sums by what all terms of a row have as a factor, instead of each term: the total of a softmax.
fn scale_behind(product: &mut Reduce) {
    let PrimExpr::Binary(terms) = &product.stage.value else { return };
    let starts =
        product.stage.reduction.as_ref().is_some_and(|r| matches!(&r.init, PrimExpr::Float(n) if n.value == 0.0));
    let is_fixed = |e: &PrimExpr| !uses_any(e, product.stage.reduce.iter().map(|axis| &axis.var));
    let PrimExpr::Binary(row) = &terms.a else { return };
    let (op, kept, factor) = match row.op {
        BinaryOp::Mul | BinaryOp::Div if is_fixed(&row.b) => (row.op, &row.a, &row.b),
        BinaryOp::Mul if is_fixed(&row.a) => (BinaryOp::Mul, &row.b, &row.a),
        _ => return,
    };
    if !starts || terms.op != BinaryOp::Mul || !row.a.dtype().is_float() || loads(kept).is_empty() {
        return;
    }
    let scaled = binary(op, PrimExpr::from(&product.acc), factor.clone());
    let epilogue = substitute(&product.epilogue, &[(product.acc.clone(), scaled)].into());
    let value = binary(BinaryOp::Mul, kept.clone(), terms.b.clone());
    product.stage.value = value;
    product.epilogue = epilogue;
}

fn reads(piece: &Piece<'_>, buffer: &Ref<Buffer>) -> bool {
    piece.loads().iter().any(|l| l.buffer == *buffer)
}

/// Where what lies between the pieces is kept, a block of it.
struct Scratch {
    buffer: Ref<Buffer>,
    /// The dimensions of the whole that are left; of them the one that counts rows.
    kept: Vec<usize>,
    row: Option<usize>,
}

impl Scratch {
    fn of(piece: &Piece<'_>, block: i64) -> Scratch {
        let dims = piece.dims();
        let is_batch = |role: &Option<Role>| matches!(role, Some(Role::Batch(_)));
        let mut kept: Vec<usize> = (0..dims.len()).filter(|d| !is_batch(&dims[*d])).collect();
        // The rows come first, whatever lies where.
        kept.sort_by_key(|d| dims[*d] != Some(Role::Row));
        let row = kept.iter().copied().find(|d| dims[*d] == Some(Role::Row));
        let line = elements_in_line(piece.output.dtype);
        let last = kept.last().copied();
        let extent = |d: &usize| {
            let extent = &piece.output.shape[*d];
            match extent.as_int() {
                _ if Some(*d) == row => int(block),
                Some(n) if Some(*d) == last && n >= line => int(apart(n, line)),
                _ => extent.clone(),
            }
        };
        let shape: Vec<PrimExpr> = kept.iter().map(extent).collect();
        let buffer = Buffer::scoped(piece.output.name.clone(), piece.output.dtype, shape, "global");
        Scratch { buffer, kept, row }
    }
}

/// Elements from one row to the next: whole lines of the cache, but no number of pages, at which all rows would share the same places of the
/// first-level cache.
fn apart(row: i64, line: i64) -> i64 {
    let whole = (row + line - 1) / line * line;
    if whole % (line * LINES_OF_PAGE) == 0 { whole + line } else { whole }
}

/// Takes a piece into a block of rows.
struct InBlock<'a> {
    scratch: &'a HashMap<Ref<Buffer>, Scratch>,
    roles: &'a HashMap<Ref<Var>, Role>,
    /// What axes with a role are in a block.
    map: VarMap,
    /// The row within the block, and how many there are.
    row: Ref<Var>,
    count: &'a PrimExpr,
}

impl InBlock<'_> {
    fn of(mut self, work: &Work) -> Work {
        match work {
            Work::Reduce(reduce) => {
                let stage = self.stage(&reduce.stage);
                let epilogue = self.mutate_prim(&reduce.epilogue);
                let (output, indices) = self.place(&reduce.output, &reduce.indices);
                Work::Reduce(Reduce { stage, acc: reduce.acc.clone(), epilogue, output, indices })
            }
            Work::Map(stage) => Work::Map(self.stage(stage)),
            other => other.clone(),
        }
    }

    fn stage(&mut self, stage: &Stage) -> Stage {
        let (output, indices) = self.place(&stage.output, &stage.indices);
        let axis = |axis: &Axis| match self.roles.get(&axis.var) {
            Some(Role::Batch(_)) => None,
            Some(Role::Row) => Some(Axis { var: self.row.clone(), extent: self.count.clone() }),
            None => Some(axis.clone()),
        };
        let spatial = stage.spatial.iter().filter_map(axis).collect();
        let reduction = stage.reduction.as_ref().map(|r| Reduction { op: r.op, init: self.mutate_prim(&r.init) });
        let value = self.mutate_prim(&stage.value);
        Stage { spatial, output, indices, reduction, value, ..stage.clone() }
    }

    /// An element of a buffer.
    fn place(&mut self, buffer: &Ref<Buffer>, indices: &[PrimExpr]) -> (Ref<Buffer>, Vec<PrimExpr>) {
        let scratch = self.scratch;
        let Some(own) = scratch.get(buffer) else { return (buffer.clone(), self.mutate_prims(indices)) };
        let index = |d: &usize| match own.row {
            Some(row) if row == *d => PrimExpr::from(&self.row),
            _ => substitute(&indices[*d], &self.map),
        };
        (own.buffer.clone(), own.kept.iter().map(index).collect())
    }
}

impl PrimMutator for InBlock<'_> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Load(l) if self.scratch.contains_key(&l.buffer) => {
                let (buffer, indices) = self.place(&l.buffer, &l.indices);
                load(&buffer, indices)
            }
            PrimExpr::Var(var) => self.map.get(var).cloned().unwrap_or_else(|| e.clone()),
            _ => self.remake_prim(e),
        }
    }
}

/// Blocks of rows, for each element of the other axes.
pub(super) fn tasks(chain: &BackToBack) -> Vec<Axis> {
    let blocks = Axis { var: Var::dim("block"), extent: ceil_div(&chain.rows.extent, chain.block) };
    chain.batch.iter().cloned().chain([blocks]).collect()
}
