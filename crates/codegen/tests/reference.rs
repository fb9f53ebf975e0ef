//! Compiled kernels against the reference interpreter, over random lowered programs.
//!
//! Programs compute with small whole numbers, so that fusing a product and a sum changes nothing and results must agree
//! exactly, in every type. A program is made from one number, which a failure names.

use crate::harness::{Kernels, Tensor, emulated, kernel};
use proptest::prelude::*;
use relaxide_codegen::llvm_text;
use relaxide_ffi::SmallFloat;
use relaxide_ir::{BinaryOp, Buffer, DataType, PrimExpr, Ref, Target, Var, prim};
use relaxide_tir::{
    BufferStore, ForKind, PrimFunc, Stmt,
    interp::{Arg, run},
};

const SIZE: i64 = 64;

const TYPES: [DataType; 16] = [
    DataType::float(32),
    DataType::float(64),
    DataType::float(16),
    DataType::bfloat16(),
    DataType::int(8),
    DataType::int(16),
    DataType::int(32),
    DataType::int(64),
    DataType::uint(8),
    DataType::uint(16),
    DataType::uint(32),
    // float8_e4m3fn, float8_e5m2 and float4_e2m1fn.
    DataType::new(10, 8),
    DataType::new(12, 8),
    DataType::new(17, 4),
    DataType::int(4),
    DataType::bool(),
];

/// A generator of programs from one number.
struct Maker {
    random: fastrand::Rng,
    inputs: Vec<Ref<Buffer>>,
    /// Whether vectors are scalable, and elements have bytes of their own.
    scalable: bool,
}

impl Maker {
    fn new(seed: u64, scalable: bool) -> Self {
        let inputs = TYPES.iter().enumerate().map(|(i, dtype)| Buffer::new(format!("in{i}"), *dtype, [SIZE])).collect();
        Self { random: fastrand::Rng::with_seed(seed), inputs, scalable }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random.u64(..limit)
    }

    fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize]
    }

    fn element_type(&mut self, types: &[DataType]) -> DataType {
        loop {
            let dtype = self.pick(types);
            if !self.scalable || !dtype.is_packed() {
                return dtype;
            }
        }
    }

    /// An expression of a type, over one index or a vector of them.
    fn expr(&mut self, dtype: DataType, index: &PrimExpr, depth: u32) -> PrimExpr {
        let lanes = index.dtype().lanes;
        if depth == 0 || self.below(8) == 0 {
            return self.leaf(dtype, index);
        }
        let deeper = depth - 1;
        match self.below(10) {
            0..=3 if !dtype.is_bool() => {
                let op = self.pick(&[BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Min, BinaryOp::Max]);
                let (a, b) = (self.expr(dtype, index, deeper), self.expr(dtype, index, deeper));
                prim::binary(op, a, b)
            }
            0..=3 => {
                if self.below(4) == 0 {
                    return prim::not(self.expr(dtype, index, deeper));
                }
                if self.below(2) == 0 {
                    let op = self.pick(&[BinaryOp::And, BinaryOp::Or]);
                    let (a, b) = (self.expr(dtype, index, deeper), self.expr(dtype, index, deeper));
                    return prim::binary(op, a, b);
                }
                let of = self.element_type(&TYPES[..TYPES.len() - 1]);
                let op =
                    self.pick(&[BinaryOp::Lt, BinaryOp::Le, BinaryOp::Gt, BinaryOp::Ge, BinaryOp::Eq, BinaryOp::Ne]);
                let (a, b) = (self.expr(of, index, deeper), self.expr(of, index, deeper));
                prim::binary(op, a, b)
            }
            4 => {
                let condition = self.expr(DataType::bool(), index, deeper);
                let (a, b) = (self.expr(dtype, index, deeper), self.expr(dtype, index, deeper));
                if self.below(2) == 0 { prim::select(condition, a, b) } else { prim::if_then_else(condition, a, b) }
            }
            5 => {
                let from = self.element_type(&TYPES);
                // Small magnitudes only, since conversions out of range are unspecified.
                let value = self.leaf(from, index);
                prim::cast(dtype.with_lanes(lanes), value)
            }
            6 if dtype.is_integer() => self.division(dtype, index, deeper),
            7 if dtype.is_integer() => {
                let name = self.pick(&["bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right"]);
                let (a, b) = (self.expr(dtype, index, deeper), self.expr(dtype, index, deeper));
                prim::call(dtype.with_lanes(lanes), format!("tirx.{name}"), vec![a, b])
            }
            6 | 7 if dtype.is_float() => {
                let name = self.pick(&["floor", "ceil", "round", "trunc", "fabs", "nearbyint"]);
                let value = self.expr(dtype, index, deeper);
                prim::math(name, value * prim::float_of(dtype.with_lanes(lanes), 0.5))
            }
            8 => {
                let var = Var::prim("t", dtype.with_lanes(lanes));
                let value = self.expr(dtype, index, deeper);
                let body =
                    prim::select(self.expr(DataType::bool(), index, 1), PrimExpr::from(&var), self.leaf(dtype, index));
                Ref::new(prim::Let { var, value, body }).into()
            }
            _ => self.leaf(dtype, index),
        }
    }

    fn division(&mut self, dtype: DataType, index: &PrimExpr, depth: u32) -> PrimExpr {
        let op = self.pick(&[BinaryOp::Div, BinaryOp::Mod, BinaryOp::FloorDiv, BinaryOp::FloorMod]);
        let a = self.expr(dtype, index, depth);
        let wide = dtype.with_lanes(index.dtype().lanes);
        let divisor = if self.below(2) == 0 {
            // The first five are numbers of four bits, too.
            let divisors: &[i64] = &[1, 2, 3, 4, 7, 8, 16];
            prim::int_of(wide, self.pick(if dtype.bits < 8 { &divisors[..5] } else { divisors }))
        } else {
            // Never zero, and never minus one.
            let b = self.leaf(dtype, index);
            prim::call(
                wide,
                "tirx.bitwise_or",
                vec![prim::call(wide, "tirx.bitwise_and", vec![b, prim::int_of(wide, 7)]), prim::int_of(wide, 1)],
            )
        };
        prim::binary(op, a, divisor)
    }

    fn leaf(&mut self, dtype: DataType, index: &PrimExpr) -> PrimExpr {
        let lanes = index.dtype().lanes;
        if self.below(4) == 0 {
            let value = self.below(8) as f64 - if dtype.is_uint() || dtype.is_bool() { 0.0 } else { 4.0 };
            return match dtype.is_bool() {
                true => prim::int_of(dtype.with_lanes(lanes), value as i64 & 1),
                false => prim::constant(dtype.with_lanes(lanes), value),
            };
        }
        let place = TYPES.iter().position(|known| *known == dtype).unwrap();
        let buffer = self.inputs[place].clone();
        prim::load(&buffer, [self.position(index)])
    }

    /// Another position inside the buffers, from an index that is inside.
    fn position(&mut self, index: &PrimExpr) -> PrimExpr {
        let lanes = index.dtype().lane_count();
        let wide = |value: i64| prim::broadcast(PrimExpr::from(value), lanes);
        match self.below(6) {
            0..=2 => index.clone(),
            3 => wide(SIZE - 1) - index.clone(),
            4 => wide(self.below(SIZE as u64) as i64),
            _ => {
                let (factor, offset) = (self.below(9) as i64, self.below(64) as i64);
                prim::floormod(index.clone() * wide(factor) + wide(offset), wide(SIZE))
            }
        }
    }

    /// A store of a random value at every index, in one of the forms that lowering leaves.
    fn fill(&mut self, output: &Ref<Buffer>) -> Stmt {
        let i = Var::prim("i", self.pick(&[DataType::int(32), DataType::int(64)]));
        let kind = self.pick(&[ForKind::Serial, ForKind::Serial, ForKind::Parallel, ForKind::Unrolled]);
        let lanes: i64 = self.pick(&[1, 1, 2, 4, 8, 16]);
        let lanes = if self.scalable && lanes > 1 { -lanes } else { lanes };
        let (step, index64) = (prim::lanes_expr(lanes), prim::cast(DataType::int(64), PrimExpr::from(&i)));
        let step64 = prim::cast(DataType::int(64), step.clone());
        let index = if lanes == 1 { index64 } else { prim::ramp(index64 * step64, 1, lanes) };
        let depth = 1 + self.below(4) as u32;
        let value = self.expr(output.dtype, &index, depth);
        let predicate = (self.below(4) == 0).then(|| self.expr(DataType::bool(), &index, 2));
        let guarded = self.below(4) == 0 && lanes == 1;
        let store: Stmt = Ref::new(BufferStore {
            buffer: output.clone(),
            value,
            indices: vec![index.clone()],
            predicate: predicate.filter(|_| !guarded),
        })
        .into();
        let body = if guarded { Stmt::when(self.expr(DataType::bool(), &index, 2), store) } else { store };
        let count = prim::floordiv(prim::int_of(i.dtype(), SIZE), prim::cast(i.dtype(), step));
        Stmt::for_loop(kind, i, count, body)
    }

    /// A kernel that computes into a local buffer first and reads it back in another order.
    fn program(&mut self, name: &str) -> PrimFunc {
        let outputs: Vec<Ref<Buffer>> =
            (0..2).map(|i| Buffer::new(format!("out{i}"), self.element_type(&TYPES), [SIZE])).collect();
        let mut statements: Vec<Stmt> = outputs.iter().map(|output| self.fill(output)).collect();
        let dtype = self.element_type(&TYPES);
        let local = Buffer::scoped("local", dtype, [SIZE], self.pick(&["local", "global"]));
        let last = Buffer::new("last", dtype, [SIZE]);
        let (i, j) = (Var::dim("i"), Var::dim("j"));
        let value = self.expr(dtype, &PrimExpr::from(&i), 2);
        statements.push(Stmt::alloc(&local));
        statements.push(Stmt::serial(i.clone(), SIZE, Stmt::store(&local, [&i], value)));
        let back = self.position(&PrimExpr::from(&j));
        statements.push(Stmt::serial(j.clone(), SIZE, Stmt::store(&last, [&j], prim::load(&local, [back]))));
        let buffers: Vec<Ref<Buffer>> = self.inputs.iter().chain(&outputs).chain([&last]).cloned().collect();
        kernel(name, &buffers, &[], Stmt::seq(statements))
    }

    /// Small whole numbers of a type, as bytes.
    fn data(&mut self, dtype: DataType) -> Vec<u8> {
        if dtype.is_packed() {
            return (0..dtype.bytes_of(SIZE as usize).unwrap()).map(|_| self.below(256) as u8).collect();
        }
        (0..SIZE)
            .flat_map(|_| {
                let value = self.below(9) as i64 - if dtype.is_uint() || dtype.is_bool() { 0 } else { 4 };
                if let Some(family) = SmallFloat::of(dtype) {
                    return vec![family.encode(value as f64)];
                }
                match (dtype.is_float(), dtype.code, dtype.bits) {
                    (_, DataType::BFLOAT, _) => half::bf16::from_f64(value as f64).to_le_bytes().to_vec(),
                    (true, _, 16) => half::f16::from_f64(value as f64).to_le_bytes().to_vec(),
                    (true, _, 32) => (value as f32).to_le_bytes().to_vec(),
                    (true, ..) => (value as f64).to_le_bytes().to_vec(),
                    _ if dtype.is_bool() => vec![(value & 1) as u8],
                    _ => value.to_le_bytes()[..dtype.bytes()].to_vec(),
                }
            })
            .collect()
    }
}

