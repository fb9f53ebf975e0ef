//! Stores of neighbouring elements in the lanes of a mask.
//!
//! With AVX-512, LLVM 22 makes one instruction of a conversion to fewer bits and the masked store behind it. Where it finds that the mask has one lane, it
//! then stores that lane as it is before the conversion, and so over what follows the element. What is stored therefore passes an
//! empty piece of assembly, which costs nothing, register by register.

use super::{
    function::FunctionText,
    kernel::Body,
    value::{ScalarKind, Ty, Val},
};

/// The bytes of registers.
const REGISTERS: [u32; 3] = [16, 32, 64];

impl Body<'_, '_> {
    /// Stores elements from a pointer on in the lanes of a mask.
    pub(super) fn masked_store_at(&mut self, pointer: &Val, value: &Val, mask: &Val) {
        let ty = value.ty;
        let bytes = ty.kind.bytes() as u32;
        let is_whole = matches!(ty.kind, ScalarKind::F32 | ScalarKind::F64 | ScalarKind::Ptr) || bytes >= 8;
        if !self.kernel.narrows_as_it_stores || is_whole {
            self.store_under_mask(pointer, value, mask);
            return;
        }
        let lanes = REGISTERS[2] / bytes.max(1);
        for first in (0..ty.lanes).step_by(lanes as usize) {
            let of = first..ty.lanes.min(first + lanes);
            let is_all = of.len() as u32 == ty.lanes;
            let part = |f: &mut FunctionText<'_>, of_all: &Val| {
                if is_all { of_all.clone() } else { f.some_lanes(of_all, of.clone()) }
            };
            let (value, mask) = (part(&mut self.f, value), part(&mut self.f, mask));
            let at = Val::int(Ty::I64, i64::from(first));
            // Not `inbounds`: where no lane of the part is wanted, it may lie behind the buffer.
            let pointer = match first {
                0 => pointer.clone(),
                _ => self.f.emit(Ty::PTR, format_args!("getelementptr {}, {pointer}, {at}", ty.element())),
            };
            match value.ty.lanes {
                1 => self.store_if(&pointer, &value, &mask),
                _ => {
                    let value = self.hidden(&value, bytes);
                    self.store_under_mask(&pointer, &value, &mask);
                }
            }
        }
    }

    fn store_under_mask(&mut self, pointer: &Val, value: &Val, mask: &Val) {
        let align = Val::int(Ty::I32, value.ty.kind.alignment() as i64);
        let name = format!("llvm.masked.store.{}.p0", value.ty.mangled());
        self.f.effect_call(&name, &[value, pointer, &align, mask], &[2]);
    }

    /// Stores one element where a condition holds.
    fn store_if(&mut self, pointer: &Val, value: &Val, condition: &Val) {
        let (then, done) = (self.f.label(), self.f.label());
        self.f.branch_if(condition, then, done);
        self.f.start(then);
        self.f.effect(format_args!("store {value}, {pointer}, align {}", value.ty.kind.alignment()));
        self.f.branch(done);
        self.f.start(done);
    }

    /// A vector of which LLVM does not know what it was made of; it fits a register.
    fn hidden(&mut self, value: &Val, bytes: u32) -> Val {
        let lanes = value.ty.lanes;
        let Some(register) = REGISTERS.into_iter().find(|register| lanes * bytes <= *register) else {
            return value.clone();
        };
        let wide = value.ty.with_lanes(register / bytes);
        let whole = match wide == value.ty {
            true => value.clone(),
            false => {
                let numbers: Vec<u32> = (0..wide.lanes).map(|lane| lane.min(lanes)).collect();
                let nothing = Val::zero(value.ty);
                self.f.shuffle(value, &nothing, &numbers)
            }
        };
        let same = self.f.emit(wide, format_args!("call {wide} asm \"\", \"=v,0\"({whole})"));
        if wide == value.ty { same } else { self.f.some_lanes(&same, 0..lanes) }
    }
}
