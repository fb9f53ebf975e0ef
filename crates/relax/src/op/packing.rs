//! [`Packing`]: how the axes of a tensor lie, where some may be split into blocks.
//!
//! ```text
//! NCHW4c    channels in blocks of four; a block lies last      (n, c, h, w) → (n, c // 4, h, w, c % 4)
//! OIHW4o    the same of the output channels of a weight        (o, i, h, w) → (o // 4, i, h, w, o % 4)
//! ```
//!
//! A capital letter stands for an axis, or for its blocks where it is split; a number and a small letter for the elements of
//! a block. An axis is split once at most. Without blocks a packing is an [`AxisOrder`].
//!
//! **Leaves out** blocks of several axes in one place (`OIHW[4o4i]`): names with brackets are refused.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_tir::{IndexMap, te};

use super::AxisOrder;
use crate::shape::prove_equal;

/// An axis that is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct SplitAxis {
    axis: usize,
    /// How many elements a block has.
    size: i64,
}

/// How the axes of a tensor lie: some of them split into blocks, all in an order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Packing {
    /// How many axes the program knows.
    ndim: usize,
    blocks: Vec<SplitAxis>,
    /// The order of the program's axes, which are numbered first, and of the insides of the blocks behind them.
    order: AxisOrder,
}

impl From<AxisOrder> for Packing {
    fn from(order: AxisOrder) -> Self {
        Packing { ndim: order.ndim(), blocks: Vec::new(), order }
    }
}

impl Packing {
    /// How axes named `from` lie as `to`: `("NCHW", "NCHW4c")`. `None` where the letters are not the same ones, or where
    /// `to` is no name of a layout.
    pub fn between(from: &str, to: &str) -> Option<Packing> {
        let letters: Vec<char> = from.chars().collect();
        let axis_of = |letter: char| letters.iter().position(|l| *l == letter);
        let (mut places, mut blocks, mut size) = (Vec::new(), Vec::new(), None::<i64>);
        for c in to.chars() {
            if let Some(digit) = c.to_digit(10) {
                size = Some(size.unwrap_or(0).checked_mul(10)?.checked_add(i64::from(digit))?);
            } else if c.is_ascii_uppercase() && size.is_none() {
                places.push(axis_of(c)?);
            } else if c.is_ascii_lowercase() {
                let axis = axis_of(c.to_ascii_uppercase())?;
                let size = size.take().filter(|size| *size > 0)?;
                if blocks.iter().any(|b: &SplitAxis| b.axis == axis) {
                    return None;
                }
                places.push(letters.len() + blocks.len());
                blocks.push(SplitAxis { axis, size });
            } else {
                return None;
            }
        }
        let all = places.len() == letters.len() + blocks.len() && size.is_none();
        let order = AxisOrder::new(places).filter(|_| all)?;
        Some(Packing { ndim: letters.len(), blocks, order })
    }

    /// The order of the axes, if none is split.
    pub fn order(&self) -> Option<&AxisOrder> {
        self.blocks.is_empty().then_some(&self.order)
    }

    /// Whether the axes lie in the program's own order, none of them split.
    pub fn is_plain(&self) -> bool {
        self.order().is_some_and(AxisOrder::is_identity)
    }

    /// Where an axis of the program's lies: one place, or those of its blocks and of their insides, in order.
    pub fn places_of(&self, axis: usize) -> Vec<usize> {
        let inside = self.blocks.iter().position(|b| b.axis == axis).map(|i| self.ndim + i);
        let mut places: Vec<usize> = std::iter::once(axis).chain(inside).filter_map(|a| self.order.place(a)).collect();
        places.sort_unstable();
        places
    }

    /// The layout of a tensor without some of the program's axes.
    pub fn without(&self, gone: &[usize]) -> Packing {
        let inside = |b: &usize| self.blocks.get(*b).is_some_and(|b| gone.contains(&b.axis));
        let insides = (0..self.blocks.len()).filter(inside).map(|i| self.ndim + i);
        let order = self.order.without(&gone.iter().copied().chain(insides).collect::<Vec<_>>());
        let kept = self.blocks.iter().filter(|b| !gone.contains(&b.axis));
        let below = |axis: usize| gone.iter().filter(|g| **g < axis).count();
        let blocks = kept.map(|b| SplitAxis { axis: b.axis - below(b.axis), size: b.size }).collect();
        Packing { ndim: self.ndim - gone.len(), blocks, order }
    }

