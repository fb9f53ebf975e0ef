//! NarrowWeights: constant matrices that are multiplied with, or whose rows are looked up, are kept in fewer bits.
//!
//! ```text
//! gv = R.matmul(x, w)         →    lv = R.call_tir(cls.narrow_matmul, (x, q), …)     sum over k of x[…, k] * float32(q[k, j])
//!                                  gv = R.multiply(lv, s)                           where w[k, j] is about q[k, j] * s[j]
//! gv = R.take(w, i, axis=0)   →    gv = R.multiply(R.astype(R.take(q, i), "float32"), R.take(s, i))
//! ```
//!
//! Everything is computed in float32 as before; what shrinks is the file, and what a product of few rows reads, which bounds it.
//! With `dtype=int8` each column of a product (each row that is looked up) has a scale of its own, 127 steps to each side of zero:
//! an element is off by at most a 254th of the largest of its column. `float16` and `bfloat16` round and have no scales.
//!
//! A matrix that is transposed first is narrowed as it lies, so that one which is both looked up and multiplied with (tied
//! embeddings) has the same elements in both places.
//!
//! **Leaves** weights of other types than float32, of fewer than 4,096 elements or of other ranks than two, and those that hold
//! NaN, infinities, or for `float16` what it has no number for. Convolutions stay. **Refuses** another `dtype`.

use std::collections::HashMap;

use half::{bf16, f16};
use relaxide_ffi::{DataType, Ref, Tensor};
use relaxide_ir::pass::{ParamDefault, ParamKind, PassError, PassInfo, PassParam, PassResult};
use relaxide_ir::prim::{PrimExpr, cast};
use relaxide_ir::{Attrs, IRModule};
use relaxide_tir::te;

use crate::rewrite::{Action, Rewrite, in_function, rewrite_function};
use crate::*;

const NAME: &str = "NarrowWeights";

/// Elements from which a matrix is narrowed.
const MIN_ELEMENTS: usize = 4096;
/// Steps of an integer of 8 bits to each side of zero.
const STEPS: f32 = 127.0;

pub(super) const PASS: PassInfo =
    PassInfo::new(NAME, "Constant matrices of products and lookups are kept in fewer bits.", |module, _, args| {
        let dtype = args.dtype("dtype").unwrap_or(DataType::int(8));
        if ![DataType::int(8), DataType::float(16), DataType::bfloat16()].contains(&dtype) {
            return Err(PassError::new(NAME, format!("dtype is int8, float16 or bfloat16, not {dtype}")));
        }
        run(module, dtype)
    })
    .params(&[PassParam::new("dtype", ParamKind::DType, ParamDefault::Str("int8"), "The type of the weights.")]);

fn run(module: IRModule, dtype: DataType) -> PassResult {
    let mut b = BlockBuilder::with_module(module);
    let functions: Vec<_> = b.module().functions_of::<Function>().map(|(n, f)| (n.to_string(), f)).collect();
    let mut made = HashMap::new();
    for (name, func) in functions {
        let mut narrow = Narrow { dtype, values: HashMap::new(), made: &mut made, changed: false };
        let refused = |e| in_function(NAME, &name, e);
        let new = rewrite_function(&mut b, &func, &mut narrow).map_err(refused)?;
        if narrow.changed {
            let new = super::clean_up(&mut b, &new).map_err(refused)?;
            b.module_mut().insert(name, new);
        }
    }
    Ok(b.finish())
}

/// A matrix in fewer bits.
#[derive(Clone)]
struct Narrowed {
    elements: Expr,
    /// What each column or row is worth, where the type has steps.
    scales: Option<Expr>,
}

/// The axis along which a matrix has scales.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Along {
    Rows,
    Columns,
}

/// Matrices that were looked at: those that stay have none.
type Made = HashMap<(Ref<Constant>, Along), Option<Narrowed>>;

struct Narrow<'a> {
    dtype: DataType,
    values: HashMap<AnyVar, Expr>,
    made: &'a mut Made,
    changed: bool,
}

impl Rewrite for Narrow<'_> {
    fn value(&mut self, b: &mut BlockBuilder, var: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let new = match &value {
            Expr::Call(call) => self.call(b, call)?,
            _ => None,
        };
        self.changed |= new.is_some();
        let value = new.unwrap_or(value);
        self.values.insert(var.clone(), value.clone());
        Ok(Action::Bind(value))
    }
}

