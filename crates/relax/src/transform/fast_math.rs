//! FastMathTransform: costly functions are computed approximately.
//!
//! `exp`, `erf`, `tanh` and `nn.softmax` become kernels `fast_exp`, `fast_erf`, `fast_tanh` and `fast_softmax`, which multiply and
//! add only:
//!
//! ```text
//! gv = R.tanh(x)    →    gv = R.call_tir(cls.fast_tanh, (x,), …)
//! ```
//!
//! | function | how | error |
//! | --- | --- | --- |
//! | `exp` | a power of two by the bits of a float, times a polynomial of what is left (Cephes) | 2e-7 of the value |
//! | `tanh` | a fraction of polynomials of degrees 13 and 6, of x within 9 of zero | 3e-7 |
//! | `erf` | a fraction of polynomials of degrees 13 and 8, of x within 4 of zero | 3e-7 |
//!
//! They are for float32. float16 is computed in float32; other types keep the exact function. Nothing is said of NaN.
//!
//! **Needs** known dimensions; where they are not known a call stays. **Differs from TVM**: `tanh` is one stage, where TVM
//! clamps in two of their own; float16 is computed in float32, where TVM rounds coefficients of the polynomials to zero, or does
//! not approximate.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::IRModule;
use relaxide_ir::pass::{PassInfo, PassResult};
use relaxide_ir::prim::{self, PrimExpr, cast, constant, math};
use relaxide_tir::te;

use crate::rewrite::{Action, Rewrite, rewrite_module};
use crate::*;

pub(super) const PASS: PassInfo =
    PassInfo::new("FastMathTransform", "Costly functions are computed approximately.", |module, _, _| run(module));

fn run(module: IRModule) -> PassResult {
    rewrite_module(PASS.name, module, &mut Approximate)
}

struct Approximate;

impl Rewrite for Approximate {
    fn value(&mut self, b: &mut BlockBuilder, _: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let Expr::Call(call) = &value else { return Ok(Action::Bind(value)) };
        Ok(Action::Bind(approximated(b, call)?.unwrap_or(value)))
    }
}

fn approximated(b: &mut BlockBuilder, call: &Ref<Call>) -> Result<Option<Expr>, BuildError> {
    let (Some(name), [x]) = (call.op_name(), call.args.as_slice()) else { return Ok(None) };
    let ty = x.ty();
    let Some(tensor) = ty.as_tensor().filter(|t| t.shape.is_some() && t.dtype.is_float()) else { return Ok(None) };
    let kernel = match name {
        "exp" => b.call_te("fast_exp", vec![x.clone()], |x| each("T_fast_exp", x, fast_exp)),
        "erf" => b.call_te("fast_erf", vec![x.clone()], |x| each("T_fast_erf", x, fast_erf)),
        "tanh" => b.call_te("fast_tanh", vec![x.clone()], |x| each("T_fast_tanh", x, fast_tanh)),
        "nn.softmax" => {
            let (ndim, axis) = (tensor.ndim, call.attrs.int("axis").unwrap_or(-1));
            let Ok(axis) = usize::try_from(if axis < 0 { axis + ndim } else { axis }) else { return Ok(None) };
            b.call_te("fast_softmax", vec![x.clone()], |x| x.iter().map(|x| softmax(x, axis)).collect())
        }
        _ => return Ok(None),
    };
    kernel.map(Some)
}

fn each(name: &str, inputs: &[te::Tensor], f: fn(PrimExpr) -> PrimExpr) -> Vec<te::Tensor> {
    inputs.iter().map(|x| te::compute(name, x.shape(), |at| f(x.at(at)))).collect()
}

/// A function of float32, of what converts to it; `exact` of other types.
fn in_float32(x: PrimExpr, exact: &str, f: fn(PrimExpr) -> PrimExpr) -> PrimExpr {
    let (dtype, single) = (x.dtype(), DataType::float(32));
    if dtype == single {
        return f(x);
    }
    if dtype == DataType::float(16) { cast(dtype, f(cast(single, x))) } else { math(exact, x) }
}

fn number(value: f64) -> PrimExpr {
    constant(DataType::float(32), f64::from(value as f32))
}

/// The coefficients of a polynomial, of the highest power first.
fn polynomial(x: &PrimExpr, coefficients: &[f64]) -> PrimExpr {
    let terms = coefficients.iter().map(|c| number(*c));
    terms.reduce(|value, c| x * value + c).unwrap_or_else(|| number(0.0))
}

