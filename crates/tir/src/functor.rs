//! Walking and rebuilding statements, expressions included.

use std::collections::{HashMap, HashSet};

use indexmap::IndexSet;
use relaxide_ffi::Ref;
use relaxide_ir::layout::ScopeIdDef;
use relaxide_ir::prim::{Let, PrimExpr, PrimMutator, PrimVisitor, free_vars};
use relaxide_ir::{AttrValue, Buffer, Var};

use crate::PrimFunc;
use crate::stmt::*;
use crate::tile::ScopeIdDefStmt;

/// A read-only walk over statements and the expressions in them.
pub trait StmtVisitor: PrimVisitor + AsStmtVisitor {
    /// Visits one statement; the default goes on below.
    fn visit_stmt(&mut self, stmt: &Stmt) {
        self.walk_stmt(stmt);
    }

    /// Visits a buffer that is written; the default ignores it.
    fn visit_buffer_store(&mut self, _buffer: &Ref<Buffer>) {}

    /// Visits what a statement holds.
    fn walk_stmt(&mut self, stmt: &Stmt) {
        walk_stmt(self.as_stmt_visitor(), stmt);
    }

    /// Visits what a block holds.
    fn walk_block(&mut self, block: &Ref<SBlock>) {
        walk_block(self.as_stmt_visitor(), block);
    }
}

/// Every visitor as one type, so that the walks below it are compiled once and not once for each visitor.
pub trait AsStmtVisitor {
    /// The visitor itself.
    fn as_stmt_visitor(&mut self) -> &mut dyn StmtVisitor;
}

impl<V: StmtVisitor> AsStmtVisitor for V {
    fn as_stmt_visitor(&mut self) -> &mut dyn StmtVisitor {
        self
    }
}

/// [`StmtVisitor::walk_stmt`], compiled once for all visitors.
fn walk_stmt(visitor: &mut dyn StmtVisitor, stmt: &Stmt) {
    match stmt {
        Stmt::For(n) => {
            visitor.visit_prim(&n.min);
            visitor.visit_prim(&n.extent);
            n.step.iter().for_each(|step| visitor.visit_prim(step));
            visitor.visit_stmt(&n.body);
        }
        Stmt::While(n) => {
            visitor.visit_prim(&n.condition);
            visitor.visit_stmt(&n.body);
        }
        Stmt::Seq(n) => n.seq.iter().for_each(|s| visitor.visit_stmt(s)),
        Stmt::If(n) => {
            visitor.visit_prim(&n.condition);
            visitor.visit_stmt(&n.then_case);
            if let Some(other) = &n.else_case {
                visitor.visit_stmt(other);
            }
        }
        Stmt::Store(n) => {
            visitor.visit_buffer_store(&n.buffer);
            visitor.visit_prim(&n.value);
            n.indices.iter().for_each(|i| visitor.visit_prim(i));
            if let Some(predicate) = &n.predicate {
                visitor.visit_prim(predicate);
            }
        }
        Stmt::Bind(n) => visitor.visit_prim(&n.value),
        Stmt::Alloc(n) => n.buffer.shape.iter().for_each(|d| visitor.visit_prim(d)),
        Stmt::Evaluate(n) => visitor.visit_prim(&n.value),
        Stmt::Assert(n) => {
            visitor.visit_prim(&n.condition);
            n.numbers.iter().for_each(|number| visitor.visit_prim(number));
        }
        Stmt::Block(n) => {
            n.iter_values.iter().for_each(|v| visitor.visit_prim(v));
            visitor.visit_prim(&n.predicate);
            visitor.walk_block(&n.block);
        }
        Stmt::Attr(n) => {
            visitor.visit_prim(&n.value);
            visitor.visit_stmt(&n.body);
        }
        Stmt::Decl(n) => {
            n.buffer.shape.iter().chain(&n.buffer.strides).for_each(|d| visitor.visit_prim(d));
            visitor.visit_prim(&n.buffer.elem_offset);
            // Another view of known memory does nothing with its address.
            if !n.is_view() {
                visitor.visit_prim(&n.data);
            }
        }
        Stmt::Break(_) | Stmt::Continue(_) => {}
        Stmt::ScopeIds(n) => n.def.extents.iter().flatten().for_each(|extent| visitor.visit_prim(extent)),
        Stmt::Tile(n) => crate::tile::visit(visitor, n),
        Stmt::Return(n) => visitor.visit_prim(&n.value),
    }
}