impl Narrow<'_> {
    fn call(&mut self, b: &mut BlockBuilder, call: &Ref<Call>) -> Result<Option<Expr>, BuildError> {
        match (call.op_name(), call.args.as_slice()) {
            (Some("matmul"), [x, w]) => self.product(b, call, x, w),
            (Some("take"), [w, i]) if call.attrs.int("axis").is_some_and(|axis| axis == 0) => {
                self.lookup(b, call, w, i)
            }
            _ => Ok(None),
        }
    }

    fn product(&mut self, b: &mut BlockBuilder, call: &Call, x: &Expr, w: &Expr) -> Result<Option<Expr>, BuildError> {
        let (left, result) = (x.ty(), &call.ty);
        let (Some(left), Some(result)) = (left.as_tensor(), result.as_tensor()) else { return Ok(None) };
        let float = DataType::float(32);
        let Some(dims) = result.shape.clone().filter(|_| left.dtype == float && result.dtype == float && left.ndim > 1)
        else {
            return Ok(None);
        };
        let behind = self.behind(w).clone();
        let turned = behind.as_op_call().filter(|(_, name)| *name == "permute_dims").map(|(call, _)| call.clone());
        let (matrix, along) = match &turned {
            Some(permute) => match permute.args.as_slice() {
                [inner] if is_swap(permute) => (self.behind(inner).clone(), Along::Rows),
                _ => return Ok(None),
            },
            None => (behind, Along::Columns),
        };
        let Some(Narrowed { elements, scales }) = self.narrowed(&matrix, along) else { return Ok(None) };
        let elements = match turned {
            Some(_) => b.op("permute_dims", [elements], Attrs::new())?,
            None => elements,
        };
        let sums = b.call_te("narrow_matmul", vec![x.clone(), elements], |inputs| match inputs {
            [x, q] => vec![product(x, q, &dims)],
            _ => Vec::new(),
        })?;
        scaled(b, sums, scales).map(Some)
    }

    fn lookup(&mut self, b: &mut BlockBuilder, call: &Call, w: &Expr, i: &Expr) -> Result<Option<Expr>, BuildError> {
        let matrix = self.behind(w).clone();
        let Some(Narrowed { elements, scales }) = self.narrowed(&matrix, Along::Rows) else { return Ok(None) };
        let rows = b.op("take", [elements, i.clone()], call.attrs.clone())?;
        let rows = b.op("astype", [rows], Attrs::new().with("dtype", DataType::float(32)))?;
        let scales = match scales {
            None => None,
            Some(scales) => {
                let own = b.op("take", [scales, i.clone()], call.attrs.clone())?;
                Some(b.op("expand_dims", [own], Attrs::new().with("axis", vec![-1i64]))?)
            }
        };
        scaled(b, rows, scales).map(Some)
    }

    /// What a name is bound to.
    fn behind<'e>(&'e self, e: &'e Expr) -> &'e Expr {
        e.as_var().and_then(|var| self.values.get(&var)).unwrap_or(e)
    }

    /// A constant matrix in fewer bits, once for each use of it; none where it stays.
    fn narrowed(&mut self, matrix: &Expr, along: Along) -> Option<Narrowed> {
        let Expr::Constant(constant) = matrix else { return None };
        let dtype = self.dtype;
        self.made.entry((constant.clone(), along)).or_insert_with(|| narrowed(&constant.value, dtype, along)).clone()
    }
}

/// Whether a permutation swaps the two axes of a matrix.
fn is_swap(permute: &Call) -> bool {
    permute.attrs.ints("axes").is_none_or(|axes| matches!(axes[..], [1 | -1, 0 | -2]))
}

fn scaled(b: &mut BlockBuilder, value: Expr, scales: Option<Expr>) -> Result<Expr, BuildError> {
    match scales {
        None => Ok(value),
        Some(scales) => {
            let value = b.emit(value)?;
            Ok(op::call("multiply", [value, scales], Attrs::new())?)
        }
    }
}

