//! Memory that the threads of a block share.

use relaxide_ir::Buffer;

/// The scope of such memory, of a size that is known when a kernel is compiled, and of the barriers for it.
pub const SHARED: &str = "shared";

/// Whether all threads of a block have a buffer together.
pub fn is_shared(buffer: &Buffer) -> bool {
    buffer.scope == SHARED
}

/// How large a buffer is, where its dimensions are numbers.
pub fn bytes_of(buffer: &Buffer) -> Option<i64> {
    let count = buffer.shape.iter().try_fold(1i64, |all, extent| all.checked_mul(extent.as_int()?))?;
    i64::try_from(buffer.dtype.bytes_of(usize::try_from(count).ok()?)?).ok()
}