/// A random program, what it is run on, and what the interpreter makes of that.
struct Case {
    seed: u64,
    func: PrimFunc,
    buffers: Vec<Ref<Buffer>>,
    contents: Vec<Vec<u8>>,
    expected: Vec<Vec<u8>>,
}

impl Case {
    fn new(seed: u64, name: &str, scalable: bool) -> Self {
        let mut maker = Maker::new(seed, scalable);
        let func = maker.program(name);
        let buffers: Vec<Ref<Buffer>> = func.buffers.iter().flatten().cloned().collect();
        let contents: Vec<Vec<u8>> = buffers.iter().map(|buffer| maker.data(buffer.dtype)).collect();
        let tensors = buffers.iter().zip(&contents);
        let tensors: Vec<relaxide_ffi::Tensor> = tensors
            .map(|(buffer, bytes)| relaxide_ffi::Tensor::from_bytes(bytes, &[SIZE], buffer.dtype).unwrap())
            .collect();
        let args: Vec<Arg> = tensors.iter().map(Arg::from).collect();
        run(&func, &args).unwrap_or_else(|error| panic!("program {seed} fails in the interpreter: {error}"));
        let expected = tensors.iter().map(|tensor| tensor.to_bytes().unwrap()).collect();
        Self { seed, func, buffers, contents, expected }
    }

