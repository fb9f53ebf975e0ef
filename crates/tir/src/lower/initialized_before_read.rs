//! Whether a statement writes every element of a buffer that it reads, before it reads it.
//!
//! If so, it may be given the buffer fresh each time that it is executed.
//!
//! **How it is known.** Accesses are taken in the order of the program. Each remembers the loops around it, inside of the
//! statement. For a read and a store in front of it, the loops around both stand still (both are in one iteration of them), the
//! others run: the store fills a box, the read needs one. The store counts if its indices are affine in its running loops, so
//! that the box has no holes, if those of its loops that its indices do not use have an iteration at all, and if nothing makes it
//! conditional.
//!
//! ```text
//! for j in range(16):                    the store fills B[i, 0:16] while j runs
//!     B[i, j] = A[i, j] * 2
//! for k in range(4):
//!     C[i, k] = B[i, k * 4]              the read needs B[i, 0:13] while k runs: covered
//! ```
//!
//! A block with reduction axes reads what its own condition on the first step has set, if all of its steps are inside.
//!
//! What is not seen through counts against it: pointers, sub-buffers, stores of vectors.

use relaxide_ffi::Ref;
use relaxide_ir::arith::{Analyzer, same};
use relaxide_ir::prim::{self, BufferLoad, PrimExpr, PrimVisitor, VarMap, free_vars, substitute};
use relaxide_ir::{Buffer, Var};

use super::init_block::at_first_values;
use crate::analysis::affine::is_affine;
use crate::analysis::interval::Running;
use crate::functor::StmtVisitor;
use crate::stmt::*;

/// Whether a statement writes each element of a buffer before it reads it.
pub(super) fn initialized_before_read(stmt: &Stmt, buffer: &Ref<Buffer>) -> bool {
    let mut walk = Walk {
        buffer,
        loops: Vec::new(),
        axes: VarMap::new(),
        conditional: false,
        set_first: Vec::new(),
        stores: Vec::new(),
        analyzer: Analyzer::new(),
        filled: true,
    };
    walk.analyzer.mark_dims(&buffer.shape);
    walk.visit_stmt(stmt);
    walk.filled
}

/// A store that is always executed.
struct Store {
    loops: Vec<Ref<For>>,
    indices: Vec<PrimExpr>,
}

struct Walk<'a> {
    buffer: &'a Ref<Buffer>,
    /// Loops around, from the statement's outermost on.
    loops: Vec<Ref<For>>,
    /// What the axes of the blocks around are bound to.
    axes: VarMap,
    conditional: bool,
    /// Elements that the reductions around have set in their first steps.
    set_first: Vec<Vec<PrimExpr>>,
    stores: Vec<Store>,
    analyzer: Analyzer,
    filled: bool,
}

