//! Pieces of work: which stages become one loop nest.
//!
//! A reduction whose only reader is element-wise over the same elements takes that reader as its *epilogue*: the value is
//! finished while it is still in a register.
//!
//! ```text
//! T[n, c, y, x] = sum(…)                        Reduce { stage: T's, acc,
//! B[n, c, y, x] = max(T[n, c, y, x] + b[c], 0)  ->       epilogue: max(acc + b[c], 0), output: B, indices }
//! ```

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{PrimExpr, PrimMutator, VarMap, substitute};
use relaxide_ir::{Buffer, Var};

use super::affine::loads;
use super::back_to_back::BackToBack;
use super::rows::Rows;
use super::stage::{Axis, Item, Program, Stage};
use crate::Stmt;

/// One loop nest to be made.
#[derive(Clone, Debug)]
pub enum Work {
    /// An injective stage.
    Map(Stage),
    /// A reduction and its epilogue.
    Reduce(Reduce),
    /// Several pieces, row by row.
    Rows(Rows),
    /// Products and what lies between them, block of rows by block.
    BackToBack(Box<BackToBack>),
    /// A statement that stays as it is.
    Opaque(Stmt),
}

/// A reduction and what is done to its result before it is stored.
#[derive(Clone, Debug)]
pub struct Reduce {
    /// The reduction; its output is not stored unless it is `output`.
    pub stage: Stage,
    /// Stands for the reduced value in `epilogue`.
    pub acc: Ref<Var>,
    /// The value that is stored, over `acc` and the stage's spatial axes.
    pub epilogue: PrimExpr,
    /// Where it is stored.
    pub output: Ref<Buffer>,
    /// At which element, over the stage's spatial axes.
    pub indices: Vec<PrimExpr>,
}

impl Reduce {
    /// The same with other axes in place of one, which is `at` of them.
    pub(super) fn with_axes(&self, x: &Axis, axes: &[Axis], at: &PrimExpr) -> Reduce {
        let map: VarMap = [(x.var.clone(), at.clone())].into();
        let all = |list: &[PrimExpr]| list.iter().map(|e| substitute(e, &map)).collect::<Vec<_>>();
        let mut reduce = self.clone();
        let stage = &mut reduce.stage;
        stage.spatial =
            (stage.spatial.iter()).flat_map(|a| if a.var == x.var { axes.to_vec() } else { vec![a.clone()] }).collect();
        stage.value = substitute(&stage.value, &map);
        stage.indices = all(&stage.indices);
        if let Some(reduction) = &mut stage.reduction {
            reduction.init = substitute(&reduction.init, &map);
        }
        reduce.epilogue = substitute(&reduce.epilogue, &map);
        reduce.indices = all(&reduce.indices);
        reduce
    }
}

fn names(pieces: &[Work]) -> String {
    pieces.iter().map(Work::name).collect::<Vec<_>>().join(", ")
}

impl Work {
    /// A name for notes.
    pub fn name(&self) -> String {
        match self {
            Work::Map(stage) => stage.name.clone(),
            Work::Reduce(reduce) => reduce.stage.name.clone(),
            Work::Rows(rows) => names(&rows.pieces),
            Work::BackToBack(chain) => names(&chain.pieces),
            Work::Opaque(_) => "opaque".into(),
        }
    }

    /// The stage, where it is one.
    pub(super) fn stage_mut(&mut self) -> Option<&mut Stage> {
        match self {
            Work::Map(stage) => Some(stage),
            Work::Reduce(reduce) => Some(&mut reduce.stage),
            Work::Rows(_) | Work::BackToBack(_) | Work::Opaque(_) => None,
        }
    }

    /// The buffers that it reads or writes.
    pub(super) fn buffers(&self) -> HashSet<Ref<Buffer>> {
        let of_stage = |s: &Stage| s.reads().into_iter().chain([s.output.clone()]).collect::<HashSet<_>>();
        match self {
            Work::Map(stage) => of_stage(stage),
            Work::Reduce(r) => {
                let epilogue = loads(&r.epilogue).into_iter().map(|l| l.buffer.clone());
                r.stage.reads().into_iter().chain(epilogue).chain([r.output.clone()]).collect()
            }
            Work::Rows(rows) => rows.pieces.iter().flat_map(Work::buffers).collect(),
            Work::BackToBack(chain) => chain.pieces.iter().flat_map(Work::buffers).collect(),
            Work::Opaque(stmt) => {
                let item = Item::Opaque(stmt.clone());
                item.reads().into_iter().chain(item.writes()).collect()
            }
        }
    }
}

impl Reduce {
    /// A reduction without an epilogue.
    pub fn plain(stage: Stage) -> Reduce {
        let acc = Var::prim("acc", stage.output.dtype);
        Reduce {
            epilogue: PrimExpr::from(&acc),
            acc,
            output: stage.output.clone(),
            indices: stage.indices.clone(),
            stage,
        }
    }
}

/// Cuts a program into pieces of work, in an order in which they can be executed.
pub fn plan(program: &Program) -> Vec<Work> {
    let accesses = Accesses::of(program);
    // The anchor of each stage that is an epilogue, and which reductions have one.
    let anchors: Vec<Option<usize>> = (0..program.items.len()).map(|at| accesses.anchor_of(at)).collect();
    let taken: HashSet<usize> = anchors.iter().flatten().copied().collect();
    let mut work = Vec::new();
    for (position, item) in program.items.iter().enumerate() {
        match item {
            Item::Opaque(stmt) => work.push(Work::Opaque(stmt.clone())),
            Item::Stage(stage) => {
                if let Some(anchor) = anchors.get(position).copied().flatten() {
                    work.extend(
                        accesses.stage(anchor).and_then(|anchor| with_epilogue(anchor, stage)).map(Work::Reduce),
                    );
                } else if !taken.contains(&position) {
                    let plain = stage.reduction.is_some();
                    work.push(if plain {
                        Work::Reduce(Reduce::plain(stage.clone()))
                    } else {
                        Work::Map(stage.clone())
                    });
                }
            }
        }
    }
    work
}

