//! Buffers over memory that exists.
//!
//! A view that differs from a buffer by its shape alone, by its element type alone, or by its layout, is written as a method of that buffer;
//! everything else as a declaration over an address.

use relaxide_ffi::{FreeVars, Ref, structural_equal};
use relaxide_ir::arith::Analyzer;
use relaxide_ir::layout::{Layout, Placement};
use relaxide_ir::{Buffer, PrimExpr, prim};
use relaxide_tir::{DeclBuffer, Stmt};

use super::Printer;
use super::tir::BufferForm;
use crate::number::quoted;

impl Printer<'_> {
    /// A declared buffer.
    pub(super) fn declaration(&mut self, n: &Ref<DeclBuffer>) {
        let text = match self.viewed(n) {
            Some(View { owner, method, arguments }) => format!("{}.{method}({arguments})", self.buffer(&owner)),
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
    fn viewed(&mut self, n: &DeclBuffer) -> Option<View> {
        let view = &n.buffer;
        let owner = n.data.as_var().and_then(|data| self.owners.get(data)).cloned()?;
        let plain = view.strides.is_empty() && view.elem_offset.is_int(0) && view.alignment == 64;
        if !plain || !owner.strides.is_empty() || owner.scope != view.scope || view.shape.is_empty() {
            return None;
        }
        let same_layout = same_placement(&view.layout, &owner.layout);
        if view.dtype != owner.dtype {
            let written = same_layout && view.layout == Placement::Strided && resized(&view.shape, view, &owner);
            return written.then(|| View { owner, method: "view", arguments: quoted(&view.dtype.to_string()) });
        }
        let shape = self.prims(&view.shape);
        match &view.layout {
            _ if same_layout => {
                (!same(&view.shape, &owner.shape)).then(|| View { owner, method: "view", arguments: shape })
            }
            Placement::By(_) => {
                let layout = self.placement(&view.layout).unwrap_or_default();
                Some(View { owner, method: "view", arguments: format!("{shape}, {layout}") })
            }
            Placement::Strided if holds(&owner, &view.shape) => Some(View { owner, method: "local", arguments: shape }),
            Placement::Strided | Placement::Unsaid => None,
        }
    }
}

/// A view as a method of the buffer whose memory it is.
struct View {
    owner: Ref<Buffer>,
    method: &'static str,
    arguments: String,
}

fn same_placement(a: &Placement, b: &Placement) -> bool {
    match (a, b) {
        (Placement::By(a), Placement::By(b)) => structural_equal(a, b, FreeVars::Same).is_ok(),
        _ => a == b,
    }
}

/// Whether a thread holds as many elements of a buffer as a shape has.
fn holds(owner: &Buffer, shape: &[PrimExpr]) -> bool {
    let Some(layout) = owner.layout.layout() else { return false };
    let span = Layout::from(layout.tile_layout().storage()).span(None);
    let count = shape.iter().cloned().reduce(prim::mul);
    span.ok().zip(count).is_some_and(|(span, count)| Analyzer::new().can_prove_equal(&span, &count))
}

fn same(a: &[PrimExpr], b: &[PrimExpr]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| structural_equal(a, b, FreeVars::Mapped).is_ok())
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
