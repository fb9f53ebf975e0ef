//! Memory for tensors.

use relaxide_ffi::{Any, DataType, Error, ErrorKind, Ref, Shape};
use relaxide_runtime::memory::{self, Buffer, Storage};

use super::{Args, Builtin};
use crate::machine::Vm;

pub(super) const TABLE: &[Builtin] = &[
    Builtin::with_vm("vm.builtin.alloc_storage", alloc_storage),
    Builtin::plain("vm.builtin.alloc_tensor", alloc_tensor),
    Builtin::plain("vm.builtin.memory_manager.clear", clear),
];

/// `(vm, size, device, dtype, scope)`: the size is a shape of elements, and device -1 is the host.
fn alloc_storage(vm: &Vm, args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(4, 5)?;
    let size: Shape = args.get(1, "size")?;
    let device: i64 = args.get(2, "device index")?;
    let dtype: DataType = args.get(3, "dtype")?;
    if args.len() == 5 {
        let scope = args.view(4, "memory scope")?;
        if !matches!(scope.as_str(), Some("" | "global")) {
            let message = format_args!("memory scope {scope:?} does not exist on the devices of this runtime");
            return Err(args.error(ErrorKind::ValueError, message));
        }
    }
    let elements = size.iter().try_fold(1_usize, |product, dim| product.checked_mul(usize::try_from(*dim).ok()?));
    let bytes = elements.and_then(|elements| elements.checked_mul(dtype.bytes())).ok_or_else(|| {
        args.error(ErrorKind::ValueError, format_args!("a storage of shape {size:?} and type {dtype} cannot exist"))
    })?;
    let buffer = Buffer::new(&vm.place(device)?.allocator, bytes)?;
    Ok(Storage::new(buffer).into())
}

/// `(storage, offset, shape, dtype[, scope])`.
fn alloc_tensor(args: &Args<'_, '_>) -> Result<Any, Error> {
    let storage: Ref<Storage> = args.get(0, "storage")?;
    let offset = args.index(1, "offset")?;
    let (shape, dtype): (Shape, DataType) = (args.get(2, "shape")?, args.get(3, "dtype")?);
    let tensor = Storage::tensor(&storage, offset, &shape, dtype);
    tensor.map(Any::from).map_err(|error| error.context("vm.builtin.alloc_tensor"))
}

/// `()`: frees what allocators keep for reuse.
fn clear(_args: &Args<'_, '_>) -> Result<Any, Error> {
    memory::release_cached();
    Ok(Any::none())
}
