//! Statements.

use relaxide_ffi::Ref;
use relaxide_ir::Var;

use super::memory::View;
use super::scalar::{Scalar, ScalarOrLanes};
use super::threads::{is_thread, waits};
use super::{Interp, InterpError, Result};
use crate::early_exit::EarlyExit;
use crate::stmt::*;

/// Where execution goes on behind a statement.
pub(super) enum Flow {
    /// With the next statement.
    Next,
    /// Behind the innermost loop.
    Break,
    /// At the next iteration of the innermost loop.
    Continue,
    /// At the end of the kernel, with its result.
    Return(Option<Scalar>),
}

impl Interp {
    /// Executes the body of a kernel; its result, if it returns one.
    pub(super) fn exec_func(&mut self, body: &Stmt) -> Result<Option<Scalar>> {
        match self.exec(body)? {
            Flow::Next => Ok(None),
            Flow::Return(value) => Ok(value),
            Flow::Break | Flow::Continue => {
                Err(InterpError::Malformed("an early exit outside of any loop".to_string()))
            }
        }
    }

    pub(super) fn exec(&mut self, stmt: &Stmt) -> Result<Flow> {
        if let Some(exit) = stmt.early_exit() {
            return self.exec_early_exit(exit);
        }
        match stmt {
            Stmt::For(n) => return self.exec_for(n),
            Stmt::While(n) => {
                while self.eval_bool(&n.condition, 0)? {
                    match self.exec(&n.body)? {
                        Flow::Next | Flow::Continue => {}
                        Flow::Break => break,
                        done @ Flow::Return(_) => return Ok(done),
                    }
                }
            }
            Stmt::Seq(n) => {
                for stmt in &n.seq {
                    match self.exec(stmt)? {
                        Flow::Next => {}
                        elsewhere => return Ok(elsewhere),
                    }
                }
            }
            Stmt::If(n) => {
                if self.eval_bool(&n.condition, 0)? {
                    return self.exec(&n.then_case);
                }
                if let Some(other) = &n.else_case {
                    return self.exec(other);
                }
            }
            Stmt::Store(n) => self.exec_store(n)?,
            Stmt::Bind(n) if n.var.dtype().is_handle() => self.bind_pointer(&n.var, &n.value)?,
            Stmt::Bind(n) => {
                let value = self.eval(&n.value)?;
                self.vars.insert(n.var.clone(), value);
            }
            Stmt::Alloc(n) => self.allocate(&n.buffer)?,
            Stmt::Evaluate(n) => drop(self.eval(&n.value)?),
            Stmt::Assert(n) => {
                if !self.eval_bool(&n.condition, 0)? {
                    let mut message = n.message.clone();
                    for (i, number) in n.numbers.iter().enumerate() {
                        message = message.replace(&format!("{{{i}}}"), &self.eval_int(number)?.to_string());
                    }
                    return Err(InterpError::Assertion { kind: n.error_kind.clone(), message });
                }
            }
            Stmt::Block(n) => return self.exec_block(n),
            Stmt::Attr(n) => return self.exec(&n.body),
            Stmt::Decl(n) => {
                self.views.remove(&n.buffer);
                if !n.is_view() {
                    self.bind_pointer(&n.buffer.data, &n.data)?;
                }
            }
            // EarlyExits, which were executed above.
            Stmt::Break(_) | Stmt::Continue(_) | Stmt::Return(_) => {}
            Stmt::ScopeIds(_) | Stmt::Tile(_) => return Err(InterpError::Tile { statement: stmt.to_string() }),
        }
        Ok(Flow::Next)
    }

    /// Gives a variable a value. Most have one already.
    pub(super) fn set(&mut self, var: &Ref<Var>, value: ScalarOrLanes) {
        match self.vars.get_mut(var) {
            Some(old) => *old = value,
            None => drop(self.vars.insert(var.clone(), value)),
        }
    }

    fn exec_early_exit(&mut self, exit: EarlyExit<'_>) -> Result<Flow> {
        Ok(match exit {
            EarlyExit::Break => Flow::Break,
            EarlyExit::Continue => Flow::Continue,
            EarlyExit::Return(None) => Flow::Return(None),
            EarlyExit::Return(Some(value)) => Flow::Return(Some(self.eval_at(value, 0)?)),
        })
    }

    fn exec_for(&mut self, n: &For) -> Result<Flow> {
        if is_thread(n) && waits(&n.body) {
            return self.exec_team(n).map(|()| Flow::Next);
        }
        let dtype = n.var.dtype();
        let (min, extent) = (self.eval_int(&n.min)?, self.eval_int(&n.extent)?);
        for i in 0..extent {
            let i = if n.kind == ForKind::Parallel { extent - 1 - i } else { i };
            let value = Scalar::Int(min.wrapping_add(i)).wrapped(dtype);
            self.set(&n.var, ScalarOrLanes::One(value));
            match self.exec(&n.body)? {
                Flow::Next | Flow::Continue => {}
                Flow::Break => break,
                done @ Flow::Return(_) => return Ok(done),
            }
        }
        Ok(Flow::Next)
    }

