//! Functions of devices that count in 32 bits.
//!
//! Devices compute in 32 bits: an integer of 64 takes two registers, its product four instructions, its quotient a hundred. What a launched
//! loop counts and looks up nearly always fits, but lengths that have names are known only when the kernel is called. So the loop is there in
//! 32 bits, with a condition that the host looks at before: that no integer in it can leave them. Where this depends on lengths, the loop as
//! it was takes what does not fit.
//!
//! ```text
//! T.call_packed("f_kernel", A, n, m, …)     ->     if n * m + 8 < 2^31: T.call_packed("f_kernel", A, n, m, …)    # 32 bits
//!                                                  else:                T.call_packed("f_kernel_wide", …)
//! ```
//!
//! Parameters keep their types, so that both are called alike. Integers from memory keep theirs, and so does what is computed of them.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::Var;
use relaxide_ir::prim::{self, PrimExpr, and, ge, int_of, le};

use super::magnitude::{Magnitudes, Polynomial};
use super::narrow::{Values, narrowed};
use crate::Stmt;

const NARROW: DataType = DataType::int(32);
/// What magnitudes may be at most. The last thousand are left out: their polynomials are rounded.
const LIMIT: f64 = (1u64 << 31) as f64 - 1024.0;

/// A launched loop in 32 bits.
pub(super) struct NarrowLoop {
    pub body: Stmt,
    /// When it may be taken; nothing if always.
    pub condition: Option<PrimExpr>,
}

/// A launched loop in 32 bits, with the scalars that it takes; nothing if that changes nothing.
pub(super) fn narrow_loop(body: &Stmt, scalars: &[Ref<Var>]) -> Option<NarrowLoop> {
    let mut values = Growth::default();
    let integers: Vec<Ref<Var>> = scalars.iter().filter(|var| var.dtype().is_int()).cloned().collect();
    integers.iter().for_each(|var| values.magnitudes.parameter(var));
    let (narrow, given) = narrowed(body, &integers, NARROW, &mut values);
    if narrow == *body {
        return None;
    }
    let converted = given.iter().map(|(old, new)| Stmt::bind(new.clone(), prim::cast(NARROW, PrimExpr::from(old))));
    let body = Stmt::seq(converted.chain([narrow]));
    let condition = (!values.most.is_constant()).then(|| {
        let parameters = values.magnitudes.parameters();
        let fits = le(values.most.value(parameters), prim::float_of(DataType::float(64), LIMIT));
        let natural = parameters.iter().map(|var| ge(PrimExpr::from(var), int_of(var.dtype(), 0)));
        natural.fold(fits, and)
    });
    Some(NarrowLoop { body, condition })
}

/// Takes every integer whose magnitude has a polynomial to fit, and keeps one that is at least as large as all of these.
#[derive(Default)]
struct Growth {
    magnitudes: Magnitudes,
    most: Polynomial,
}

impl Values for Growth {
    fn fits(&mut self, e: &PrimExpr, _: DataType) -> bool {
        let Some(magnitude) = self.magnitudes.of(e).filter(|magnitude| magnitude.constant_term() <= LIMIT) else {
            return false;
        };
        let most = std::mem::take(&mut self.most).max(&magnitude);
        self.most = most;
        true
    }

    fn count(&mut self, var: &Ref<Var>, min: &PrimExpr, extent: &PrimExpr) {
        self.magnitudes.count(var, min, extent);
    }

    fn bind(&mut self, var: &Ref<Var>, value: &PrimExpr) {
        self.magnitudes.bind(var, value);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use relaxide_ir::Buffer;
    use relaxide_ir::prim::{PrimVisitor, add, int, load, mul};

    use super::*;
    use crate::PrimFunc;
    use crate::functor::StmtVisitor;
    use crate::interp::{self, Scalar};
    use crate::lower::split_device;
    use crate::schedule::launch;

    const F32: DataType = DataType::float(32);

    /// A copy of `extent` elements, 64 in a block.
    fn copy(extent: &PrimExpr, blocks: PrimExpr, scalars: &[Ref<Var>]) -> PrimFunc {
        let [a, b] = ["A", "B"].map(|name| Buffer::new(name, F32, [extent.clone()]));
        let [block, thread] = ["block", "thread"].map(Var::dim);
        let at = || add(mul(PrimExpr::from(&block), int(64)), PrimExpr::from(&thread));
        let body = Stmt::store(&b, [at()], load(&a, [at()]));
        PrimFunc::over_buffers(&[a, b], scalars, launch(&block, blocks, &thread, 64, body))
    }

    /// Bits of the counters of loops, the outermost first.
    fn bits_of_counters(stmt: &Stmt) -> Vec<u8> {
        #[derive(Default)]
        struct Counters(Vec<u8>);
        impl PrimVisitor for Counters {}
        impl StmtVisitor for Counters {
            fn visit_stmt(&mut self, stmt: &Stmt) {
                if let Stmt::For(n) = stmt {
                    self.0.push(n.var.dtype().bits);
                }
                self.walk_stmt(stmt);
            }
        }
        let mut counters = Counters::default();
        counters.visit_stmt(stmt);
        counters.0
    }

    #[test]
    fn lengths_decide_in_how_many_bits_a_device_counts() {
        let n = Var::dim("n");
        let blocks = PrimExpr::from(&n);
        let func = copy(&mul(blocks.clone(), int(64)), blocks, std::slice::from_ref(&n));
        let split = split_device(&func, 2).unwrap();
        let functions: Vec<_> = split.launches.iter().map(|launch| (&*launch.name, launch.is_wide)).collect();
        assert_eq!(functions, [("kernel_kernel", false), ("kernel_kernel_wide", true)]);
        let Stmt::Seq(host) = &split.host.body else { panic!("{}", split.host) };
        let Some(Stmt::If(choice)) = host.seq.last() else { panic!("{}", split.host) };
        for (value, is_narrow) in
            [(0, true), (1000, true), (1 << 24, true), (1 << 26, false), (1 << 40, false), (-1, false)]
        {
            let found = interp::eval(&choice.condition, &HashMap::from([(n.clone(), value)])).unwrap();
            assert_eq!(found, Scalar::Int(i64::from(is_narrow)), "{value}: {}", choice.condition);
        }
        let bits = [0, 1].map(|i| bits_of_counters(&split.launches[i].func.body));
        assert_eq!(bits, [[32, 32], [64, 64]]);
    }

    #[test]
    fn known_lengths_need_one_function() {
        for (blocks, fits) in [(1000, true), (1 << 40, false)] {
            let split = split_device(&copy(&int(blocks * 64), int(blocks), &[]), 2).unwrap();
            assert_eq!(split.launches.len(), 1);
            let bits = bits_of_counters(&split.launches[0].func.body);
            assert_eq!(bits[0], if fits { 32 } else { 64 }, "{}", split.launches[0].func);
        }
    }
}
