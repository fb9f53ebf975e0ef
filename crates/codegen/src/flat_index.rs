//! Where an element of a buffer lies in its memory.

use relaxide_ir::{Buffer, PrimExpr};
use relaxide_tir::analysis::wide::in_64_bits;

/// An access with more or fewer indices than its buffer has dimensions.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{indices} indices for `{buffer}` of {dimensions} dimensions")]
pub(crate) struct IndexCount {
    buffer: String,
    indices: usize,
    dimensions: usize,
}

/// The index into the buffer's memory, in elements, as one expression; otherwise what is wrong with the access.
pub(crate) fn flat_index(buffer: &Buffer, indices: &[PrimExpr]) -> Result<PrimExpr, IndexCount> {
    if indices.len() > 1 && indices.len() != buffer.ndim() {
        return Err(IndexCount { buffer: buffer.name.clone(), indices: indices.len(), dimensions: buffer.ndim() });
    }
    let mut flat = match indices {
        [] => PrimExpr::from(0),
        [only] if buffer.strides.len() != 1 => only.clone(),
        _ if buffer.strides.len() == indices.len() => {
            let terms = indices.iter().zip(&buffer.strides).map(|(i, stride)| in_64_bits(i) * in_64_bits(stride));
            terms.fold(PrimExpr::from(0), |sum, term| sum + term)
        }
        [first, rest @ ..] => {
            let dims = rest.iter().zip(&buffer.shape[1..]);
            dims.fold(in_64_bits(first), |flat, (i, extent)| flat * in_64_bits(extent) + in_64_bits(i))
        }
    };
    if !buffer.elem_offset.is_int(0) {
        flat = in_64_bits(&flat) + in_64_bits(&buffer.elem_offset);
    }
    Ok(flat)
}
