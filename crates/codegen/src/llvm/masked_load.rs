//! Loads of neighbouring elements in the lanes of a mask.
//!
//! LLVM 22 divides a load that is wider than a register, and where it finds that no lane of a part is wanted, it reads the whole part (AVX
//! without AVX-512, elements of 32 and 64 bits). There such loads are written in registers, each with a mask that LLVM cannot see
//! through: it passes an empty piece of assembly, which costs nothing.

use super::{
    kernel::Body,
    value::{ScalarKind, Ty, Val},
};

/// The bytes of a register of AVX.
const REGISTER: u32 = 32;
/// The smallest elements for which AVX has masked loads: others are loaded one by one.
const LEAST: u32 = 4;

impl Body<'_, '_> {
    /// The elements from a pointer on in the lanes of a mask, and zero in the others.
    pub(super) fn masked_load_at(&mut self, pointer: &Val, memory: Ty, mask: &Val) -> Val {
        let bytes = memory.kind.bytes() as u32;
        let lanes = REGISTER / bytes.max(1);
        if !self.kernel.masks_are_vectors || bytes < LEAST || memory.lanes <= lanes {
            return self.load_under_mask(pointer, memory, mask);
        }
        let whole = memory.with_lanes(memory.lanes.next_multiple_of(lanes));
        let mut loaded = Val::new(whole, "poison");
        for first in (0..memory.lanes).step_by(lanes as usize) {
            let at = Val::int(Ty::I64, i64::from(first));
            let mask = self.hidden_part(mask, first, lanes, bytes);
            let element = memory.element();
            // Not `inbounds`: where no lane of the part is wanted, it may lie behind the buffer.
            let pointer = self.f.emit(Ty::PTR, format_args!("getelementptr {element}, {pointer}, {at}"));
            let part = self.load_under_mask(&pointer, memory.with_lanes(lanes), &mask);
            let name = format!("llvm.vector.insert.{}.{}", whole.mangled(), part.ty.mangled());
            loaded = self.f.call_with_immediates(&name, whole, &[&loaded, &part, &at], &[2]);
        }
        if whole == memory { loaded } else { self.f.some_lanes(&loaded, 0..memory.lanes) }
    }

    /// Some lanes of a mask, none behind its end, of which LLVM knows nothing.
    fn hidden_part(&mut self, mask: &Val, first: u32, lanes: u32, bytes: u32) -> Val {
        let all = mask.ty.lanes;
        let numbers: Vec<String> = (first..first + lanes).map(|lane| format!("i32 {}", lane.min(all))).collect();
        let (part, numbers) = (mask.ty.with_lanes(lanes), numbers.join(", "));
        let nobody = Val::zero(mask.ty);
        let part = self.f.emit(part, format_args!("shufflevector {mask}, {nobody}, <{lanes} x i32> <{numbers}>"));
        let wide = Ty::signed(8 * bytes).with_lanes(lanes);
        let wide = self.f.emit(wide, format_args!("sext {part} to {wide}"));
        let same = self.f.emit(wide.ty, format_args!("call {} asm \"\", \"=x,0\"({wide})", wide.ty));
        self.f.emit(part.ty, format_args!("icmp slt {same}, {}", Val::zero(wide.ty).text))
    }

    fn load_under_mask(&mut self, pointer: &Val, memory: Ty, mask: &Val) -> Val {
        let align = Val::int(Ty::I32, memory.kind.alignment() as i64);
        let name = format!("llvm.masked.load.{}.p0", memory.mangled());
        let loaded = self.f.call_with_immediates(&name, memory, &[pointer, &align, mask, &Val::zero(memory)], &[1]);
        self.kept_apart(loaded)
    }

    /// LLVM 22 puts the value of one masked load into the lanes that another leaves out, and where it then widens elements,
    /// takes those lanes for widened, too. Narrow elements of scalable vectors are hidden from it.
    pub(super) fn kept_apart(&mut self, loaded: Val) -> Val {
        let ty = loaded.ty;
        let is_narrow = matches!(ty.kind, ScalarKind::Int { .. }) && ty.kind.bits() < 64;
        if ty.is_scalable() && is_narrow { self.f.emit(ty, format_args!("freeze {loaded}")) } else { loaded }
    }
}
