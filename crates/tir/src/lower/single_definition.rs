//! Every variable is defined once.
//!
//! Written by hand or put together by other passes, a kernel may use one loop variable, bound name or scratch buffer in
//! several places. Later definitions are renamed, so that passes may keep what they know of a variable.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{Let, PrimExpr, PrimMutator};
use relaxide_ir::{Buffer, Var};

use super::{LowerError, kernel_pass};
use crate::PrimFunc;
use crate::functor::StmtMutator;

/// The full name of the pass.
pub(super) const PASS: PassInfo =
    kernel_pass!("tirx.transform.ConvertSSA", "Renames variables that are defined more than once.", define_once);

/// The same for kernels in block form.
pub(super) const SCHEDULABLE: PassInfo = kernel_pass!(
    "s_tir.transform.ConvertSSA",
    "Renames variables of kernels in block form that are defined more than once.",
    define_once
);

/// A kernel in which every variable and every scratch buffer has one definition.
pub(super) fn define_once(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    let seen = func.params.iter().cloned().collect();
    let mut rename = Rename { seen, vars: HashMap::new(), buffers: HashMap::new() };
    Ok(func.with_body(rename.mutate_stmt(&func.body)))
}

struct Rename {
    seen: HashSet<Ref<Var>>,
    /// What a variable is called since its latest definition.
    vars: HashMap<Ref<Var>, Ref<Var>>,
    buffers: HashMap<Ref<Buffer>, Ref<Buffer>>,
}

impl Rename {
    fn moved(&mut self, buffer: &Ref<Buffer>, data: Ref<Var>) -> Ref<Buffer> {
        let shape = self.mutate_prims(&buffer.shape);
        let strides = self.mutate_prims(&buffer.strides);
        let elem_offset = self.mutate_prim(&buffer.elem_offset);
        if data == buffer.data
            && shape == buffer.shape
            && strides == buffer.strides
            && elem_offset == buffer.elem_offset
        {
            return buffer.clone();
        }
        if let Some(known) = self.buffers.get(buffer)
            && (&known.data, &known.shape, &known.strides, &known.elem_offset)
                == (&data, &shape, &strides, &elem_offset)
        {
            return known.clone();
        }
        let moved = Ref::new(Buffer {
            name: buffer.name.clone(),
            data,
            dtype: buffer.dtype,
            shape,
            strides,
            elem_offset,
            scope: buffer.scope.clone(),
            alignment: buffer.alignment,
            offset_factor: buffer.offset_factor,
            layout: buffer.layout.mapped(&mut |e| self.mutate_prim(e)),
            producer: None,
        });
        self.buffers.insert(buffer.clone(), moved.clone());
        moved
    }
}

impl PrimMutator for Rename {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Var(var) => self.vars.get(var).map_or_else(|| e.clone(), PrimExpr::from),
            PrimExpr::Let(n) => {
                let value = self.mutate_prim(&n.value);
                let var = self.mutate_var_def(&n.var);
                let body = self.mutate_prim(&n.body);
                if var == n.var && value == n.value && body == n.body {
                    return e.clone();
                }
                Ref::new(Let { var, value, body }).into()
            }
            _ => self.remake_prim(e),
        }
    }

    fn mutate_buffer_use(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
        let data = self.vars.get(&buffer.data).unwrap_or(&buffer.data).clone();
        self.moved(buffer, data)
    }
}

impl StmtMutator for Rename {
    fn mutate_var_def(&mut self, var: &Ref<Var>) -> Ref<Var> {
        if self.seen.insert(var.clone()) {
            self.vars.remove(var);
            return var.clone();
        }
        let fresh = Var::new(var.name.clone(), var.ty.clone());
        self.vars.insert(var.clone(), fresh.clone());
        fresh
    }

    fn mutate_buffer_def(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
        let data = self.mutate_var_def(&buffer.data);
        self.moved(buffer, data)
    }
}
