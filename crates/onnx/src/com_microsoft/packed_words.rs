//! `MatMulNBits` with its weight as it is. In integers, where the node allows it (`accuracy_level` 4): what is multiplied is quantized to 8 bits in
//! blocks of a row, as the weight is in blocks of a column ([`relaxide_relax::blocks`]). Else in float32: each number becomes a float where it is
//! multiplied, so that a row reads half a byte an element.
//!
//! Serves weights of 4 bits that the program knows with whole blocks of eight numbers, in the order of their columns.

use relaxide_ffi::{DataType, Tensor};
use relaxide_ir::prim;
use relaxide_relax::{Expr, blocks};

use crate::constant;
use crate::dims;
use crate::error::NodeError;
use crate::scope::Scope;

type Result<T> = std::result::Result<T, NodeError>;

const F32: DataType = DataType::float(32);

/// What a product is computed in.
#[derive(Clone, Copy)]
pub(super) enum Arithmetic {
    /// What is multiplied is quantized to 8 bits, block by block.
    Integers,
    /// The weight's numbers become float32 where they are multiplied.
    Floats,
}

/// A weight of 4 bits in blocks.
pub(super) struct Blocks<'a> {
    /// Rows of the weight, its columns, and how many rows a block has.
    pub k: i64,
    pub n: i64,
    pub block: i64,
    /// Column by column, two numbers to a byte.
    pub packed: &'a Tensor,
    /// A scale for each block, column by column.
    pub scales: &'a Tensor,
    /// The numbers that stand for zero, packed like the weight; 8 where there are none.
    pub zeros: Option<&'a Tensor>,
}

impl Blocks<'_> {
    /// The product of a tensor's rows with the weight; none where the weight is not of this kind.
    pub fn product(&self, scope: &mut Scope, x: Expr, arithmetic: Arithmetic) -> Result<Option<Expr>> {
        let mut out = scope.dims(&x)?;
        let Some(of) = blocks::Blocks::new(self.k, self.n, self.block) else { return Ok(None) };
        let is_plain = scope.dtype(&x) == F32 && self.scales.dtype() == F32;
        let Some(last) = out.last_mut().filter(|_| is_plain) else { return Ok(None) };
        *last = prim::int(self.k);
        let x = scope.agree(x, &out)?;
        let (Some(words), Some(scales)) = (self.words(of)?, self.scales(of)?) else { return Ok(None) };
        let zeros = match self.zeros {
            None => None,
            Some(zeros) => match Blocks::zeros(of, zeros)? {
                Some(zeros) => Some(zeros),
                None => return Ok(None),
            },
        };
        let rows = dims::simplify(&out[..out.len() - 1].iter().fold(prim::int(1), |n, dim| n * dim));
        let x = scope.reshape_known(x, vec![rows.clone(), prim::int(self.k)])?;
        let args = [x, words, scales].into_iter().chain(zeros).collect();
        let mut y = scope.te("matmul_blocks", args, |inputs| match arithmetic {
            Arithmetic::Integers => of.product("matmul_blocks", inputs),
            Arithmetic::Floats => of.product_of_floats("matmul_blocks", inputs),
        })?;
        if of.panels().padded() != self.n {
            y = scope
                .te("columns", vec![y], |inputs| inputs.iter().map(|y| of.panels().without_padding(y)).collect())?;
        }
        if let Some(last) = out.last_mut() {
            *last = prim::int(self.n);
        }
        scope.reshape_known(y, out).map(Some)
    }

    /// The numbers of a packed constant, one or two bytes' worth after the other.
    fn halves(tensor: &Tensor) -> Result<Option<Vec<u8>>> {
        if tensor.dtype() != DataType::uint(8) {
            return Ok(None);
        }
        let bytes = tensor.to_bytes().map_err(|e| NodeError::invalid(e.to_string()))?;
        Ok(Some(bytes.iter().flat_map(|byte| [byte & 15, byte >> 4]).collect()))
    }

    /// The weight.
    fn words(&self, of: blocks::Blocks) -> Result<Option<Expr>> {
        // Each column has whole blocks of numbers, also where it has fewer.
        let stride = (of.count() * self.block) as usize;
        let Some(numbers) = Blocks::halves(self.packed)?.filter(|all| all.len() == stride * self.n as usize) else {
            return Ok(None);
        };
        let words = of.words(|row, column| numbers[column * stride + row]);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        constant_of(&bytes, of.shape_of_words(), DataType::uint(32)).map(Some)
    }

    fn scales(&self, of: blocks::Blocks) -> Result<Option<Expr>> {
        let scales = constant::floats(self.scales).map_err(|e| NodeError::invalid(e.to_string()))?;
        let count = of.count() as usize;
        if scales.len() != count * self.n as usize {
            return Ok(None);
        }
        let scales = of.per_block(0.0, |block, column| scales[column * count + block] as f32);
        let bytes: Vec<u8> = scales.iter().flat_map(|scale| scale.to_le_bytes()).collect();
        constant_of(&bytes, of.shape_of_blocks(), F32).map(Some)
    }

    /// What stands for zero in each block.
    fn zeros(of: blocks::Blocks, zeros: &Tensor) -> Result<Option<Expr>> {
        // Each column begins with a byte of its own.
        let stride = (of.count() as usize).div_ceil(2) * 2;
        let Some(numbers) = Blocks::halves(zeros)?.filter(|all| all.len() == stride * of.panels().columns() as usize)
        else {
            return Ok(None);
        };
        let zeros = of.per_block(blocks::MIDDLE, |block, column| numbers[column * stride + block]);
        constant_of(&zeros, of.shape_of_blocks(), DataType::uint(8)).map(Some)
    }
}

fn constant_of(bytes: &[u8], shape: [i64; 3], dtype: DataType) -> Result<Expr> {
    Tensor::from_bytes(bytes, &shape, dtype).map(Expr::constant).map_err(|e| NodeError::invalid(e.to_string()))
}
