//! Pieces of work that share their rows: what one row of each needs is made from the same row of those before it.
//!
//! ```text
//! M[i]    = max over k of A[i, k]                    Rows { axes: [i],
//! E[i, k] = exp(A[i, k] - M[i])               ->            pieces: M[0] = max …, E[k] = …, S[0] = …, B[i, k] = …,
//! S[i]    = sum over k of E[i, k]                           scratch: [M: 1, E: n, S: 1] }
//! B[i, k] = E[i, k] / S[i]
//! ```
//!
//! Softmax and the norms are such. Piece after piece over the whole tensor, each would read it from memory again; row after
//! row, a row stays in the first-level cache, and what lies between the pieces is as small as a row.
//!
//! An axis is a row axis where every piece has it, each reads of the pieces before it only what they made at the same place
//! of it, and no piece runs along it through memory (a vector wants that axis inside). A run starts with any piece, grows
//! while a piece reads what the run has made, and loses row axes only until its first reduction. Contractions stay outside:
//! their tiles want many rows at once.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::prim::{BufferLoad, PrimExpr, PrimMutator, VarMap, int, load, substitute};
use relaxide_ir::{Buffer, Var};

use super::affine::{coefficient, flat_index, loads, product, same, uses_any};
use super::below_maximum;
use super::group::{Reduce, Work};
use super::rules::Contraction;
use super::stage::{Axis, Program, Reduction, Stage};

/// Elements of a row below which there is nothing to keep in a cache.
const SHORT: i64 = 16;
/// Elements of a row from which a few rows would leave threads without work.
const LONG: i64 = 32 << 10;
/// What "a few" is.
const FEW: i64 = 8;

/// Pieces of work, row by row.
#[derive(Clone, Debug)]
pub struct Rows {
    /// The axes over which rows are told apart.
    pub axes: Vec<Axis>,
    /// The pieces, over the rest of their axes.
    pub pieces: Vec<Work>,
    /// What lies between the pieces and nobody else reads, as large as a row.
    pub scratch: Vec<Ref<Buffer>>,
}

/// Joins neighbours that share rows.
pub fn join(program: &Program, work: Vec<Work>) -> Vec<Work> {
    let mut joined = Vec::new();
    let mut position = 0;
    while position < work.len() {
        let run = Run::longest(&work[position..]).filter(Run::pays);
        match run {
            Some(run) => {
                let end = position + run.pieces.len();
                let others = work[..position].iter().chain(&work[end..]).flat_map(Work::buffers).collect();
                joined.push(Work::Rows(run.into_rows(program, &others)));
                position = end;
            }
            None => {
                joined.push(work[position].clone());
                position += 1;
            }
        }
    }
    joined
}

/// A piece of work with one output whose elements are the points of its axes.
struct Piece<'a> {
    work: &'a Work,
    stage: &'a Stage,
    output: &'a Ref<Buffer>,
    indices: &'a [PrimExpr],
    loads: Vec<Ref<BufferLoad>>,
    /// Which row axis each of its axes is.
    rows: HashMap<Ref<Var>, usize>,
}

impl<'a> Piece<'a> {
    fn of(work: &'a Work) -> Option<Piece<'a>> {
        let (stage, output, indices, finish) = match work {
            Work::Map(stage) => (stage, &stage.output, &stage.indices, None),
            Work::Reduce(r) if Contraction::of(r).is_err() => (&r.stage, &r.output, &r.indices, Some(&r.finish)),
            _ => return None,
        };
        let known = stage.spatial.iter().chain(&stage.reduce).all(|a| !a.extent.is_int(0));
        if !known || !stage.is_identity() || indices.iter().any(|i| i.as_var().is_none() && !i.is_int(0)) {
            return None;
        }
        let init = stage.reduction.as_ref().map(|r| &r.init);
        let loads = std::iter::once(&stage.value).chain(init).chain(finish).flat_map(loads).collect();
        Some(Piece { work, stage, output, indices, loads, rows: HashMap::new() })
    }

    /// The row axis of each dimension of the output.
    fn dims(&self) -> Vec<Option<usize>> {
        self.indices.iter().map(|i| i.as_var().and_then(|v| self.rows.get(v).copied())).collect()
    }

    /// The row axes along which it runs through memory.
    fn contiguous(&self) -> Vec<usize> {
        let axes = || self.stage.spatial.iter().chain(&self.stage.reduce).map(|a| &a.var);
        let inner: Vec<&Ref<Var>> = axes().filter(|v| !self.rows.contains_key(*v)).collect();
        let places = self.loads.iter().map(|l| (&l.buffer, l.indices.as_slice()));
        places
            .chain([(self.output, self.indices)])
            .map(|(buffer, indices)| flat_index(buffer, indices))
            .filter(|flat| uses_any(flat, inner.iter().copied()))
            .flat_map(|flat| self.rows.iter().filter(move |(v, _)| coefficient(&flat, v) == Some(1)))
            .map(|(_, row)| *row)
            .collect()
    }

    /// Elements of a row, where that is known.
    fn row_elements(&self) -> Option<i64> {
        let axes = self.stage.spatial.iter().chain(&self.stage.reduce);
        product(axes.filter(|a| !self.rows.contains_key(&a.var)).map(|a| &a.extent)).as_int()
    }
}

/// Pieces that share rows, as far as has been read.
struct Run<'a> {
    pieces: Vec<Piece<'a>>,
    /// Extents of the row axes, some of which have been given up.
    extents: Vec<PrimExpr>,
}

