//! Mathematical functions against double precision, in units of the last place.

use crate::harness::{self, Kernels, Tensor, emulated, kernel};
use relaxide_ir::{Buffer, DataType, Ref, Target, Var, prim};
use relaxide_tir::{PrimFunc, Stmt};

const F32: DataType = DataType::float(32);
const LANES: i64 = 8;

/// Applies a function of one argument to a whole buffer, in vectors.
fn unary(name: &str, count: i64) -> PrimFunc {
    let (a, b) = (Buffer::new("A", F32, [count]), Buffer::new("B", F32, [count]));
    apply(name, std::slice::from_ref(&a), &b)
}

fn apply(name: &str, inputs: &[Ref<Buffer>], output: &Ref<Buffer>) -> PrimFunc {
    let i = Var::dim("i");
    let lanes = prim::ramp(prim::mul(&i, LANES), 1, LANES);
    let args = inputs.iter().map(|input| prim::load(input, [lanes.clone()])).collect();
    let value = prim::call(F32.with_lanes(LANES as u16), format!("tirx.{name}"), args);
    let count = output.shape[0].as_int().unwrap();
    let buffers: Vec<Ref<Buffer>> = inputs.iter().chain([output]).cloned().collect();
    kernel(name, &buffers, &[], Stmt::serial(i, count / LANES, Stmt::store(output, [lanes], value)))
}

/// Floats spread over all bit patterns between two bounds, and the special ones.
fn samples(low: f32, high: f32, count: usize) -> Vec<f32> {
    let key =
        |x: f32| if x.is_sign_negative() { -i64::from(x.to_bits() & 0x7fff_ffff) } else { i64::from(x.to_bits()) };
    let back = |k: i64| if k < 0 { -f32::from_bits(-k as u32) } else { f32::from_bits(k as u32) };
    let special = [0.0, -0.0, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MIN_POSITIVE, 1e-40, -1e-40];
    let (low, high) = (key(low), key(high));
    let step = ((high - low) as f64 / (count - special.len()) as f64).max(1.0);
    let spread = (0..count - special.len()).map(|i| back(low + (step * i as f64) as i64));
    special.into_iter().chain(spread).collect()
}

/// How far `got` lies from `exact`, in units of the last place of the float next to `exact`.
fn ulps(got: f32, exact: f64) -> f64 {
    let nearest = exact as f32;
    if got == nearest || (got.is_nan() && nearest.is_nan()) {
        return 0.0;
    }
    if got.is_nan() || nearest.is_nan() || got.is_infinite() || nearest.is_infinite() {
        // The largest number and infinity are neighbours.
        let big = |x: f32| x.abs() >= f32::MAX * 0.999_999;
        return if big(got) && big(nearest) && got.signum() == nearest.signum() { 1.0 } else { f64::INFINITY };
    }
    let exponent = i32::try_from(nearest.abs().to_bits() >> 23).unwrap().max(1);
    (f64::from(got) - exact).abs() / 2f64.powi(exponent - 127 - 23)
}

fn erf(x: f64) -> f64 {
    // Series below two, continued fraction above; both to double precision.
    let square = x * x;
    if x.abs() < 2.5 {
        let (mut term, mut sum, mut n) = (x, x, 0.0);
        while term.abs() > 1e-18 * sum.abs() {
            n += 1.0;
            term *= -square / n;
            sum += term / (2.0 * n + 1.0);
        }
        return sum * std::f64::consts::FRAC_2_SQRT_PI;
    }
    let mut fraction = 0.0;
    for k in (1..80).rev() {
        fraction = f64::from(k) / 2.0 / (x.abs() + fraction);
    }
    let complement = (-square).exp() / std::f64::consts::PI.sqrt() / (x.abs() + fraction);
    (1.0 - complement).copysign(x)
}

type Reference = fn(f64) -> f64;

/// Where a function is undefined.
type Domain = fn(f32) -> bool;

