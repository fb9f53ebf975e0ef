//! [`Forest`]: trees of decisions, checked, and the kernel that walks them.
//!
//! Branches and leaves of all trees are numbered together, branches first. The kernel is given them as vectors: a branch's
//! feature, threshold and successors, a leaf's votes. Rows are walked in parallel:
//!
//! ```text
//! for n in parallel(rows):
//!     for t in trees:
//!         at[n] = root[t]
//!         for d in depth:                       # of the deepest tree
//!             if at[n] < branches:
//!                 at[n] = yes[at[n]] if x[n, feature[at[n]]] <= split[at[n]] else no[at[n]]
//!         for v in start[at[n]] .. start[at[n] + 1]:
//!             score[n, target[v]] += weight[v]
//! ```
//!
//! **Checked at import**: that successors exist, that no walk comes back to where it was, that every walk ends in a leaf, and
//! that features and targets exist. Branches may share successors.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{Buffer, Var};
use relaxide_relax::Expr;
use relaxide_tir::{ForKind, Stmt, te};

use crate::error::NodeError;
use crate::scope::Scope;
use relaxide_frontend::Check;

type Result<T> = std::result::Result<T, NodeError>;

/// The most targets of a forest, and the most nodes.
const MOST: usize = 1 << 24;

/// How a feature is compared with a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `<=`.
    AtMost,
    /// `<`.
    Below,
    /// `>=`.
    AtLeast,
    /// `>`.
    Above,
    /// `==`.
    Equal,
    /// `!=`.
    Unequal,
}

impl Mode {
    /// All, in the order of their numbers in the file and in kernels.
    pub const ALL: [Mode; 6] = [Mode::AtMost, Mode::Below, Mode::AtLeast, Mode::Above, Mode::Equal, Mode::Unequal];

    fn holds(self, x: PrimExpr, split: PrimExpr) -> PrimExpr {
        match self {
            Mode::AtMost => prim::le(x, split),
            Mode::Below => prim::lt(x, split),
            Mode::AtLeast => prim::ge(x, split),
            Mode::Above => prim::gt(x, split),
            Mode::Equal => prim::eq(x, split),
            Mode::Unequal => prim::ne(x, split),
        }
    }
}

/// Where a walk goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// At a branch.
    Branch(usize),
    /// Nowhere: it has come to a leaf.
    Leaf(usize),
}

/// A decision.
#[derive(Clone, Debug)]
pub struct Branch {
    /// Which column of the input.
    pub feature: i64,
    /// How it is compared.
    pub mode: Mode,
    /// With what.
    pub split: f64,
    /// Where the walk goes on if the comparison holds.
    pub yes: Next,
    /// Where it goes on otherwise.
    pub no: Next,
    /// Whether the comparison holds for what is no number.
    pub missing: bool,
}

/// What a target's value is of the leaves that vote for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// Their sum, as a share of the number of trees.
    Average,
    /// Their sum.
    Sum,
    /// The least; 0 where there is none.
    Least,
    /// The largest; 0 where there is none.
    Largest,
}

/// Trees.
#[derive(Clone, Debug, Default)]
pub struct Forest {
    /// Decisions of all trees.
    pub branches: Vec<Branch>,
    /// Targets and weights of each leaf.
    pub leaves: Vec<Vec<(i64, f64)>>,
    /// Where the trees begin.
    pub roots: Vec<Next>,
    /// How many targets there are.
    pub targets: usize,
}

impl Forest {
    /// The length of the longest walk. Whatever is out of range is an error.
    fn depth(&self) -> Result<usize> {
        let (branches, leaves) = (self.branches.len(), self.leaves.len());
        if branches + leaves > MOST || self.targets > MOST {
            return Err(NodeError::unsupported(format!(
                "trees of more than {MOST} nodes or targets are not supported"
            )));
        }
        if self.roots.is_empty() {
            return Err(NodeError::invalid("it has no trees"));
        }
        let exists = |next: &Next| match next {
            Next::Branch(i) => *i < branches,
            Next::Leaf(i) => *i < leaves,
        };
        let successors = self.branches.iter().flat_map(|b| [&b.yes, &b.no]);
        if let Some(next) = self.roots.iter().chain(successors).find(|next| !exists(next)) {
            return Err(NodeError::invalid(format!("a tree leads to {next:?}, which does not exist")));
        }
        let is_target = |t: i64| usize::try_from(t).is_ok_and(|t| t < self.targets);
        if let Some((target, _)) = self.leaves.iter().flatten().find(|(t, _)| !is_target(*t)) {
            return Err(NodeError::invalid(format!("a leaf votes for target {target} of {}", self.targets)));
        }
        let mut known: Vec<Option<usize>> = vec![None; branches];
        let mut open = vec![false; branches];
        let mut deepest = 0;
        for root in &self.roots {
            deepest = deepest.max(self.depth_from(*root, &mut known, &mut open)?);
        }
        Ok(deepest)
    }