    /// Where an axis of the program's lies, or its blocks where it is split.
    pub fn place_of(&self, axis: usize) -> Option<usize> {
        self.order.place(axis)
    }

    /// How many axes the program knows.
    pub fn ndim(&self) -> usize {
        self.ndim
    }

    /// How many axes the tensor has as it lies.
    pub fn rank(&self) -> usize {
        self.order.ndim()
    }

    /// How many elements a block of an axis has, if it is split.
    pub fn block(&self, axis: usize) -> Option<i64> {
        self.blocks.iter().find(|b| b.axis == axis).map(|b| b.size)
    }

    /// The program's dimensions, as the tensor lies; `None` where a split one is not known to be whole blocks.
    pub fn pack(&self, dims: &[PrimExpr]) -> Option<Vec<PrimExpr>> {
        let mut analyzer = Analyzer::new();
        analyzer.mark_dims(dims);
        let mut split = dims.to_vec();
        for block in &self.blocks {
            let dim = split.get_mut(block.axis)?;
            let outer = analyzer.simplify(&prim::floordiv(&*dim, block.size));
            if !prove_equal(dim, &(&outer * block.size)) {
                return None;
            }
            *dim = outer;
        }
        split.extend(self.blocks.iter().map(|b| PrimExpr::from(b.size)));
        (dims.len() == self.ndim).then(|| self.order.apply(&split))
    }

    /// The program's dimensions of a tensor that lies so; `None` where a block is of another size.
    pub fn unpack(&self, dims: &[PrimExpr]) -> Option<Vec<PrimExpr>> {
        let mut split = self.order.inverse().apply(dims);
        for (i, block) in self.blocks.iter().enumerate() {
            if split.get(self.ndim + i)?.as_int().is_some_and(|size| size != block.size) {
                return None;
            }
        }
        if dims.len() != self.rank() {
            return None;
        }
        split.truncate(self.ndim);
        let mut analyzer = Analyzer::new();
        for block in &self.blocks {
            let outer = split.get_mut(block.axis)?;
            *outer = analyzer.simplify(&(&*outer * block.size));
        }
        Some(split)
    }

    /// Where the element at an index of the program's lies.
    pub fn place(&self, index: &[PrimExpr]) -> Vec<PrimExpr> {
        let mut split = index.to_vec();
        for block in &self.blocks {
            if let Some(outer) = split.get_mut(block.axis) {
                let inner = prim::floormod(&*outer, block.size);
                *outer = prim::floordiv(&*outer, block.size);
                split.push(inner);
            }
        }
        self.order.apply(&split)
    }

    /// The index, as the program counts, of the element at a place.
    pub fn index(&self, place: &[PrimExpr]) -> Vec<PrimExpr> {
        let mut split = self.order.inverse().apply(place);
        let inner = split.split_off(self.ndim.min(split.len()));
        for (block, inner) in self.blocks.iter().zip(inner) {
            if let Some(outer) = split.get_mut(block.axis) {
                *outer = &*outer * block.size + inner;
            }
        }
        split
    }

    /// The name of this layout of a tensor whose axes the program calls `name`: `NCHW4c` of `NCHW`.
    pub fn rename(&self, name: &str) -> String {
        let mut parts: Vec<String> = name.chars().map(String::from).collect();
        let inside = |b: &SplitAxis| {
            let letter = parts.get(b.axis).map(|l| l.to_ascii_lowercase()).unwrap_or_default();
            format!("{}{letter}", b.size)
        };
        let inner: Vec<String> = self.blocks.iter().map(inside).collect();
        parts.extend(inner);
        self.order.apply(&parts).concat()
    }

    /// A compute whose result lies so, over the dimensions as they lie. Where an axis is split, indices that are put together
    /// and taken apart again are simplified.
    pub fn compute(&self, name: &str, shape: Vec<PrimExpr>) -> te::Compute {
        let compute = te::Compute::new(name, shape);
        if self.blocks.is_empty() { compute } else { compute.simplified() }
    }