/// Who reads and writes what in a program, by positions.
struct Accesses<'a> {
    program: &'a Program,
    reads: Vec<HashSet<Ref<Buffer>>>,
    readers: HashMap<Ref<Buffer>, Vec<usize>>,
    writers: HashMap<Ref<Buffer>, Vec<usize>>,
}

impl<'a> Accesses<'a> {
    fn of(program: &'a Program) -> Accesses<'a> {
        let (mut readers, mut writers) = (HashMap::<_, Vec<usize>>::new(), HashMap::<_, Vec<usize>>::new());
        let reads: Vec<HashSet<Ref<Buffer>>> =
            program.items.iter().map(|item| item.reads().into_iter().collect()).collect();
        for (position, item) in program.items.iter().enumerate() {
            reads[position].iter().for_each(|buffer| readers.entry(buffer.clone()).or_default().push(position));
            item.writes().into_iter().for_each(|buffer| writers.entry(buffer).or_default().push(position));
        }
        Accesses { program, reads, readers, writers }
    }

    fn stage(&self, position: usize) -> Option<&'a Stage> {
        match self.program.items.get(position)? {
            Item::Stage(stage) => Some(stage),
            Item::Opaque(_) => None,
        }
    }

    /// The reduction that takes the stage at a position as its epilogue. Where two reductions feed one reader, the later
    /// takes it.
    fn anchor_of(&self, reader: usize) -> Option<usize> {
        let written = self.reads.get(reader)?.iter().filter_map(|buffer| self.writers.get(buffer)).flatten();
        let mut anchors: Vec<usize> = written.copied().filter(|writer| *writer < reader).collect();
        anchors.sort_unstable_by(|a, b| b.cmp(a));
        anchors.dedup();
        anchors.into_iter().find(|anchor| self.fits(*anchor, reader))
    }

    /// Whether a reduction's only reader is a given element-wise stage over the same elements.
    fn fits(&self, anchor: usize, reader: usize) -> bool {
        let (Some(reduction), Some(stage)) = (self.stage(anchor), self.stage(reader)) else { return false };
        let buffer = &reduction.output;
        if reduction.reduction.is_none() || stage.reduction.is_some() || !self.program.intermediates.contains(buffer) {
            return false;
        }
        // What is overwritten by one tile, others may still have to read.
        let is_between = |writer: &usize| anchor < *writer && *writer <= reader;
        let is_overwritten = |input: &Ref<Buffer>| self.writers.get(input).is_some_and(|w| w.iter().any(is_between));
        let one_reader = self.readers.get(buffer).is_some_and(|readers| readers.len() == 1);
        one_reader && !reduction.reads().iter().any(is_overwritten) && with_epilogue(reduction, stage).is_some()
    }
}

/// The intermediate buffers that the work still uses.
pub fn alive(program: &Program, work: &[Work]) -> Vec<Ref<Buffer>> {
    let used: HashSet<Ref<Buffer>> = work.iter().flat_map(Work::buffers).collect();
    program.intermediates.iter().filter(|b| used.contains(*b)).cloned().collect()
}

/// Joins a reduction and its reader, if the reader reads just the element that it computes.
fn with_epilogue(reduction: &Stage, reader: &Stage) -> Option<Reduce> {
    let sites: Vec<_> = loads(&reader.value).into_iter().filter(|l| l.buffer == reduction.output).collect();
    if sites.is_empty() || !reduction.is_identity() {
        return None;
    }
    let mut map = VarMap::new();
    for site in &sites {
        for (own, theirs) in reduction.indices.iter().zip(&site.indices) {
            match (own.as_var(), theirs.as_var()) {
                (Some(own), Some(theirs)) => {
                    let previous = map.insert(theirs.clone(), PrimExpr::from(own));
                    if previous.is_some_and(|p| p.as_var() != Some(own)) {
                        return None;
                    }
                }
                (None, None) if theirs.is_int(0) => {}
                _ => return None,
            }
        }
    }
    // A reader of a part of the elements would be executed for all of them.
    let mut analyzer = Analyzer::new();
    let mut over_the_same = |a: &Axis| {
        let own = map.get(&a.var).and_then(PrimExpr::as_var);
        let own = own.and_then(|own| reduction.spatial.iter().find(|b| b.var == *own));
        own.is_some_and(|own| analyzer.can_prove_equal(&own.extent, &a.extent))
    };
    let covered = reader.spatial.iter().all(&mut over_the_same);
    if !covered || reader.spatial.len() != reduction.spatial.len() {
        return None;
    }
    let acc = Var::prim("acc", reduction.output.dtype);
    let epilogue = TakeAcc { buffer: &reduction.output, acc: &acc }.mutate_prim(&reader.value);
    Some(Reduce {
        stage: reduction.clone(),
        epilogue: substitute(&epilogue, &map),
        acc,
        output: reader.output.clone(),
        indices: reader.indices.iter().map(|i| substitute(i, &map)).collect(),
    })
}

struct TakeAcc<'a> {
    buffer: &'a Ref<Buffer>,
    acc: &'a Ref<Var>,
}

impl PrimMutator for TakeAcc<'_> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Load(l) if l.buffer == *self.buffer => PrimExpr::from(self.acc),
            _ => self.remake_prim(e),
        }
    }
}
