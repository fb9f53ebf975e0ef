//! Memory for tensors.

use relaxide_ffi::{Any, DataType, Error, ErrorKind, Ref, Shape};
use relaxide_runtime::memory::{self, Storage};

use super::{Args, Builtin};
use crate::host::Host;

/// The interpreter knows these two: with constant operands, as nearly always, they are operations of its own.
pub(crate) const ALLOC_STORAGE: &str = "vm.builtin.alloc_storage";
/// See [`ALLOC_STORAGE`].
pub(crate) const ALLOC_TENSOR: &str = "vm.builtin.alloc_tensor";

pub(super) const TABLE: &[Builtin] = &[
    Builtin::with_host(ALLOC_STORAGE, alloc_storage),
    Builtin::plain(ALLOC_TENSOR, alloc_tensor),
    Builtin::plain("vm.builtin.memory_manager.clear", clear),
];

/// `(vm, size, device, dtype, scope)`: the size is a shape of elements, and device -1 is the host.
fn alloc_storage(host: &dyn Host, args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(4, 5)?;
    let size: Shape = args.get(1, "size")?;
    let device: i64 = args.get(2, "device index")?;
    let dtype: DataType = args.get(3, "dtype")?;
    if args.len() == 5 {
        let view = args.view(4, "memory scope")?;
        if !view.as_str().is_some_and(is_plain_scope) {
            let scope: String = args.get(4, "memory scope")?;
            let message = format_args!("memory scope \"{scope}\" does not exist on the devices of this runtime");
            return Err(args.error(ErrorKind::ValueError, message));
        }
    }
    let bytes = storage_bytes(&size, dtype).ok_or_else(|| impossible_storage(&size, dtype))?;
    Ok(Storage::new(host.buffer(device, bytes)?).into())
}

/// The error of a storage that no memory has.
#[cold]
pub(crate) fn impossible_storage(size: &[i64], dtype: DataType) -> Error {
    let message = format!("{ALLOC_STORAGE}: a storage of shape {size:?} and type {dtype} cannot exist");
    Error::new(ErrorKind::ValueError, message)
}

/// The bytes of a storage of that many elements; `None` if no memory has them.
pub(crate) fn storage_bytes(size: &[i64], dtype: DataType) -> Option<usize> {
    let elements = size.iter().try_fold(1_usize, |product, dim| product.checked_mul(usize::try_from(*dim).ok()?));
    dtype.bytes_of(elements?)
}

/// Whether a memory scope is the ordinary memory of a device, the only one that there is so far.
pub(crate) fn is_plain_scope(scope: &str) -> bool {
    matches!(scope, "" | "global")
}

/// `(storage, offset, shape, dtype[, scope])`.
fn alloc_tensor(args: &Args<'_, '_>) -> Result<Any, Error> {
    let storage: Ref<Storage> = args.get(0, "storage")?;
    let offset = args.index(1, "offset")?;
    let (shape, dtype): (Shape, DataType) = (args.get(2, "shape")?, args.get(3, "dtype")?);
    let tensor = Storage::tensor(&storage, offset, &shape, dtype);
    tensor.map(Any::from).map_err(|error| error.context(ALLOC_TENSOR))
}

/// `()`: frees what allocators keep for reuse.
fn clear(_args: &Args<'_, '_>) -> Result<Any, Error> {
    memory::release_cached();
    Ok(Any::none())
}