/// [`StmtVisitor::walk_block`], compiled once for all visitors.
fn walk_block(visitor: &mut dyn StmtVisitor, block: &Ref<SBlock>) {
    for iter in &block.iter_vars {
        visitor.visit_prim(&iter.min);
        visitor.visit_prim(&iter.extent);
    }
    for region in block.reads.iter().chain(&block.writes) {
        for range in &region.region {
            visitor.visit_prim(&range.min);
            visitor.visit_prim(&range.extent);
        }
    }
    if let Some(init) = &block.init {
        visitor.visit_stmt(init);
    }
    visitor.visit_stmt(&block.body);
}

/// A rebuilding walk over statements and the expressions in them. What comes back unchanged is shared.
pub trait StmtMutator: PrimMutator + AsStmtMutator {
    /// Rebuilds one statement; the default rebuilds what it holds.
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        self.remake_stmt(stmt)
    }

    /// Replaces a variable where it is defined; the default keeps it.
    fn mutate_var_def(&mut self, var: &Ref<Var>) -> Ref<Var> {
        var.clone()
    }

    /// Replaces a buffer where it is defined; the default does as for a use.
    fn mutate_buffer_def(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
        self.mutate_buffer_use(buffer)
    }

    /// Rebuilds what a statement holds.
    fn remake_stmt(&mut self, stmt: &Stmt) -> Stmt {
        remake_stmt(self.as_stmt_mutator(), stmt)
    }

    /// Scope ids with their extents rebuilt.
    fn remake_scope_ids(&mut self, n: &Ref<ScopeIdDefStmt>) -> Ref<ScopeIdDefStmt> {
        remake_scope_ids(self.as_stmt_mutator(), n)
    }

    /// The buffer that a statement declares: another view of memory brings no pointer of its own.
    fn remake_declared(&mut self, n: &DeclBuffer) -> Ref<Buffer> {
        match n.is_view() {
            true => self.mutate_buffer_use(&n.buffer),
            false => self.mutate_buffer_def(&n.buffer),
        }
    }

    /// Rebuilds what a store holds.
    fn remake_store(&mut self, n: &Ref<BufferStore>) -> Ref<BufferStore> {
        remake_store(self.as_stmt_mutator(), n)
    }

    /// Rebuilds what a block holds.
    fn remake_block(&mut self, n: &Ref<SBlock>) -> Ref<SBlock> {
        remake_block(self.as_stmt_mutator(), n)
    }

    /// Rebuilds a block's sub-buffer.
    fn remake_match(&mut self, n: &Ref<MatchBufferRegion>) -> Ref<MatchBufferRegion> {
        remake_match(self.as_stmt_mutator(), n)
    }

    /// Rebuilds a block's axis.
    fn remake_iter(&mut self, n: &Ref<IterVar>) -> Ref<IterVar> {
        remake_iter(self.as_stmt_mutator(), n)
    }

    /// Rebuilds a region.
    fn remake_region(&mut self, n: &Ref<BufferRegion>) -> Ref<BufferRegion> {
        remake_region(self.as_stmt_mutator(), n)
    }
}

/// Every mutator as one type, so that what it rebuilds by default is compiled once and not once for each mutator.
pub trait AsStmtMutator {
    /// The mutator itself.
    fn as_stmt_mutator(&mut self) -> &mut dyn StmtMutator;
}

impl<M: StmtMutator> AsStmtMutator for M {
    fn as_stmt_mutator(&mut self) -> &mut dyn StmtMutator {
        self
    }
}

