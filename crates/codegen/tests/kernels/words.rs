//! What tests of products of words share: kernels over three arrays, and where they run.

use relaxide_ir::{Buffer, DataType, PrimExpr, Ref, Var, prim};
use relaxide_tir::{PrimFunc, Stmt};

use crate::harness::{Kernels, has_c_compiler, kernel};

/// Words of an array.
pub const WORDS: i64 = 48;

/// `C[i] = op(A[i], B[i], C[i])`, so many lanes at once.
pub fn products(name: &str, op: &str, [left, right, sum]: [DataType; 3], lanes: i64) -> PrimFunc {
    let [a, b, c] = [("A", left), ("B", right), ("C", sum)].map(|(name, dtype)| Buffer::new(name, dtype, [WORDS]));
    let i = Var::dim("i");
    let start = PrimExpr::from(&i) * lanes;
    let index = if lanes == 1 { start } else { prim::ramp(start, 1, lanes) };
    let at = |buffer: &Ref<Buffer>| prim::load(buffer, [index.clone()]);
    let value = prim::call(sum.with_lanes(lanes as u16), op, vec![at(&a), at(&b), at(&c)]);
    let body = Stmt::serial(i, WORDS / lanes, Stmt::store(&c, [index], value));
    kernel(name, &[a, b, c], &[], body)
}

/// Checks kernels on the processor, for those that are like it but older, with some instructions if it has them, and in C.
#[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables, reason = "other processors have no such list"))]
pub fn on_this_machine(funcs: &[PrimFunc], with: (&str, bool), check: impl Fn(&Kernels, &str)) {
    check(&Kernels::compile(funcs), "on the host");
    #[cfg(target_arch = "x86_64")]
    {
        let processors = [
            ("x86-64-v2", std::is_x86_feature_detected!("sse4.2")),
            ("x86-64-v3", std::is_x86_feature_detected!("avx2")),
            ("x86-64-v4", std::is_x86_feature_detected!("avx512bw")),
            with,
        ];
        for (name, _) in processors.into_iter().filter(|(_, runs)| *runs) {
            let target: relaxide_ir::Target = format!("llvm -mcpu={name}").parse().unwrap();
            check(&Kernels::compile_for(funcs, &target), name);
        }
    }
    if has_c_compiler() {
        check(&Kernels::compile_c(funcs), "in C");
    } else {
        eprintln!("skipped: there is no compiler of C");
    }
}