    /// The map of indices that leads from this layout to another of the same axes.
    pub fn map_to(&self, to: &Packing) -> IndexMap {
        let vars: Vec<Ref<Var>> = (0..self.rank()).map(|i| Var::dim(format!("i{i}"))).collect();
        let from: Vec<PrimExpr> = vars.iter().map(PrimExpr::from).collect();
        let mut analyzer = Analyzer::new();
        for (var, place) in vars.iter().zip(self.order.axes()) {
            match place.checked_sub(self.ndim).and_then(|i| self.blocks.get(i)) {
                Some(block) => analyzer.bind(var, 0, block.size),
                None => analyzer.mark_non_negative(var),
            }
        }
        let mut final_indices = to.place(&self.index(&from));
        if !self.blocks.is_empty() && !to.blocks.is_empty() {
            final_indices.iter_mut().for_each(|e| *e = analyzer.simplify(e));
        }
        IndexMap { initial_indices: vars, final_indices, inverse_index_map: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ints(values: &[i64]) -> Vec<PrimExpr> {
        values.iter().map(|v| PrimExpr::from(*v)).collect()
    }

    fn values(exprs: &[PrimExpr]) -> Vec<i64> {
        exprs.iter().map(|e| e.as_int().unwrap()).collect()
    }

    #[test]
    fn a_name_says_blocks_and_order() {
        let packing = Packing::between("NCHW", "NCHW4c").unwrap();
        assert_eq!(values(&packing.pack(&ints(&[2, 12, 5, 6])).unwrap()), [2, 3, 5, 6, 4]);
        assert_eq!(values(&packing.unpack(&ints(&[2, 3, 5, 6, 4])).unwrap()), [2, 12, 5, 6]);
        assert_eq!(values(&packing.place(&ints(&[1, 7, 2, 3]))), [1, 1, 2, 3, 3]);
        assert_eq!(values(&packing.index(&ints(&[1, 1, 2, 3, 3]))), [1, 7, 2, 3]);
        assert_eq!(packing.rename("OIHW"), "OIHW4i");
        assert_eq!((packing.block(1), packing.block(0)), (Some(4), None));
        let weight = Packing::between("OIHW", "HW8iOI16o").unwrap();
        assert_eq!(values(&weight.pack(&ints(&[32, 16, 3, 5])).unwrap()), [3, 5, 8, 2, 2, 16]);
        assert_eq!(weight.rename("OIHW"), "HW8iOI16o");
    }

    #[test]
    fn a_wrong_name_or_size_is_refused() {
        for name in ["NCHWc", "NCHW0c", "NCHW4c4c", "NCHW4d", "NCHW4", "NCH4c", "NC4HW", "NCHW[4c2h]", "NCHWW", ""] {
            assert_eq!(Packing::between("NCHW", name), None, "{name}");
        }
        let packing = Packing::between("NCHW", "NCHW4c").unwrap();
        assert_eq!(packing.pack(&ints(&[2, 6, 5, 5])), None);
        assert_eq!(packing.unpack(&ints(&[2, 6, 5, 5, 2])), None);
        let n = PrimExpr::from(&Var::dim("n"));
        let mut dims = ints(&[2, 0, 5, 5]);
        dims[1] = n.clone();
        assert_eq!(packing.pack(&dims), None);
        dims[1] = n * 8;
        assert!(packing.pack(&dims).is_some());
    }

    #[test]
    fn axes_go_with_their_blocks() {
        let packing = Packing::between("NCHW", "NCHW4c").unwrap();
        assert_eq!((packing.places_of(1), packing.places_of(3)), (vec![1, 4], vec![3]));
        assert_eq!(packing.without(&[2, 3]), Packing::between("NC", "NC4c").unwrap());
        assert_eq!(packing.without(&[1]), Packing::between("NHW", "NHW").unwrap());
        assert_eq!(packing.without(&[0]), Packing::between("CHW", "CHW4c").unwrap());
    }

    #[test]
    fn a_map_leads_from_one_to_the_other() {
        let plain = Packing::between("NCHW", "NHWC").unwrap();
        let packed = Packing::between("NCHW", "NCHW4c").unwrap();
        let there = plain.map_to(&packed).apply(&ints(&[1, 2, 3, 7])).unwrap();
        let mut analyzer = Analyzer::new();
        let there: Vec<PrimExpr> = there.iter().map(|e| analyzer.simplify(e)).collect();
        assert_eq!(values(&there), [1, 1, 2, 3, 3]);
        let back = packed.map_to(&plain).apply(&there).unwrap();
        assert_eq!(
            back.iter().map(|e| analyzer.simplify(e).as_int()).collect::<Vec<_>>(),
            ints(&[1, 2, 3, 7]).iter().map(PrimExpr::as_int).collect::<Vec<_>>()
        );
        let same = packed.map_to(&Packing::between("NCHW", "NCHW8c").unwrap());
        assert_eq!(same.final_indices.len(), 5);
    }
}
