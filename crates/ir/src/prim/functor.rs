//! Walking and rebuilding scalar expressions.

use std::collections::HashMap;

use relaxide_ffi::Ref;

use super::*;

/// A read-only walk. Override what is of interest and call the `walk_*` function to go on below.
pub trait PrimVisitor: AsPrimVisitor {
    /// Visits one expression; the default goes on to its operands.
    fn visit_prim(&mut self, e: &PrimExpr) {
        self.walk_prim(e);
    }

    /// Visits a buffer that is read; the default ignores it.
    fn visit_buffer_use(&mut self, _buffer: &Ref<Buffer>) {}

    /// Visits the operands of an expression.
    fn walk_prim(&mut self, e: &PrimExpr) {
        walk_prim(self.as_prim_visitor(), e);
    }
}

/// [`PrimVisitor::walk_prim`], compiled once for all visitors.
fn walk_prim(visitor: &mut dyn PrimVisitor, e: &PrimExpr) {
    match e {
        PrimExpr::Int(_) | PrimExpr::Float(_) | PrimExpr::Str(_) | PrimExpr::Var(_) => {}
        PrimExpr::Cast(e) => visitor.visit_prim(&e.value),
        PrimExpr::Binary(e) => {
            visitor.visit_prim(&e.a);
            visitor.visit_prim(&e.b);
        }
        PrimExpr::Not(e) => visitor.visit_prim(&e.a),
        PrimExpr::Select(e) => {
            visitor.visit_prim(&e.condition);
            visitor.visit_prim(&e.true_value);
            visitor.visit_prim(&e.false_value);
        }
        PrimExpr::Let(e) => {
            visitor.visit_prim(&e.value);
            visitor.visit_prim(&e.body);
        }
        PrimExpr::Ramp(e) => {
            visitor.visit_prim(&e.base);
            visitor.visit_prim(&e.stride);
        }
        PrimExpr::Broadcast(e) => visitor.visit_prim(&e.value),
        PrimExpr::Load(e) => {
            visitor.visit_buffer_use(&e.buffer);
            e.indices.iter().for_each(|i| visitor.visit_prim(i));
            if let Some(predicate) = &e.predicate {
                visitor.visit_prim(predicate);
            }
        }
        PrimExpr::Call(e) => e.args.iter().for_each(|a| visitor.visit_prim(a)),
    }
}

/// A rebuilding walk. What comes back unchanged is shared, not copied.
pub trait PrimMutator: AsPrimMutator {
    /// Rebuilds one expression; the default rebuilds its operands.
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        self.remake_prim(e)
    }

    /// Replaces a buffer that is read; the default keeps it.
    fn mutate_buffer_use(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
        buffer.clone()
    }

    /// Rebuilds every expression of a list.
    fn mutate_prims(&mut self, list: &[PrimExpr]) -> Vec<PrimExpr> {
        mutate_prims(self.as_prim_mutator(), list)
    }

    /// A buffer over other data whose dimensions, strides and offset are rebuilt. It is new, whether they change or not.
    fn remake_buffer(&mut self, buffer: &Buffer, data: Ref<Var>) -> Buffer {
        remake_buffer(self.as_prim_mutator(), buffer, data)
    }

    /// Rebuilds the operands of an expression.
    fn remake_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        remake_prim(self.as_prim_mutator(), e)
    }
}

/// [`PrimMutator::mutate_prims`], compiled once for all mutators.
fn mutate_prims(mutator: &mut dyn PrimMutator, list: &[PrimExpr]) -> Vec<PrimExpr> {
    list.iter().map(|e| mutator.mutate_prim(e)).collect()
}

/// [`PrimMutator::remake_buffer`], compiled once for all mutators.
fn remake_buffer(mutator: &mut dyn PrimMutator, buffer: &Buffer, data: Ref<Var>) -> Buffer {
    Buffer {
        name: buffer.name.clone(),
        data,
        dtype: buffer.dtype,
        shape: mutator.mutate_prims(&buffer.shape),
        strides: mutator.mutate_prims(&buffer.strides),
        elem_offset: mutator.mutate_prim(&buffer.elem_offset),
        scope: buffer.scope.clone(),
        alignment: buffer.alignment,
        offset_factor: buffer.offset_factor,
        layout: buffer.layout.mapped(&mut |e| mutator.mutate_prim(e)),
        producer: None,
    }
}