    /// Runs the compiled program; the first output that differs, as text.
    fn disagreement(&self, kernels: &Kernels, target: &Target) -> Option<String> {
        let tensors = self.buffers.iter().zip(&self.contents);
        let mut tensors: Vec<Tensor> =
            tensors.map(|(buffer, bytes)| Tensor::of(buffer.dtype, bytes, &[SIZE])).collect();
        let name = self.func.global_symbol().unwrap();
        kernels.run(name, &mut tensors);
        for ((buffer, expected), tensor) in self.buffers.iter().zip(&self.expected).zip(&tensors) {
            let (got, width) = (tensor.bytes(), buffer.dtype.bytes());
            // Of elements that share bytes, the bytes are compared.
            for at in 0..expected.len() / width {
                let range = at * width..(at + 1) * width;
                let (expected, got) = (&expected[range.clone()], &got[range]);
                if expected != got && !both_nan(buffer.dtype, expected, got) {
                    let text = llvm_text(&[Ref::new(self.func.clone())], target);
                    let text = text.unwrap_or_else(|error| error.to_string());
                    let body = text.split(&format!("@{name}.body")).last().unwrap_or_default();
                    return Some(format!(
                        "program {}, `{}` of {} at {at}: expected {expected:?}, got {got:?}\n{body}",
                        self.seed, buffer.name, buffer.dtype
                    ));
                }
            }
        }
        None
    }
}

/// Runs a program both ways; the outputs that differ, as text.
fn disagreement(seed: u64, target: &Target) -> Option<String> {
    let case = Case::new(seed, "program", false);
    case.disagreement(&Kernels::compile_for(std::slice::from_ref(&case.func), target), target)
}

#[test]
fn so_they_do_on_an_emulated_aarch64_machine() {
    match emulated::unavailable() {
        Some(reason) => eprintln!("skipped: {reason}; `scripts/setup test-tools` installs what is needed"),
        None => programs_agree_elsewhere(emulated::TARGET, false),
    }
}

/// The interpreter has the shortest vectors, the emulated machine those of twice their length.
#[test]
fn programs_of_scalable_vectors_agree_on_an_emulated_machine_that_has_them() {
    match emulated::unavailable() {
        Some(reason) => eprintln!("skipped: {reason}; `scripts/setup test-tools` installs what is needed"),
        None => programs_agree_elsewhere(emulated::SCALABLE, true),
    }
}

#[test]
fn programs_of_scalable_vectors_agree_on_machines_without() {
    programs_agree_elsewhere("llvm", true);
}

/// With addresses of four bytes, and without instructions for half precision.
#[test]
fn so_they_do_as_webassembly() {
    match emulated::wasm_unavailable() {
        Some(reason) => eprintln!("skipped: {reason}"),
        None => programs_agree_elsewhere(emulated::WASM, false),
    }
}