/// `2^n * e^f`, where `n` is the whole number nearest to `x / ln 2` and `f` what is left.
fn fast_exp(x: PrimExpr) -> PrimExpr {
    in_float32(x, "exp", |x| {
        let near = prim::max(prim::min(&x, number(88.376_262_664_795)), number(-88.376_262_664_794_9));
        let n = math("floor", &near * number(std::f64::consts::LOG2_E) + number(0.5));
        let f = near - &n * number(std::f64::consts::LN_2);
        const POWERS: [f64; 6] = [
            1.987_569_150_0e-4,
            1.398_199_950_7e-3,
            8.333_451_907_3e-3,
            4.166_579_589_4e-2,
            1.666_666_545_9e-1,
            5.000_000_120_1e-1,
        ];
        let terms = POWERS.iter().map(|c| number(*c));
        let series = terms.reduce(|value, c| value * &f + c).unwrap_or_else(|| number(0.0));
        let e_to_f = series * &f * &f + &f + number(1.0);
        // The exponent of a float stands above its 23 bits of mantissa, counted from 127.
        let exponent = cast(DataType::int(32), n + number(127.0));
        let (bits, int32) = (prim::int_of(DataType::int(32), 23), DataType::int(32));
        let shifted = prim::call(int32, "tirx.shift_left", vec![exponent, bits]);
        let two_to_n = prim::call(DataType::float(32), "tirx.reinterpret", vec![shifted]);
        // Of infinity the argument itself is the result.
        prim::max(two_to_n * e_to_f, x)
    })
}

fn fast_tanh(x: PrimExpr) -> PrimExpr {
    in_float32(x, "tanh", |x| {
        let x = prim::max(number(-9.0), prim::min(number(9.0), x));
        let square = &x * &x;
        const ABOVE: [f64; 7] = [
            -2.760_768_477_423_55e-16,
            2.000_187_904_824_77e-13,
            -8.604_671_522_137_35e-11,
            5.122_297_090_371_14e-8,
            1.485_722_357_179_79e-5,
            6.372_619_288_754_36e-4,
            4.893_524_558_917_86e-3,
        ];
        const BELOW: [f64; 4] =
            [1.198_258_394_667_02e-6, 1.185_347_056_866_54e-4, 2.268_434_632_439_00e-3, 4.893_525_185_543_85e-3];
        prim::div(&x * polynomial(&square, &ABOVE), polynomial(&square, &BELOW))
    })
}

fn fast_erf(x: PrimExpr) -> PrimExpr {
    in_float32(x, "erf", |x| {
        let x = prim::max(prim::min(x, number(4.0)), number(-4.0));
        let square = &x * &x;
        const ABOVE: [f64; 7] = [
            -2.726_142_258_013_06e-10,
            2.770_681_424_959_02e-8,
            -2.101_024_020_825_08e-6,
            -5.692_506_394_623_46e-5,
            -7.349_906_303_268_55e-4,
            -2.954_599_808_540_25e-3,
            -1.609_603_332_624_15e-2,
        ];
        const BELOW: [f64; 5] = [
            -1.456_607_184_649_96e-5,
            -2.133_740_552_789_05e-4,
            -1.682_826_974_382_03e-3,
            -7.373_329_167_204_68e-3,
            -1.426_473_905_141_89e-2,
        ];
        prim::div(&x * polynomial(&square, &ABOVE), polynomial(&square, &BELOW))
    })
}

fn softmax(x: &te::Tensor, axis: usize) -> te::Tensor {
    let mut kept = x.shape().to_vec();
    let extent = if axis < kept.len() { kept.remove(axis) } else { PrimExpr::from(1) };
    let without = |at: &[PrimExpr]| -> Vec<PrimExpr> {
        at.iter().enumerate().filter(|(i, _)| *i != axis).map(|(_, e)| e.clone()).collect()
    };
    let with = |at: &[PrimExpr], k: &te::ReduceAxis| {
        let mut index = at.to_vec();
        index.insert(axis.min(at.len()), k.var());
        index
    };
    let (k1, k2) = (te::reduce_axis_named("k", extent.clone()), te::reduce_axis_named("k", extent));
    let highest = te::compute("T_softmax_maxelem", &kept, |at| te::max(x.at(&with(at, &k1)), [&k1]));
    let below = te::compute("T_softmax_delta", x.shape(), |at| x.at(at) - highest.at(&without(at)));
    let powers = te::compute("T_fast_exp", x.shape(), |at| fast_exp(below.at(at)));
    let total = te::compute("T_softmax_expsum", &kept, |at| te::sum(powers.at(&with(at, &k2)), [&k2]));
    let norm = te::Compute::new("T_softmax_norm", x.shape()).annotate("axis", axis as i64);
    norm.build(|at| prim::div(powers.at(at), total.at(&without(at))))
}