    fn exec_store(&mut self, n: &BufferStore) -> Result<()> {
        let within = usize::from(n.buffer.dtype.lanes.max(1));
        let index_lanes = n.indices.last().map_or(1, |i| usize::from(i.dtype().lanes.max(1)));
        let lanes = usize::from(n.value.dtype().lanes.max(1));
        if n.value.dtype().element() != n.buffer.dtype.element() || lanes != index_lanes * within {
            let (value, buffer) = (n.value.dtype(), n.buffer.dtype);
            let message = format!("{value} stored to {index_lanes} elements of `{}` of type {buffer}", n.buffer.name);
            return Err(InterpError::Malformed(message));
        }
        // All lanes are computed before any is stored, as a vector instruction does it.
        let value = self.eval(&n.value)?;
        self.store_value(n, value)
    }

    /// Stores a value that is the store's own.
    pub(super) fn store_value(&mut self, n: &BufferStore, value: ScalarOrLanes) -> Result<()> {
        let within = usize::from(n.buffer.dtype.lanes.max(1));
        let index_lanes = n.indices.last().map_or(1, |i| usize::from(i.dtype().lanes.max(1)));
        let view = self.view_of(&n.buffer)?;
        if n.predicate.is_none() && index_lanes > 1 {
            let indices = self.indices_of_lanes(&view, &n.indices, index_lanes)?;
            let mut at = self.spare.pop().unwrap_or_default();
            for outer in 0..index_lanes {
                indices.lane(outer, &mut at);
                self.store_element(&view, &at, outer * within, &value)?;
            }
            self.spare.push(at);
            return Ok(());
        }
        for outer in 0..index_lanes {
            if let Some(predicate) = &n.predicate
                && !self.eval_bool(predicate, outer)?
            {
                continue;
            }
            let indices = self.indices_at(&view, &n.indices, outer)?;
            self.store_element(&view, &indices, outer * within, &value)?;
            self.spare.push(indices);
        }
        Ok(())
    }

    /// Stores one element, whose lanes are those of a value from some on.
    fn store_element(&mut self, view: &View, indices: &[i64], first: usize, value: &ScalarOrLanes) -> Result<()> {
        for lane in 0..view.lanes() {
            self.memory.store(view, indices, lane, value.lane(first + lane)?)?;
        }
        Ok(())
    }

    fn exec_block(&mut self, n: &SBlockRealize) -> Result<Flow> {
        let block = &n.block;
        if n.iter_values.len() != block.iter_vars.len() {
            return Err(InterpError::Malformed(format!("block `{}` has axes without a value", block.name)));
        }
        if !self.eval_bool(&n.predicate, 0)? {
            return Ok(Flow::Next);
        }
        let values = n.iter_values.iter().map(|v| self.eval(v)).collect::<Result<Vec<_>>>()?;
        let mut first = true;
        for (iter, value) in block.iter_vars.iter().zip(values) {
            if iter.kind == IterKind::Reduce {
                first &= value.lane(0)?.as_int() == Some(self.eval_int(&iter.min)?);
            }
            self.set(&iter.var, value);
        }
        for buffer in &block.alloc_buffers {
            self.allocate(buffer)?;
        }
        for matched in &block.match_buffers {
            self.match_buffer(matched)?;
        }
        if let (true, Some(init)) = (first, &block.init) {
            self.exec(init)?;
        }
        self.exec(&block.body)
    }

    /// Lets a buffer stand for a part of another.
    fn match_buffer(&mut self, matched: &Ref<MatchBufferRegion>) -> Result<()> {
        let source = self.view_of(&matched.source.buffer)?;
        let mut begin = Vec::new();
        let mut extents = Vec::new();
        for range in &matched.source.region {
            begin.push(self.eval_int(&range.min)?);
            extents.push(self.eval_int(&range.extent)?);
        }
        let buffer = &matched.buffer;
        let malformed = || InterpError::Malformed(format!("`{}` does not match its region", buffer.name));
        let kept = extents.len().checked_sub(buffer.ndim()).ok_or_else(malformed)?;
        let part = source.part(&begin, extents[kept..].to_vec()).ok_or_else(malformed)?;
        // Strides and offset are the block's own; a dimension may also be a variable of the kernel.
        for (dim, size) in buffer.shape.iter().zip(&part.shape) {
            if let Some(var) = dim.as_var() {
                self.vars.entry(var.clone()).or_insert(ScalarOrLanes::One(Scalar::Int(*size)));
            }
        }
        let own = buffer.strides.iter().zip(&part.strides).chain([(&buffer.elem_offset, &part.offset)]);
        for (e, value) in own {
            if let Some(var) = e.as_var() {
                self.vars.insert(var.clone(), ScalarOrLanes::One(Scalar::Int(*value)));
            }
        }
        self.views.remove(buffer);
        self.memory.alias(buffer, &part);
        let view = self.view_of(buffer)?;
        let moved = view.shape == part.shape && view.offset == part.offset && view.strides == part.strides;
        if moved { Ok(()) } else { Err(malformed()) }
    }
}
