"""LowerTVMBuiltin: packed calls and memory of devices as calls of the C interface.

::

    T.call_packed("f", n)          any = T.tvm_stack_alloca("tvm_ffi_any", 2)
                            →      T.tvm_struct_set(any, 0, 13, 1)                       # an integer
                                   T.tvm_struct_set(any, 0, 14, 0)
                                   T.tvm_struct_set(any, 0, 15, T.Cast("int64", n))
                                   …                                                     # the result, of no kind yet
                                   T.call_packed_lowered("f", any, 0, 1)

Memory of a device is asked for and given back; a little memory of the processor stays with the kernel. Code generation does all
this itself, and takes the kernels as they were.
"""

from ..ir.prim import Cast, StringImm, const
from ..ir.type import PointerType, PrimType
from ..target import Target
from . import packed_api as fields
from ._walk import walk_scalar
from .buffer import decl_buffer
from .device_intrinsic import tvm_stack_alloca, tvm_struct_get, tvm_struct_set, tvm_throw_last_error
from .expr import BufferLoad, Var
from .function import PrimFunc
from .op import call_extern, call_intrin, isnullptr
from .stmt import AllocBuffer, AttrStmt, Bind, BufferStore, DeclBuffer, Evaluate, For, ForKind, IfThenElse, SeqStmt, While
from .transform import prim_func_pass

_LOWERED = {"tirx.call_packed": "tirx.tvm_call_packed_lowered", "tirx.call_cpacked": "tirx.tvm_call_cpacked_lowered"}
_MAKE_ARRAY, _MAKE_SHAPE = "tirx.tvm_stack_make_array", "tirx.tvm_stack_make_shape"
#: The number of the processor among devices, and how many bytes its stack has for a buffer.
_PROCESSOR, _STACK_BYTES = 1, 1024


def LowerTVMBuiltin():
    """Packed calls and memory of devices become calls of the C interface, in kernels of a target and those for the host.

    Returns
    -------
    Pass
    """
    return prim_func_pass(_lower, opt_level=0, name="tirx.LowerTVMBuiltin")


def _lower(func, _mod, _ctx):
    target = func.attrs.get("target")
    if target is None and not func.attrs.get("tirx.is_host_func"):
        return func
    device = None if target is None else Target(target).get_target_device_type()
    body = fields._sequence(_Kernel(device).scope(func.body))
    return func if body.same_as(func.body) else PrimFunc(func.params, body, func.ret_type, func.attrs)


def _op(value):
    return getattr(getattr(value, "op", None), "name", None)


class _Stack:
    """What calls of one scope have on the stack: as much as the largest of them."""

    def __init__(self):
        self.values, self.arrays = Var("stack_ffi_any", PrimType("handle")), Var("stack_array", PrimType("handle"))
        self.shape = None
        self.most_values = self.most_arrays = self.most_lengths = 0
        self.stores = []

    def allocations(self):
        """The statements in front of the scope."""
        made = []
        if self.most_values:
            made.append(Bind(self.values, tvm_stack_alloca("tvm_ffi_any", self.most_values)))
        if self.most_arrays:
            made.append(Bind(self.arrays, tvm_stack_alloca("array", self.most_arrays)))
        if self.most_lengths:
            made.append(DeclBuffer(self.lengths, tvm_stack_alloca("shape", self.most_lengths)))
        return made

    @property
    def lengths(self):
        """The buffer of the lengths; its own length is known when all calls are."""
        if self.shape is None:
            self.shape = decl_buffer((const(self.most_lengths, "int64"),), "int64", "stack_shape")
        return self.shape