    /// The length of the longest walk from a place. `known` are those of branches that have been finished, `open` are the
    /// branches on the way to the one that is looked at.
    fn depth_from(&self, root: Next, known: &mut [Option<usize>], open: &mut [bool]) -> Result<usize> {
        let Next::Branch(root) = root else { return Ok(0) };
        let mut stack = vec![(root, false)];
        let length = |next: &Next, known: &[Option<usize>]| match next {
            Next::Branch(i) => known[*i].unwrap_or(0),
            Next::Leaf(_) => 0,
        };
        while let Some((at, left)) = stack.pop() {
            let branch = &self.branches[at];
            if left {
                open[at] = false;
                known[at] = Some(1 + length(&branch.yes, known).max(length(&branch.no, known)));
                continue;
            }
            if known[at].is_some() {
                continue;
            }
            if open[at] {
                return Err(NodeError::invalid("a tree leads back to one of its own branches"));
            }
            open[at] = true;
            stack.push((at, true));
            for next in [branch.yes, branch.no] {
                if let Next::Branch(next) = next {
                    if open[next] {
                        return Err(NodeError::invalid("a tree leads back to one of its own branches"));
                    }
                    stack.push((next, false));
                }
            }
        }
        Ok(known[root].unwrap_or(0))
    }

    /// Whether every branch is part of a tree. Successors must exist.
    pub fn all_reached(&self) -> bool {
        let mut seen = vec![false; self.branches.len()];
        let mut stack = self.roots.clone();
        while let Some(next) = stack.pop() {
            let Next::Branch(at) = next else { continue };
            if let (Some(slot), Some(branch)) = (seen.get_mut(at), self.branches.get(at))
                && !std::mem::replace(slot, true)
            {
                stack.extend([branch.yes, branch.no]);
            }
        }
        seen.into_iter().all(|seen| seen)
    }

    /// The score of each target for each row of `x`, before anything is added to it.
    pub fn scores(&self, scope: &mut Scope, x: Expr, aggregate: Aggregate) -> Result<Expr> {
        let depth = self.depth()?;
        let dims = scope.dims(&x)?;
        let [rows, features] =
            <[PrimExpr; 2]>::try_from(dims).map_err(|_| NodeError::invalid("the input needs 2 axes"))?;
        self.check_features(scope, &features)?;
        let work = scope.dtype(&x);
        let walk = Walk {
            depth,
            trees: self.roots.len(),
            branches: self.branches.len(),
            targets: self.targets,
            votes: self.leaves.iter().map(Vec::len).max().unwrap_or(0),
            modes: Mode::ALL.into_iter().filter(|m| self.branches.iter().any(|b| b.mode == *m)).collect(),
            missing: self.branches.iter().any(|b| b.missing),
            aggregate,
            work,
        };
        let args = [vec![x], self.vectors(scope, work)?].concat();
        let outs = [
            ("score".to_string(), vec![rows.clone(), prim::int(self.targets as i64)], work),
            ("at".to_string(), vec![rows.clone()], INDEX),
            ("seen".to_string(), vec![rows.clone(), prim::int(self.targets as i64)], INDEX),
        ];
        let result = scope.te("forest", args, |inputs| {
            te::extern_stage("forest", inputs, outs, |source, target| walk.body(&rows, source, target))
        })?;
        scope.emit(Expr::field(result, 0))
    }