const UNARY: &[(&str, Reference, f32, f32, f64)] = &[
    ("exp", f64::exp, -110.0, 95.0, 2.0),
    ("exp2", f64::exp2, -160.0, 130.0, 2.0),
    ("exp10", |x| 10f64.powf(x), -50.0, 40.0, 3.0),
    ("log", f64::ln, 1e-45, f32::MAX, 2.0),
    ("log2", f64::log2, 1e-45, f32::MAX, 3.0),
    ("log10", f64::log10, 1e-45, f32::MAX, 3.0),
    ("tanh", f64::tanh, -20.0, 20.0, 3.0),
    ("sigmoid", |x| 1.0 / (1.0 + (-x).exp()), -88.0, 88.0, 4.0),
    ("erf", erf, -6.0, 6.0, 6.0),
    ("sin", f64::sin, -2.0e6, 2.0e6, 2.0),
    ("cos", f64::cos, -2.0e6, 2.0e6, 2.0),
    ("tan", f64::tan, -2.0e6, 2.0e6, 3.0),
    ("atan", f64::atan, f32::MIN, f32::MAX, 3.0),
    ("rsqrt", |x| 1.0 / x.sqrt(), 1e-45, f32::MAX, 1.5),
    ("sqrt", f64::sqrt, 0.0, f32::MAX, 0.5),
    ("floor", f64::floor, -1e9, 1e9, 0.0),
    ("ceil", f64::ceil, -1e9, 1e9, 0.0),
    ("trunc", f64::trunc, -1e9, 1e9, 0.0),
    ("round", f64::round_ties_even, -1e9, 1e9, 0.0),
    ("nearbyint", f64::round_ties_even, -1e9, 1e9, 0.0),
    ("fabs", f64::abs, -1e9, 1e9, 0.0),
    ("asin", f64::asin, -1.0, 1.0, 2.0),
    ("acos", f64::acos, -1.0, 1.0, 2.0),
    ("sinh", f64::sinh, -90.0, 90.0, 4.0),
    ("cosh", f64::cosh, -90.0, 90.0, 3.0),
    ("asinh", f64::asinh, f32::MIN, f32::MAX, 2.0),
    ("acosh", f64::acosh, 1.0, f32::MAX, 2.0),
    ("atanh", f64::atanh, -1.0, 1.0, 2.0),
    ("log1p", f64::ln_1p, -1.0, f32::MAX, 2.0),
    ("expm1", f64::exp_m1, -110.0, 95.0, 2.0),
];

const COUNT: usize = 1 << 18;

fn worst(target: &Target, count: usize, cases: &[(&str, Reference, f32, f32, f64)]) {
    let kernels =
        Kernels::compile_for(&cases.iter().map(|(name, ..)| unary(name, count as i64)).collect::<Vec<_>>(), target);
    // Among many more arguments are a few that are worse.
    let more = if count > COUNT { 0.2 } else { 0.01 };
    let mut report = Vec::new();
    for (name, reference, low, high, limit) in cases {
        let inputs = samples(*low, *high, count);
        let mut tensors = [Tensor::f32(&inputs, &[count as i64]), Tensor::zeros(F32, &[count as i64])];
        kernels.run(name, &mut tensors);
        let mut worst = (0.0, 0.0, 0.0);
        for (x, got) in inputs.iter().zip(tensors[1].values::<f32>()) {
            let error = ulps(got, reference(f64::from(*x)));
            if error > worst.0 {
                worst = (error, *x, got);
            }
        }
        println!("{name}: {:.2} ulp at {:e}", worst.0, worst.1);
        if worst.0 > *limit + more {
            report.push(format!("{name}({:e}) = {:e} is wrong by {:.2} ulp of {limit}", worst.1, worst.2, worst.0));
        }
    }
    assert!(report.is_empty(), "{}", report.join("\n"));
}

#[test]
fn functions_of_one_argument_are_accurate() {
    worst(&Target::default(), count_here(), UNARY);
}

/// Zero keeps its sign, and what is undefined is NaN: neither can be seen in units of the last place.
#[test]
fn signs_of_zero_and_domains_are_those_of_the_c_standard() {
    let odd = ["sinh", "tanh", "asin", "atan", "asinh", "atanh", "log1p", "expm1", "erf", "sin", "tan"];
    let inputs = [-0.0, 0.0, f32::INFINITY, f32::NEG_INFINITY, -1.5, 1.5, f32::MIN, f32::MAX];
    let undefined: [(&str, Domain); 8] = [
        ("asin", |x| x.abs() > 1.0),
        ("acos", |x| x.abs() > 1.0),
        ("atanh", |x| x.abs() > 1.0),
        ("acosh", |x| x < 1.0),
        ("log1p", |x| x < -1.0),
        ("sin", f32::is_infinite),
        ("cos", f32::is_infinite),
        ("tan", f32::is_infinite),
    ];
    let names: std::collections::BTreeSet<&str> = odd.into_iter().chain(undefined.map(|(name, _)| name)).collect();
    for target in ["llvm", "llvm -mcpu=x86-64"] {
        let funcs: Vec<PrimFunc> = names.iter().map(|name| unary(name, LANES)).collect();
        let kernels = Kernels::compile_for(&funcs, &target.parse().unwrap());
        for name in &names {
            let mut tensors = [Tensor::f32(&inputs, &[LANES]), Tensor::zeros(F32, &[LANES])];
            kernels.run(name, &mut tensors);
            let got = tensors[1].values::<f32>();
            let outside = undefined.iter().find(|(known, _)| known == name).map_or((|_| false) as Domain, |u| u.1);
            for (x, got) in inputs.iter().zip(&got) {
                assert_eq!(got.is_nan(), outside(*x), "{target}: {name}({x}) = {got}");
            }
            if odd.contains(name) {
                assert!(got[0].to_bits() == 1 << 31 && got[1].to_bits() == 0, "{target}: {name}: {got:?}");
            }
        }
    }
}