impl<'a> Run<'a> {
    fn longest(work: &'a [Work]) -> Option<Run<'a>> {
        let mut first = Piece::of(work.first()?)?;
        let axes = &first.stage.spatial;
        let extents = axes.iter().map(|a| a.extent.clone()).collect();
        first.rows = axes.iter().enumerate().map(|(row, a)| (a.var.clone(), row)).collect();
        let mut run = Run { pieces: vec![first], extents };
        run.settle();
        let more = work[1..].iter().map_while(Piece::of);
        for piece in more {
            if !run.take(piece) {
                break;
            }
        }
        Some(run)
    }

    /// The row axes that are left.
    fn alive(&self) -> HashSet<usize> {
        self.pieces.last().map(|p| p.rows.values().copied().collect()).unwrap_or_default()
    }

    /// Gives up row axes that lie along memory in some piece, until none does.
    fn settle(&mut self) {
        loop {
            let along: HashSet<usize> = self.pieces.iter().flat_map(Piece::contiguous).collect();
            if along.is_empty() {
                return;
            }
            self.keep(|row| !along.contains(&row));
        }
    }

    fn keep(&mut self, wanted: impl Fn(usize) -> bool) {
        self.pieces.iter_mut().for_each(|p| p.rows.retain(|_, row| wanted(*row)));
    }

    /// Adds a piece, if it shares rows with the others.
    fn take(&mut self, mut piece: Piece<'a>) -> bool {
        let Some(rows) = self.rows_of(&piece) else { return false };
        // What a piece writes must not be what one before it still has to read of another row.
        if self.pieces.iter().chain([&piece]).any(|p| p.loads.iter().any(|l| l.buffer == *piece.output)) {
            return false;
        }
        piece.rows = rows;
        let before: Vec<HashMap<Ref<Var>, usize>> = self.pieces.iter().map(|p| p.rows.clone()).collect();
        let wanted = self.alive().len();
        let shared: HashSet<usize> = piece.rows.values().copied().collect();
        self.keep(|row| shared.contains(&row));
        let reduces = self.pieces.iter().any(|p| p.stage.reduction.is_some());
        self.pieces.push(piece);
        self.settle();
        let left = self.alive().len();
        if left == 0 || left < wanted && reduces {
            self.pieces.pop();
            self.pieces.iter_mut().zip(before).for_each(|(p, rows)| p.rows = rows);
            return false;
        }
        true
    }

    /// Which row axes the axes of a piece are, from where it reads what the run has made; `None` where it reads none of it.
    fn rows_of(&self, piece: &Piece<'a>) -> Option<HashMap<Ref<Var>, usize>> {
        let mut axes: HashMap<usize, Ref<Var>> = HashMap::new();
        let mut lost = HashSet::new();
        let mut connected = false;
        for read in &piece.loads {
            let Some(maker) = self.pieces.iter().find(|p| *p.output == read.buffer) else { continue };
            connected = true;
            for (row, index) in maker.dims().into_iter().zip(&read.indices) {
                let Some(row) = row else { continue };
                let own = index.as_var().and_then(|v| piece.stage.spatial.iter().find(|a| a.var == *v));
                match own.filter(|a| same(&a.extent, &self.extents[row])) {
                    Some(axis) if axes.get(&row).is_none_or(|v| *v == axis.var) => {
                        axes.insert(row, axis.var.clone());
                    }
                    _ => {
                        lost.insert(row);
                    }
                }
            }
        }
        axes.retain(|row, _| !lost.contains(row));
        let rows: HashMap<Ref<Var>, usize> = axes.iter().map(|(row, var)| (var.clone(), *row)).collect();
        // One axis cannot be two rows.
        (connected && rows.len() == axes.len()).then_some(rows)
    }

    /// Whether row after row is better than piece after piece.
    fn pays(run: &Run<'_>) -> bool {
        let reduces = run.pieces.iter().any(|p| p.stage.reduction.is_some());
        let longest = run.pieces.iter().map(|p| p.row_elements().unwrap_or(i64::MAX)).max().unwrap_or(0);
        let alive = run.alive();
        let known = |row: &usize| run.extents.get(*row).and_then(PrimExpr::as_int);
        let rows = alive.iter().map(known).try_fold(1i64, |all, n| all.checked_mul(n?));
        let idle = rows.is_some_and(|n| n < FEW) && longest != i64::MAX && longest > LONG;
        run.pieces.len() > 1 && reduces && !alive.is_empty() && longest >= SHORT && !idle
    }

    /// The pieces over one row.
    fn into_rows(self, program: &Program, read_elsewhere: &HashSet<Ref<Buffer>>) -> Rows {
        let mut order: Vec<usize> = self.alive().into_iter().collect();
        order.sort_unstable();
        let names = &self.pieces[0].rows;
        let axes: Vec<Axis> = order
            .iter()
            .map(|row| {
                let name = names.iter().find(|(_, r)| *r == row).map_or("row", |(v, _)| v.name.as_str());
                Axis { var: Var::dim(name), extent: self.extents[*row].clone() }
            })
            .collect();
        let private = |p: &&Piece<'_>| program.intermediates.contains(p.output) && !read_elsewhere.contains(p.output);
        let scratch: HashMap<Ref<Buffer>, Scratch> =
            self.pieces.iter().filter(private).map(|p| (p.output.clone(), Scratch::of(p))).collect();
        let pieces = self.pieces.iter().map(|p| {
            let place = |row: usize| order.iter().position(|r| *r == row).and_then(|i| axes.get(i));
            let map =
                p.rows.iter().filter_map(|(v, row)| Some((v.clone(), PrimExpr::from(&place(*row)?.var)))).collect();
            InRow { scratch: &scratch, map }.of(p)
        });
        let mut pieces: Vec<Work> = pieces.collect();
        below_maximum::mark(&mut pieces);
        let scratch = self.pieces.iter().filter_map(|p| Some(scratch.get(p.output)?.buffer.clone())).collect();
        Rows { axes, pieces, scratch }
    }
}

/// A buffer that became as large as a row.
struct Scratch {
    buffer: Ref<Buffer>,
    /// The dimensions that stayed.
    kept: Vec<usize>,
}

impl Scratch {
    fn of(piece: &Piece<'_>) -> Scratch {
        let dims = piece.dims();
        let kept: Vec<usize> = (0..dims.len()).filter(|d| dims[*d].is_none()).collect();
        let shape: Vec<PrimExpr> = kept.iter().filter_map(|d| piece.output.shape.get(*d).cloned()).collect();
        let shape = if shape.is_empty() { vec![int(1)] } else { shape };
        let scope = if product(&shape).is_int(1) { "local" } else { "global" };
        let name = piece.output.name.clone();
        Scratch { buffer: Buffer::scoped(name, piece.output.dtype, shape, scope), kept }
    }