    /// Features must exist, which the program checks where their number is not known.
    fn check_features(&self, scope: &mut Scope, features: &PrimExpr) -> Result<()> {
        let most = self.branches.iter().map(|b| b.feature).max().unwrap_or(-1);
        if let Some(branch) = self.branches.iter().find(|b| b.feature < 0) {
            return Err(NodeError::invalid(format!("a branch compares feature {}", branch.feature)));
        }
        match features.as_int() {
            Some(n) if most < n => Ok(()),
            Some(n) => Err(NodeError::invalid(format!("a branch compares feature {most} of {n}"))),
            None => {
                let fits =
                    Check::new(prim::lt(prim::int(most), features), "a branch compares a feature that is not there");
                let values = [
                    ("the feature".to_owned(), prim::int(most)),
                    ("the number of features".to_owned(), features.clone()),
                ];
                scope.require(&[fits.with(values)])
            }
        }
    }

    /// The trees as vectors, in the order of [`Walk`]'s names for them.
    fn vectors(&self, scope: &Scope, work: DataType) -> Result<Vec<Expr>> {
        let place = |next: &Next| match next {
            Next::Branch(i) => *i as f64,
            Next::Leaf(i) => (self.branches.len() + i) as f64,
        };
        // A vector without elements is no constant, so there is always one.
        let vector = |values: Vec<f64>, dtype: DataType| {
            let values = if values.is_empty() { vec![0.0] } else { values };
            scope.constant(&values, &[values.len() as i64], dtype)
        };
        let of = |f: &dyn Fn(&Branch) -> f64| self.branches.iter().map(f).collect::<Vec<f64>>();
        let number = |mode: Mode| Mode::ALL.iter().position(|m| *m == mode).unwrap_or(0) as f64;
        let starts = self.leaves.iter().scan(0.0, |sum, votes| {
            *sum += votes.len() as f64;
            Some(*sum)
        });
        let votes = || self.leaves.iter().flatten();
        Ok(vec![
            vector(self.roots.iter().map(place).collect(), INDEX)?,
            vector(of(&|b| b.feature as f64), INDEX)?,
            vector(of(&|b| b.split), work)?,
            vector(of(&|b| place(&b.yes)), INDEX)?,
            vector(of(&|b| place(&b.no)), INDEX)?,
            vector(of(&|b| number(b.mode)), INDEX)?,
            vector(of(&|b| f64::from(u8::from(b.missing))), INDEX)?,
            vector([0.0].into_iter().chain(starts).collect(), INDEX)?,
            vector(votes().map(|(target, _)| *target as f64).collect(), INDEX)?,
            vector(votes().map(|(_, weight)| *weight).collect(), work)?,
        ])
    }
}

const INDEX: DataType = DataType::int(32);

/// What the kernel is made of.
struct Walk {
    depth: usize,
    trees: usize,
    branches: usize,
    targets: usize,
    /// The most votes of a leaf.
    votes: usize,
    /// Modes that occur.
    modes: Vec<Mode>,
    /// Whether a comparison holds somewhere for what is no number.
    missing: bool,
    aggregate: Aggregate,
    work: DataType,
}

impl Walk {
    fn body(&self, rows: &PrimExpr, source: &[Ref<Buffer>], target: &[Ref<Buffer>]) -> Stmt {
        let row = Var::dim("n");
        let cells = Cells { source, target, row: PrimExpr::from(&row) };
        let zero = |i: usize, dtype: DataType| {
            Stmt::each("k", self.targets as i64, |k| {
                Stmt::store(&target[i], [cells.row.clone(), k.clone()], prim::constant(dtype, 0.0))
            })
        };
        let clear = Stmt::seq([zero(0, self.work), zero(2, INDEX)]);
        let trees = Stmt::each("t", self.trees as i64, |t| {
            let start = cells.go(cells.read(ROOT, t.clone()));
            Stmt::seq([start, Stmt::each("d", self.depth as i64, |_| self.step(&cells)), self.vote(&cells)])
        });
        let mut all = vec![clear, trees];
        if self.aggregate == Aggregate::Average {
            let count = prim::constant(self.work, self.trees as f64);
            all.push(Stmt::each("k", self.targets as i64, |k| cells.set_score(k, prim::div(cells.score(k), count))));
        }
        Stmt::for_loop(ForKind::Parallel, row, rows.clone(), Stmt::seq(all))
    }