#[test]
fn exponentials_of_what_is_never_positive_are_accurate_and_keep_nan() {
    const COUNT: i64 = 1 << 16;
    let (a, b) = (Buffer::new("A", F32, [COUNT]), Buffer::new("B", F32, [COUNT]));
    let i = Var::dim("i");
    let lanes = prim::ramp(prim::mul(&i, LANES), 1, LANES);
    let x = prim::load(&a, [lanes.clone()]);
    let value = prim::call(F32.with_lanes(LANES as u16), "tirx.exp_nonpositive", vec![x]);
    let body = Stmt::serial(i, COUNT / LANES, Stmt::store(&b, [lanes], value));
    let kernels = Kernels::compile(&[kernel("below", &[a, b], &[], body)]);
    let mut inputs = samples(-110.0, -0.0, COUNT as usize);
    inputs.iter_mut().for_each(|x| *x = x.min(0.0));
    inputs[..4].copy_from_slice(&[f32::NAN, f32::NEG_INFINITY, f32::MIN, -88.37]);
    let mut tensors = [Tensor::f32(&inputs, &[COUNT]), Tensor::zeros(F32, &[COUNT])];
    kernels.run("below", &mut tensors);
    for (x, got) in inputs.iter().zip(tensors[1].values::<f32>()) {
        let exact = f64::from(*x).exp();
        let vanishes = got == 0.0 && exact < f64::from(f32::MIN_POSITIVE);
        assert!(vanishes || ulps(got, exact) <= 2.0, "exp({x:e}) = {got:e}, not {exact:e}");
    }
}

#[test]
fn functions_stay_accurate_without_fused_operations() {
    let inline: Vec<_> = UNARY.iter().copied().filter(|case| case.4 > 0.0).collect();
    worst(&"llvm -mcpu=x86-64".parse().unwrap(), count_here(), &inline);
}

#[test]
fn functions_are_accurate_on_an_emulated_aarch64_machine() {
    match emulated::unavailable() {
        Some(reason) => eprintln!("skipped: {reason}; `scripts/setup test-tools` installs what is needed"),
        None => worst(&emulated::TARGET.parse().unwrap(), count_elsewhere(), UNARY),
    }
}

#[test]
fn functions_are_accurate_as_webassembly() {
    match emulated::wasm_unavailable() {
        Some(reason) => eprintln!("skipped: {reason}"),
        None => worst(&emulated::WASM.parse().unwrap(), count_elsewhere(), UNARY),
    }
}

/// How many arguments the functions of one argument are tried at on this machine.
fn count_here() -> usize {
    if std::env::var_os("RELAXIDE_DEEP").is_some() { 1 << 24 } else { COUNT }
}

fn count_elsewhere() -> usize {
    if std::env::var_os("RELAXIDE_DEEP").is_some() { COUNT } else { 1 << 12 }
}

#[test]
fn powers_are_accurate_and_follow_the_c_standard() {
    for target in ["llvm", "llvm -mcpu=x86-64"] {
        powers(&target.parse().unwrap());
    }
}

/// Exponents that are known become other operations.
#[test]
fn known_powers_follow_the_c_standard_too() {
    const COUNT: i64 = 1 << 12;
    let inputs = samples(f32::MIN, f32::MAX, COUNT as usize);
    for exponent in [-1.0f32, -0.5, 0.0, 0.5, 1.0, 2.0, 2.5, 3.0] {
        let (a, b) = (Buffer::new("A", F32, [COUNT]), Buffer::new("B", F32, [COUNT]));
        let i = Var::dim("i");
        let lanes = prim::ramp(prim::mul(&i, LANES), 1, LANES);
        let exponents = prim::broadcast(prim::constant(F32, f64::from(exponent)), LANES);
        let args = vec![prim::load(&a, [lanes.clone()]), exponents];
        let value = prim::call(F32.with_lanes(LANES as u16), "tirx.pow", args);
        let body = Stmt::serial(i, COUNT / LANES, Stmt::store(&b, [lanes], value));
        let kernels = Kernels::compile(&[kernel("power", &[a, b], &[], body)]);
        let mut tensors = [Tensor::f32(&inputs, &[COUNT]), Tensor::zeros(F32, &[COUNT])];
        kernels.run("power", &mut tensors);
        for (x, got) in inputs.iter().zip(tensors[1].values::<f32>()) {
            let exact = f64::from(*x).powf(f64::from(exponent));
            let sign = got.is_nan() || got.is_sign_negative() == exact.is_sign_negative();
            assert!(sign && ulps(got, exact) <= 1.5, "pow({x:e}, {exponent}) = {got:e}, not {exact:e}");
        }
    }
}

