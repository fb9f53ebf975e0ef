//! Sums of products of small integers that numbers with 24 bits hold exactly.
//!
//! A float32 holds every whole number up to 2^24. Where the absolute values of all products of a sum are together no more than that, no
//! part of the sum is more, so that float32 gives the integers' result in whatever order it is added up. Processors multiply
//! and add such numbers several times as fast as integers of 32 bits. How large a sum can become is known where the weight is: it is
//! the sum of the weight's absolute values times the most that an integer of 8 bits lies away from its zero.

use relaxide_ffi::{DataType, Tensor};
use relaxide_relax::Expr;

use crate::constant;
use crate::node::Node;
use crate::scope::Scope;

/// The largest whole number up to which there are no gaps.
const WHOLE: i64 = 1 << 24;

/// The axis of a weight that its sums do not run over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// The filters of a convolution.
    First,
    /// The columns of a matrix.
    Last,
}

/// Which inputs of a node a product is made of, besides what is multiplied.
pub struct Sides {
    /// The zero point of what is multiplied; none where it is computed.
    pub zero: Option<usize>,
    /// The weight and its zero point.
    pub weight: [usize; 2],
    /// What of the weight is kept.
    pub kept: Kept,
}

/// The type in which both sides of a product of integers less their zeros are multiplied and added up, exactly.
pub fn sum_type(scope: &Scope, node: &Node, x: &Expr, sides: &Sides) -> DataType {
    let exact = match (farthest(scope.dtype(x), node, sides.zero), largest_sum(node, sides)) {
        (Some(farthest), Some(sum)) => sum.checked_mul(farthest).is_some_and(|most| most <= WHOLE),
        _ => false,
    };
    if exact { DataType::float(32) } else { DataType::int(32) }
}

/// How far an integer of 8 bits can lie from its zero; none for wider ones.
fn farthest(dtype: DataType, node: &Node, zero: Option<usize>) -> Option<i64> {
    let (least, most) = match dtype {
        d if d == DataType::uint(8) => (0, 255),
        d if d == DataType::int(8) => (-128, 127),
        _ => return None,
    };
    let Some(zero) = zero else { return Some(most - least) };
    let Some(value) = node.optional(zero) else { return Some(most.max(-least)) };
    let Some(tensor) = value.constant() else { return Some(most - least) };
    constant::ints(tensor).ok()?.into_iter().map(|z| (most - z).max(z - least)).max()
}

/// The largest sum of a weight's absolute values that go into one element; none where the program does not know it.
fn largest_sum(node: &Node, sides: &Sides) -> Option<i64> {
    let [weight, zero] = sides.weight;
    let weight = node.optional(weight)?.constant()?;
    let zeros = match node.optional(zero) {
        None => vec![0],
        Some(value) => constant::ints(value.constant()?).ok()?,
    };
    let shape = weight.shape();
    if sides.kept == Kept::Last && shape.len() != 2 || shape.is_empty() {
        return None;
    }
    largest(weight, shape, &zeros, sides.kept)
}

fn largest(weight: &Tensor, shape: &[i64], zeros: &[i64], kept: Kept) -> Option<i64> {
    let values = constant::ints(weight).ok()?;
    let count = match kept {
        Kept::First => shape.first(),
        Kept::Last => shape.last(),
    };
    let count = count.map_or(0, |n| *n as usize);
    let one_each = zeros.len() == count;
    if count == 0 || values.is_empty() || !(one_each || zeros.len() == 1) {
        return None;
    }
    let mut sums = vec![0i64; count];
    let run = values.len() / count;
    for (i, value) in values.iter().enumerate() {
        let at = if kept == Kept::First { i / run } else { i % count };
        let zero = zeros[if one_each { at } else { 0 }];
        sums[at] = sums[at].saturating_add((value - zero).saturating_abs());
    }
    sums.into_iter().max()
}
