//! Weights of a few bits, several to a byte, and products with them.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use super::packed_words::{Arithmetic, Blocks};
use super::product::product;
use crate::error::NodeError;
use crate::node::Node;
use crate::ops::elementwise::broadcast_call;
use crate::ops::{Outputs, one};
use crate::scope::Scope;

type Result<T> = std::result::Result<T, NodeError>;

const REAL: DataType = DataType::float(32);

/// Numbers of 2, 4 or 8 bits that share bytes, the first in the lowest bits.
#[derive(Clone, Copy)]
pub(super) struct Fields {
    bits: i64,
}

impl Fields {
    /// Numbers of so many bits.
    pub fn of(bits: i64) -> Result<Fields> {
        match bits {
            2 | 4 | 8 => Ok(Fields { bits }),
            _ => {
                Err(NodeError::unsupported(format!("weights of {bits} bits are not supported; of 2, 4 and 8 they are")))
            }
        }
    }

    /// How many share a byte.
    pub fn per_byte(self) -> i64 {
        8 / self.bits
    }

    /// How many bytes so many numbers take.
    pub fn bytes(self, count: i64) -> i64 {
        (count + self.per_byte() - 1) / self.per_byte()
    }

    /// The number in the middle of the range, which stands for zero where nothing else is said.
    pub fn middle(self) -> f64 {
        2f64.powi(self.bits as i32 - 1)
    }

    /// The number at a place whose last index counts numbers, of a tensor whose last axis are bytes.
    pub fn read(self, bytes: &te::Tensor, place: &[PrimExpr]) -> PrimExpr {
        let int = DataType::int(32);
        let mut place = place.to_vec();
        let Some(last) = place.last_mut() else { return prim::cast(int, bytes.at(&place)) };
        let i = last.clone();
        *last = prim::floordiv(&i, prim::int(self.per_byte()));
        let byte = prim::cast(int, bytes.at(&place));
        if self.bits == 8 {
            return byte;
        }
        let number = |n: i64| prim::constant(int, n as f64);
        let shift = prim::cast(int, prim::floormod(i, prim::int(self.per_byte()))) * number(self.bits);
        let shifted = prim::call(int, "tirx.shift_right", vec![byte, shift]);
        prim::call(int, "tirx.bitwise_and", vec![shifted, number((1 << self.bits) - 1)])
    }
}

/// A size that must be there.
fn size(node: &Node, name: &str) -> Result<i64> {
    node.int(name)?.filter(|v| *v > 0).ok_or_else(|| NodeError::invalid(format!("`{name}` is missing")))
}

/// `MatMulNBits`: a weight with a scale for each block of a column. `g_idx` says for each row whose block's scale and zero it
/// has.
pub fn matmul_n_bits(scope: &mut Scope, node: &Node) -> Outputs {
    let (k, n, block) = (size(node, "K")?, size(node, "N")?, size(node, "block_size")?);
    let fields = Fields::of(node.int_or("bits", 4)?)?;
    let x = scope.tensor(node.input(0)?)?;
    let (packed, scales) = (scope.tensor(node.input(1)?)?, scope.tensor(node.input(2)?)?);
    let blocks = (k + block - 1) / block;
    if let Some(y) = in_words(scope, node, [k, n, block], fields)? {
        return one(with_bias(scope, node, y)?);
    }
    let packed = scope.reshape(packed, [n, blocks, fields.bytes(block)].map(prim::int).to_vec())?;
    let scales = scope.reshape(scales, [n, blocks].map(prim::int).to_vec())?;
    let dtype = scope.dtype(&x);
    let mut args = vec![packed, scales];
    let mut zeros_are_packed = false;
    if let Some(zeros) = node.optional(3) {
        let zeros = scope.tensor(zeros)?;
        zeros_are_packed = scope.dtype(&zeros) == DataType::uint(8);
        let columns = if zeros_are_packed { fields.bytes(blocks) } else { blocks };
        args.push(scope.reshape(zeros, [n, columns].map(prim::int).to_vec())?);
    }
    // Which block's scale a row has, where they were reordered.
    let with_zeros = args.len() > 2;
    let groups = node.optional(4).map(|groups| scope.tensor(groups)).transpose()?;
    if let Some(groups) = &groups
        && !matches!(&scope.dims(groups)?[..], [n] if n.as_int().is_some_and(|n| n >= k))
    {
        return Err(NodeError::invalid(format!("`g_idx` must have {k} elements")));
    }
    let reordered = groups.is_some();
    args.extend(groups);
    let weight = scope.te("unpack", args, |inputs| {
        let (packed, scales) = (inputs[0].clone(), inputs[1].clone());
        let zeros = inputs.get(2).filter(|_| with_zeros).cloned();
        let groups = inputs.last().filter(|_| reordered).cloned();
        vec![te::compute("unpack", vec![prim::int(k), prim::int(n)], |at: &[PrimExpr]| {
            let (row, column) = (at[0].clone(), at[1].clone());
            let (of, inside) = (prim::floordiv(&row, prim::int(block)), prim::floormod(&row, prim::int(block)));
            let value = prim::cast(dtype, fields.read(&packed, &[column.clone(), of.clone(), inside]));
            let of = match &groups {
                Some(groups) => {
                    let group = prim::cast(DataType::int(64), groups.at(&[row]));
                    prim::max(prim::min(group, prim::int(blocks - 1)), prim::int(0))
                }
                None => of,
            };
            let place = [column, of];
            let zero = match &zeros {
                None => prim::constant(dtype, fields.middle()),
                Some(zeros) if zeros_are_packed => prim::cast(dtype, fields.read(zeros, &place)),
                Some(zeros) => prim::cast(dtype, zeros.at(&place)),
            };
            (value - zero) * prim::cast(dtype, scales.at(&place))
        })]
    })?;
    let y = product(scope, node, x, weight)?;
    one(with_bias(scope, node, y)?)
}

