//! Early ends in random programs: of loops, of iterations, of the kernel.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{Buffer, Var};

use super::{Counter, ProgramWriter};
use crate::stmt::*;

impl ProgramWriter<'_> {
    /// An early exit out of the innermost loop, as a node or as the call that stands for it.
    fn loop_exit(&mut self) -> Stmt {
        let void = DataType::void();
        match self.random.below(4) {
            0 => Stmt::break_loop(),
            1 => Stmt::continue_loop(),
            2 => Stmt::evaluate(prim::call(void, "tirx.break_loop", vec![])),
            _ => Stmt::evaluate(prim::call(void, "tirx.continue_loop", vec![])),
        }
    }

    /// An early exit out of the innermost loop under a condition, one side of a choice, or, now and then, under none.
    pub(super) fn sometimes_early_exit(&mut self) -> Stmt {
        let (condition, exit) = (self.condition(), self.loop_exit());
        match self.random.below(6) {
            0 => Stmt::if_else(condition, exit, self.loop_exit()),
            1 => Stmt::if_else(condition, Stmt::nop(), exit),
            _ => Stmt::when(condition, exit),
        }
    }

    /// An end of the kernel under a condition.
    pub(super) fn sometimes_return(&mut self) -> Stmt {
        let value = prim::int(self.random.between(-5, 5));
        let condition = self.condition();
        Stmt::when(condition, if self.random.one_in(2) { Stmt::ret(value) } else { prim_return(value) })
    }

    /// A first value, and a loop that combines others with it until something ends it.
    pub(super) fn search(&mut self, buffer: &Ref<Buffer>, indices: &[PrimExpr]) -> Stmt {
        let dim = self.dims[self.random.below(self.dims.len())].clone();
        let var = Var::prim(self.name("r"), self.index);
        let first = Stmt::store(buffer, indices.iter().cloned(), self.leaf(buffer.dtype));
        self.scope.counters.push(Counter { value: PrimExpr::from(&var), dim: dim.clone() });
        let outer = self.scope.own.replace((buffer.clone(), indices.to_vec()));
        let before = self.random.one_in(2).then(|| self.sometimes_early_exit());
        let (op, value) = (self.combiner(buffer.dtype), self.expression(buffer.dtype, 2));
        let own = prim::load(buffer, indices.iter().cloned());
        let step = Stmt::store(buffer, indices.iter().cloned(), prim::binary(op, own, value));
        // Memory of an iteration that may be left.
        let scratch = self.random.one_in(3).then(|| {
            let name = self.name("J");
            let scratch = self.new_buffer(name, buffer.dtype, vec![dim.clone()], "global");
            let at = PrimExpr::from(&var);
            let fill = Stmt::store(&scratch.buffer, [at.clone()], self.leaf(buffer.dtype));
            let again = prim::load(&scratch.buffer, [at]);
            let copy = Stmt::store(buffer, indices.iter().cloned(), again);
            [Stmt::alloc(&scratch.buffer), fill, self.sometimes_early_exit(), copy]
        });
        let after = self.random.one_in(2).then(|| self.sometimes_early_exit());
        self.scope.own = outer;
        self.scope.counters.pop();
        let body = Stmt::seq(before.into_iter().chain([step]).chain(scratch.into_iter().flatten()).chain(after));
        let kind = if self.random.one_in(3) { ForKind::Unrolled } else { ForKind::Serial };
        let min = prim::int_of(self.index, 0);
        let search = For::new(kind, var, min, dim.expr, body);
        Stmt::seq([first, Ref::new(search).into()])
    }

    /// A loop without an end of its own, which an early exit ends.
    pub(super) fn until_left(&mut self, buffer: &Ref<Buffer>, indices: &[PrimExpr]) -> Stmt {
        let i32 = DataType::int(32);
        let counter = Buffer::scoped(self.name("W"), i32, [1], "local");
        let count = prim::int_of(i32, self.random.between(0, 4));
        let first = Stmt::store(buffer, indices.iter().cloned(), self.expression(buffer.dtype, 2));
        let outer = self.scope.own.replace((buffer.clone(), indices.to_vec()));
        let value = self.expression(buffer.dtype, 2);
        let skip = self.condition();
        self.scope.own = outer;
        let read = || prim::load(&counter, [0]);
        let body = Stmt::seq([
            Stmt::store(&counter, [0], read() + prim::int_of(i32, 1)),
            Stmt::when(prim::gt(read(), count), Stmt::break_loop()),
            Stmt::when(skip, Stmt::continue_loop()),
            Stmt::store(buffer, indices.iter().cloned(), value),
        ]);
        let always = prim::ge(read(), prim::int_of(i32, 0));
        let again = Ref::new(While { condition: always, body }).into();
        Stmt::seq([Stmt::alloc(&counter), Stmt::store(&counter, [0], prim::int_of(i32, 0)), first, again])
    }
}

fn prim_return(value: PrimExpr) -> Stmt {
    Stmt::evaluate(prim::call(value.dtype(), "tirx.ret", vec![value]))
}