/// Programs beyond the first ones that were wrong once: LLVM 22 widened one of two lazy loads of a scalable vector.
const WRONG_ONCE: [u64; 1] = [217];

/// Many programs in one library and one process: floats of all widths, casts, integers, predicates, parallel loops.
fn programs_agree_elsewhere(target: &str, scalable: bool) {
    let count = if std::env::var_os("RELAXIDE_DEEP").is_some() { 1000 } else { 40 };
    let target: Target = target.parse().unwrap();
    let again = WRONG_ONCE.into_iter().filter(|seed| *seed >= count);
    let cases: Vec<Case> =
        (0..count).chain(again).map(|seed| Case::new(seed, &format!("program{seed}"), scalable)).collect();
    let kernels = Kernels::compile_for(&cases.iter().map(|case| case.func.clone()).collect::<Vec<_>>(), &target);
    let disagreements: Vec<String> = cases.iter().filter_map(|case| case.disagreement(&kernels, &target)).collect();
    assert!(
        disagreements.is_empty(),
        "{} of {} programs: {}",
        disagreements.len(),
        cases.len(),
        disagreements.join("\n")
    );
    // Checks of arguments raise their errors there too.
    let (kind, message) = kernels.call("program0", &mut [], &[]).unwrap_err();
    assert!(kind == "TypeError" && message.starts_with("Expected "), "{kind}: {message}");
    let mut tensors: Vec<Tensor> = cases[0].buffers.iter().map(|b| Tensor::zeros(b.dtype, &[SIZE + 1])).collect();
    let (kind, message) = kernels.call("program0", &mut tensors, &[]).unwrap_err();
    assert!(kind == "ValueError" && message.starts_with("Invalid in0.shape[0] on argument #0"), "{kind}: {message}");
}

/// NaNs differ in their bits; zeros of either sign may come from `min` and `max`, whose operands a processor may swap.
fn both_nan(dtype: DataType, a: &[u8], b: &[u8]) -> bool {
    let value = |bytes: &[u8]| match (dtype.is_float(), dtype.code, bytes) {
        (true, _, [code]) => SmallFloat::of(dtype).map_or(1.0, |family| family.decode(*code)),
        (_, DataType::BFLOAT, [x, y]) => f64::from(half::bf16::from_le_bytes([*x, *y])),
        (true, _, [x, y]) => f64::from(half::f16::from_le_bytes([*x, *y])),
        (true, _, [a, b, c, d]) => f64::from(f32::from_le_bytes([*a, *b, *c, *d])),
        (true, _, bytes) => f64::from_le_bytes(bytes.try_into().unwrap_or_default()),
        _ => 1.0,
    };
    value(a).is_nan() && value(b).is_nan()
}

/// Few cases by default, since each is compiled; `PROPTEST_CASES` asks for more.
fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(16);
    // A program is one number: there is nothing to shrink.
    ProptestConfig { cases, max_shrink_iters: 0, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn compiled_programs_compute_what_the_interpreter_does(seed in any::<u64>()) {
        let disagreement = disagreement(seed, &Target::default());
        prop_assert!(disagreement.is_none(), "{}", disagreement.unwrap_or_default());
    }

    #[test]
    fn so_they_do_without_vector_extensions_and_optimisation(seed in any::<u64>()) {
        let target = "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64 -opt-level=1".parse().unwrap();
        let disagreement = disagreement(seed, &target);
        prop_assert!(disagreement.is_none(), "{}", disagreement.unwrap_or_default());
    }
}

/// Seeds of programs that were once compiled wrongly: strided reads that wrap around (the loop vectorizer of LLVM 19).
const ONCE_WRONG: [u64; 1] = [8_579_071_424_729_026_839];

