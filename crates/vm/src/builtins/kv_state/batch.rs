//! What is computed once for all layers of a pass over a cache: tables that kernels read.

use relaxide_ffi::{Device, Error, Tensor};
use relaxide_runtime::device;

use super::tokens::Sequence;
use super::tree;

/// The tables of a pass, on the cache's device.
pub(super) struct Batch {
    /// How many tokens the pass appends.
    pub rows: i64,
    /// Where each sequence's queries begin.
    pub query_indptr: Tensor,
    /// Where each sequence's places begin, and the places.
    pub place_indptr: Tensor,
    pub places: Tensor,
    /// The places and positions of the new tokens.
    pub new: Tensor,
    pub positions: Tensor,
    /// How many tokens each sequence had before.
    pub starts: Tensor,
    /// The trees that the sequences end in.
    pub tree: Option<Trees>,
}

/// Where each sequence's tree begins, and when a walk enters and leaves its tokens.
pub(super) struct Trees {
    pub indptr: Tensor,
    pub order: Tensor,
}

/// Integers of 32 bits as a tensor on a device.
pub(super) fn ints(values: &[i32], place: Device) -> Result<Tensor, Error> {
    device::to_device(&Tensor::from_slice(values, &[values.len() as i64])?, place)
}

/// Sums of lengths: where each part begins, and where the last ends.
fn offsets(lengths: impl Iterator<Item = usize>) -> Vec<i32> {
    let mut sum = 0;
    std::iter::once(0)
        .chain(lengths.map(|n| {
            sum += n as i32;
            sum
        }))
        .collect()
}

impl Batch {
    /// The tables of sequences that have got so many tokens.
    pub fn new(sequences: &[&Sequence], lengths: &[i64], is_tree: bool, place: Device) -> Result<Batch, Error> {
        let made = |values: &[i32]| ints(values, place);
        let each = |f: fn(&Sequence) -> Vec<i32>| sequences.iter().flat_map(|s| f(s)).collect::<Vec<i32>>();
        let tokens = |s: &&Sequence| s.places.len();
        let before = sequences.iter().zip(lengths).map(|(s, length)| (s.places.len() as i64 - length) as i32);
        let tree = match is_tree {
            false => None,
            true => {
                let orders: Vec<[i32; 2]> = sequences.iter().flat_map(|s| tree::order(&s.parents)).collect();
                let flat = Tensor::from_slice(orders.as_flattened(), &[orders.len() as i64, 2])?;
                let indptr = made(&offsets(sequences.iter().map(|s| s.parents.len())))?;
                Some(Trees { indptr, order: device::to_device(&flat, place)? })
            }
        };
        Ok(Batch {
            rows: lengths.iter().sum(),
            query_indptr: made(&offsets(lengths.iter().map(|n| usize::try_from(*n).unwrap_or(0))))?,
            place_indptr: made(&offsets(sequences.iter().map(tokens)))?,
            places: made(&each(|s| s.places.clone()))?,
            new: made(&each(|s| s.new_places().to_vec()))?,
            positions: made(&each(Sequence::new_positions))?,
            starts: made(&before.collect::<Vec<_>>())?,
            tree,
        })
    }
}
