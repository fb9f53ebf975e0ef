//! What the threads of a warp do together, as instructions of NVIDIA's devices.
//!
//! Fragments are vectors; the instructions take them apart into registers of 32 bits, in the order of the elements.

use relaxide_ir::PrimExpr;
use relaxide_ir::prim::PrimCall;
use relaxide_tir::intrin::Intrinsic;
use relaxide_tir::warp::{WarpProduct, loaded_matrices, shuffled_down};

use super::{
    function::join,
    kernel::Body,
    value::{ScalarKind, Ty, Val},
};
use crate::error::CodegenError;

/// Rounds single precision to ten bits behind the point; ties away from zero.
const ROUND: &str = "llvm.nvvm.f2tf32.rna";

/// Two halves as LLVM's instructions want them.
const HALVES: &str = "<2 x half>";

impl Body<'_, '_> {
    /// A thread's part of what its warp makes.
    pub fn warp_value(&mut self, call: &PrimCall, intrinsic: Intrinsic) -> Result<Val, CodegenError> {
        if self.kernel.device.is_none() {
            return Err(self.kernel.unsupported(format!("`{}`, which threads of a device do together,", call.op)));
        }
        match intrinsic {
            Intrinsic::WarpLoadMatrix => self.load_matrices(call),
            Intrinsic::WarpShuffleDown => self.shuffle_down(call),
            _ => self.multiply_add(call),
        }
    }

    fn shuffle_down(&mut self, call: &PrimCall) -> Result<Val, CodegenError> {
        let Some((places, width)) = shuffled_down(call) else {
            let what = format!("`{}` but of all threads of a warp, of 32 bits, by known numbers", call.op);
            return Err(self.kernel.unsupported(what));
        };
        let value = self.eval(&call.args[1])?;
        let (kind, ty) = if value.ty.kind == ScalarKind::F32 { ("f32", Ty::F32) } else { ("i32", Ty::I32) };
        // The last thread of a part, and which bits of a thread's number say the part.
        let clamp = ((32 - width) << 8) | 31;
        let [all, places, clamp] = [-1, places, clamp].map(|number| Val::int(Ty::I32, number));
        let given = Val { ty, ..value.clone() };
        let made = self.f.call(&format!("llvm.nvvm.shfl.sync.down.{kind}"), ty, &[&all, &given, &places, &clamp]);
        Ok(Val { ty: value.ty, ..made })
    }

    fn load_matrices(&mut self, call: &PrimCall) -> Result<Val, CodegenError> {
        let malformed = |this: &Self| this.kernel.malformed(format!("`{}` of other matrices than 8 x 8", call.op));
        let (Some(count), [transposed, PrimExpr::Load(row)]) = (loaded_matrices(call), call.args.as_slice()) else {
            return Err(malformed(self));
        };
        let Some(PrimExpr::Ramp(ramp)) = row.indices.last() else { return Err(malformed(self)) };
        let (_, before) = row.indices.split_last().ok_or_else(|| malformed(self))?;
        let first: Vec<PrimExpr> = before.iter().chain([&ramp.base]).cloned().collect();
        let pointer = self.address_of(&row.buffer, &first)?;
        let shared = self.f.emit_raw(format_args!("addrspacecast {pointer} to ptr addrspace(3)"));
        let how = if transposed.is_int(1) { ".trans" } else { "" };
        let name = format!("llvm.nvvm.ldmatrix.sync.aligned.m8n8.x{count}{how}.b16.p3");
        let registers = self.warp_call(&name, &format!("ptr addrspace(3) {shared}"), count, Ty::I32);
        let made = self.f.gather_lanes(&registers);
        Ok(self.f.cast("bitcast", &made, self.kernel.ty(call.dtype)?))
    }

    fn multiply_add(&mut self, call: &PrimCall) -> Result<Val, CodegenError> {
        let Some(product) = WarpProduct::of_call(call) else {
            return Err(self.kernel.malformed(format!("`{}` of fragments of other types", call.op)));
        };
        let values = call.args.iter().map(|arg| self.eval(arg)).collect::<Result<Vec<_>, _>>()?;
        let kinds = [values[0].ty.kind, values[1].ty.kind];
        let letter = |kind: ScalarKind| if kind.is_signed() { "s8" } else { "u8" };
        let types = match kinds {
            [ScalarKind::F16, _] => "f32.f32".to_string(),
            [ScalarKind::BF16, _] => "bf16".to_string(),
            [ScalarKind::F32, _] => "tf32".to_string(),
            [a, b] if a == b => letter(a).to_string(),
            [a, b] => format!("{}.{}", letter(a), letter(b)),
        };
        let mut args = Vec::new();
        for value in &values[..2] {
            args.extend(self.registers(value));
        }
        let sum = &values[2];
        args.extend((0..4).map(|at| self.f.lane(sum, at).to_string()));
        let name = format!("llvm.nvvm.mma.m16n8k{}.row.col.{types}", product.terms());
        let made = self.warp_call(&name, &args.join(", "), 4, sum.ty.element());
        Ok(self.f.gather_lanes(&made))
    }

    /// The elements of a fragment in registers, with their types.
    fn registers(&mut self, value: &Val) -> Vec<String> {
        if value.ty.kind == ScalarKind::F32 {
            let lanes: Vec<Val> = (0..value.ty.lanes).map(|at| self.f.lane(value, at)).collect();
            return lanes.iter().map(|lane| self.f.call(ROUND, Ty::I32, &[lane]).to_string()).collect();
        }
        let count = value.ty.lanes * value.ty.kind.bits() / 32;
        let words = self.f.cast("bitcast", value, Ty::I32.with_lanes(count));
        let lanes: Vec<Val> = (0..count).map(|at| self.f.lane(&words, at)).collect();
        let text = |lane: &Val| match value.ty.kind {
            ScalarKind::F16 => format!("{HALVES} {}", self.f.emit_raw(format_args!("bitcast {lane} to {HALVES}"))),
            _ => lane.to_string(),
        };
        lanes.iter().map(text).collect()
    }

    /// A call of an instruction that gives several values of a type.
    fn warp_call(&mut self, name: &str, args: &str, count: usize, ty: Ty) -> Vec<Val> {
        let result = format!("{{ {} }}", join(vec![ty; count]));
        let result = if count == 1 { ty.to_string() } else { result };
        // The type of an argument is all but its last word.
        let types = args.split(", ").map(|arg| arg.rsplit_once(' ').map_or(arg, |(ty, _)| ty));
        self.f.module.declare(name, &result, &types.collect::<Vec<_>>().join(", "));
        if count == 1 {
            return vec![self.f.emit(ty, format_args!("call {result} @{name}({args})"))];
        }
        let made = self.f.emit_raw(format_args!("call {result} @{name}({args})"));
        (0..count).map(|at| self.f.emit(ty, format_args!("extractvalue {result} {made}, {at}"))).collect()
    }
}
