//! NarrowWeights: constant matrices that are multiplied with, or whose rows are looked up, are kept in fewer bits.
//!
//! ```text
//! gv = R.matmul(x, w)         →    lv = R.call_tir(cls.narrow_matmul, (x, q, s), …)    sum over k of x[m, k] * float32(q[p, k, c]) * s[p, c]
//!                                  gv = R.reshape(lv, …)                               where w[k, 64 * p + c] is about q[p, k, c] * s[p, c]
//! gv = R.take(w, i, axis=0)   →    gv = R.call_tir(cls.look_up, (i, q, s), …)
//! ```
//!
//! Everything is computed in float32 as before; what shrinks is the file, and what a product of few rows reads, which bounds it. Columns of
//! products lie in panels of up to 64, which are read from the beginning to the end ([`crate::blocks::Panels`]).
//! With `dtype=int8` each column of a product (each row that is looked up) has a scale of its own, 127 steps to each side of zero:
//! an element is off by at most a 254th of the largest of its column. `float16` and `bfloat16` round and have no scales.
//!
//! With `dtype=int4` a column has a scale for each 32 of its elements, and numbers of 0 to 15 ([`quantize`]). Products quantize what they
//! multiply to 8 bits in the same blocks and sum products of bytes ([`crate::blocks`]), so that a product of one row reads 4.5 bits an element.
//!
//! With `dtype=int8, products=True` both are numbers of 8 bits in blocks of 64 (32 where that would fill up a column), and sums are of products of bytes as well: rows that are many
//! take a third of the time that float32 takes.
//!
//! With `dtype=bfloat16, products=True` what is multiplied is rounded to bfloat16, too, and sums are of products of pairs of neighbours
//! (`dot_pairs`), by the processor's instruction for them where it has one.
//!
//! A matrix that is transposed first has its rows as columns, so that one which is both looked up and multiplied with (tied
//! embeddings) is there once.
//!
//! **Leaves** weights of other types than float32, of fewer than 4,096 elements or of other ranks than two, and those that hold
//! NaN, infinities, or for `float16` what it has no number for; those that blocks and panels would fill up with more than they gain; lookups
//! that answer what is outside with NaN. Convolutions stay. Why each of them stays is noted ([`WeightNotes`]), which `--explain` tells.
//! **Refuses** another `dtype`, and `products` of another than bfloat16 and int8.

mod matrix;
mod notes;
mod quantize;
mod stored;

use std::collections::HashMap;

use half::f16;
use relaxide_ffi::{DataType, Ref, Tensor};
use relaxide_ir::IRModule;
use relaxide_ir::pass::{ParamDefault, ParamKind, Pass, PassError, PassInfo, PassParam, PassResult};

use self::matrix::Matrix;
use self::notes::Stays;
pub use self::notes::{WeightNote, WeightNotes};
use crate::rewrite::{Action, Rewrite, in_function, rewrite_function};
use crate::*;

const NAME: &str = "NarrowWeights";

/// Elements from which a matrix is narrowed.
const MIN_ELEMENTS: usize = 4096;

pub(super) const PASS: PassInfo =
    PassInfo::new(NAME, "Constant matrices of products and lookups are kept in fewer bits.", |module, _, args| {
        let dtype = args.dtype("dtype").unwrap_or(DataType::int(8));
        let form = NarrowForm::new(dtype, args.bool("products").unwrap_or(false))?;
        run(module, form, &WeightNotes::default())
    })
    .params(&[
        PassParam::new("dtype", ParamKind::DType, ParamDefault::Str("int8"), "The type of the weights."),
        PassParam::new(
            "products",
            ParamKind::Bool,
            ParamDefault::Bool(false),
            "Whether what is multiplied with them is rounded to their type as well (bfloat16, int8).",
        ),
    ]);

/// What matrices become.
#[derive(Clone, Copy)]
struct NarrowForm {
    dtype: DataType,
    /// Whether what is multiplied with them is of that type, too.
    products: bool,
}

impl NarrowForm {
    fn new(dtype: DataType, products: bool) -> Result<NarrowForm, PassError> {
        if ![DataType::int(4), DataType::int(8), DataType::float(16), DataType::bfloat16()].contains(&dtype) {
            return Err(PassError::new(NAME, format!("dtype is int4, int8, float16 or bfloat16, not {dtype}")));
        }
        if products && ![DataType::bfloat16(), DataType::int(8)].contains(&dtype) {
            let message = format!("products are computed in bfloat16 or int8 only, and dtype is {dtype}");
            return Err(PassError::new(NAME, message));
        }
        Ok(NarrowForm { dtype, products })
    }
}

