//! Every variable is defined once.
//!
//! Written by hand or put together by other passes, a kernel may use one loop variable, bound name or scratch buffer in
//! several places. Later definitions are renamed, so that passes may keep what they know of a variable. Two kernels of a
//! module share none either: the later one gets parameters, dimensions and variables of its own.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::pass::{PassInfo, PassResult};
use relaxide_ir::prim::{Let, PrimExpr, PrimMutator, free_vars};
use relaxide_ir::{BaseFunc, Buffer, IRModule, Var};

use super::LowerError;
use crate::PrimFunc;
use crate::functor::StmtMutator;

/// The full name of the pass.
pub(super) const PASS: PassInfo =
    PassInfo::new("tirx.transform.ConvertSSA", "Renames variables that are defined more than once.", |module, _, _| {
        in_module(module)
    });

/// The same for kernels in block form.
pub(super) const SCHEDULABLE: PassInfo = PassInfo::new(
    "s_tir.transform.ConvertSSA",
    "Renames variables of kernels in block form that are defined more than once.",
    |module, _, _| in_module(module),
);

fn in_module(mut module: IRModule) -> PassResult {
    let kernels: Vec<(String, Ref<PrimFunc>)> =
        module.functions_of::<PrimFunc>().map(|(name, kernel)| (name.to_string(), kernel)).collect();
    let mut seen = HashSet::new();
    for (name, kernel) in kernels {
        let made = define_after(&kernel, &mut seen);
        module.functions.insert(name, BaseFunc::from(Ref::new(made)));
    }
    Ok(module)
}

/// A kernel that defines nothing that was seen, and then all of it is seen too.
fn define_after(func: &PrimFunc, seen: &mut HashSet<Ref<Var>>) -> PrimFunc {
    let mut rename = Rename { seen: std::mem::take(seen), vars: HashMap::new(), buffers: HashMap::new() };
    let mut own: HashSet<Ref<Var>> = func.params.iter().cloned().collect();
    let params = func.params.iter().map(|param| rename.mutate_var_def(param)).collect();
    for buffer in func.buffers.iter().flatten() {
        let parts = buffer.shape.iter().chain(&buffer.strides).chain([&buffer.elem_offset]);
        for var in parts.flat_map(free_vars).chain([buffer.data.clone()]) {
            if own.insert(var.clone()) {
                rename.mutate_var_def(&var);
            }
        }
    }
    let buffers = func.buffers.iter().map(|b| b.as_ref().map(|b| rename.mutate_buffer_use(b))).collect();
    let body = rename.mutate_stmt(&func.body);
    *seen = rename.seen;
    PrimFunc { params, buffers, body, ..func.clone() }
}

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
