//! PackWeights: constant matrices of products and filters of convolutions lie in panels, as loops over them read them.
//!
//! ```text
//! y = R.matmul(x, w)       ->    y = R.call_tir(cls.matmul, (x, p), …)       y[.., n] = sum over k of x[.., k] * p[n // 64, k, n % 64]
//! y = R.nn.conv2d(x, w)    ->    y = R.call_tir(cls.conv2d, (x, p), …)       the same of filters, p[m // 64, c, i, j, m % 64]
//! ```
//!
//! A product of many rows otherwise copies its matrix panel by panel whenever it runs, from rows that lie far apart, often by a power of two, so
//! that few of their lines fit a cache together; and one of few rows reads pieces of rows, each from another page of memory. A panel is read from
//! its beginning to its end. The schedule makes axes of `n // 64` and `n % 64` (`relaxide_tir::schedule`). [`filters`] says which convolutions gain.
//!
//! **Where** the matrix is a constant of float32 (`FoldConstant` has run before), large enough, and has more than one panel and no column outside
//! of them; what is multiplied with it has rows. Others stay, and everything for GPUs. A matrix of several products is packed once.

mod filters;
mod matrix;

use std::collections::HashMap;

use relaxide_ffi::{DataType, Ref, Tensor};
use relaxide_ir::IRModule;
use relaxide_ir::pass::{PassContext, PassInfo, PassResult};
use relaxide_tir::schedule::Machine;

use crate::blocks::Widths;
use crate::rewrite::{Action, Rewrite, in_function, rewrite_function};
use crate::*;

pub(super) const PASS: PassInfo = PassInfo::new(
    "PackWeights",
    "Constant matrices of products and filters of convolutions lie in panels.",
    |module, context, _| {
        if context.target.is_gpu() {
            return Ok(module);
        }
        run(module, widths(context))
    },
);

const F32: DataType = DataType::float(32);

/// Those of the processor with the longest vectors, if there are several: others read a part of a panel at a time.
fn widths(context: &PassContext) -> Widths {
    let of = |target| Widths::of(&Machine::of(target), F32);
    context.also.iter().map(of).fold(of(&context.target), Widths::wider)
}

fn run(module: IRModule, widths: Widths) -> PassResult {
    let mut b = BlockBuilder::with_module(module);
    let functions: Vec<_> = b.module().functions_of::<Function>().map(|(n, f)| (n.to_string(), f)).collect();
    let mut packed = HashMap::new();
    for (name, func) in functions {
        let mut pack = Pack { widths, values: HashMap::new(), packed: &mut packed, changed: false };
        let refused = |e| in_function(PASS.name, &name, e);
        let new = rewrite_function(&mut b, &func, &mut pack).map_err(refused)?;
        if pack.changed {
            let new = super::clean_up(&mut b, &new).map_err(refused)?;
            b.module_mut().insert(name, new);
        }
    }
    Ok(b.finish())
}

/// How panels lie. One constant may have several: a matrix that is the right one of a product and the left one of another.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Layout {
    /// Columns of a matrix.
    Columns,
    /// Rows of one matrix or several.
    Rows,
    /// Filters of a convolution.
    Filters,
}

struct Pack<'a> {
    widths: Widths,
    values: HashMap<AnyVar, Expr>,
    /// Constants that were looked at, with their panels if they have some.
    packed: &'a mut HashMap<(Ref<Constant>, Layout), Option<Expr>>,
    changed: bool,
}

impl Rewrite for Pack<'_> {
    fn value(&mut self, b: &mut BlockBuilder, var: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let new = match &value {
            Expr::Call(call) => match call.op_name() {
                Some("matmul") => matrix::product(self, b, call)?,
                Some("nn.conv2d") => filters::convolution(self, b, call)?,
                _ => None,
            },
            _ => None,
        };
        self.changed |= new.is_some();
        let value = new.unwrap_or(value);
        self.values.insert(var.clone(), value.clone());
        Ok(Action::Bind(value))
    }
}

impl Pack<'_> {
    /// The panels of a constant behind an operand, as `laid_out` makes them; none where there is no constant, or where it is to stay.
    fn panels(
        &mut self,
        operand: &Expr,
        layout: Layout,
        laid_out: impl FnOnce(&Tensor, Widths) -> Option<Tensor>,
    ) -> Option<Expr> {
        let constant = operand.as_var().and_then(|var| self.values.get(&var)).unwrap_or(operand);
        let Expr::Constant(constant) = constant else { return None };
        let packed = self.packed.entry((constant.clone(), layout));
        packed.or_insert_with(|| laid_out(&constant.value, self.widths).map(Expr::constant)).clone()
    }
}

#[cfg(test)]
mod tests {
    use relaxide_ir::Target;

    use super::*;

    #[test]
    fn panels_for_several_processors_are_those_of_the_longest_vectors() {
        let target = |name: &str| Target::llvm(name).with("mtriple", "x86_64-unknown-linux-gnu");
        let of = |name: &str, also: &[&str]| {
            let also = also.iter().map(|name| target(name)).collect();
            widths(&PassContext { target: target(name), also, ..PassContext::default() })
        };
        assert_eq!(of("x86-64-v2", &["x86-64-v3", "x86-64-v4"]), Widths::LONGEST);
        assert_eq!(of("x86-64-v4", &[]), Widths::LONGEST);
        assert_eq!(of("x86-64-v2", &["x86-64-v3"]), of("x86-64-v3", &[]));
        assert_ne!(of("x86-64-v2", &[]), of("x86-64-v3", &[]));
    }

    #[test]
    fn a_matrix_on_both_sides_has_panels_of_columns_and_of_rows() {
        let matrix = Expr::constant(Tensor::from_slice(&vec![1f32; 192 * 256], &[192, 256]).unwrap());
        let mut packed = HashMap::new();
        let mut pack = Pack { widths: Widths::LONGEST, values: HashMap::new(), packed: &mut packed, changed: false };
        let shape = |panels: Option<Expr>| match panels {
            Some(Expr::Constant(panels)) => panels.value.shape().to_vec(),
            _ => Vec::new(),
        };
        for _ in 0..2 {
            assert_eq!(shape(pack.panels(&matrix, Layout::Columns, matrix::in_panels)), [4, 192, 64]);
            assert_eq!(shape(pack.panels(&matrix, Layout::Rows, matrix::rows_in_panels)), [3, 256, 64]);
        }
    }
}
