//! Which buffers of a kernel lie on the stack.

use relaxide_ir::Buffer;

/// Larger buffers than this come from the runtime's workspace instead, in bytes.
const MAX_BUFFER: i64 = 16 * 1024;

/// The same for buffers of scope `local`, which a schedule asked to be as near as possible.
const MAX_LOCAL_BUFFER: i64 = 128 * 1024;

/// What all buffers of one function may take: threads of a pool have two megabytes.
const MAX_FUNCTION: i64 = 512 * 1024;

/// How much of the stack the buffers of one function have taken so far.
#[derive(Debug, Default)]
pub(crate) struct StackBudget {
    bytes: i64,
}

impl StackBudget {
    /// Makes room for a buffer; how many bytes, or `None` if it has to lie elsewhere.
    pub fn take(&mut self, buffer: &Buffer) -> Option<i64> {
        let mut extents = buffer.shape.iter();
        let count = extents.try_fold(1i64, |product, extent| product.checked_mul(extent.as_int()?))?;
        let total = i64::try_from(buffer.dtype.bytes_of(usize::try_from(count).ok()?)?).ok()?;
        let limit = if buffer.scope.starts_with("local") { MAX_LOCAL_BUFFER } else { MAX_BUFFER };
        if total > limit || self.bytes + total > MAX_FUNCTION {
            return None;
        }
        self.bytes += total;
        Some(total)
    }
}
