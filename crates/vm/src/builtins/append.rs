//! Tensors that a program lengthens (`vm.builtin.append*`): a decoder's caches of keys and values.
//!
//! The compiler calls the first where it knows no more than that a result is a parameter with something behind it, and the other two where it
//! has made all kernels that read the longer tensor ready for memory with room behind it.

use relaxide_ffi::{Any, Device, Error, Shape, Tensor};
use relaxide_runtime::memory::room::{self, Spare};
use relaxide_runtime::memory::{AllocatorKind, Buffer, allocator};

use super::{Args, Builtin};
use crate::host::{Host, MAIN_DEVICE};

/// Appends where the tensor lies. The machine asks for it by name, to know which parameters may have gaps.
pub(crate) const APPEND_IN_PLACE: &str = "vm.builtin.append_in_place";

pub(super) const TABLE: &[Builtin] = &[
    Builtin::plain("vm.builtin.append", append),
    Builtin::with_host(APPEND_IN_PLACE, append_in_place),
    Builtin::plain("vm.builtin.appended", appended),
];

/// `(past, new, axis)`: one tensor behind the other, compact.
fn append(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(3, 3)?;
    let take = |bytes| Buffer::new(&allocator(Device::cpu(0), AllocatorKind::Pooled)?, bytes);
    behind_each_other(args, 0, Spare::None, take)
}

/// `(vm, past, new, axis)`: memory with one tensor behind the other, and room behind them where the machine gives results with strides.
fn append_in_place(host: &dyn Host, args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(4, 4)?;
    let spare = if host.gives_strided_results() { Spare::Half } else { Spare::None };
    behind_each_other(args, 1, spare, |bytes| host.buffer(MAIN_DEVICE, bytes))
}

/// `first` is where the tensors stand among the arguments.
fn behind_each_other(
    args: &Args<'_, '_>,
    first: usize,
    spare: Spare,
    take: impl FnOnce(usize) -> Result<Buffer, Error>,
) -> Result<Any, Error> {
    let (past, new): (Tensor, Tensor) = (args.get(first, "past")?, args.get(first + 1, "new")?);
    let memory = room::append(&past, &new, args.index(first + 2, "axis")?, spare, take);
    memory.map(Any::from).map_err(|error| error.context("appending to a tensor that the program was given"))
}

/// `(memory, shape)`: the part of that memory that has elements.
fn appended(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(2, 2)?;
    let (memory, shape): (Tensor, Shape) = (args.get(0, "memory")?, args.get(1, "shape")?);
    room::part(&memory, &shape).map(Any::from)
}