impl Walk<'_> {
    fn at(&self, indices: &[PrimExpr]) -> Vec<PrimExpr> {
        indices.iter().map(|i| substitute(i, &self.axes)).collect()
    }

    fn read(&mut self, indices: &[PrimExpr]) {
        let indices = self.at(indices);
        let own = |set: &Vec<PrimExpr>| set.len() == indices.len() && set.iter().zip(&indices).all(|(a, b)| same(a, b));
        if self.set_first.iter().any(own) {
            return;
        }
        let stores = std::mem::take(&mut self.stores);
        self.filled &= stores.iter().rev().any(|store| self.covers(store, &indices));
        self.stores = stores;
    }

    fn covers(&mut self, store: &Store, read: &[PrimExpr]) -> bool {
        if store.indices.len() != read.len() {
            return false;
        }
        let shared = store.loops.iter().zip(&self.loops).take_while(|(a, b)| a == b).count();
        let running = &store.loops[shared..];
        if !fills_its_box(&store.indices, running, &mut self.analyzer) {
            return false;
        }
        let (written, needed) = (self.running(running), self.running(&self.loops.clone()[shared..]));
        let (Some(written), Some(needed)) = (written, needed) else { return false };
        store.indices.iter().zip(read).all(|(store, read)| {
            let (Some(store), Some(read)) =
                (written.of(store, &mut self.analyzer), needed.of(read, &mut self.analyzer))
            else {
                return false;
            };
            store.covers(&read, &mut self.analyzer)
        })
    }

    fn running(&mut self, loops: &[Ref<For>]) -> Option<Running> {
        let mut running = Running::default();
        loops.iter().all(|n| running.add(&n.var, &n.min, &n.extent, &mut self.analyzer)).then_some(running)
    }

    fn if_conditional(&mut self, walk: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.conditional, true);
        walk(self);
        self.conditional = outer;
    }

    fn block(&mut self, n: &SBlockRealize) {
        let block = &n.block;
        n.iter_values.iter().for_each(|v| self.visit_prim(v));
        self.visit_prim(&n.predicate);
        let values: Vec<PrimExpr> = self.at(&n.iter_values);
        self.axes.extend(block.iter_vars.iter().map(|iter| iter.var.clone()).zip(values));
        // A part under another name may be any part.
        let hidden = block.match_buffers.iter().any(|m| m.source.buffer == *self.buffer);
        self.filled &= !hidden;
        let outer = self.conditional;
        self.conditional |= !n.predicate.is_int(1);
        let depth = self.set_first.len();
        if self.takes_all_steps(n) {
            match &block.init {
                Some(init) => self.set_by(init),
                None => self.set_at_first(block),
            }
        }
        if let Some(init) = &block.init {
            self.if_conditional(|this| this.visit_stmt(init));
        }
        self.visit_stmt(&block.body);
        self.set_first.truncate(depth);
        self.conditional = outer;
    }

    /// Whether every step of a block's reduction lies inside, the first one included.
    fn takes_all_steps(&mut self, n: &SBlockRealize) -> bool {
        let reductions = n.block.iter_vars.iter().zip(&n.iter_values).filter(|(iter, _)| iter.kind == IterKind::Reduce);
        let inside = |var: &Ref<Var>| self.loops.iter().any(|n| n.var == *var);
        let pairs: Vec<(PrimExpr, PrimExpr)> =
            reductions.map(|(iter, value)| (iter.min.clone(), substitute(value, &self.axes))).collect();
        let local = pairs.iter().all(|(_, value)| free_vars(value).iter().all(inside));
        let Some(running) = self.running(&self.loops.clone()) else { return false };
        local
            && pairs.iter().all(|(min, value)| {
                let found = running.of(value, &mut self.analyzer);
                found.is_some_and(|found| self.analyzer.can_prove_equal(&found.min, min))
            })
    }

    /// What the first statement of a block sets in its first step.
    fn set_at_first(&mut self, block: &SBlock) {
        let first = match &block.body {
            Stmt::Seq(n) => n.seq.first(),
            _ => None,
        };
        if let Some(Stmt::If(n)) = first
            && n.else_case.is_none()
            && same(&n.condition, &at_first_values(block))
        {
            self.set_by(&n.then_case);
        }
    }

    fn set_by(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Store(n) if n.buffer == *self.buffer && n.predicate.is_none() => {
                self.set_first.push(self.at(&n.indices));
            }
            Stmt::Seq(n) => n.seq.iter().for_each(|s| self.set_by(s)),
            _ => {}
        }
    }
}

/// Whether a store fills the box that its indices span while loops run.
fn fills_its_box(indices: &[PrimExpr], loops: &[Ref<For>], analyzer: &mut Analyzer) -> bool {
    let used = |n: &Ref<For>| indices.iter().any(|i| free_vars(i).contains(&n.var));
    let (used, rest): (Vec<_>, Vec<_>) = loops.iter().cloned().partition(used);
    if !used.iter().all(|n| n.min.is_int(0)) || !rest.iter().all(|n| analyzer.can_prove(&prim::ge(&n.extent, 1))) {
        return false;
    }
    if indices.iter().any(|i| i.dtype().lanes != 1) {
        return false;
    }
    let block = SBlock {
        iter_vars: Vec::new(),
        reads: Vec::new(),
        writes: Vec::new(),
        name: String::new(),
        alloc_buffers: Vec::new(),
        match_buffers: Vec::new(),
        annotations: Default::default(),
        init: None,
        body: Stmt::nop(),
    };
    let realize =
        SBlockRealize { iter_values: indices.to_vec(), predicate: prim::boolean(true), block: Ref::new(block) };
    is_affine(&realize, &used)
}

impl PrimVisitor for Walk<'_> {
    fn visit_prim(&mut self, e: &PrimExpr) {
        self.walk_prim(e);
        if let PrimExpr::Load(n) = e
            && n.buffer.data == self.buffer.data
        {
            let BufferLoad { buffer, indices, .. } = &**n;
            self.filled &= buffer == self.buffer;
            self.read(indices);
        }
    }
}