fn powers(target: &Target) {
    let bases = samples(1e-45, f32::MAX, 1 << 9);
    let exponents = samples(-40.0, 40.0, 1 << 9);
    let integers = (-20..20).map(|i| i as f32);
    let exponents: Vec<f32> = exponents.into_iter().chain(integers).chain([0.5, -0.5, 1e9, -1e9, 3e9]).collect();
    let mut pairs: Vec<(f32, f32)> = Vec::new();
    for base in bases.iter().flat_map(|base| [*base, -*base]).chain((1..200).map(|i| 1.0 + i as f32 * 1e-3)) {
        pairs.extend(exponents.iter().map(|exponent| (base, *exponent)));
    }
    pairs.resize(pairs.len().next_multiple_of(LANES as usize), (1.0, 1.0));
    let count = pairs.len() as i64;
    let [a, b, c] = ["A", "B", "C"].map(|name| Buffer::new(name, F32, [count]));
    let kernels = Kernels::compile_for(&[apply("pow", &[a, b], &c)], target);
    let (x, y): (Vec<f32>, Vec<f32>) = pairs.iter().copied().unzip();
    let mut tensors = [Tensor::f32(&x, &[count]), Tensor::f32(&y, &[count]), Tensor::zeros(F32, &[count])];
    kernels.run("pow", &mut tensors);
    let (mut wrong, mut worst) = (Vec::new(), 0.0f64);
    for ((x, y), got) in pairs.iter().zip(tensors[2].values::<f32>()) {
        let exact = f64::from(*x).powf(f64::from(*y));
        let error = ulps(got, exact);
        worst = worst.max(error);
        if error > 1.5 {
            wrong.push(format!("pow({x:e}, {y:e}) = {got:e}, not {exact:e} ({error:.1} ulp)"));
        }
    }
    println!("pow: {worst:.2} ulp");
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
}

/// Every half-precision number, and floats between and beyond them.
#[test]
fn sixteen_bit_floats_convert_exactly_with_and_without_hardware() {
    let halves: Vec<u16> = (0..=u16::MAX).collect();
    let floats = samples(-1e6, 1e6, 1 << 16);
    let (half, brain) = (DataType::float(16), DataType::bfloat16());
    let mut cases = vec![("llvm", half), ("llvm -mcpu=x86-64", half), ("llvm", brain)];
    match emulated::unavailable() {
        Some(reason) => eprintln!("skipped on AArch64: {reason}; `scripts/setup test-tools` installs what is needed"),
        None => cases.extend([(emulated::TARGET, half), (emulated::TARGET, brain)]),
    }
    for (target, narrow) in cases {
        let is_half = narrow == DataType::float(16);
        let widen = |bits: u16| {
            if is_half { half::f16::from_bits(bits).to_f32() } else { half::bf16::from_bits(bits).to_f32() }
        };
        let round = |x: f32| if is_half { half::f16::from_f32(x).to_bits() } else { half::bf16::from_f32(x).to_bits() };
        let count = halves.len() as i64;
        let [from, to] = [("A", narrow), ("B", F32)].map(|(name, dtype)| Buffer::new(name, dtype, [count]));
        let convert = |name: &str, from: &Ref<Buffer>, to: &Ref<Buffer>| {
            harness::elementwise(name, &[from.clone(), to.clone()], |i| {
                prim::cast(to.dtype, prim::load(from, [i.clone()]))
            })
        };
        let funcs = [convert("widen", &from, &to), convert("narrow", &to, &from)];
        let kernels = Kernels::compile_for(&funcs, &target.parse().unwrap());
        let mut tensors = [Tensor::of(narrow, &halves, &[count]), Tensor::zeros(F32, &[count])];
        kernels.run("widen", &mut tensors);
        for (bits, got) in halves.iter().zip(tensors[1].values::<f32>()) {
            let expected = widen(*bits);
            assert!(got == expected || (got.is_nan() && expected.is_nan()), "{target} {narrow} {bits:#x}: {got:e}");
        }
        let mut tensors = [Tensor::f32(&floats, &[count]), Tensor::zeros(narrow, &[count])];
        kernels.run("narrow", &mut tensors);
        for (x, got) in floats.iter().zip(tensors[1].values::<u16>()) {
            assert!(got == round(*x) || (x.is_nan() && widen(got).is_nan()), "{target} {narrow} {x:e}: {got:#x}");
        }
    }
}