    fn indices(&self, indices: &[PrimExpr]) -> Vec<PrimExpr> {
        let kept: Vec<PrimExpr> = self.kept.iter().filter_map(|d| indices.get(*d).cloned()).collect();
        if kept.is_empty() { vec![int(0)] } else { kept }
    }
}

/// Takes a piece into one row.
struct InRow<'a> {
    scratch: &'a HashMap<Ref<Buffer>, Scratch>,
    /// The axes of the piece that tell rows apart.
    map: VarMap,
}

impl InRow<'_> {
    fn of(mut self, piece: &Piece<'_>) -> Work {
        match piece.work {
            Work::Reduce(reduce) => {
                let stage = self.stage(&reduce.stage);
                let finish = self.value(&reduce.finish);
                let (output, indices) = self.target(&reduce.output, &reduce.indices);
                Work::Reduce(Reduce { stage, acc: reduce.acc.clone(), finish, output, indices })
            }
            _ => Work::Map(self.stage(piece.stage)),
        }
    }

    fn stage(&mut self, stage: &Stage) -> Stage {
        let (output, indices) = self.target(&stage.output, &stage.indices);
        let spatial = stage.spatial.iter().filter(|a| !self.map.contains_key(&a.var)).cloned().collect();
        let reduction = stage.reduction.as_ref().map(|r| Reduction { op: r.op, init: self.value(&r.init) });
        Stage { spatial, output, indices, reduction, value: self.value(&stage.value), ..stage.clone() }
    }

    fn value(&mut self, e: &PrimExpr) -> PrimExpr {
        let e = substitute(e, &self.map);
        self.mutate_prim(&e)
    }

    fn target(&self, buffer: &Ref<Buffer>, indices: &[PrimExpr]) -> (Ref<Buffer>, Vec<PrimExpr>) {
        let indices: Vec<PrimExpr> = indices.iter().map(|i| substitute(i, &self.map)).collect();
        match self.scratch.get(buffer) {
            Some(own) => (own.buffer.clone(), own.indices(&indices)),
            None => (buffer.clone(), indices),
        }
    }
}

impl PrimMutator for InRow<'_> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Load(l) if self.scratch.contains_key(&l.buffer) => {
                let indices: Vec<PrimExpr> = self.mutate_prims(&l.indices);
                let own = &self.scratch[&l.buffer];
                load(&own.buffer, own.indices(&indices))
            }
            _ => self.remake_prim(e),
        }
    }
}