    /// One decision, unless the walk has ended.
    fn step(&self, cells: &Cells) -> Stmt {
        let at = cells.at();
        let feature = prim::cast(DataType::int(64), cells.read(FEATURE, at.clone()));
        let x = prim::load(&cells.source[0], [cells.row.clone(), feature]);
        let split = cells.read(SPLIT, at.clone());
        let mut holds = self.modes.first().copied().unwrap_or(Mode::AtMost).holds(x.clone(), split.clone());
        for mode in self.modes.iter().skip(1) {
            let number = Mode::ALL.iter().position(|m| m == mode).unwrap_or(0) as i64;
            let is = prim::eq(cells.read(MODE, at.clone()), prim::int_of(INDEX, number));
            holds = prim::select(is, mode.holds(x.clone(), split.clone()), holds);
        }
        if self.missing {
            let tracked = prim::ne(cells.read(MISSING, at.clone()), prim::int_of(INDEX, 0));
            holds = prim::or(holds, prim::and(tracked, prim::call(DataType::bool(), "tirx.isnan", vec![x])));
        }
        let next = prim::select(holds, cells.read(YES, at.clone()), cells.read(NO, at.clone()));
        Stmt::when(prim::lt(at, prim::int_of(INDEX, self.branches as i64)), cells.go(next))
    }

    /// What the leaf says.
    fn vote(&self, cells: &Cells) -> Stmt {
        let leaf = || cells.at() - prim::int_of(INDEX, self.branches as i64);
        let first = cells.read(START, leaf());
        let end = cells.read(START, leaf() + prim::int_of(INDEX, 1));
        Stmt::each("v", self.votes as i64, |v| {
            let at = first.clone() + prim::cast(INDEX, v.clone());
            let k = prim::cast(DataType::int(64), cells.read(TARGET, at.clone()));
            let weight = cells.read(WEIGHT, at.clone());
            let old = cells.score(&k);
            let new = match self.aggregate {
                Aggregate::Average | Aggregate::Sum => old + weight,
                Aggregate::Least => self.chosen(cells, &k, prim::min(old, weight.clone()), weight),
                Aggregate::Largest => self.chosen(cells, &k, prim::max(old, weight.clone()), weight),
            };
            let seen = Stmt::store(&cells.target[2], [cells.row.clone(), k.clone()], prim::int_of(INDEX, 1));
            Stmt::when(prim::lt(at, end), Stmt::seq([cells.set_score(&k, new), seen]))
        })
    }

    /// The first vote for a target, or what it and those before make.
    fn chosen(&self, cells: &Cells, k: &PrimExpr, both: PrimExpr, first: PrimExpr) -> PrimExpr {
        let seen = prim::load(&cells.target[2], [cells.row.clone(), k.clone()]);
        prim::select(prim::eq(seen, prim::int_of(INDEX, 0)), first, both)
    }
}

const ROOT: usize = 1;
const FEATURE: usize = 2;
const SPLIT: usize = 3;
const YES: usize = 4;
const NO: usize = 5;
const MODE: usize = 6;
const MISSING: usize = 7;
const START: usize = 8;
const TARGET: usize = 9;
const WEIGHT: usize = 10;

/// The buffers of the kernel at one row.
struct Cells<'a> {
    source: &'a [Ref<Buffer>],
    target: &'a [Ref<Buffer>],
    row: PrimExpr,
}

impl Cells<'_> {
    fn read(&self, vector: usize, at: PrimExpr) -> PrimExpr {
        prim::load(&self.source[vector], [prim::cast(DataType::int(64), at)])
    }

    /// Where the walk is.
    fn at(&self) -> PrimExpr {
        prim::load(&self.target[1], [self.row.clone()])
    }

    fn go(&self, to: PrimExpr) -> Stmt {
        Stmt::store(&self.target[1], [self.row.clone()], to)
    }

    fn score(&self, k: &PrimExpr) -> PrimExpr {
        prim::load(&self.target[0], [self.row.clone(), k.clone()])
    }

    fn set_score(&self, k: &PrimExpr, value: PrimExpr) -> Stmt {
        Stmt::store(&self.target[0], [self.row.clone(), k.clone()], value)
    }
}
