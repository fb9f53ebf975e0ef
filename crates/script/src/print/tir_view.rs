//! Buffers over memory that exists.
//!
//! A view that differs from a buffer by its shape alone, or by its element type alone, is written as a method of that buffer;
//! everything else as a declaration over an address.

use relaxide_ffi::{Ref, structural_equal};
use relaxide_ir::{Buffer, PrimExpr};
use relaxide_tir::{DeclBuffer, Stmt};

use super::Printer;
use super::tir::BufferForm;
use crate::number::quoted;

impl Printer<'_> {
    /// A declared buffer.
    pub(super) fn declaration(&mut self, n: &Ref<DeclBuffer>) {
        let text = match self.viewed(n) {
            Some((owner, arguments)) => format!("{}.view({arguments})", self.buffer(&owner)),
            None => {
                let data = self.prim(&n.data);
                format!("T.decl_buffer({})", self.buffer_type_over(&n.buffer, BufferForm::Allocation, Some(data)))
            }
        };
        let name = self.define_buffer(&n.buffer);
        self.line(format!("{name} = {text}"));
        self.mark_last(&Stmt::Decl(n.clone()));
    }

    /// The buffer of which it is a view, and what the view changes.
    fn viewed(&mut self, n: &DeclBuffer) -> Option<(Ref<Buffer>, String)> {
        let view = &n.buffer;
        let owner = n.data.as_var().and_then(|data| self.owners.get(data)).cloned()?;
        let plain = view.strides.is_empty() && view.elem_offset.is_int(0) && view.alignment == 64;
        if !plain || !owner.strides.is_empty() || owner.scope != view.scope || view.shape.is_empty() {
            return None;
        }
        let same_shape = same(&view.shape, &owner.shape);
        if view.dtype == owner.dtype {
            return (!same_shape).then(|| (owner, self.prims(&view.shape)));
        }
        resized(&view.shape, view, &owner).then(|| (owner, quoted(&view.dtype.to_string())))
    }
}

fn same(a: &[PrimExpr], b: &[PrimExpr]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| structural_equal(a, b, true).is_ok())
}

/// Whether a shape is that of a buffer with so many more or fewer elements in the last dimension as they are smaller or larger.
fn resized(shape: &[PrimExpr], view: &Buffer, owner: &Buffer) -> bool {
    let bits = |b: &Buffer| i64::from(b.dtype.bits) * i64::from(b.dtype.lanes);
    if bits(view) == bits(owner) {
        return same(shape, &owner.shape);
    }
    let Some(((last, outer), (old_last, old_outer))) = shape.split_last().zip(owner.shape.split_last()) else {
        return false;
    };
    let (Some(new), Some(old)) = (last.as_int(), old_last.as_int()) else { return false };
    last.dtype() == old_last.dtype()
        && same(outer, old_outer)
        && new.checked_mul(bits(view)) == old.checked_mul(bits(owner))
}
