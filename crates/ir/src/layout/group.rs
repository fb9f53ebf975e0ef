//! Grouping: the iterators of a layout, split so that runs of them have the extents of a shape.
//!
//! ```text
//! S[(8, 8) : (8, 1)] by (4, 16)   ->   S[(4, 2, 8) : (16, 8, 1)], groups 0..1 and 1..3
//! ```

use super::{Iter, LayoutError, TileLayout};
use crate::arith::Analyzer;
use crate::prim::{self, PrimExpr};
use relaxide_ffi::Ref;

/// A layout whose iterators fall into groups.
#[derive(Debug)]
pub struct Grouped {
    /// The layout.
    pub layout: TileLayout,
    /// Where groups begin among its iterators, and where the last ends.
    pub separators: Vec<usize>,
}

impl Grouped {
    /// The iterators of each group.
    pub fn groups(&self) -> impl Iterator<Item = &[Ref<Iter>]> {
        self.separators.windows(2).map(|ends| &self.layout.shard[ends[0]..ends[1]])
    }

    /// The iterators of one group.
    pub(super) fn group(&self, at: usize) -> &[Ref<Iter>] {
        &self.layout.shard[self.separators[at]..self.separators[at + 1]]
    }
}

/// A layout, grouped by a shape.
pub fn group(layout: &TileLayout, shape: &[PrimExpr]) -> Result<Grouped, LayoutError> {
    let refused = || LayoutError::Group { layout: layout.to_string(), shape: shape_text(shape) };
    let mut analyzer = Analyzer::new();
    let (mut shard, mut separators) = (Vec::new(), vec![0]);
    let mut dims = shape.iter().peekable();
    // The places of iterators since the last group ended.
    let mut open: Option<PrimExpr> = None;
    for iter in &layout.shard {
        let mut extent = iter.extent.clone();
        let mut places = open.take().map_or_else(|| extent.clone(), |open| open * &extent);
        while let Some(dim) = dims.next_if(|dim| divides(&mut analyzer, dim, &places)) {
            let rest = analyzer.simplify(&prim::floordiv(&places, dim));
            if !divides(&mut analyzer, &rest, &extent) {
                return Err(refused());
            }
            let part = analyzer.simplify(&prim::floordiv(&extent, &rest));
            shard.push(Iter::new(part, analyzer.simplify(&(&iter.stride * &rest)), &iter.axis));
            separators.push(shard.len());
            extent = rest.clone();
            places = rest;
        }
        let extent = analyzer.simplify(&extent);
        if !extent.is_int(1) {
            if dims.peek().is_none() {
                return Err(refused());
            }
            shard.push(Iter::new(extent, analyzer.simplify(&iter.stride), &iter.axis));
        }
        open = Some(places);
    }
    if dims.peek().is_some() {
        return Err(refused());
    }
    Ok(Grouped { layout: TileLayout { shard, ..layout.clone() }, separators })
}

/// A layout, split so far that each of several shapes groups it.
#[derive(Debug)]
pub struct GroupedByMany {
    /// The layout.
    pub layout: TileLayout,
    /// For each shape, where its groups begin, and where the last ends.
    pub separators: Vec<Vec<usize>>,
}

/// A layout, split at the places where the dimensions of any of several shapes end. Dimensions of extent one become iterators.
pub fn group_by_many(layout: &TileLayout, shapes: &[Vec<PrimExpr>]) -> Result<GroupedByMany, LayoutError> {
    let refused = |why: String| LayoutError::GroupMany { why };
    if shapes.is_empty() {
        return Err(refused("requires at least one shape".into()));
    }
    let mut ends = Ends::default();
    let mut sequences = Vec::with_capacity(shapes.len() + 1);
    for (number, shape) in shapes.iter().enumerate() {
        if shape.is_empty() {
            return Err(refused(format!("shape {number} must not be empty")));
        }
        sequences.push(ends.products(shape, &format!("shape {number}"))?);
    }
    sequences.push(ends.products(&layout.extents(), "layout")?);
    let total = sequences[0].last().cloned();
    for (number, sequence) in sequences.iter().enumerate().skip(1) {
        let (Some(a), Some(b)) = (&total, sequence.last()) else { continue };
        if !ends.analyzer.can_prove_equal(a, b) {
            let of = if number == shapes.len() { "the layout".to_string() } else { format!("shape {number}") };
            return Err(refused(format!("cannot prove equal total products for shape 0 and {of}: {a} vs {b}")));
        }
    }
    for (number, sequence) in sequences.iter().enumerate() {
        for product in sequence {
            ends.enter(number, product, sequences.len())?;
        }
    }
    let common = ends.common()?;
    let positions: Vec<Vec<usize>> = sequences
        .iter()
        .enumerate()
        .map(|(number, sequence)| ends.positions(sequence, number))
        .collect::<Result<_, _>>()?;
    let Some((of_layout, of_shapes)) = positions.split_last() else { return Err(refused("has no layout".into())) };
    let mut shard = Vec::with_capacity(common.len());
    for (iter, from_to) in layout.shard.iter().zip(of_layout.windows(2)) {
        for at in from_to[0]..from_to[1] {
            let inner = prim::floordiv(&common[from_to[1]], &common[at + 1]);
            let extent = ends.analyzer.simplify(&prim::floordiv(&common[at + 1], &common[at]));
            shard.push(Iter::new(extent, ends.analyzer.simplify(&(&iter.stride * inner)), &iter.axis));
        }
    }
    Ok(GroupedByMany { layout: TileLayout { shard, ..layout.clone() }, separators: of_shapes.to_vec() })
}

