"""Calls that are about the machine: threads of a device, fragments of matrices, memory of a call, and values of the C interface."""

from ..ffi import dtype as _dtype
from ..ir.prim import StringImm
from .op import call_intrin


def _text(value):
    return StringImm(value) if isinstance(value, str) else value


def _dtype_of(value):
    return str(value.dtype)


def tvm_stack_alloca(dtype_str, num):
    """``num`` values of a kind (``"arg_value"``, ``"array"``, ``"shape"``) on the stack; gives their address."""
    return call_intrin("handle", "tirx.tvm_stack_alloca", _text(dtype_str), num)


def tvm_stack_make_shape(*args):
    """The lengths of a shape on the stack; gives their address."""
    return call_intrin("handle", "tirx.tvm_stack_make_shape", *args)


def tvm_stack_make_array(data, shape, strides, ndim, arr_dtype, elem_offset):
    """A tensor's description on the stack; gives its address."""
    return call_intrin("handle", "tirx.tvm_stack_make_array", data, shape, strides, ndim, arr_dtype, elem_offset)


def tvm_tuple(*value):
    """Several values as one."""
    return call_intrin("void", "tirx.tvm_tuple", *value)


def tvm_struct_get(arr, index, field, dtype):
    """A field of the structure at a place of an array, by its number."""
    return call_intrin(dtype, "tirx.tvm_struct_get", arr, index, field)


def tvm_struct_set(arr, index, field, value):
    """Give a field of the structure at a place of an array a value."""
    return call_intrin("int32", "tirx.tvm_struct_set", arr, index, field, value)


def tvm_throw_last_error():
    """Raise the error that was last told."""
    return call_intrin("void", "tirx.tvm_throw_last_error")


def tvm_thread_allreduce(*freduce_args):
    """Combine values of all threads of a block: the number of values, the values, a condition, where the results go, and the threads."""
    return call_intrin("void", "tirx.tvm_thread_allreduce", *freduce_args)


def tvm_thread_invariant(cond):
    """A value, with the promise that all threads of a block have the same."""
    return call_intrin(_dtype_of(cond), "tirx.tvm_thread_invariant", cond)


def tvm_storage_sync(storage_scope, is_load=False, num_blocks=-1):
    """Let threads wait until all have come here, and see what was written to a memory."""
    return call_intrin("void", "tirx.tvm_storage_sync", _text(storage_scope), is_load, num_blocks)


def tvm_global_barrier_kinit():
    """Prepare a barrier of all blocks."""
    return call_intrin("void", "tirx.tvm_global_barrier_kinit")


def tvm_kernel_replace_point():
    """The place of what is put in later."""
    return call_intrin("void", "tirx.tvm_kernel_replace_point")


def tvm_warp_activemask():
    """The threads of a warp that take part, a bit for each."""
    return call_intrin("uint32", "tirx.tvm_warp_activemask")


def tvm_warp_shuffle(mask, value, warp_id, width, warp_size):
    """The value of another thread of a warp."""
    return call_intrin(_dtype_of(value), "tirx.tvm_warp_shuffle", mask, value, warp_id, width, warp_size)


def tvm_warp_shuffle_up(mask, value, offset, width, warp_size):
    """The value of the thread that is ``offset`` lower."""
    return call_intrin(_dtype_of(value), "tirx.tvm_warp_shuffle_up", mask, value, offset, width, warp_size)


def tvm_warp_shuffle_down(mask, value, offset, width, warp_size):
    """The value of the thread that is ``offset`` higher."""
    return call_intrin(_dtype_of(value), "tirx.tvm_warp_shuffle_down", mask, value, offset, width, warp_size)


def tvm_warp_shuffle_xor(mask, value, lane_mask, width, warp_size):
    """The value of the thread whose number differs in these bits."""
    return call_intrin(_dtype_of(value), "tirx.tvm_warp_shuffle_xor", mask, value, lane_mask, width, warp_size)


def tvm_load_matrix_sync(fragment, m, n, k, index, buffer_ptr, stride, layout):
    """Fill a fragment of a matrix from memory, by all threads of a warp together."""
    return call_intrin("void", "tirx.tvm_load_matrix_sync", fragment, m, n, k, index, buffer_ptr, stride, _text(layout))


