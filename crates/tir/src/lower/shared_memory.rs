//! Memory that the threads of a block share.

use relaxide_ir::Buffer;

/// The scope of such memory, of a size that is known when a kernel is compiled, and of the barriers for it.
pub const SHARED: &str = "shared";

/// TVM's name for such memory of a size that only the launch has to know. Here its size is a number as well, and it is memory as the other.
const SHARED_BY_LAUNCH: &str = "shared.dyn";

/// Whether a scope is that of memory that all threads of a block have together.
pub fn is_shared_scope(scope: &str) -> bool {
    scope == SHARED || scope == SHARED_BY_LAUNCH
}

/// Whether all threads of a block have a buffer together.
pub fn is_shared(buffer: &Buffer) -> bool {
    is_shared_scope(&buffer.scope)
}

/// How large a buffer is, where its dimensions are numbers.
pub fn bytes_of(buffer: &Buffer) -> Option<i64> {
    let count = buffer.shape.iter().try_fold(1i64, |all, extent| all.checked_mul(extent.as_int()?))?;
    i64::try_from(buffer.dtype.bytes_of(usize::try_from(count).ok()?)?).ok()
}
