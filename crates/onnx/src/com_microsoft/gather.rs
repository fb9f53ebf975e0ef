//! `GatherBlockQuantized`: parts of a table whose elements are small and share scales in blocks along an axis.

use relaxide_ffi::{DataType, SmallFloat};
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use super::packed::Fields;
use crate::dims;
use crate::error::NodeError;
use crate::node::Node;
use crate::ops::{Outputs, one};
use crate::scope::Scope;

type Result<T> = std::result::Result<T, NodeError>;

const REAL: DataType = DataType::float(32);

/// What a table holds.
#[derive(Clone, Copy)]
enum Elements {
    /// Bytes of several numbers along the last axis.
    Packed(Fields),
    /// Integers of four bits.
    Integers,
    /// Floats of eight bits or less, which have no zero points.
    Floats,
}

impl Elements {
    fn of(node: &Node, dtype: DataType) -> Result<Elements> {
        if dtype == DataType::uint(8) {
            return Fields::of(node.int_or("bits", 4)?).map(Elements::Packed);
        }
        if SmallFloat::of(dtype).is_some() {
            return Ok(Elements::Floats);
        }
        if !dtype.is_integer() || dtype.bits != 4 {
            return Err(NodeError::unsupported(format!("tables of {dtype} are not supported")));
        }
        match node.int_or("bits", 4)? {
            4 => Ok(Elements::Integers),
            bits => Err(NodeError::invalid(format!("`bits` is {bits} where the table has elements of 4"))),
        }
    }

    fn per_unit(self) -> i64 {
        match self {
            Elements::Packed(fields) => fields.per_byte(),
            Elements::Integers | Elements::Floats => 1,
        }
    }

    /// The element at a place, counted in elements.
    fn read(self, x: &te::Tensor, place: &[PrimExpr]) -> PrimExpr {
        prim::cast(
            REAL,
            match self {
                Elements::Packed(fields) => fields.read(x, place),
                Elements::Integers | Elements::Floats => x.at(place),
            },
        )
    }
}

/// A table whose elements share scales in blocks along an axis.
struct BlockedTable {
    elements: Elements,
    /// Counted in elements.
    shape: Vec<PrimExpr>,
    gathered: usize,
    blocked: usize,
    /// How many elements share a scale; all where there is no number.
    size: Option<i64>,
}

impl BlockedTable {
    fn of(scope: &Scope, node: &Node, data: &Expr) -> Result<BlockedTable> {
        let elements = Elements::of(node, scope.dtype(data))?;
        let mut shape = scope.dims(data)?;
        let rank = shape.len();
        let axis = |name: &str, default| {
            let axis = node.int_or(name, default)?;
            let at = dims::axis(axis, rank);
            at.ok_or_else(|| NodeError::invalid(format!("`{name}` is {axis}, which is not one of {rank} axes")))
        };
        let (gathered, blocked) = (axis("gather_axis", 0)?, axis("quantize_axis", 1)?);
        if matches!(elements, Elements::Packed(_)) && (blocked + 1 != rank || gathered == blocked) {
            return Err(NodeError::unsupported(format!(
                "of a table of bytes, `quantize_axis` must be the last axis and `gather_axis` another, not {blocked} and \
                 {gathered} of {rank}"
            )));
        }
        if let Some(last) = shape.last_mut() {
            *last = dims::simplify(&(&*last * elements.per_unit()));
        }
        let size = match (node.int_or("block_size", 128)?, elements) {
            (0, Elements::Floats) => None,
            (size @ 1.., _) => Some(size),
            (size, _) => return Err(NodeError::invalid(format!("`block_size` is {size}"))),
        };
        Ok(BlockedTable { elements, shape, gathered, blocked, size })
    }