/// [`StmtMutator::remake_stmt`], compiled once for all mutators.
fn remake_stmt(mutator: &mut dyn StmtMutator, stmt: &Stmt) -> Stmt {
    match stmt {
        Stmt::For(n) => {
            let var = mutator.mutate_var_def(&n.var);
            let (min, extent) = (mutator.mutate_prim(&n.min), mutator.mutate_prim(&n.extent));
            let step = n.step.as_ref().map(|step| mutator.mutate_prim(step));
            let body = mutator.mutate_stmt(&n.body);
            if var == n.var && min == n.min && extent == n.extent && step == n.step && body == n.body {
                return stmt.clone();
            }
            Ref::new(For { var, min, extent, body, step, ..For::clone(n) }).into()
        }
        Stmt::While(n) => {
            let (condition, body) = (mutator.mutate_prim(&n.condition), mutator.mutate_stmt(&n.body));
            Ref::new(While { condition, body }).into()
        }
        Stmt::Seq(n) => {
            let seq: Vec<Stmt> = n.seq.iter().map(|s| mutator.mutate_stmt(s)).collect();
            if seq == n.seq { stmt.clone() } else { Stmt::seq(seq) }
        }
        Stmt::If(n) => {
            let condition = mutator.mutate_prim(&n.condition);
            let then_case = mutator.mutate_stmt(&n.then_case);
            let else_case = n.else_case.as_ref().map(|s| mutator.mutate_stmt(s));
            if condition == n.condition && then_case == n.then_case && else_case == n.else_case {
                return stmt.clone();
            }
            match else_case {
                Some(other) => Stmt::if_else(condition, then_case, other),
                None => Stmt::when(condition, then_case),
            }
        }
        Stmt::Store(n) => mutator.remake_store(n).into(),
        Stmt::Bind(n) => {
            let value = mutator.mutate_prim(&n.value);
            let var = mutator.mutate_var_def(&n.var);
            if value == n.value && var == n.var { stmt.clone() } else { Stmt::bind(var, value) }
        }
        Stmt::Alloc(n) => {
            let (buffer, annotations) = (mutator.mutate_buffer_def(&n.buffer), n.annotations.clone());
            if buffer == n.buffer { stmt.clone() } else { Ref::new(AllocBuffer { buffer, annotations }).into() }
        }
        Stmt::Evaluate(n) => {
            let value = mutator.mutate_prim(&n.value);
            if value == n.value { stmt.clone() } else { Ref::new(Evaluate { value }).into() }
        }
        Stmt::Assert(n) => {
            let condition = mutator.mutate_prim(&n.condition);
            let (error_kind, message) = (n.error_kind.clone(), n.message.clone());
            Ref::new(AssertStmt { condition, error_kind, message, numbers: mutator.mutate_prims(&n.numbers) }).into()
        }
        Stmt::Block(n) => {
            let iter_values = mutator.mutate_prims(&n.iter_values);
            let predicate = mutator.mutate_prim(&n.predicate);
            let block = mutator.remake_block(&n.block);
            if iter_values == n.iter_values && predicate == n.predicate && block == n.block {
                return stmt.clone();
            }
            Ref::new(SBlockRealize { iter_values, predicate, block }).into()
        }
        Stmt::Attr(n) => {
            let (value, body) = (mutator.mutate_prim(&n.value), mutator.mutate_stmt(&n.body));
            let node = n.node.as_ref().map(|node| remake_node(mutator, node));
            Ref::new(AttrStmt { node, key: n.key.clone(), value, body }).into()
        }
        Stmt::Decl(n) => {
            let data = mutator.mutate_prim(&n.data);
            let buffer = mutator.remake_declared(n);
            if data == n.data && buffer == n.buffer { stmt.clone() } else { Stmt::decl(&buffer, data) }
        }
        Stmt::Break(_) | Stmt::Continue(_) => stmt.clone(),
        Stmt::ScopeIds(n) => mutator.remake_scope_ids(n).into(),
        Stmt::Tile(n) => Ref::new(crate::tile::mutated(mutator, n)).into(),
        Stmt::Return(n) => {
            let value = mutator.mutate_prim(&n.value);
            if value == n.value { stmt.clone() } else { Stmt::ret(value) }
        }
    }
}

/// What an attribute is about, rebuilt.
fn remake_node(mutator: &mut dyn StmtMutator, node: &AttrValue) -> AttrValue {
    match node {
        AttrValue::Prim(e) => AttrValue::Prim(mutator.mutate_prim(e)),
        AttrValue::Object(object) => match object.clone().downcast::<Buffer>() {
            Ok(buffer) => AttrValue::Object(mutator.mutate_buffer_use(&buffer).into()),
            Err(_) => node.clone(),
        },
        other => other.clone(),
    }
}

/// [`StmtMutator::remake_scope_ids`], compiled once for all mutators.
fn remake_scope_ids(mutator: &mut dyn StmtMutator, n: &Ref<ScopeIdDefStmt>) -> Ref<ScopeIdDefStmt> {
    let def_ids: Vec<_> = n.def.def_ids.iter().map(|var| mutator.mutate_var_def(var)).collect();
    let extents = n.def.extents.as_ref().map(|extents| mutator.mutate_prims(extents));
    let preferred_extents = n.def.preferred_extents.as_ref().map(|extents| mutator.mutate_prims(extents));
    if (&def_ids, &extents, &preferred_extents) == (&n.def.def_ids, &n.def.extents, &n.def.preferred_extents) {
        return n.clone();
    }
    let def = Ref::new(ScopeIdDef { def_ids, extents, scope: n.def.scope, preferred_extents });
    Ref::new(ScopeIdDefStmt { def })
}

