//! `transform_layout`: a buffer is laid out anew, and every access to it changes with it.
//!
//! ```text
//! B = alloc(128, 128)                                      B = alloc(8, 8, 16, 16)
//! B[vi, vj] = …           -- (i//16, j//16, i%16, j%16) ->  B[vi // 16, vj // 16, vi % 16, vj % 16] = …
//! … = B[vi, vj]                                            … = B[vi // 16, vj // 16, vi % 16, vj % 16]
//! ```
//!
//! Different elements must go to different places: the map must have an inverse that can be found, or the caller says that it
//! is injective. Every place must be that of an element: a map that leaves some empty is refused, unless the caller says what
//! is there (`pad_value`, see [`super::layout_padding`]) or takes it upon itself. A parameter of the kernel changes its shape
//! with the layout.

use relaxide_ffi::{Object, ObjectRef, Ref};
use relaxide_ir::arith::Analyzer;
use relaxide_ir::attrs::AttrValue;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{Buffer, DataType};

use super::caching::buffer_like;
use super::layout_padding::{LayoutPadding, writers_of};
use super::rebuffer::Rebuffer;
use super::structure::nth_buffer;
use crate::IndexMap;
use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::state::{StmtRef, Tree, replace};
use crate::s_tir::step::{Call, operand};
use crate::s_tir::{SBlockRV, Schedule, ScheduleError, StepError, Value};
use crate::stmt::*;

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "TransformLayout",
    method: "transform_layout",
    is_pure: false,
    params: &[
        Param::Input("block"),
        Param::Buffer("buffer"),
        Param::Input("index_map"),
        Param::Attr("pad_value"),
        Param::Attr("assume_injective_transform"),
    ],
    results: Results::None,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let place = sch.block_ref(&call.block(0)?)?;
    let realize = place.realize()?;
    let block = &realize.block;
    let buffer = chosen_buffer(call, block)?.buffer.clone();
    let given: Ref<IndexMap> = call.input_object(1)?;
    let map = simpler(&given, &buffer.shape);
    let padding: Option<Ref<IndexMap>> = match call.attrs.get(2) {
        None | Some(AttrValue::None) => None,
        Some(_) => Some(call.object(2)?),
    };
    let trusted = call.flag(3)?;
    let refuse = |reason: String| ScheduleError::at_block(block, reason);
    if map.initial_indices.len() != buffer.ndim() {
        let (takes, ndim) = (map.initial_indices.len(), buffer.ndim());
        return Err(refuse(format!(
            "the map takes {takes} indices, but buffer `{}` has {ndim} dimensions",
            buffer.name
        )));
    }
    let inverse = map.inverse(&buffer.shape);
    match &inverse {
        None if !trusted => {
            return Err(refuse(format!("no inverse of the map is found over buffer `{}`", buffer.name))
                .with_help("assume_injective_transform says that different elements go to different places"));
        }
        Some(inverse) if inverse.padded && !trusted && padding.is_none() => {
            return Err(refuse(format!("the map leaves places of buffer `{}` without an element", buffer.name))
                .with_help("choose factors that divide the dimensions, or say what is there with pad_value"));
        }
        _ => {}
    }
    if place.tree.blocks().any(|(_, n)| n.block.match_buffers.iter().any(|m| m.source.buffer == buffer)) {
        return Err(refuse(format!("a block sees a part of buffer `{}` under another name", buffer.name)));
    }
    let new = Ref::new(laid_out(&buffer, &map).ok_or_else(|| {
        refuse(format!("the dimensions of buffer `{}` under the map cannot be worked out", buffer.name))
    })?);
    match (padding, inverse.filter(|inverse| inverse.padded)) {
        (Some(value), Some(inverse)) => {
            let filled = LayoutPadding { from: &buffer, to: &new, inverse: &inverse, value: &value };
            filled.check(block)?;
            pad(sch, &place, &filled, &map)?;
        }
        _ => drop(Rebuffer::new(&buffer, &new, Some(&map)).commit(sch, &place.func)?),
    }
    Ok(Vec::new())
}