#[test]
fn programs_that_were_once_wrong_are_right() {
    for seed in ONCE_WRONG {
        let disagreement = disagreement(seed, &Target::default());
        assert!(disagreement.is_none(), "{}", disagreement.unwrap_or_default());
    }
}

#[test]
fn every_intrinsic_of_the_table_is_compiled() {
    use relaxide_tir::intrin::{Arity, Intrinsic};
    let (f32, i32) = (DataType::float(32), DataType::int(32));
    let (floats, ints) = (Buffer::new("F", f32, [SIZE]), Buffer::new("I", i32, [SIZE]));
    let lanes = prim::ramp(0, 1, 8);
    let mut missing = Vec::new();
    for intrinsic in Intrinsic::ALL {
        // Calls need the runtime's function table, or other kernels, which the kernels here do not use; a checked index has a
        // text among its arguments, and random programs of its own. Barriers are for devices, and have programs of their own, too.
        let other = matches!(intrinsic, Intrinsic::Ret | Intrinsic::CheckedIndex | Intrinsic::StorageSync);
        // So have what the threads of a warp do together, and promises of addresses.
        let together = matches!(
            intrinsic,
            Intrinsic::WarpMultiplyAdd
                | Intrinsic::WarpLoadMatrix
                | Intrinsic::WarpShuffleDown
                | Intrinsic::IsAligned
                | Intrinsic::AtMultiple
        );
        let other = other || together;
        // Early exits are statements; the arguments of those that make addresses or put lanes together are of other types than
        // their results (`tests/language/test_intrinsics.py`).
        let jump = matches!(intrinsic, Intrinsic::BreakLoop | Intrinsic::ContinueLoop);
        let address = matches!(
            intrinsic,
            Intrinsic::AddressOf
                | Intrinsic::AccessPtr
                | Intrinsic::HandleAddByteOffset
                | Intrinsic::TypeAnnotation
                | Intrinsic::IsNullptr
        );
        let lanes_anew = matches!(
            intrinsic,
            Intrinsic::VectorLow | Intrinsic::VectorHigh | Intrinsic::VectorCombine | Intrinsic::Shuffle
        );
        let other = other || jump || address || lanes_anew;
        // What makes a tensor or a shape on the stack stands among the arguments of a packed call only.
        let on_stack = intrinsic.name().starts_with("tvm_stack_make");
        if intrinsic.name().contains("call_") || intrinsic.name().contains("anylist") || on_stack || other {
            continue;
        }
        let compiles = |buffer: &Ref<Buffer>, wide: DataType| {
            // What is asked for ahead of its use is one element, and the answer one number.
            let asks = matches!(intrinsic, Intrinsic::Prefetch | Intrinsic::PrefetchWrite);
            let value = prim::load(buffer, [if asks { PrimExpr::from(0) } else { lanes.clone() }]);
            let args = match (intrinsic, intrinsic.arity()) {
                (Intrinsic::IfThenElse, _) => vec![prim::gt(value.clone(), value.clone()), value.clone(), value],
                (_, Arity::Exactly(count) | Arity::AtLeast(count)) => vec![value; count],
            };
            let reduces = asks || intrinsic.name().starts_with("vector_reduce");
            let result = match intrinsic {
                Intrinsic::IsNan | Intrinsic::IsInf | Intrinsic::IsFinite => DataType::bool().with_lanes(8),
                _ if reduces => wide.element(),
                _ => wide,
            };
            let call = prim::call(result, format!("tirx.{}", intrinsic.name()), args);
            let call = if result.is_bool() { prim::cast(wide, call) } else { call };
            let index = if reduces { PrimExpr::from(0) } else { lanes.clone() };
            let body = Stmt::store(buffer, [index], call);
            let func = Ref::new(kernel("one", std::slice::from_ref(buffer), &[], body));
            relaxide_codegen::compile(&[func], &Target::default()).is_ok()
        };
        if !compiles(&floats, f32.with_lanes(8)) && !compiles(&ints, i32.with_lanes(8)) {
            missing.push(intrinsic.name());
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}