/// [`StmtMutator::remake_store`], compiled once for all mutators.
fn remake_store(mutator: &mut dyn StmtMutator, n: &Ref<BufferStore>) -> Ref<BufferStore> {
    let buffer = mutator.mutate_buffer_use(&n.buffer);
    let value = mutator.mutate_prim(&n.value);
    let indices = mutator.mutate_prims(&n.indices);
    let predicate = n.predicate.as_ref().map(|p| mutator.mutate_prim(p));
    if buffer == n.buffer && value == n.value && indices == n.indices && predicate == n.predicate {
        return n.clone();
    }
    Ref::new(BufferStore { buffer, value, indices, predicate })
}

/// [`StmtMutator::remake_block`], compiled once for all mutators.
fn remake_block(mutator: &mut dyn StmtMutator, n: &Ref<SBlock>) -> Ref<SBlock> {
    // Axes first: the regions of sub-buffers name them.
    let iter_vars: Vec<_> = n.iter_vars.iter().map(|v| mutator.remake_iter(v)).collect();
    let alloc_buffers: Vec<_> = n.alloc_buffers.iter().map(|b| mutator.mutate_buffer_def(b)).collect();
    let match_buffers: Vec<_> = n.match_buffers.iter().map(|m| mutator.remake_match(m)).collect();
    let reads: Vec<_> = n.reads.iter().map(|r| mutator.remake_region(r)).collect();
    let writes: Vec<_> = n.writes.iter().map(|r| mutator.remake_region(r)).collect();
    let init = n.init.as_ref().map(|s| mutator.mutate_stmt(s));
    let body = mutator.mutate_stmt(&n.body);
    if alloc_buffers == n.alloc_buffers
        && match_buffers == n.match_buffers
        && iter_vars == n.iter_vars
        && reads == n.reads
        && writes == n.writes
        && init == n.init
        && body == n.body
    {
        return n.clone();
    }
    Ref::new(SBlock {
        iter_vars,
        reads,
        writes,
        name: n.name.clone(),
        alloc_buffers,
        match_buffers,
        annotations: n.annotations.clone(),
        init,
        body,
    })
}

/// [`StmtMutator::remake_match`], compiled once for all mutators.
fn remake_match(mutator: &mut dyn StmtMutator, n: &Ref<MatchBufferRegion>) -> Ref<MatchBufferRegion> {
    let (source, buffer) = (mutator.remake_region(&n.source), mutator.mutate_buffer_def(&n.buffer));
    if source == n.source && buffer == n.buffer {
        return n.clone();
    }
    Ref::new(MatchBufferRegion { buffer, source })
}

/// [`StmtMutator::remake_iter`], compiled once for all mutators.
fn remake_iter(mutator: &mut dyn StmtMutator, n: &Ref<IterVar>) -> Ref<IterVar> {
    let var = mutator.mutate_var_def(&n.var);
    let (min, extent) = (mutator.mutate_prim(&n.min), mutator.mutate_prim(&n.extent));
    if var == n.var && min == n.min && extent == n.extent {
        return n.clone();
    }
    Ref::new(IterVar { var, min, extent, kind: n.kind })
}

/// [`StmtMutator::remake_region`], compiled once for all mutators.
fn remake_region(mutator: &mut dyn StmtMutator, n: &Ref<BufferRegion>) -> Ref<BufferRegion> {
    let buffer = mutator.mutate_buffer_use(&n.buffer);
    let mut changed = buffer != n.buffer;
    let mut region = Vec::with_capacity(n.region.len());
    for range in &n.region {
        let (min, extent) = (mutator.mutate_prim(&range.min), mutator.mutate_prim(&range.extent));
        if min == range.min && extent == range.extent {
            region.push(range.clone());
        } else {
            changed = true;
            region.push(Ref::new(Range { min, extent }));
        }
    }
    if changed { Ref::new(BufferRegion { buffer, region }) } else { n.clone() }
}

/// Puts expressions in the place of variables, in a whole statement.
pub fn substitute_stmt(stmt: &Stmt, map: &relaxide_ir::prim::VarMap) -> Stmt {
    struct Substitute<'a>(&'a relaxide_ir::prim::VarMap);
    impl PrimMutator for Substitute<'_> {
        fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
            match e {
                PrimExpr::Var(var) => self.0.get(var).cloned().unwrap_or_else(|| e.clone()),
                _ => self.remake_prim(e),
            }
        }
    }
    impl StmtMutator for Substitute<'_> {}
    Substitute(map).mutate_stmt(stmt)
}