def tvm_store_matrix_sync(fragment, m, n, k, index, buffer_ptr, stride, layout):
    """Write a fragment to memory."""
    return call_intrin("void", "tirx.tvm_store_matrix_sync", fragment, m, n, k, index, buffer_ptr, stride, _text(layout))


def tvm_fill_fragment(fragment, m, n, k, index, value):
    """Give all elements of a fragment a value."""
    return call_intrin("void", "tirx.tvm_fill_fragment", fragment, m, n, k, index, value)


def tvm_mma_sync(fragment_d, index_d, fragment_a, index_a, fragment_b, index_b, fragment_c, index_c):
    """``D = A * B + C`` of fragments."""
    parts = (fragment_d, index_d, fragment_a, index_a, fragment_b, index_b, fragment_c, index_c)
    return call_intrin("void", "tirx.tvm_mma_sync", *parts)


def tvm_bmma_sync(fragment_d, index_d, fragment_a, index_a, fragment_b, index_b, fragment_c, index_c):
    """The same of bits."""
    parts = (fragment_d, index_d, fragment_a, index_a, fragment_b, index_b, fragment_c, index_c)
    return call_intrin("void", "tirx.tvm_bmma_sync", *parts)


def dp4a(vec1, vec2, acc=0):
    """The sum of products of four bytes each, added to a number."""
    return call_intrin("int32", "tirx.dp4a", vec1, vec2, acc)


def TVMBackendAllocWorkspace(device_type, device_id, nbytes, dtype_code_hint, dtype_bits_hint):
    """Memory for a while, of a device; gives its address."""
    return call_intrin("handle", "tirx.TVMBackendAllocWorkspace", device_type, device_id, nbytes, dtype_code_hint, dtype_bits_hint)


def TVMBackendFreeWorkspace(device_type, device_id, ptr):
    """Give such memory back."""
    return call_intrin("int32", "tirx.TVMBackendFreeWorkspace", device_type, device_id, ptr)


def anylist_getitem(list_handle, index):
    """An item of a list of values."""
    return call_intrin("handle", "tirx.anylist_getitem", list_handle, index)


def anylist_resetitem(list_handle, index):
    """Make an item of a list empty."""
    return call_intrin("int32", "tirx.anylist_resetitem", list_handle, index)


def anylist_setitem_call_packed(list_handle, index, func_name, *args):
    """Give an item of a list what a function returns."""
    return call_intrin("int32", "tirx.anylist_setitem_call_packed", list_handle, index, _text(func_name), *args)


def anylist_setitem_call_cpacked(list_handle, index, func_name, *args):
    """The same of a function of the same library."""
    return call_intrin("int32", "tirx.anylist_setitem_call_cpacked", list_handle, index, _text(func_name), *args)


def call_packed_lowered(*args, span=None):
    """A call of a function by its name with arguments that lie in arrays already."""
    return call_intrin("int32", "tirx.tvm_call_packed_lowered", *map(_text, args))


def call_cpacked_lowered(*args, span=None):
    """The same of a function of the same library."""
    return call_intrin("int32", "tirx.tvm_call_cpacked_lowered", *map(_text, args))


def lookup_param(param_name, span=None):
    """The address of a weight that was linked into the library, by its name."""
    return call_intrin("handle", "tirx.lookup_param", _text(param_name))


def start_profile_intrinsic(id):
    """Begin to measure the part of that number."""
    return call_intrin("void", "tirx.start_profile_intrinsic", id)


def end_profile_intrinsic(id):
    """End the measurement of the part of that number."""
    return call_intrin("void", "tirx.end_profile_intrinsic", id)


def thread_return():
    """End a thread."""
    return call_intrin("void", "tirx.thread_return")


def get_vscale_expr(dtype, min_size=128):
    """How many elements of a type a scalable vector of at least ``min_size`` bits has."""
    from .op import vscale

    return vscale() * (min_size // _dtype(dtype).bits)


__all__ = [name for name, value in list(globals().items()) if getattr(value, "__module__", "") == __name__ and name[0] != "_"]