/// The product with the weight's own words, where it is of a kind that has one: in integers, where the node allows it.
fn in_words(scope: &mut Scope, node: &Node, [k, n, block]: [i64; 3], fields: Fields) -> Result<Option<Expr>> {
    let allowed = fields.bits == 4 && node.optional(4).is_none();
    let arithmetic = if node.int_or("accuracy_level", 0)? == 4 { Arithmetic::Integers } else { Arithmetic::Floats };
    let Some(packed) = node.input(1)?.constant().filter(|_| allowed) else { return Ok(None) };
    let zeros = match node.optional(3) {
        None => None,
        Some(zeros) => match zeros.constant() {
            Some(zeros) => Some(zeros),
            None => return Ok(None),
        },
    };
    let Some(scales) = node.input(2)?.constant() else { return Ok(None) };
    let x = scope.tensor(node.input(0)?)?;
    Blocks { k, n, block, packed, scales, zeros }.product(scope, x, arithmetic)
}

fn with_bias(scope: &mut Scope, node: &Node, y: Expr) -> Result<Expr> {
    let Some(bias) = node.optional(5) else { return Ok(y) };
    let bias = scope.tensor(bias)?;
    broadcast_call(scope, "add", [y, bias])
}

/// What the sixteen codes of `MatMulBnb4`'s first kind stand for: floats of one sign, two exponent and one mantissa bit, of
/// which the largest is 1.
const FP4: [f64; 16] = {
    let twelfths = [0.0, 0.0625, 8.0, 12.0, 4.0, 6.0, 2.0, 3.0];
    let mut codes = [0.0; 16];
    let mut i = 0;
    while i < 8 {
        codes[i] = twelfths[i] / 12.0;
        codes[i + 8] = -twelfths[i] / 12.0;
        i += 1;
    }
    codes
};

/// And of its second: quantiles of the normal distribution, as the paper on QLoRA gives them.
const NF4: [f64; 16] = [
    -1.0,
    -0.6961928009986877,
    -0.5250730514526367,
    -0.39491748809814453,
    -0.28444138169288635,
    -0.18477343022823334,
    -0.09105003625154495,
    0.0,
    0.07958029955625534,
    0.16093020141124725,
    0.24611230194568634,
    0.33791524171829224,
    0.44070982933044434,
    0.5626170039176941,
    0.7229568362236023,
    1.0,
];

/// `MatMulBnb4`: a weight of `N` rows and `K` columns as codes of four bits, the first of a byte in its upper half, with the
/// largest absolute value of each block of elements one after the other, whatever row they are in.
pub fn matmul_bnb4(scope: &mut Scope, node: &Node) -> Outputs {
    let (k, n, block) = (size(node, "K")?, size(node, "N")?, size(node, "block_size")?);
    let codes = match node.int("quant_type")? {
        Some(0) => FP4,
        Some(1) => NF4,
        Some(other) => return Err(NodeError::invalid(format!("`quant_type` is {other}, not 0 or 1"))),
        None => return Err(NodeError::invalid("`quant_type` is missing")),
    };
    let x = scope.tensor(node.input(0)?)?;
    let (packed, largest) = (scope.tensor(node.input(1)?)?, scope.tensor(node.input(2)?)?);
    let fields = Fields::of(4)?;
    let packed = scope.reshape(packed, vec![prim::int(fields.bytes(k * n))])?;
    let largest = scope.reshape(largest, vec![prim::int((k * n + block - 1) / block)])?;
    let codes = scope.constant(&codes, &[16], REAL)?;
    let dtype = scope.dtype(&x);
    let transposed = node.flag("transB", true)?;
    let shape = if transposed { [k, n] } else { [n, k] }.map(prim::int);
    let weight = scope.te("unpack", vec![packed, largest, codes], |inputs| {
        let (packed, largest, codes) = (inputs[0].clone(), inputs[1].clone(), inputs[2].clone());
        vec![te::compute("unpack", shape.to_vec(), |at: &[PrimExpr]| {
            let (row, column) = if transposed { (&at[1], &at[0]) } else { (&at[0], &at[1]) };
            let element = row * k + column;
            let other_half = &element + 1 - prim::floormod(&element, prim::int(2)) * 2;
            let code = codes.at(&[prim::cast(DataType::int(64), fields.read(&packed, &[other_half]))]);
            let scale = prim::cast(REAL, largest.at(&[prim::floordiv(&element, prim::int(block))]));
            prim::cast(dtype, code * scale)
        })]
    })?;
    one(product(scope, node, x, weight)?)
}