/// The variables that a statement uses and does not define, in order of first use.
pub fn undefined_vars(stmt: &Stmt) -> Vec<Ref<Var>> {
    #[derive(Default)]
    struct Uses {
        used: IndexSet<Ref<Var>>,
        defined: HashSet<Ref<Var>>,
    }
    impl PrimVisitor for Uses {
        fn visit_prim(&mut self, e: &PrimExpr) {
            match e {
                PrimExpr::Var(var) => {
                    self.used.insert(var.clone());
                }
                PrimExpr::Let(n) => {
                    self.defined.insert(n.var.clone());
                    self.walk_prim(e);
                }
                _ => self.walk_prim(e),
            }
        }
    }
    impl StmtVisitor for Uses {
        fn visit_stmt(&mut self, stmt: &Stmt) {
            match stmt {
                Stmt::For(n) => drop(self.defined.insert(n.var.clone())),
                Stmt::Bind(n) => drop(self.defined.insert(n.var.clone())),
                Stmt::Block(n) => {
                    self.defined.extend(n.block.iter_vars.iter().map(|iter| iter.var.clone()));
                    n.block.alloc_buffers.iter().flat_map(|b| &b.shape).for_each(|d| self.visit_prim(d));
                }
                _ => {}
            }
            self.walk_stmt(stmt);
        }
    }
    let mut uses = Uses::default();
    uses.visit_stmt(stmt);
    uses.used.into_iter().filter(|var| !uses.defined.contains(var)).collect()
}

/// A copy that defines fresh loop variables, bound names and scratch buffers, so that it may stand beside the original.
pub fn fresh_copy(stmt: &Stmt) -> Stmt {
    Fresh::default().mutate_stmt(stmt)
}

/// A copy of a kernel with parameters, buffers, symbolic dimensions and variables of its own.
pub fn fresh_kernel(func: &PrimFunc) -> PrimFunc {
    let mut fresh = Fresh::default();
    let params = func.params.iter().map(|param| fresh.mutate_var_def(param)).collect();
    for buffer in func.buffers.iter().flatten() {
        for var in buffer.shape.iter().flat_map(free_vars) {
            if !fresh.vars.contains_key(&var) {
                fresh.mutate_var_def(&var);
            }
        }
    }
    let buffers = func.buffers.iter().map(|b| b.as_ref().map(|b| fresh.mutate_buffer_def(b))).collect();
    PrimFunc { params, buffers, body: fresh.mutate_stmt(&func.body), ..func.clone() }
}

/// New variables and buffers for those that a copy defines.
#[derive(Default)]
struct Fresh {
    vars: HashMap<Ref<Var>, Ref<Var>>,
    buffers: HashMap<Ref<Buffer>, Ref<Buffer>>,
}

impl PrimMutator for Fresh {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Var(var) => self.vars.get(var).map_or_else(|| e.clone(), PrimExpr::from),
            PrimExpr::Let(n) => {
                let value = self.mutate_prim(&n.value);
                let var = self.mutate_var_def(&n.var);
                Ref::new(Let { var, value, body: self.mutate_prim(&n.body) }).into()
            }
            _ => self.remake_prim(e),
        }
    }

    fn mutate_buffer_use(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
        if let Some(fresh) = self.buffers.get(buffer) {
            return fresh.clone();
        }
        // Another view of memory that the copy allocates is a view of the fresh memory.
        match self.vars.get(&buffer.data).cloned() {
            Some(data) => self.renew(buffer, data),
            None => buffer.clone(),
        }
    }
}

impl StmtMutator for Fresh {
    fn mutate_var_def(&mut self, var: &Ref<Var>) -> Ref<Var> {
        let fresh = Var::new(var.name.clone(), var.ty.clone());
        self.vars.insert(var.clone(), fresh.clone());
        fresh
    }

    fn mutate_buffer_def(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
        let data = self.mutate_var_def(&buffer.data);
        self.renew(buffer, data)
    }
}

impl Fresh {
    fn renew(&mut self, buffer: &Ref<Buffer>, data: Ref<Var>) -> Ref<Buffer> {
        let fresh = Ref::new(self.remake_buffer(buffer, data));
        self.buffers.insert(buffer.clone(), fresh.clone());
        fresh
    }
}