/// The pass with parameters, which leaves notes of what became of the matrices.
pub fn narrow_weights(dtype: DataType, products: bool, notes: WeightNotes) -> Result<Pass, PassError> {
    let form = NarrowForm::new(dtype, products)?;
    Ok(Pass::new(NAME, move |module, _| run(module, form, &notes)))
}

fn run(module: IRModule, form: NarrowForm, notes: &WeightNotes) -> PassResult {
    let mut b = BlockBuilder::with_module(module);
    let functions: Vec<_> = b.module().functions_of::<Function>().map(|(n, f)| (n.to_string(), f)).collect();
    let mut made = HashMap::new();
    for (name, func) in functions {
        let (values, function) = (HashMap::new(), name.clone());
        let mut narrow = Narrow { form, values, made: &mut made, changed: false, function, notes };
        let refused = |e| in_function(NAME, &name, e);
        let new = rewrite_function(&mut b, &func, &mut narrow).map_err(refused)?;
        if narrow.changed {
            let new = super::clean_up(&mut b, &new).map_err(refused)?;
            b.module_mut().insert(name, new);
        }
    }
    Ok(b.finish())
}

/// What the columns of products are: the columns of a matrix, or its rows, where it is transposed first or its rows are looked up.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Along {
    Rows,
    Columns,
}

/// Matrices that were looked at: those that stay have none.
type NarrowedMatrices = HashMap<(Ref<Constant>, Along), Use>;

struct Narrow<'a> {
    form: NarrowForm,
    values: HashMap<AnyVar, Expr>,
    made: &'a mut NarrowedMatrices,
    changed: bool,
    function: String,
    notes: &'a WeightNotes,
}

impl Rewrite for Narrow<'_> {
    fn value(&mut self, b: &mut BlockBuilder, var: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let new = match &value {
            Expr::Call(call) => self.call(b, var, call)?,
            _ => None,
        };
        self.changed |= new.is_some();
        let value = new.unwrap_or(value);
        self.values.insert(var.clone(), value.clone());
        Ok(Action::Bind(value))
    }
}

/// What a use of a matrix becomes.
type Use = Result<Matrix, Stays>;