    /// The shape of the scales. Those of floats may have one for all places of an axis.
    fn scale_shape(&self, given: &[PrimExpr]) -> Vec<PrimExpr> {
        let blocks = match self.size {
            Some(size) => dims::floor_div(&(&self.shape[self.blocked] + (size - 1)), &prim::int(size)),
            None => prim::int(1),
        };
        let floats = matches!(self.elements, Elements::Floats);
        let dim = |(i, own): (usize, &PrimExpr)| match given.get(i) {
            _ if i == self.blocked => blocks.clone(),
            Some(one) if floats && one.is_int(1) => prim::int(1),
            _ => own.clone(),
        };
        self.shape.iter().enumerate().map(dim).collect()
    }

    /// Where the scale of an element is, among scales of a shape.
    fn scale_place(&self, place: &[PrimExpr], shape: &[PrimExpr]) -> Vec<PrimExpr> {
        let at = |(i, at): (usize, &PrimExpr)| match self.size {
            _ if shape[i].is_int(1) => prim::int(0),
            Some(size) if i == self.blocked => prim::floordiv(at, prim::int(size)),
            _ => at.clone(),
        };
        place.iter().enumerate().map(at).collect()
    }
}

/// `GatherBlockQuantized`: parts of a table by their numbers, scaled. Numbers may count from the back; those that the table
/// does not have give zeros.
pub fn gather(scope: &mut Scope, node: &Node) -> Outputs {
    let table = scope.tensor(node.input(0)?)?;
    let blocks = BlockedTable::of(scope, node, &table)?;
    let (indices, scales) = (scope.tensor(node.input(1)?)?, scope.tensor(node.input(2)?)?);
    let scale_shape = blocks.scale_shape(&scope.dims(&scales)?);
    let scales = scope.agree(scales, &scale_shape)?;
    let dtype = scope.dtype(&scales);
    let numbers = scope.dims(&indices)?;
    let (axis, count) = (blocks.gathered, numbers.len());
    let out: Vec<PrimExpr> =
        blocks.shape[..axis].iter().chain(&numbers).chain(&blocks.shape[axis + 1..]).cloned().collect();
    let mut args = vec![table, indices, scales];
    if let Some(zeros) = node.optional(3) {
        if matches!(blocks.elements, Elements::Floats) {
            return Err(NodeError::invalid("a table of floats has no zero points"));
        }
        let mut shape = scale_shape.clone();
        if let (Some(last), per @ 2..) = (shape.last_mut(), blocks.elements.per_unit()) {
            *last = dims::floor_div(&(&*last + (per - 1)), &prim::int(per));
        }
        let zeros = scope.tensor(zeros)?;
        args.push(scope.agree(zeros, &shape)?);
    }
    let default = match blocks.elements {
        Elements::Packed(fields) => fields.middle(),
        Elements::Integers | Elements::Floats => 0.0,
    };
    one(scope.te("gather_blocks", args, |inputs| {
        let (data, indices, scales) = (inputs[0].clone(), inputs[1].clone(), inputs[2].clone());
        let zeros = inputs.get(3).cloned();
        vec![te::compute("gathered", out, |at: &[PrimExpr]| {
            let size = &blocks.shape[axis];
            let index = prim::cast(DataType::int(64), indices.at(&at[axis..axis + count]));
            let front = prim::select(prim::lt(&index, 0), &index + size, index);
            let inside = prim::and(prim::ge(&front, 0), prim::lt(&front, size));
            let place: Vec<PrimExpr> = at[..axis].iter().chain([&front]).chain(&at[axis + count..]).cloned().collect();
            let scale = blocks.scale_place(&place, &scale_shape);
            let value = blocks.elements.read(&data, &place);
            let zero = match &zeros {
                Some(zeros) => blocks.elements.read(zeros, &scale),
                None => prim::constant(REAL, default),
            };
            let real = (value - zero) * prim::cast(REAL, scales.at(&scale));
            prim::if_then_else(inside, prim::cast(dtype, real), prim::constant(dtype, 0.0))
        })]
    })?)
}
