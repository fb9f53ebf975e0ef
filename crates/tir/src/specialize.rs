//! A kernel with values for its parameters.
//!
//! A symbolic dimension or a scalar gets an expression; where it is a parameter, the kernel takes it no more. Buffers whose
//! shapes mention it become buffers of the new shape over the same memory.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::prim::{PrimExpr, PrimMutator, VarMap, free_vars, substitute};
use relaxide_ir::{Buffer, Var};

use crate::{PrimFunc, StmtMutator};

/// The kernel with expressions in the place of variables of its signature.
pub fn specialize(func: &PrimFunc, values: &VarMap) -> PrimFunc {
    let mut rewrite = Specialize { values, buffers: HashMap::new() };
    let (mut params, mut buffers) = (Vec::new(), Vec::new());
    for (param, buffer) in func.params.iter().zip(&func.buffers) {
        if values.contains_key(param) {
            continue;
        }
        params.push(param.clone());
        buffers.push(buffer.as_ref().map(|buffer| rewrite.mutate_buffer_use(buffer)));
    }
    let body = rewrite.mutate_stmt(&func.body);
    PrimFunc { params, buffers, body, ret_type: func.ret_type.clone(), attrs: func.attrs.clone() }
}

struct Specialize<'a> {
    values: &'a VarMap,
    buffers: HashMap<Ref<Buffer>, Ref<Buffer>>,
}

impl Specialize<'_> {
    fn mentioned(&self, e: &PrimExpr) -> bool {
        free_vars(e).iter().any(|var: &Ref<Var>| self.values.contains_key(var))
    }
}

impl PrimMutator for Specialize<'_> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Var(var) => self.values.get(var).cloned().unwrap_or_else(|| e.clone()),
            _ => self.remake_prim(e),
        }
    }

    fn mutate_buffer_use(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
        if let Some(known) = self.buffers.get(buffer) {
            return known.clone();
        }
        let dims = buffer.shape.iter().chain(&buffer.strides).chain([&buffer.elem_offset]);
        let made = match dims.into_iter().any(|dim| self.mentioned(dim)) {
            false => buffer.clone(),
            true => {
                let all = |list: &[PrimExpr]| list.iter().map(|e| substitute(e, self.values)).collect();
                Ref::new(Buffer {
                    name: buffer.name.clone(),
                    data: buffer.data.clone(),
                    dtype: buffer.dtype,
                    shape: all(&buffer.shape),
                    strides: all(&buffer.strides),
                    elem_offset: substitute(&buffer.elem_offset, self.values),
                    scope: buffer.scope.clone(),
                    alignment: buffer.alignment,
                    offset_factor: buffer.offset_factor,
                    layout: buffer.layout.mapped(&mut |e| substitute(e, self.values)),
                    producer: buffer.producer.clone(),
                })
            }
        };
        self.buffers.insert(buffer.clone(), made.clone());
        made
    }
}

impl StmtMutator for Specialize<'_> {}

#[cfg(test)]
mod tests {
    use relaxide_ffi::DataType;
    use relaxide_ir::Type;

    use super::*;
    use crate::Stmt;

    #[test]
    fn a_dimension_becomes_a_number_in_signature_and_body() {
        let n = Var::new("n", Type::prim(DataType::int(64)));
        let a = Buffer::new("A", DataType::float(32), [PrimExpr::Var(n.clone())]);
        let body = Stmt::store(&a, [PrimExpr::Var(n.clone()) - 1], PrimExpr::from(0));
        let func = PrimFunc::over_buffers(&[a], std::slice::from_ref(&n), body);
        let eight = specialize(&func, &VarMap::from([(n, PrimExpr::from(8))]));
        assert_eq!(eight.params.len(), 1);
        let Some(buffer) = &eight.buffers[0] else { panic!("the buffer is gone") };
        assert!(buffer.shape[0].is_int(8));
        let Stmt::Store(store) = &eight.body else { panic!("no store") };
        assert!(store.buffer == *buffer && store.indices[0].is_int(7));
    }
}