/// Products of leading dimensions, in order, and how often each sequence has them.
#[derive(Default)]
struct Ends {
    analyzer: Analyzer,
    classes: Vec<End>,
}

struct End {
    value: PrimExpr,
    counts: Vec<usize>,
}

impl End {
    /// How many places the common refinement has for it.
    fn places(&self) -> usize {
        self.counts.iter().copied().max().unwrap_or(0)
    }
}

impl Ends {
    /// One, and the products of leading dimensions, each a multiple of the one before.
    fn products(&mut self, shape: &[PrimExpr], of: &str) -> Result<Vec<PrimExpr>, LayoutError> {
        let dtype = shape.first().map_or(relaxide_ffi::DataType::int(32), PrimExpr::dtype);
        let mut products = vec![prim::int_of(dtype, 1)];
        for (at, dim) in shape.iter().enumerate() {
            let before = products[at].clone();
            let product = self.analyzer.simplify(&(&before * dim));
            if !self.analyzer.can_prove(&prim::le(&before, &product)) || !divides(&mut self.analyzer, &before, &product)
            {
                let why = format!(
                    "cannot prove cumulative boundary divisibility of {of} at dimension {at}: {before} divides {product}"
                );
                return Err(LayoutError::GroupMany { why });
            }
            products.push(product);
        }
        Ok(products)
    }

    fn class_of(&mut self, value: &PrimExpr) -> Option<usize> {
        (0..self.classes.len()).find(|&at| self.analyzer.can_prove_equal(value, &self.classes[at].value))
    }

    /// Notes a product of a sequence at its place in the order.
    fn enter(&mut self, sequence: usize, value: &PrimExpr, sequences: usize) -> Result<(), LayoutError> {
        let at = match self.class_of(value) {
            Some(at) => at,
            None => {
                let mut at = 0;
                while at < self.classes.len() && !self.analyzer.can_prove(&prim::lt(value, &self.classes[at].value)) {
                    if !self.analyzer.can_prove(&prim::lt(&self.classes[at].value, value)) {
                        let why = format!(
                            "cannot prove the order or equality of cumulative boundaries {value} and {}",
                            self.classes[at].value
                        );
                        return Err(LayoutError::GroupMany { why });
                    }
                    at += 1;
                }
                self.classes.insert(at, End { value: value.clone(), counts: vec![0; sequences] });
                at
            }
        };
        self.classes[at].counts[sequence] += 1;
        Ok(())
    }

    /// The products of the common refinement.
    fn common(&mut self) -> Result<Vec<PrimExpr>, LayoutError> {
        for pair in self.classes.windows(2) {
            if !divides(&mut self.analyzer, &pair[0].value, &pair[1].value) {
                let why = format!(
                    "has incompatible cumulative boundaries: {} does not divide {}",
                    pair[0].value, pair[1].value
                );
                return Err(LayoutError::GroupMany { why });
            }
        }
        let times = |class: &End| std::iter::repeat_n(class.value.clone(), class.places());
        Ok(self.classes.iter().flat_map(times).collect())
    }

    /// Where the products of a sequence stand among those of the common refinement. The first and the last stand at its ends.
    fn positions(&mut self, sequence: &[PrimExpr], number: usize) -> Result<Vec<usize>, LayoutError> {
        let mut seen = vec![0; self.classes.len()];
        let mut positions: Vec<usize> = Vec::with_capacity(sequence.len());
        for (at, product) in sequence.iter().enumerate() {
            let Some(class) = self.class_of(product) else { continue };
            let start: usize = self.classes[..class].iter().map(End::places).sum();
            let position = match at {
                0 => start,
                _ if at + 1 == sequence.len() => start + self.classes[class].places() - 1,
                _ => start + seen[class],
            };
            seen[class] += 1;
            if positions.last().is_some_and(|before| *before >= position) {
                let why = format!("could not preserve the repeated product {product} of sequence {number}");
                return Err(LayoutError::GroupMany { why });
            }
            positions.push(position);
        }
        Ok(positions)
    }
}

fn divides(analyzer: &mut Analyzer, factor: &PrimExpr, of: &PrimExpr) -> bool {
    if factor.is_int(0) {
        return false;
    }
    analyzer.can_prove(&prim::eq(prim::floormod(of, factor), 0))
}

pub(super) fn shape_text(shape: &[PrimExpr]) -> String {
    format!("({})", shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
}