class _Kernel:
    """Rewrites the statements of one kernel."""

    def __init__(self, device_type):
        self.device_type, self.device_id = device_type, None
        self.stack = None

    def scope(self, stmt):
        """The statements of a scope that has a stack of its own."""
        outer, self.stack = self.stack, _Stack()
        self.measure(stmt)
        inner = self.stmt(stmt)
        whole = [*self.stack.allocations(), *inner]
        self.stack = outer
        return whole

    def measure(self, stmt):
        """How much the calls of a scope need."""
        from ._walk import children, scalars

        for value in scalars(stmt):
            for call in walk_scalar(value):
                if _op(call) in _LOWERED:
                    arrays = [arg for arg in call.args[1:] if _op(arg) == _MAKE_ARRAY]
                    stack = self.stack
                    stack.most_values = max(stack.most_values, len(call.args))
                    stack.most_arrays = max(stack.most_arrays, len(arrays))
                    stack.most_lengths = max(stack.most_lengths, sum(len(array.args[1].args) for array in arrays))
        for inner in children(stmt):
            if not _is_parallel(inner):
                self.measure(inner)

    def stmt(self, stmt):
        """The statements that one becomes."""
        if isinstance(stmt, SeqStmt):
            return self.sequence(list(stmt.seq))
        if isinstance(stmt, AttrStmt) and stmt.attr_key in ("device_type", "device_id"):
            return self.under(stmt)
        if isinstance(stmt, AttrStmt):
            return _kept(stmt, AttrStmt(stmt.node, stmt.attr_key, stmt.value, fields._sequence(self.stmt(stmt.body))))
        if isinstance(stmt, IfThenElse):
            before, condition = self.value(stmt.condition)
            cases = [None if case is None else fields._sequence(self.stmt(case)) for case in (stmt.then_case, stmt.else_case)]
            return [*before, _kept(stmt, IfThenElse(condition, *cases))[0]]
        if isinstance(stmt, For):
            inner = self.scope(stmt.body) if _is_parallel(stmt) else self.stmt(stmt.body)
            tag, body = stmt.thread_tag or None, fields._sequence(inner)
            return _kept(stmt, For(stmt.loop_var, stmt.min, stmt.extent, stmt.kind, body, tag, stmt.annotations))
        if isinstance(stmt, While):
            return _kept(stmt, While(stmt.condition, fields._sequence(self.stmt(stmt.body))))
        return self.plain(stmt)

    def plain(self, stmt):
        if isinstance(stmt, Evaluate):
            before, value = self.value(stmt.value)
            return [*before, Evaluate(value)] if before else [stmt]
        if isinstance(stmt, Bind):
            before, value = self.value(stmt.value)
            return [*before, Bind(stmt.var, value)] if before else [stmt]
        if isinstance(stmt, BufferStore):
            before, value = self.value(stmt.value)
            return [*before, BufferStore(stmt.buffer, value, stmt.indices)] if before else [stmt]
        return [stmt]

    def sequence(self, stmts):
        """Statements in a row; what is allocated is there for those behind it."""
        made = []
        for at, stmt in enumerate(stmts):
            if isinstance(stmt, AllocBuffer):
                return [*made, *self.allocated(stmt, self.sequence(stmts[at + 1 :]))]
            made.extend(self.stmt(stmt))
        return made

    def under(self, attr):
        """What stands under an attribute that says which device memory is of."""
        name = attr.attr_key
        outer = getattr(self, name)
        setattr(self, name, getattr(attr.value, "value", attr.value))
        made = self.stmt(attr.body)
        setattr(self, name, outer)
        return made

    def allocated(self, alloc, behind):
        """Memory, and the statements that use it."""
        buffer = alloc.buffer
        if self.device_type is None:
            raise RuntimeError(f"the kernel says of no device that buffer {buffer.name} is on it: it needs a target or `device_type`")
        size = (int(buffer.dtype.bits) * int(buffer.dtype.lanes) + 7) // 8
        count = const(1, "uint64")
        for dim in buffer.shape:
            count = count * Cast("uint64", dim)
        known = [int(getattr(dim, "value", -1)) for dim in buffer.shape]
        if self.device_type == _PROCESSOR and min(known, default=0) >= 0 and _product(known) * size <= _STACK_BYTES:
            return [alloc, *behind]
        if self.device_id is None:
            raise RuntimeError(f"the kernel does not say which device of its kind has buffer {buffer.name}: it needs `device_id`")
        where = [const(self.device_type, "int32"), _integer(self.device_id)]
        kind = [const(int(buffer.dtype.type_code), "int32"), const(int(buffer.dtype.bits), "int32")]
        address = Var(f"{buffer.name}_data", PointerType(PrimType(str(buffer.dtype))))
        asked = call_extern("handle", "TVMBackendAllocWorkspace", *where, count * const(size, "uint64"), *kind)
        failed = Evaluate(tvm_throw_last_error())
        freed = call_extern("int32", "TVMBackendFreeWorkspace", *where, address)
        return [
            Bind(address, asked),
            IfThenElse(isnullptr(address), failed, None),
            DeclBuffer(buffer, address),
            *behind,
            IfThenElse(freed != 0, failed, None),
        ]

    def value(self, value):
        """The statements in front of a value that calls a packed function, and the value; none where it does not."""
        if _op(value) in _LOWERED:
            return self.call(value)
        if any(_op(part) in _LOWERED for part in walk_scalar(value)):
            raise NotImplementedError("a packed call stands inside of an expression: bind its result to a variable first")
        return [], value

    def call(self, call):
        """Writes the arguments of a call to the stack."""
        values, before, packed, counts = self.stack.values, [], [], [0, 0]
        for place, argument in enumerate(call.args[1:]):
            if _op(argument) == _MAKE_ARRAY:
                before += self.array(argument, counts)
                kind, value = fields.TENSOR, tvm_struct_get(self.stack.arrays, counts[0] - 1, 0, "handle")
            else:
                kind, value = _packed(argument)
            packed += _any(values, place, kind, value)
        count = len(call.args) - 1
        packed += _any(values, count, fields.NONE, const(0, "int64"))
        lowered = call_intrin(str(call.dtype), _LOWERED[_op(call)], call.args[0], values, 0, count)
        return [*before, *packed], lowered

    def array(self, made, counts):
        """The description of a tensor: its place among them and that of its lengths are counted in ``counts``."""
        data, shape, strides, rank, dtype, offset = made.args
        at, begin, lengths = counts[0], counts[1], self.stack.lengths
        counts[0], counts[1] = at + 1, begin + len(shape.args)
        written = [BufferStore(lengths, _wide(dim), [begin + axis]) for axis, dim in enumerate(shape.args)]
        if _op(strides) == _MAKE_SHAPE:
            raise NotImplementedError("a tensor with strides cannot be handed to a packed call here")
        null = call_intrin("handle", "tirx.reinterpret", const(0, "uint64"))
        kind, size = dtype.dtype, (int(dtype.dtype.bits) * int(dtype.dtype.lanes) + 7) // 8
        address = call_intrin("handle", "tirx.address_of", BufferLoad(lengths, [begin]))
        byte_offset = const(int(offset.value) * size, "uint64") if hasattr(offset, "value") else Cast("uint64", offset) * const(size, "uint64")
        device = _integer(self.device_id if self.device_id is not None else 0)
        device_type = _PROCESSOR if self.device_type is None else self.device_type
        parts = [
            (fields.DATA, data),
            (fields.SHAPE, address),
            (fields.STRIDES, null),
            (fields.NDIM, rank),
            (fields.TYPE_CODE, const(int(kind.type_code), "uint8")),
            (fields.TYPE_BITS, const(int(kind.bits), "uint8")),
            (fields.TYPE_LANES, const(int(kind.lanes), "uint16")),
            (fields.BYTE_OFFSET, byte_offset),
            (fields.DEVICE_ID, device),
            (fields.DEVICE_TYPE, const(device_type, "int32")),
        ]
        return [*written, *(Evaluate(tvm_struct_set(self.stack.arrays, at, number, part)) for number, part in parts)]