impl Narrow<'_> {
    fn call(&mut self, b: &mut BlockBuilder, var: &AnyVar, call: &Ref<Call>) -> Result<Option<Expr>, BuildError> {
        match (call.op_name(), call.args.as_slice()) {
            (Some("matmul"), [x, w]) => self.product(b, var, call, x, w),
            (Some("take"), [w, i]) if call.attrs.int("axis").is_some_and(|axis| axis == 0) => {
                self.lookup(b, var, call, w, i)
            }
            // What becomes of a matrix that is transposed is known where it is multiplied with.
            (Some("permute_dims") | None, _) => Ok(None),
            (Some(name), args) => {
                for arg in args {
                    self.note(var, arg, Some(Stays::Operator(name.to_string())));
                }
                Ok(None)
            }
        }
    }

    fn product(
        &mut self,
        b: &mut BlockBuilder,
        var: &AnyVar,
        call: &Call,
        x: &Expr,
        w: &Expr,
    ) -> Result<Option<Expr>, BuildError> {
        let (left, result) = (x.ty(), &call.ty);
        let behind = self.behind(w).clone();
        let permute = behind.as_op_call().filter(|(_, name)| *name == "permute_dims").map(|(call, _)| call.clone());
        let (matrix, along) = match &permute {
            Some(permute) => match permute.args.as_slice() {
                [inner] if is_swap(permute) => (self.behind(inner).clone(), Along::Rows),
                _ => return Ok(None),
            },
            None => (behind, Along::Columns),
        };
        let float = DataType::float(32);
        let dims = match (left.as_tensor(), result.as_tensor()) {
            (Some(left), Some(result)) if left.dtype == float && result.dtype == float && left.ndim > 1 => {
                result.shape.clone()
            }
            _ => None,
        };
        let found = match &dims {
            Some(_) => self.narrowed(&matrix, along),
            None => Err(Stays::Product),
        };
        self.note(var, &matrix, found.as_ref().err().cloned());
        match (found, dims) {
            (Ok(matrix), Some(dims)) => matrix.product(b, x, &dims).map(Some),
            _ => Ok(None),
        }
    }

    fn lookup(
        &mut self,
        b: &mut BlockBuilder,
        var: &AnyVar,
        call: &Call,
        w: &Expr,
        i: &Expr,
    ) -> Result<Option<Expr>, BuildError> {
        let matrix = self.behind(w).clone();
        let found = match call.attrs.str("mode") {
            Some("nan") => Err(Stays::Lookup),
            _ => self.narrowed(&matrix, Along::Rows),
        };
        self.note(var, &matrix, found.as_ref().err().cloned());
        match found {
            Ok(matrix) => matrix.lookup(b, call, i),
            Err(_) => Ok(None),
        }
    }

    /// What a name is bound to.
    fn behind<'e>(&'e self, e: &'e Expr) -> &'e Expr {
        e.as_var().and_then(|var| self.values.get(&var)).unwrap_or(e)
    }

    /// A constant matrix in fewer bits, once for each use of it, or why it stays.
    fn narrowed(&mut self, matrix: &Expr, along: Along) -> Use {
        let Expr::Constant(constant) = matrix else { return Err(Stays::Kind) };
        let form = self.form;
        let made = || narrowed(&constant.value, form, along);
        self.made.entry((constant.clone(), along)).or_insert_with(made).clone()
    }

    /// Notes what becomes of weights: of constants of some size. Small ones and what is computed are not spoken of.
    fn note(&self, var: &AnyVar, matrix: &Expr, stays: Option<Stays>) {
        let Expr::Constant(constant) = self.behind(matrix) else { return };
        let weights = &constant.value;
        if weights.numel() < MIN_ELEMENTS || weights.dtype() != DataType::float(32) {
            return;
        }
        self.notes.push(WeightNote {
            function: self.function.clone(),
            value: var.name().to_string(),
            shape: weights.shape().to_vec(),
            dtypes: [weights.dtype(), self.form.dtype],
            stays,
        });
    }
}

/// Whether a permutation swaps the two axes of a matrix.
fn is_swap(permute: &Call) -> bool {
    permute.attrs.ints("axes").is_none_or(|axes| matches!(axes[..], [1 | -1, 0 | -2]))
}

/// A matrix in fewer bits, or why it stays.
fn narrowed(matrix: &Tensor, form: NarrowForm, along: Along) -> Use {
    let dtype = form.dtype;
    let [rows, columns] = *matrix.shape() else { return Err(Stays::Kind) };
    if matrix.dtype() != DataType::float(32) {
        return Err(Stays::Kind);
    }
    if matrix.numel() < MIN_ELEMENTS {
        return Err(Stays::Size);
    }
    let host = matrix.to_vec::<f32>().map_err(|_| Stays::Kind)?;
    let most = if dtype == DataType::float(16) { f16::MAX.to_f32() } else { f32::MAX };
    // Part by part, in each of which all are looked at, as vectors do.
    let fits = |part: &[f32]| part.iter().fold(true, |fits, value| fits & (value.abs() <= most));
    if !host.chunks(MIN_ELEMENTS).all(fits) {
        return Err(Stays::Range);
    }
    Matrix::new(&host, [rows, columns], form, along)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_stays() {
        let matrix = |value: f32| Tensor::from_slice(&vec![value; MIN_ELEMENTS], &[64, 64]).unwrap();
        let narrow = |value, dtype: DataType| {
            narrowed(&matrix(value), NarrowForm { dtype, products: false }, Along::Rows).is_ok()
        };
        assert!(narrow(1e5, DataType::bfloat16()) && narrow(1e5, DataType::int(8)));
        assert!(!narrow(1e5, DataType::float(16)) && !narrow(f32::NAN, DataType::int(8)));
        assert!(!narrow(f32::INFINITY, DataType::bfloat16()));
        let small = Tensor::from_slice(&[1f32; 4], &[2, 2]).unwrap();
        let bytes = NarrowForm { dtype: DataType::int(8), products: false };
        assert_eq!(narrowed(&small, bytes, Along::Rows).err(), Some(Stays::Size));
    }
}