/// `sum over k of x[…, k] * float32(q[k, j])`.
fn product(x: &te::Tensor, q: &te::Tensor, dims: &[PrimExpr]) -> te::Tensor {
    let float = DataType::float(32);
    let terms = q.shape().first().cloned().unwrap_or_else(|| 1.into());
    let k = te::reduce_axis(terms);
    te::compute("narrow_matmul", dims, |out| {
        let (front, column) = out.split_at(out.len().saturating_sub(1));
        let row: Vec<PrimExpr> = front.iter().cloned().chain([k.var()]).collect();
        let of_q: Vec<PrimExpr> = [k.var()].into_iter().chain(column.iter().cloned()).collect();
        te::sum(x.at(&row) * cast(float, q.at(&of_q)), [&k])
    })
}

/// A matrix in fewer bits; none where it is not one of numbers, too small, or out of the type's range.
fn narrowed(matrix: &Tensor, dtype: DataType, along: Along) -> Option<Narrowed> {
    let [rows, columns] = *matrix.shape() else { return None };
    if matrix.dtype() != DataType::float(32) || matrix.numel() < MIN_ELEMENTS {
        return None;
    }
    let host = matrix.to_vec::<f32>().ok()?;
    let most = if dtype == DataType::float(16) { f16::MAX.to_f32() } else { f32::MAX };
    if host.iter().any(|value| value.is_nan() || value.abs() > most) {
        return None;
    }
    let shape = [rows, columns];
    let (bytes, scales) = match (dtype.code, dtype.bits) {
        (DataType::BFLOAT, _) => (host.iter().flat_map(|v| bf16::from_f32(*v).to_le_bytes()).collect(), None),
        (DataType::FLOAT, _) => (host.iter().flat_map(|v| f16::from_f32(*v).to_le_bytes()).collect::<Vec<u8>>(), None),
        _ => {
            let width = usize::try_from(columns).ok()?;
            let (steps, scales) = in_steps(&host, width, along);
            let count = scales.len() as i64;
            (steps, Some(Expr::constant(Tensor::from_slice(&scales, &[count]).ok()?)))
        }
    };
    Some(Narrowed { elements: Expr::constant(Tensor::from_bytes(&bytes, &shape, dtype).ok()?), scales })
}

/// Numbers as steps of each row's or column's scale, and the scales. The number zero is a step.
fn in_steps(values: &[f32], width: usize, along: Along) -> (Vec<u8>, Vec<f32>) {
    let width = width.max(1);
    let of = |at: usize| if along == Along::Rows { at / width } else { at % width };
    let count = if along == Along::Rows { values.len().div_ceil(width) } else { width };
    let mut scales = vec![0f32; count];
    for (at, value) in values.iter().enumerate() {
        let largest = &mut scales[of(at)];
        *largest = largest.max(value.abs());
    }
    // A scale that is no number, or so small that a quotient is none, stands for zeros.
    scales.iter_mut().for_each(|scale| *scale = if *scale / STEPS >= f32::MIN_POSITIVE { *scale / STEPS } else { 1.0 });
    let step = |(at, value): (usize, &f32)| (value / scales[of(at)]).round_ties_even().clamp(-STEPS, STEPS) as i8 as u8;
    (values.iter().enumerate().map(step).collect(), scales)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_a_254th_of_the_largest_apart() {
        let values: Vec<f32> = (0..35).map(|i| ((i * 37) % 101) as f32 - 50.0).collect();
        for along in [Along::Rows, Along::Columns] {
            let (steps, scales) = in_steps(&values, 7, along);
            for (at, value) in values.iter().enumerate() {
                let scale = scales[if along == Along::Rows { at / 7 } else { at % 7 }];
                assert!((f32::from(steps[at] as i8) * scale - value).abs() <= scale * 0.5001);
            }
        }
        assert_eq!(in_steps(&[0.0, -0.0, 1e-44], 1, Along::Rows).0, [0, 0, 0]);
    }

    #[test]
    fn what_does_not_fit_stays() {
        let matrix = |value: f32| Tensor::from_slice(&vec![value; MIN_ELEMENTS], &[64, 64]).unwrap();
        let narrow = |value, dtype: DataType| narrowed(&matrix(value), dtype, Along::Rows).is_some();
        assert!(narrow(1e5, DataType::bfloat16()) && narrow(1e5, DataType::int(8)));
        assert!(!narrow(1e5, DataType::float(16)) && !narrow(f32::NAN, DataType::int(8)));
        assert!(!narrow(f32::INFINITY, DataType::bfloat16()));
        let small = Tensor::from_slice(&[1f32; 4], &[2, 2]).unwrap();
        assert!(narrowed(&small, DataType::int(8), Along::Rows).is_none());
    }
}