def _any(values, place, kind, value):
    sets = ((fields.ANY_TYPE, const(kind, "int32")), (fields.ANY_PADDING, const(0, "int32")), (fields.ANY_VALUE, value))
    return [Evaluate(tvm_struct_set(values, place, field, part)) for field, part in sets]


def _packed(value):
    """The kind of a packed value, and what is stored."""
    if isinstance(value, StringImm):
        return fields.RAW_STRING, call_intrin("handle", "tirx.reinterpret", value)
    dtype = str(value.dtype)
    if dtype == "handle":
        return fields.POINTER, value
    if dtype == "bool":
        return fields.BOOL, Cast("int64", value)
    if "float" in dtype:
        return fields.FLOAT, value if dtype == "float64" else Cast("float64", value)
    return fields.INT, _wide(value)


def _wide(value):
    """An integer of 64 bits."""
    if hasattr(value, "value"):
        return const(int(value.value), "int64")
    return value if str(value.dtype) == "int64" else Cast("int64", value)


def _integer(value):
    return const(value, "int32") if isinstance(value, int) else value


def _product(numbers):
    whole = 1
    for number in numbers:
        whole *= number
    return whole


def _is_parallel(stmt):
    return isinstance(stmt, For) and stmt.kind == ForKind.PARALLEL


def _kept(stmt, made):
    """The statement itself where the new one has the same parts."""
    from ._walk import children

    old, new = children(stmt), children(made)
    same = len(old) == len(new) and all(a.same_as(b) for a, b in zip(old, new))
    return [stmt] if same else [made]


__all__ = ["LowerTVMBuiltin"]
