//! A kernel whose indices are of one type.
//!
//! Kernels of computes count in the types of their dimensions. Here dimensions, counters, axes and what is computed of them
//! become integers of the type that is asked for; what is loaded, stored and computed beside keeps its own.

use std::collections::HashMap;

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::prim::{self, Binary, BufferLoad, PrimExpr, PrimMutator};
use relaxide_ir::{Buffer, Var};

use crate::PrimFunc;
use crate::functor::StmtMutator;
use crate::stmt::*;

/// The kernel with indices of an integer type.
pub fn with_index_type(func: &PrimFunc, dtype: DataType) -> PrimFunc {
    let mut cast = Indices { dtype, vars: HashMap::new(), buffers: HashMap::new(), is_index: true };
    let params = func.params.iter().map(|param| cast.var(param)).collect();
    let buffers = func.buffers.iter().map(|b| b.as_ref().map(|b| cast.mutate_buffer_use(b))).collect();
    let body = cast.mutate_stmt(&func.body);
    PrimFunc { params, buffers, body, ..func.clone() }
}

struct Indices {
    dtype: DataType,
    vars: HashMap<Ref<Var>, Ref<Var>>,
    buffers: HashMap<Ref<Buffer>, Ref<Buffer>>,
    /// Whether the expression at hand is an index, not a value.
    is_index: bool,
}

impl Indices {
    fn counts(dtype: DataType) -> bool {
        dtype.lanes == 1 && dtype.is_int()
    }

    /// A counter or a dimension in the type.
    fn var(&mut self, var: &Ref<Var>) -> Ref<Var> {
        if let Some(known) = self.vars.get(var) {
            return known.clone();
        }
        let other = match Self::counts(var.dtype()) && var.dtype() != self.dtype {
            true => Var::prim(var.name.clone(), self.dtype),
            false => var.clone(),
        };
        self.vars.insert(var.clone(), other.clone());
        other
    }

    fn value(&mut self, e: &PrimExpr) -> PrimExpr {
        let outer = std::mem::replace(&mut self.is_index, false);
        let value = self.mutate_prim(e);
        self.is_index = outer;
        value
    }

    fn indices(&mut self, list: &[PrimExpr]) -> Vec<PrimExpr> {
        let outer = std::mem::replace(&mut self.is_index, true);
        let list = list.iter().map(|e| self.mutate_prim(e)).collect();
        self.is_index = outer;
        list
    }

    /// An operation whose operands may have come to be of two types.
    fn operation(&mut self, n: &Binary) -> PrimExpr {
        let (mut a, mut b) = (self.mutate_prim(&n.a), self.mutate_prim(&n.b));
        if a.dtype() != b.dtype() && Self::counts(a.dtype()) && Self::counts(b.dtype()) {
            let wide = if a.dtype().bits > b.dtype().bits { a.dtype() } else { b.dtype() };
            (a, b) = (prim::cast(wide, a), prim::cast(wide, b));
        }
        Ref::new(Binary { op: n.op, a, b }).into()
    }
}

impl PrimMutator for Indices {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Var(var) => PrimExpr::from(&self.var(var)),
            PrimExpr::Int(n) if self.is_index && Self::counts(n.dtype) => prim::int_of(self.dtype, n.value),
            PrimExpr::Binary(n) => self.operation(n),
            PrimExpr::Load(n) => {
                let (buffer, indices) = (self.mutate_buffer_use(&n.buffer), self.indices(&n.indices));
                let predicate = n.predicate.as_ref().map(|p| self.mutate_prim(p));
                let load: PrimExpr = Ref::new(BufferLoad { buffer, indices, predicate }).into();
                if self.is_index && Self::counts(load.dtype()) { prim::cast(self.dtype, load) } else { load }
            }
            PrimExpr::Cast(n) if self.is_index && Self::counts(n.dtype) => {
                let value = self.value(&n.value);
                prim::cast(self.dtype, if value.dtype() == self.dtype { value } else { prim::cast(n.dtype, value) })
            }
            PrimExpr::Call(n) if self.is_index && Self::counts(n.dtype) && n.op != "tirx.if_then_else" => {
                let args = n.args.iter().map(|arg| self.value(arg)).collect();
                prim::cast(self.dtype, prim::call(n.dtype, n.op.clone(), args))
            }
            PrimExpr::Call(n) if n.op == "tirx.if_then_else" => {
                let args = self.mutate_prims(&n.args);
                let dtype = args.last().map_or(n.dtype, PrimExpr::dtype);
                prim::call(dtype, n.op.clone(), args)
            }
            _ => self.remake_prim(e),
        }
    }

    fn mutate_buffer_use(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
        if let Some(known) = self.buffers.get(buffer) {
            return known.clone();
        }
        let outer = std::mem::replace(&mut self.is_index, true);
        let mut other = self.remake_buffer(buffer, buffer.data.clone());
        self.is_index = outer;
        if buffer.elem_offset.is_int(0) {
            other.elem_offset = buffer.elem_offset.clone();
        }
        let other = if other.shape == buffer.shape
            && other.strides == buffer.strides
            && other.elem_offset == buffer.elem_offset
        {
            buffer.clone()
        } else {
            Ref::new(other)
        };
        self.buffers.insert(buffer.clone(), other.clone());
        other
    }
}

impl StmtMutator for Indices {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::Store(n) => {
                let (buffer, indices) = (self.mutate_buffer_use(&n.buffer), self.indices(&n.indices));
                let value = prim::cast(n.value.dtype(), self.value(&n.value));
                let predicate = n.predicate.as_ref().map(|p| self.value(p));
                Ref::new(BufferStore { buffer, value, indices, predicate }).into()
            }
            Stmt::Evaluate(n) => Ref::new(Evaluate { value: self.value(&n.value) }).into(),
            Stmt::Bind(n) => {
                let value = self.value(&n.value);
                let var = self.var(&n.var);
                let dtype = var.dtype();
                Stmt::bind(var, if Self::counts(dtype) { prim::cast(dtype, value) } else { value })
            }
            _ => self.remake_stmt(stmt),
        }
    }

    fn mutate_var_def(&mut self, var: &Ref<Var>) -> Ref<Var> {
        self.var(var)
    }
}