impl StmtVisitor for Walk<'_> {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        if !self.filled {
            return;
        }
        match stmt {
            Stmt::For(n) => {
                self.visit_prim(&n.min);
                self.visit_prim(&n.extent);
                // Of a loop whose bounds are those of a block's axes there is no interval in terms of the loops around.
                self.filled &= ![&n.min, &n.extent].into_iter().flat_map(free_vars).any(|v| self.axes.contains_key(&v));
                // The range of a loop that may have no iteration would say that it has one.
                if n.extent.as_int().is_some_and(|count| count > 0) {
                    self.analyzer.bind(&n.var, n.min.clone(), n.extent.clone());
                }
                self.loops.push(n.clone());
                self.visit_stmt(&n.body);
                self.loops.pop();
            }
            Stmt::If(n) => {
                self.visit_prim(&n.condition);
                self.if_conditional(|this| {
                    this.visit_stmt(&n.then_case);
                    n.else_case.iter().for_each(|s| this.visit_stmt(s));
                });
            }
            Stmt::While(_) => self.if_conditional(|this| this.walk_stmt(stmt)),
            Stmt::Store(n) => {
                self.walk_stmt(stmt);
                if n.buffer.data == self.buffer.data {
                    self.filled &= n.buffer == *self.buffer;
                    if !self.conditional && n.predicate.is_none() {
                        let (loops, indices) = (self.loops.clone(), self.at(&n.indices));
                        self.stores.push(Store { loops, indices });
                    }
                }
            }
            Stmt::Bind(n) => {
                self.visit_prim(&n.value);
                let value = substitute(&n.value, &self.axes);
                self.axes.insert(n.var.clone(), value);
            }
            Stmt::Block(n) => self.block(n),
            // What stands behind an early exit may not be executed.
            _ if stmt.early_exit().is_some() => self.filled = false,
            _ => self.walk_stmt(stmt),
        }
    }
}

#[cfg(test)]
mod tests {
    use relaxide_ffi::DataType;

    use super::*;

    const F32: DataType = DataType::float(32);

    #[test]
    fn only_what_is_surely_written_before_is_filled() {
        let (b, c, n) = (Buffer::new("B", F32, [16]), Buffer::new("C", F32, [16]), Var::dim("n"));
        let one = || prim::float_of(F32, 1.0);
        let write = |extent: PrimExpr, at: fn(&PrimExpr) -> PrimExpr| {
            Stmt::each("i", extent, |i| Stmt::store(&b, [at(i)], one()))
        };
        let read = |extent: PrimExpr, at: fn(&PrimExpr) -> PrimExpr| {
            Stmt::each("k", extent, |k| Stmt::store(&c, [k], prim::load(&b, [at(k)])))
        };
        let all = |i: &PrimExpr| i.clone();
        let lit = |v: i64| PrimExpr::from(v);
        let sym = PrimExpr::from(&n);
        let cases = [
            ("all of it", Stmt::seq([write(lit(16), all), read(lit(16), all)]), true),
            ("part of it", Stmt::seq([write(lit(16), all), read(lit(4), |k| k * 4)]), true),
            ("too little", Stmt::seq([write(lit(8), all), read(lit(16), all)]), false),
            ("behind", Stmt::seq([read(lit(16), all), write(lit(16), all)]), false),
            ("with gaps", Stmt::seq([write(lit(8), |i| i * 2), read(lit(15), all)]), false),
            ("symbolic", Stmt::seq([write(sym.clone(), all), read(sym.clone(), all)]), true),
            ("perhaps never", Stmt::seq([write(sym.clone(), |_| 0.into()), read(lit(1), all)]), false),
            ("conditional", Stmt::seq([Stmt::when(prim::lt(&n, 3), write(lit(16), all)), read(lit(16), all)]), false),
            (
                "the iteration before",
                Stmt::each("i", 16, |i| {
                    Stmt::seq([Stmt::store(&c, [i], prim::load(&b, [i - 1])), Stmt::store(&b, [i], one())])
                }),
                false,
            ),
        ];
        for (name, stmt, expected) in cases {
            assert_eq!(initialized_before_read(&stmt, &b), expected, "{name}");
        }
    }
}