/// Lays a buffer out anew, and fills what that leaves empty.
fn pad(sch: &mut Schedule, place: &StmtRef, padding: &LayoutPadding<'_>, map: &IndexMap) -> Result<(), ScheduleError> {
    let writers = writers_of(&place.tree, padding.from);
    if let [only] = writers.as_slice()
        && let Some((nest, whole, old, made)) = padding.over_layout(place, *only)
    {
        let body = replace(&sch.func(&place.func)?.body, &[(nest, whole)]);
        sch.commit(&place.func, body, &[(old, made)])?;
        return Rebuffer::new(padding.from, padding.to, Some(map)).commit(sch, &place.func);
    }
    Rebuffer::new(padding.from, padding.to, Some(map)).commit(sch, &place.func)?;
    let tree = Tree::of(&sch.func(&place.func)?.body);
    let behind: Vec<Ref<SBlock>> =
        writers_of(&tree, padding.to).iter().filter_map(|id| tree.as_block(*id)).map(|n| n.block.clone()).collect();
    padding.fill_behind(sch, &place.func, &behind)
}

/// The buffer that the first two constants name: its index, and whether among those that are read (0) or written (1).
pub(super) fn chosen_buffer(call: &Call<'_>, block: &SBlock) -> Result<Ref<BufferRegion>, ScheduleError> {
    match (call.int(0)?, call.int(1)?) {
        (at, 0) => nth_buffer(block, at, &block.reads, "reads"),
        (at, 1) => nth_buffer(block, at, &block.writes, "writes"),
        _ => Err(ScheduleError::Operand("a buffer is named by its index and by 0 (read) or 1 (written)".into())),
    }
}

/// A map over dimensions that are known: `i % 4` is `i` where there are but two.
pub(super) fn simpler(map: &IndexMap, dims: &[PrimExpr]) -> IndexMap {
    let mut analyzer = Analyzer::new();
    // Along a dimension of one the index stays what it is called, and does not become zero.
    for (var, dim) in map.initial_indices.iter().zip(dims).filter(|(_, dim)| !dim.is_int(1)) {
        analyzer.bind(var, prim::int_of(var.dtype(), 0), prim::cast(var.dtype(), dim.clone()));
    }
    let final_indices = map.final_indices.iter().map(|e| analyzer.simplify_as_tvm(e)).collect();
    IndexMap { initial_indices: map.initial_indices.clone(), final_indices, inverse_index_map: None }
}

/// A buffer under a map of its indices.
fn laid_out(buffer: &Buffer, map: &IndexMap) -> Option<Buffer> {
    let dtype = buffer.shape.first().map_or(DataType::int(64), PrimExpr::dtype);
    let mut analyzer = Analyzer::new();
    let shape: Vec<PrimExpr> =
        map.apply_to_shape(&buffer.shape)?.iter().map(|d| prim::cast(dtype, analyzer.simplify_as_tvm(d))).collect();
    let new = buffer_like(buffer, buffer.name.clone(), &shape, &buffer.scope);
    Some(Buffer {
        name: new.name.clone(),
        data: buffer.data.clone(),
        dtype: new.dtype,
        shape,
        strides: Vec::new(),
        elem_offset: new.elem_offset.clone(),
        scope: new.scope.clone(),
        alignment: new.alignment,
        offset_factor: new.offset_factor,
        layout: relaxide_ir::layout::Placement::Strided,
        producer: None,
    })
}

/// A buffer of a block, as constants.
pub(super) fn buffer_operand(side: &str, index: i64) -> [AttrValue; 2] {
    [index.into(), i64::from(side == "write").into()]
}

/// A map of indices as an operand.
pub(super) fn map_operand(map: &Ref<IndexMap>) -> AttrValue {
    IndexMap::type_index();
    AttrValue::Object(ObjectRef::from(map))
}

impl Schedule {
    /// Lays out a buffer of a block anew: the `index`th of those that it reads (`side` is `"read"`) or writes (`"write"`).
    pub fn transform_layout(
        &mut self,
        block: &Ref<SBlockRV>,
        side: &str,
        index: i64,
        map: &Ref<IndexMap>,
        assume_injective_transform: bool,
    ) -> Result<(), StepError> {
        let padding = [AttrValue::None, assume_injective_transform.into()];
        let attrs = buffer_operand(side, index).into_iter().chain(padding).collect();
        self.step_only(&KIND, vec![operand(block), map_operand(map)], attrs)
    }

    /// The same where the layout has places that no element goes to: a value over its indices is put there.
    pub fn transform_layout_padded(
        &mut self,
        block: &Ref<SBlockRV>,
        side: &str,
        index: i64,
        map: &Ref<IndexMap>,
        pad_value: &Ref<IndexMap>,
    ) -> Result<(), StepError> {
        let padding = [map_operand(pad_value), false.into()];
        let attrs = buffer_operand(side, index).into_iter().chain(padding).collect();
        self.step_only(&KIND, vec![operand(block), map_operand(map)], attrs)
    }
}
