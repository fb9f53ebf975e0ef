//! Loop nests of random programs: each fills one buffer, or changes it in place.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::prim::{self, BinaryOp, PrimExpr};
use relaxide_ir::{Buffer, Var};

use super::{Counter, Dim, Known, ProgramWriter};
use crate::stmt::*;

/// One loop: counter, first value, extent, kind.
struct Loop {
    var: Ref<Var>,
    min: i64,
    extent: PrimExpr,
    kind: ForKind,
}

/// Loops over the dimensions of a buffer.
struct Nest {
    loops: Vec<Loop>,
    /// The index along each dimension.
    indices: Vec<PrimExpr>,
    /// Where iterations are inside of the dimensions.
    guard: PrimExpr,
}

impl ProgramWriter<'_> {
    /// A statement that gives every element a value.
    pub(super) fn fill(&mut self, known: &Known) -> Stmt {
        let outer = self.scope.clone();
        self.scope.writing = Some(known.buffer.clone());
        let stmt = match self.random.below(10) {
            6 => self.in_blocks(known),
            7 => self.scan(known),
            8 => self.vectors(known),
            9 => self.through_views(known),
            5 => {
                let filled = self.in_loops(known);
                Stmt::seq([filled, self.scatter(known)])
            }
            _ => self.in_loops(known),
        };
        self.scope = outer;
        stmt
    }

    /// A statement that gives every element another value, perhaps from its old one.
    pub(super) fn change(&mut self, known: &Known) -> Stmt {
        let outer = self.scope.clone();
        self.scope.writing = Some(known.buffer.clone());
        let nest = self.nest(known, true);
        let indices = nest.indices.clone();
        let in_order = |l: &Loop| matches!(l.kind, ForKind::Serial | ForKind::Unrolled);
        let may_end = nest.loops.last().is_some_and(in_order);
        let stmt = self.under(nest, known, |this| {
            this.scope.own = Some((known.buffer.clone(), indices.clone()));
            let value = this.expression(known.buffer.dtype, 2);
            let store = Stmt::store(&known.buffer, indices.iter().cloned(), value);
            if may_end && this.random.one_in(3) {
                let body = Stmt::seq([this.sometimes_early_exit(), store]);
                if !this.random.one_in(3) {
                    return body;
                }
                // Out of a block, too.
                let name = this.name("leaving");
                let block = this.block(name, Vec::new(), Vec::new(), None, body);
                let predicate = prim::boolean(true);
                return Ref::new(SBlockRealize { iter_values: Vec::new(), predicate, block }).into();
            }
            match this.random.one_in(3) {
                true => Stmt::when(this.condition(), store),
                false => store,
            }
        });
        self.scope = outer;
        stmt
    }

    /// A transcendental function of every element, and by how many units in the last place it may be off.
    pub(super) fn rough_end(&mut self, known: &Known) -> Option<(Stmt, f64)> {
        // Each with the range that it is applied to; accuracies as the back end documents them, and one for the reference.
        const FUNCTIONS: [(&str, f64, f64, f64); 11] = [
            ("exp", -20.0, 20.0, 3.0),
            ("exp2", -20.0, 20.0, 3.0),
            ("log", 0.01, 1e4, 4.0),
            ("log2", 0.01, 1e4, 4.0),
            ("tanh", -10.0, 10.0, 4.0),
            ("sigmoid", -20.0, 20.0, 7.0),
            ("erf", -4.0, 4.0, 8.0),
            ("sin", -100.0, 100.0, 3.0),
            ("cos", -100.0, 100.0, 3.0),
            ("atan", -1e4, 1e4, 4.0),
            ("rsqrt", 0.01, 1e4, 3.0),
        ];
        let dtype = DataType::float(32);
        if known.buffer.dtype != dtype {
            return None;
        }
        let (name, low, high, ulps) = *self.random.pick(&FUNCTIONS)?;
        let outer = self.scope.clone();
        let nest = self.nest(known, true);
        let indices = nest.indices.clone();
        let stmt = self.under(nest, known, |_| {
            let element = prim::load(&known.buffer, indices.iter().cloned());
            let near = prim::min(prim::max(element, prim::float_of(dtype, low)), prim::float_of(dtype, high));
            Stmt::store(&known.buffer, indices.iter().cloned(), prim::math(name, near))
        });
        self.scope = outer;
        Some((stmt, ulps))
    }

    fn in_loops(&mut self, known: &Known) -> Stmt {
        let nest = self.nest(known, true);
        let indices = nest.indices.clone();
        self.under(nest, known, |this| this.element_statement(&known.buffer, &indices, 2))
    }

    /// Loops over all dimensions in any order, some of them split, some of them parallel, vectorized or unrolled.
    fn nest(&mut self, known: &Known, free: bool) -> Nest {
        let mut nest = Nest { loops: Vec::new(), indices: Vec::new(), guard: prim::boolean(true) };
        for (d, dim) in known.shape.iter().enumerate() {
            let name = format!("{}{}", ["i", "j", "k"][d % 3], self.names);
            if free && self.random.one_in(4) {
                let by = self.random.between(2, 5);
                let (outer, inner) =
                    (Var::prim(format!("{name}_o"), self.index), Var::prim(format!("{name}_i"), self.index));
                let factor = prim::int_of(self.index, by);
                let index = PrimExpr::from(&outer) * &factor + &inner;
                let count = prim::floordiv(&dim.expr + prim::int_of(self.index, by - 1), factor.clone());
                nest.guard = prim::and(nest.guard, prim::lt(index.clone(), dim.expr.clone()));
                nest.indices.push(index);
                nest.loops.push(Loop { var: outer, min: 0, extent: count, kind: ForKind::Serial });
                nest.loops.push(Loop { var: inner, min: 0, extent: factor, kind: ForKind::Serial });
                continue;
            }
            let var = Var::prim(name, self.index);
            let min = if self.random.one_in(6) { 2 } else { 0 };
            nest.indices.push(PrimExpr::from(&var) - prim::int_of(self.index, min));
            nest.loops.push(Loop { var, min, extent: dim.expr.clone(), kind: ForKind::Serial });
        }
        self.names += 1;
        if free {
            self.order_and_mark(&mut nest.loops);
        } else if let Some(first) = nest.loops.first_mut().filter(|_| known.shape.len() > 1) {
            first.kind = if self.random.one_in(3) { ForKind::Parallel } else { ForKind::Serial };
        }
        nest
    }

    fn order_and_mark(&mut self, loops: &mut [Loop]) {
        for i in 1..loops.len() {
            let by = self.random.below(i + 1);
            loops.swap(i, i - by);
        }
        let last = loops.len().saturating_sub(1);
        for (i, one) in loops.iter_mut().enumerate() {
            one.kind = match self.random.below(6) {
                1 | 2 if i == 0 => ForKind::Parallel,
                1 | 2 if i == last => ForKind::Vectorized,
                3 => ForKind::Unrolled,
                4 if i == last => ForKind::Vectorized,
                _ => ForKind::Serial,
            };
        }
    }

    /// A statement for each element, under the loops of a nest.
    fn under(&mut self, nest: Nest, known: &Known, body: impl FnOnce(&mut Self) -> Stmt) -> Stmt {
        let before = self.scope.counters.len();
        let counters = nest.indices.iter().zip(&known.shape);
        self.scope.counters.extend(counters.map(|(value, dim)| Counter { value: value.clone(), dim: dim.clone() }));
        let body = body(self);
        self.scope.counters.truncate(before);
        self.loops(nest.loops, Stmt::when(nest.guard, body))
    }

    fn loops(&self, loops: Vec<Loop>, body: Stmt) -> Stmt {
        loops.into_iter().rev().fold(body, |body, l| {
            let min = prim::int_of(self.index, l.min);
            Ref::new(For::new(l.kind, l.var, min, l.extent, body)).into()
        })
    }

    /// What gives one element its value.
    fn element_statement(&mut self, buffer: &Ref<Buffer>, indices: &[PrimExpr], depth: usize) -> Stmt {
        let dtype = buffer.dtype;
        let store = |value: PrimExpr| Stmt::store(buffer, indices.iter().cloned(), value);
        if depth == 0 {
            return store(self.expression(dtype, 3));
        }
        match self.random.below(13) {
            11 => self.search(buffer, indices),
            12 => self.until_left(buffer, indices),
            5 => {
                let condition = self.condition();
                let then_case = self.element_statement(buffer, indices, depth - 1);
                Stmt::if_else(condition, then_case, self.element_statement(buffer, indices, depth - 1))
            }
            6 => {
                let of = self.dtype();
                let name = self.name("x");
                let var = Var::prim(name, of);
                let value = self.expression(of, 2);
                self.scope.values.push(var.clone());
                let rest = self.element_statement(buffer, indices, depth - 1);
                self.scope.values.pop();
                Stmt::seq([Stmt::bind(var, value), rest])
            }
            7 => self.with_scratch(buffer, indices, depth),
            8 => self.endless(buffer, indices),
            9 => self.reduction(buffer, indices),
            10 => {
                let first = self.element_statement(buffer, indices, depth - 1);
                let outer = self.scope.own.replace((buffer.clone(), indices.to_vec()));
                let second = store(self.expression(dtype, 2));
                self.scope.own = outer;
                Stmt::seq([first, second])
            }
            _ => store(self.expression(dtype, 3)),
        }
    }

    /// Scratch of one iteration, filled by a loop of its own.
    fn with_scratch(&mut self, buffer: &Ref<Buffer>, indices: &[PrimExpr], depth: usize) -> Stmt {
        let (dtype, name) = (self.dtype(), self.name("L"));
        let size = self.random.between(1, 4);
        let dim = Dim { size, expr: prim::int_of(self.index, size) };
        let scope = if self.random.one_in(2) { "local" } else { "global" };
        let scratch = self.new_buffer(name.clone(), dtype, vec![dim.clone()], scope);
        let var = Var::prim(format!("{}_i", name.to_lowercase()), self.index);
        self.scope.counters.push(Counter { value: PrimExpr::from(&var), dim });
        let value = self.expression(dtype, 2);
        self.scope.counters.pop();
        let kind = if self.random.one_in(3) { ForKind::Unrolled } else { ForKind::Serial };
        let fill = Stmt::store(&scratch.buffer, [&var], value);
        let extent = scratch.shape[0].expr.clone();
        let fill = self.loops(vec![Loop { var, min: 0, extent, kind }], fill);
        self.readable.push(scratch.clone());
        let rest = self.element_statement(buffer, indices, depth - 1);
        self.readable.retain(|k| k.buffer != scratch.buffer);
        Stmt::seq([Stmt::alloc(&scratch.buffer), fill, rest])
    }

    /// A loop that a counter in memory ends.
    fn endless(&mut self, buffer: &Ref<Buffer>, indices: &[PrimExpr]) -> Stmt {
        let i32 = DataType::int(32);
        let name = self.name("W");
        let counter = Buffer::scoped(name, i32, [1], "local");
        let count = prim::int_of(i32, self.random.between(0, 4));
        let first = Stmt::store(buffer, indices.iter().cloned(), self.expression(buffer.dtype, 2));
        let outer = self.scope.own.replace((buffer.clone(), indices.to_vec()));
        let value = self.expression(buffer.dtype, 2);
        self.scope.own = outer;
        let read = || prim::load(&counter, [0]);
        let body = Stmt::seq([
            Stmt::store(buffer, indices.iter().cloned(), value),
            Stmt::store(&counter, [0], read() + prim::int_of(i32, 1)),
        ]);
        let again = Ref::new(While { condition: prim::lt(read(), count), body }).into();
        Stmt::seq([Stmt::alloc(&counter), Stmt::store(&counter, [0], prim::int_of(i32, 0)), first, again])
    }

    /// An operator that may combine elements of a type in order.
    pub(super) fn combiner(&mut self, dtype: DataType) -> BinaryOp {
        use BinaryOp::*;
        let ops: &[BinaryOp] = if dtype.is_bool() { &[Or, And] } else { &[Add, Max, Min, Sub, Mul] };
        let op = *self.random.pick(ops).unwrap_or(&Max);
        self.fused |= op == Mul && dtype.is_float() && dtype.bits > 16;
        op
    }

    /// A first value, and a serial loop that combines others with it.
    fn reduction(&mut self, buffer: &Ref<Buffer>, indices: &[PrimExpr]) -> Stmt {
        let dim = self.dims[self.random.below(self.dims.len())].clone();
        let var = Var::prim(self.name("r"), self.index);
        let first = Stmt::store(buffer, indices.iter().cloned(), self.leaf(buffer.dtype));
        self.scope.counters.push(Counter { value: PrimExpr::from(&var), dim: dim.clone() });
        let (op, value) = (self.combiner(buffer.dtype), self.expression(buffer.dtype, 2));
        self.scope.counters.pop();
        let own = prim::load(buffer, indices.iter().cloned());
        let step = Stmt::store(buffer, indices.iter().cloned(), prim::binary(op, own, value));
        let kind = if self.random.one_in(4) { ForKind::Unrolled } else { ForKind::Serial };
        Stmt::seq([first, self.loops(vec![Loop { var, min: 0, extent: dim.expr, kind }], step)])
    }

    /// The same by blocks: axes, a predicate, an initial value.
    fn in_blocks(&mut self, known: &Known) -> Stmt {
        let nest = self.nest(known, true);
        let name = self.name("block");
        let axis = |dim: &Dim, kind, var: Ref<Var>| {
            Ref::new(IterVar { var, min: prim::int_of(self.index, 0), extent: dim.expr.clone(), kind })
        };
        let mut iter_vars: Vec<Ref<IterVar>> = known
            .shape
            .iter()
            .enumerate()
            .map(|(d, dim)| axis(dim, IterKind::Spatial, Var::prim(format!("v{d}"), self.index)))
            .collect();
        let mut iter_values = nest.indices.clone();
        let indices: Vec<PrimExpr> = iter_vars.iter().map(|i| PrimExpr::from(&i.var)).collect();
        let mut loops = nest.loops;
        let reduced = self.random.one_in(2).then(|| self.dims[self.random.below(self.dims.len())].clone());
        if let Some(dim) = &reduced {
            let (var, of_loop) = (Var::prim("vr", self.index), Var::prim(format!("r_{name}"), self.index));
            iter_vars.push(axis(dim, IterKind::Reduce, var));
            iter_values.push(PrimExpr::from(&of_loop));
            loops.push(Loop { var: of_loop, min: 0, extent: dim.expr.clone(), kind: ForKind::Serial });
        }
        let outer = std::mem::take(&mut self.scope.counters);
        let dims = known.shape.iter().chain(&reduced);
        self.scope.counters = iter_vars
            .iter()
            .zip(dims)
            .map(|(i, dim)| Counter { value: PrimExpr::from(&i.var), dim: dim.clone() })
            .collect();
        let buffer = &known.buffer;
        let store = |value: PrimExpr| Stmt::store(buffer, indices.iter().cloned(), value);
        let (init, body) = match &reduced {
            Some(_) => {
                let (op, value) = (self.combiner(buffer.dtype), self.expression(buffer.dtype, 2));
                let own = prim::load(buffer, indices.iter().cloned());
                self.scope.counters.pop();
                (Some(store(self.leaf(buffer.dtype))), store(prim::binary(op, own, value)))
            }
            None => (None, self.element_statement(buffer, &indices, 1)),
        };
        self.scope.counters = outer;
        let block = self.block(name, iter_vars, Vec::new(), init, body);
        let realize = SBlockRealize { iter_values, predicate: nest.guard, block };
        self.loops(loops, Ref::new(realize).into())
    }

    fn block(
        &self,
        name: String,
        iter_vars: Vec<Ref<IterVar>>,
        match_buffers: Vec<Ref<MatchBufferRegion>>,
        init: Option<Stmt>,
        body: Stmt,
    ) -> Ref<SBlock> {
        let (reads, writes, alloc_buffers, annotations) = (vec![], vec![], vec![], Default::default());
        Ref::new(SBlock { iter_vars, reads, writes, name, alloc_buffers, match_buffers, annotations, init, body })
    }

    /// Each element from the one before it along the last dimension.
    fn scan(&mut self, known: &Known) -> Stmt {
        if known.shape.is_empty() {
            return self.in_loops(known);
        }
        let nest = self.nest(known, false);
        let indices = nest.indices.clone();
        self.under(nest, known, |this| {
            let dtype = known.buffer.dtype;
            let mut before = indices.clone();
            let one = prim::int_of(this.index, 1);
            if let Some(last) = before.last_mut() {
                *last = &*last - one;
            }
            let first = this.leaf(dtype);
            let has_previous = prim::gt(indices[indices.len() - 1].clone(), prim::int_of(this.index, 0));
            let previous = prim::if_then_else(has_previous, prim::load(&known.buffer, before), first);
            let (op, value) = (this.combiner(dtype), this.expression(dtype, 2));
            Stmt::store(&known.buffer, indices.iter().cloned(), prim::binary(op, previous, value))
        })
    }

    /// Stores to any places, one after the other, by what is read at any others.
    fn scatter(&mut self, known: &Known) -> Stmt {
        let outer = std::mem::take(&mut self.scope);
        self.readable.push(known.clone());
        let dim = self.dims[self.random.below(self.dims.len())].clone();
        let var = Var::prim(self.name("p"), self.index);
        self.scope.counters.push(Counter { value: PrimExpr::from(&var), dim: dim.clone() });
        let indices: Vec<PrimExpr> = known.shape.iter().map(|d| self.index_into(d)).collect();
        let value = self.expression(known.buffer.dtype, 2);
        let mut store = Stmt::store(&known.buffer, indices, value);
        if self.random.one_in(3) {
            store = Stmt::when(self.condition(), store);
        }
        self.readable.pop();
        self.scope = outer;
        self.loops(vec![Loop { var, min: 0, extent: dim.expr, kind: ForKind::Serial }], store)
    }

    /// Elements reached by other names: parts that a block sees, transposed and shifted views.
    fn through_views(&mut self, known: &Known) -> Stmt {
        match known.shape.as_slice() {
            [rows, columns] if self.random.one_in(2) => {
                let view = view_of(
                    &known.buffer,
                    vec![columns.expr.clone(), rows.expr.clone()],
                    vec![prim::int_of(self.index, 1), columns.expr.clone()],
                );
                let transposed = Known { buffer: Ref::new(view), shape: vec![columns.clone(), rows.clone()] };
                self.in_loops(&transposed)
            }
            [only] if only.size > 1 && only.expr.as_int().is_some() => {
                // The first element by its name, those behind it by a view that begins there.
                let rest = Dim { size: only.size - 1, expr: prim::int_of(self.index, only.size - 1) };
                let mut view = view_of(&known.buffer, vec![rest.expr.clone()], vec![]);
                view.elem_offset = prim::int_of(self.index, 1);
                let first = self.element_statement(&known.buffer, &[prim::int_of(self.index, 0)], 0);
                Stmt::seq([first, self.in_loops(&Known { buffer: Ref::new(view), shape: vec![rest] })])
            }
            [.., last] if known.shape.len() > 1 => {
                let last = last.clone();
                self.rows(known, &last)
            }
            _ => self.in_loops(known),
        }
    }

    /// Each row as a buffer of its own.
    fn rows(&mut self, known: &Known, last: &Dim) -> Stmt {
        let outer = Known { buffer: known.buffer.clone(), shape: known.shape[..known.shape.len() - 1].to_vec() };
        let nest = self.nest(&outer, true);
        let name = self.name("row");
        let (stride, offset) = (Var::prim("s0", self.index), Var::prim("offset", self.index));
        let mut view = view_of(&known.buffer, vec![last.expr.clone()], vec![PrimExpr::from(&stride)]);
        view.name = name.clone();
        view.data = Var::new(name.clone(), known.buffer.data.ty.clone());
        view.elem_offset = PrimExpr::from(&offset);
        let row = Known { buffer: Ref::new(view), shape: vec![last.clone()] };
        let axes: Vec<Ref<Var>> = (0..outer.shape.len()).map(|d| Var::prim(format!("v{d}"), self.index)).collect();
        let iter_vars = axes.iter().zip(&outer.shape).map(|(var, dim)| {
            let (min, extent) = (prim::int_of(self.index, 0), dim.expr.clone());
            Ref::new(IterVar { var: var.clone(), min, extent, kind: IterKind::Spatial })
        });
        let iter_vars: Vec<Ref<IterVar>> = iter_vars.collect();
        let range = |min: PrimExpr, extent: PrimExpr| Ref::new(Range { min, extent });
        let mut region: Vec<Ref<Range>> =
            axes.iter().map(|var| range(PrimExpr::from(var), prim::int_of(self.index, 1))).collect();
        region.push(range(prim::int_of(self.index, 0), last.expr.clone()));
        let source = Ref::new(BufferRegion { buffer: known.buffer.clone(), region });
        let matched = Ref::new(MatchBufferRegion { buffer: row.buffer.clone(), source });
        let before = std::mem::take(&mut self.scope.counters);
        self.scope.counters = axes
            .iter()
            .zip(&outer.shape)
            .map(|(var, dim)| Counter { value: PrimExpr::from(var), dim: dim.clone() })
            .collect();
        let body = self.in_loops(&row);
        self.scope.counters = before;
        let block = self.block(name, iter_vars, vec![matched], None, body);
        let realize = SBlockRealize { iter_values: nest.indices.clone(), predicate: nest.guard, block };
        self.loops(nest.loops, Ref::new(realize).into())
    }
}

/// Another view of a buffer's memory.
pub(super) fn view_of(buffer: &Buffer, shape: Vec<PrimExpr>, strides: Vec<PrimExpr>) -> Buffer {
    Buffer {
        name: format!("{}_view", buffer.name),
        data: buffer.data.clone(),
        dtype: buffer.dtype,
        shape,
        strides,
        elem_offset: buffer.elem_offset.clone(),
        scope: buffer.scope.clone(),
        alignment: buffer.alignment,
        offset_factor: buffer.offset_factor,
        layout: relaxide_ir::layout::Placement::Strided,
        producer: None,
    }
}