/// [`PrimMutator::remake_prim`], compiled once for all mutators.
fn remake_prim(mutator: &mut dyn PrimMutator, e: &PrimExpr) -> PrimExpr {
    match e {
        PrimExpr::Int(_) | PrimExpr::Float(_) | PrimExpr::Str(_) | PrimExpr::Var(_) => e.clone(),
        PrimExpr::Cast(n) => {
            let value = mutator.mutate_prim(&n.value);
            if value == n.value { e.clone() } else { cast(n.dtype.with_lanes(value.dtype().lanes), value) }
        }
        PrimExpr::Binary(n) => {
            let (a, b) = (mutator.mutate_prim(&n.a), mutator.mutate_prim(&n.b));
            if a == n.a && b == n.b { e.clone() } else { binary(n.op, a, b) }
        }
        PrimExpr::Not(n) => {
            let a = mutator.mutate_prim(&n.a);
            if a == n.a { e.clone() } else { not(a) }
        }
        PrimExpr::Select(n) => {
            let c = mutator.mutate_prim(&n.condition);
            let (t, f) = (mutator.mutate_prim(&n.true_value), mutator.mutate_prim(&n.false_value));
            if c == n.condition && t == n.true_value && f == n.false_value { e.clone() } else { select(c, t, f) }
        }
        PrimExpr::Let(n) => {
            let (value, body) = (mutator.mutate_prim(&n.value), mutator.mutate_prim(&n.body));
            if value == n.value && body == n.body {
                return e.clone();
            }
            Ref::new(Let { var: n.var.clone(), value, body }).into()
        }
        PrimExpr::Ramp(n) => {
            let (base, stride) = (mutator.mutate_prim(&n.base), mutator.mutate_prim(&n.stride));
            if base == n.base && stride == n.stride { e.clone() } else { ramp(base, stride, n.lanes) }
        }
        PrimExpr::Broadcast(n) => {
            let value = mutator.mutate_prim(&n.value);
            if value == n.value { e.clone() } else { broadcast(value, n.lanes) }
        }
        PrimExpr::Load(n) => {
            let buffer = mutator.mutate_buffer_use(&n.buffer);
            let indices = mutator.mutate_prims(&n.indices);
            let predicate = n.predicate.as_ref().map(|p| mutator.mutate_prim(p));
            if buffer == n.buffer && indices == n.indices && predicate == n.predicate {
                return e.clone();
            }
            Ref::new(BufferLoad { buffer, indices, predicate }).into()
        }
        PrimExpr::Call(n) => {
            let args = mutator.mutate_prims(&n.args);
            if args == n.args { e.clone() } else { call(n.dtype, n.op.clone(), args) }
        }
    }
}

/// Every visitor as one type, so that the walks below it are compiled once and not once for each visitor.
pub trait AsPrimVisitor {
    /// The visitor itself.
    fn as_prim_visitor(&mut self) -> &mut dyn PrimVisitor;
}

impl<V: PrimVisitor> AsPrimVisitor for V {
    fn as_prim_visitor(&mut self) -> &mut dyn PrimVisitor {
        self
    }
}

/// Every mutator as one type, so that what it rebuilds by default is compiled once and not once for each mutator.
pub trait AsPrimMutator {
    /// The mutator itself.
    fn as_prim_mutator(&mut self) -> &mut dyn PrimMutator;
}

impl<M: PrimMutator> AsPrimMutator for M {
    fn as_prim_mutator(&mut self) -> &mut dyn PrimMutator {
        self
    }
}

/// A map from variables to the expressions that take their place.
pub type VarMap = HashMap<Ref<Var>, PrimExpr>;

impl PrimMutator for VarMap {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Var(var) => self.get(var).cloned().unwrap_or_else(|| e.clone()),
            _ => self.remake_prim(e),
        }
    }
}

/// Puts expressions in the place of variables.
pub fn substitute(e: &PrimExpr, map: &VarMap) -> PrimExpr {
    if map.is_empty() { e.clone() } else { map.clone().mutate_prim(e) }
}

/// The variables that occur in an expression, in order of first occurrence.
pub fn free_vars(e: &PrimExpr) -> Vec<Ref<Var>> {
    struct Collect(Vec<Ref<Var>>);
    impl PrimVisitor for Collect {
        fn visit_prim(&mut self, e: &PrimExpr) {
            match e {
                PrimExpr::Var(var) if !self.0.contains(var) => self.0.push(var.clone()),
                _ => self.walk_prim(e),
            }
        }
    }
    let mut collect = Collect(Vec::new());
    collect.visit_prim(e);
    collect.0
}

/// How many parts an expression has, itself among them.
pub fn count_parts(e: &PrimExpr) -> usize {
    struct Parts(usize);
    impl PrimVisitor for Parts {
        fn visit_prim(&mut self, e: &PrimExpr) {
            self.0 += 1;
            self.walk_prim(e);
        }
    }
    let mut parts = Parts(0);
    parts.visit_prim(e);
    parts.0
}

/// Whether some part of an expression is as asked.
pub fn any(e: &PrimExpr, asked: impl Fn(&PrimExpr) -> bool) -> bool {
    struct Search<F>(F, bool);
    impl<F: Fn(&PrimExpr) -> bool> PrimVisitor for Search<F> {
        fn visit_prim(&mut self, e: &PrimExpr) {
            self.1 = self.1 || (self.0)(e);
            if !self.1 {
                self.walk_prim(e);
            }
        }
    }
    let mut search = Search(asked, false);
    search.visit_prim(e);
    search.1
}
