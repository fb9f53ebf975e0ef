//! Calls between the kernels of a module.
//!
//! ```text
//! for i in range(64):
//!     Module.row_sum(T.address_of(A[i, 0]), T.address_of(B[i]))
//! ```
//!
//! Such a call is the intrinsic `tirx.call_kernel`, whose first argument is the callee's name in the module. Scalars and
//! addresses are handed over as they are, a buffer by its description (see [`crate::tensor_argument`]). What it gives is what the
//! callee returns, or nothing. Back ends call the kernel's entry in the packed convention; a failure of the callee is one of the
//! caller.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr, PrimVisitor};

use crate::PrimFunc;
use crate::functor::StmtVisitor;

/// The intrinsic of such calls.
pub const CALL_KERNEL: &str = "tirx.call_kernel";

/// A call of a kernel by its name in the module.
pub fn kernel_call(name: &str, args: Vec<PrimExpr>, result: DataType) -> PrimExpr {
    prim::call(result, CALL_KERNEL, [vec![prim::string(name)], args].concat())
}

/// The name and the arguments of such a call; `None` for other expressions.
pub fn called_kernel(e: &PrimExpr) -> Option<(&str, &[PrimExpr])> {
    let PrimExpr::Call(call) = e else { return None };
    match call.args.as_slice() {
        [PrimExpr::Str(name), args @ ..] if call.op == CALL_KERNEL => Some((&name.value, args)),
        _ => None,
    }
}

/// The kernels that a kernel calls, each once, in order: by their names in the module, and by those in the library
/// (`T.call_cpacked`).
pub fn called_kernels(func: &PrimFunc) -> Vec<String> {
    let mut calls = CalledNames(Vec::new());
    calls.visit_stmt(&func.body);
    calls.0
}

struct CalledNames(Vec<String>);

impl PrimVisitor for CalledNames {
    fn visit_prim(&mut self, e: &PrimExpr) {
        if let PrimExpr::Call(call) = e {
            let name = match (call.op.as_str(), call.args.as_slice()) {
                (CALL_KERNEL | "tirx.call_cpacked", [PrimExpr::Str(name), ..]) => Some(name),
                ("tirx.anylist_setitem_call_cpacked", [_, _, PrimExpr::Str(name), ..]) => Some(name),
                _ => None,
            };
            if let Some(name) = name.filter(|name| !self.0.contains(&name.value)) {
                self.0.push(name.value.clone());
            }
        }
        self.walk_prim(e);
    }
}

impl StmtVisitor for CalledNames {}
