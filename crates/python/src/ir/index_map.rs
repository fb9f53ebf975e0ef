//! Maps of indices to Python.

use relaxide::ffi::{Any, Array, Error, ErrorKind, Object, Ref};
use relaxide::ir::arith::Analyzer;
use relaxide::ir::prim::{self, PrimExpr};
use relaxide::relax::analysis::suggest_layout_transforms;
use relaxide::tir::index_map::Inverse;
use relaxide::tir::{IndexMap, PrimFunc};

use super::{Args, Row};

pub(super) const TABLE: &[Row] = &[
    ("tirx.IndexMap", |args| {
        let (initial_indices, final_indices) = (args.get(0)?, args.prims(1)?.unwrap_or_default());
        Ok(Ref::new(IndexMap { initial_indices, final_indices, inverse_index_map: args.optional(2)? }).into())
    }),
    ("tirx.IndexMapMapIndices", |args| {
        let (map, indices) = (map_of(args)?, args.prims(1)?.unwrap_or_default());
        match map.apply(&indices) {
            Some(indices) => Ok(simplified(indices)),
            None => refuse(format!("the map takes {} indices", map.initial_indices.len())),
        }
    }),
    ("tirx.IndexMapMapShape", |args| match map_of(args)?.apply_to_shape(&args.prims(1)?.unwrap_or_default()) {
        Some(dims) => Ok(simplified(dims)),
        None => refuse("the largest index that the map gives over these dimensions is not known".into()),
    }),
    ("tirx.IndexMapInverse", |args| {
        let (map, inverse) = way_back(args)?;
        match inverse.padded {
            false => Ok(Ref::new(inverse.map).into()),
            true => refuse(format!("the {} indices of the map's result are more than those it comes from", map)),
        }
    }),
    ("tirx.IndexMapNonSurjectiveInverse", |args| {
        let (_, inverse) = way_back(args)?;
        let dims = args.prims(1)?.unwrap_or_default();
        let outside = inverse.map.final_indices.iter().zip(&dims).map(|(index, dim)| prim::ge(index, dim));
        let outside = if inverse.padded { outside.reduce(prim::or) } else { None };
        let outside = outside.unwrap_or_else(|| prim::boolean(false));
        let both: Array = [Any::from(Ref::new(inverse.map)), outside.into()].into_iter().collect();
        Ok(both.into())
    }),
    ("relax.analysis.suggest_layout_transforms", |args| {
        let maps: Vec<Ref<IndexMap>> = args.get(1)?;
        let found =
            suggest_layout_transforms(&*args.get::<Ref<PrimFunc>>(0)?, &maps).or_else(|why| refuse(why.to_string()))?;
        let block = |one: relaxide::relax::analysis::BlockTransforms| -> Any {
            let buffers = one.buffers.into_iter().flat_map(|(buffer, map)| [Any::from(buffer), map.into()]);
            [Any::from(one.block), one.axes.into()].into_iter().chain(buffers).collect::<Array>().into()
        };
        Ok(found.into_iter().map(block).collect::<Array>().into())
    }),
];

pub(super) fn enter() {
    IndexMap::type_index();
}

fn refuse<T>(message: String) -> Result<T, Error> {
    Err(Error::new(ErrorKind::ValueError, message))
}

fn map_of(args: &Args<'_>) -> Result<Ref<IndexMap>, Error> {
    args.get(0)
}

/// How many new indices there are, and the map back over given dimensions.
fn way_back(args: &Args<'_>) -> Result<(usize, Inverse), Error> {
    let map = map_of(args)?;
    match map.inverse(&args.prims(1)?.unwrap_or_default()) {
        Some(inverse) => Ok((map.final_indices.len(), inverse)),
        None => refuse("the map does not lead back over these dimensions; it may move, split and join axes".into()),
    }
}

fn simplified(indices: Vec<PrimExpr>) -> Any {
    let mut analyzer = Analyzer::new();
    indices.iter().map(|e| Any::from(analyzer.simplify(e))).collect::<Array>().into()
}
