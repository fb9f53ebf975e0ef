"""What is written into kernels: parameters, buffers, axes, loops, stores; and the scalar functions, under their names of ``T``."""

from ....ir.expr import Range, Var
from ....ir.type import PointerType, PrimType
from ....script import tirx as _names
from ....tirx import AllocBuffer, AssertStmt, Bind, BufferStore, DeclBuffer, Evaluate, ForKind, IterVar, StringImm, const
from ....tirx.buffer import Buffer as _Buffer
from ....tirx.buffer import BufferRegion, decl_buffer as _decl_buffer
from ..base import IRBuilder, frame_of
from ..ir.ir import meta_var
from . import frame
from .frame import ForFrame, PrimFuncFrame, SBlockFrame, put, renamed_buffer


def prim_func(is_private=False, s_tir=False, persistent=False):
    """The frame of a kernel: ``with T.prim_func(): ...``. A private one gets no symbol of its name."""
    return PrimFuncFrame(is_private, s_tir)


def _kernel(what):
    return frame_of(PrimFuncFrame, what)


def _block(what):
    return frame_of(SBlockFrame, what)


def Buffer(shape, dtype="float32", data=None, strides=None, elem_offset=None, scope="global", align=0, offset_factor=0, **options):
    """A buffer of a shape, for ``T.arg`` and for statements; see :func:`relaxide.tirx.decl_buffer`."""
    return _decl_buffer(shape, dtype, "buffer", data, strides, elem_offset, scope, align or -1, offset_factor)


def handle(dtype=None, storage_scope="global"):
    """A variable that is an address; with an element type, of memory that holds such elements."""
    return Var("", PointerType(PrimType(dtype or "void"), storage_scope) if dtype else "handle")


def ptr(dtype, storage_scope="global"):
    """A variable that is the address of memory which holds elements of a type."""
    return handle(dtype, storage_scope)


def arg(name, obj):
    """The kernel's next parameter: a variable or a buffer, which is returned under that name."""
    kernel = _kernel("T.arg")
    if isinstance(obj, _Buffer):
        made = renamed_buffer(obj, name)
    elif isinstance(obj, Var):
        made = Var(name, obj.ty)
    else:
        raise TypeError(f"the parameter {name} is a variable or a buffer, not a {type(obj).__name__}")
    kernel.args.append(made)
    return made


def func_name(name):
    """The kernel's name; a ValueError where it has one."""
    kernel = _kernel("T.func_name")
    if kernel.name is not None:
        raise ValueError(f"the kernel has a name already: {kernel.name}")
    kernel.name = name


def func_attr(attrs):
    """Give the kernel attributes, a dictionary by name."""
    _kernel("T.func_attr").attrs.update(attrs)


def func_ret(ret_type):
    """The type of what the kernel returns, or the name of an element type."""
    kernel = _kernel("T.func_ret")
    kernel.ret_type = PrimType(ret_type) if isinstance(ret_type, str) else ret_type
    return kernel.ret_type


def match_buffer(
    param, shape=None, dtype="float32", data=None, strides=None, elem_offset=None, scope="global", align=-1, offset_factor=0, **options
):
    """The buffer behind a handle parameter, or a region of one that the block sees as a buffer of its own."""
    if shape is None:
        if not isinstance(param, BufferRegion):
            raise ValueError("T.match_buffer needs a shape, unless it is about a region")
        shape = [dim.extent for dim in param.region]
    if isinstance(param, (BufferRegion, _Buffer)) or hasattr(param, "indices"):
        buffer = _decl_buffer(shape, dtype, "buffer", data, strides, elem_offset, scope, align, offset_factor)
        _block("T.match_buffer of a region").match(buffer, _region(param))
        return buffer
    buffer = _decl_buffer(shape, dtype, param.name or "buffer", data, strides, elem_offset, scope, align, offset_factor)
    kernel = _kernel("T.match_buffer")
    if not any(param.same_as(own) for own in kernel.args):
        raise ValueError(f"{param.name or 'the handle'} is no parameter of the kernel: T.arg makes parameters")
    kernel.buffer_map[param] = buffer
    return buffer


def _region(value):
    """A region: of a whole buffer, of an element, or as it is."""
    if isinstance(value, BufferRegion):
        return value
    if isinstance(value, _Buffer):
        return BufferRegion(value, [Range.from_min_extent(0, dim) for dim in value.shape])
    if hasattr(value, "buffer") and hasattr(value, "indices"):
        return BufferRegion(value.buffer, [Range.from_min_extent(index, 1) for index in value.indices])
    raise TypeError(f"a region of a buffer is expected, got {type(value).__name__}")


def sblock(name="", no_realize=False, exec_scope=""):
    """The frame of a block: ``with T.sblock("sum"): ...``."""
    return SBlockFrame(name, no_realize)


def init():
    """The frame of what sets the element in front of a reduction."""
    return frame.BlockInitFrame()


def where(predicate):
    """The condition under which the block is executed; a ValueError where it was said before."""
    block = _block("T.where")
    if block.predicate is not None:
        raise ValueError(f"the block {block.name} has a T.where already")
    block.predicate = const(predicate, "bool") if isinstance(predicate, bool) else predicate


def _say_regions(which, regions):
    block = _block(f"T.{which}")
    if getattr(block, which) is not None:
        raise ValueError(f"the block {block.name} has T.{which} already")
    regions = regions[0] if len(regions) == 1 and isinstance(regions[0], (list, tuple)) else regions
    setattr(block, which, [_region(region) for region in regions])


def reads(*buffer_slices):
    """What the block reads: regions, elements, or whole buffers."""
    _say_regions("reads", buffer_slices)


def writes(*buffer_slices):
    """What the block writes."""
    _say_regions("writes", buffer_slices)


def sblock_attr(attrs):
    """Give the block annotations, a dictionary by name; a ValueError where it has one of a name with another value."""
    block = _block("T.sblock_attr")
    for key, value in attrs.items():
        if key in block.annotations and block.annotations[key] != value:
            raise ValueError(f"the block {block.name} has an annotation {key} already")
        block.annotations[key] = value


def sblock_alloc_buffer(
    shape, dtype="float32", data=None, strides=None, elem_offset=None, scope="", align=-1, offset_factor=0, **options
):
    """A buffer that lives inside of the block, or of the whole kernel where no block is open."""
    buffer = _decl_buffer(shape, dtype, "buffer", data, strides, elem_offset, scope, align, offset_factor)
    block = IRBuilder.current().find(SBlockFrame)
    (_kernel("T.sblock_alloc_buffer").root_alloc_buffers if block is None else block.alloc_buffers).append(buffer)
    return buffer


def alloc_buffer(
    shape,
    dtype="float32",
    data=None,
    strides=None,
    elem_offset=None,
    scope="global",
    align=-1,
    offset_factor=0,
    *,
    annotations=None,
    layout="default",
    **options,
):
    """Memory for a buffer, for the statements behind it."""
    buffer = _decl_buffer(shape, dtype, "buffer", data, strides, elem_offset, scope, align, offset_factor, layout=layout)
    put(AllocBuffer(buffer, annotations))
    return buffer


def decl_buffer(
    shape,
    dtype="float32",
    data=None,
    strides=None,
    elem_offset=None,
    scope="global",
    align=0,
    offset_factor=0,
    *,
    layout="default",
    **options,
):
    """A buffer over memory that exists, whose address is ``data``; memory of its own where none is given."""
    if data is None:
        return alloc_buffer(shape, dtype, None, strides, elem_offset, scope, align or -1, offset_factor, layout=layout)
    buffer = _decl_buffer(shape, dtype, "buffer", None, strides, elem_offset, scope, align or -1, offset_factor, layout=layout)
    put(DeclBuffer(buffer, data))
    return buffer


class axis:
    """The axes of a block: variables that take the values that are given."""

    @staticmethod
    def _make(kind, dom, binding, dtype):
        block = _block("T.axis")
        begin, end = dom if isinstance(dom, (list, tuple)) else (0, dom)
        if isinstance(dom, Range):
            begin, end = dom.min, dom.min + dom.extent
        ends = (end, begin, binding)
        dtype = next((str(value.dtype) for value in ends if hasattr(value, "dtype")), dtype)
        begin, end = (const(value, dtype) if isinstance(value, int) else value for value in (begin, end))
        var = Var("v", dtype)
        block.iter_vars.append(IterVar(Range(begin, end), var, kind))
        block.iter_values.append(const(binding, dtype) if isinstance(binding, int) else binding)
        return var

    @staticmethod
    def spatial(dom, binding, dtype="int32"):
        """An axis whose values are computed on their own."""
        return axis._make(IterVar.DataPar, dom, binding, dtype)

    @staticmethod
    def reduce(dom, binding, dtype="int32"):
        """An axis whose values are added up, or combined in another way."""
        return axis._make(IterVar.CommReduce, dom, binding, dtype)

    @staticmethod
    def scan(dom, binding, dtype="int32"):
        """An axis whose values are computed in order."""
        return axis._make(IterVar.Ordered, dom, binding, dtype)

    @staticmethod
    def opaque(dom, binding, dtype="int32"):
        """An axis of which nothing is known."""
        return axis._make(IterVar.Opaque, dom, binding, dtype)

    @staticmethod
    def remap(kinds, bindings, dtype="int32"):
        """Axes over the loops around: a letter for each, ``S`` spatial and ``R`` reduction, and the loops' counters."""
        if len(kinds) != len(bindings):
            raise ValueError(f"{len(kinds)} kinds of axes are given for {len(bindings)} counters")
        makers = {"S": axis.spatial, "R": axis.reduce}
        if set(kinds) - set(makers):
            raise ValueError(f"kinds of axes are S and R, got {kinds}")
        made = [makers[kind](_range_of(counter), counter, dtype) for kind, counter in zip(kinds, bindings)]
        return made[0] if len(made) == 1 else made

    S, R = spatial, reduce


def _range_of(counter):
    for open_frame in reversed(IRBuilder.current().frames):
        for var, begin, extent, *_ in getattr(open_frame, "loops", ()):
            if var.same_as(counter):
                return (begin, begin + extent) if getattr(begin, "value", begin) else (0, extent)
    raise ValueError(f"{counter} is no counter of a loop around the block")


def _loop(start, stop, kind, thread=None, annotations=None, dtype=None, step=None):
    start, stop = (0, start) if stop is None else (start, stop)
    dtype = next((str(value.dtype) for value in (stop, start) if hasattr(value, "dtype")), dtype or "int32")
    start, stop = (const(value, dtype) if isinstance(value, int) else value for value in (start, stop))
    from ....ir import _api

    extent = _api.prim.simplify(stop - start)
    return (Var("v", dtype), start, extent, kind, thread, annotations, step)


def _counted(kind, what):
    def loop(start, stop=None, *, annotations=None, step=None):
        return ForFrame([_loop(start, stop, kind, annotations=annotations, step=step)])

    loop.__doc__ = f"The frame of a loop {what}: over as many values as are said, or from a first up to but not including a last, by ones or by a step."
    return loop


serial = _counted(ForKind.SERIAL, "that is executed in order")
parallel = _counted(ForKind.PARALLEL, "whose iterations threads share")
vectorized = _counted(ForKind.VECTORIZED, "that becomes vectors")
unroll = _counted(ForKind.UNROLLED, "that is unrolled")
serial.__name__, parallel.__name__, vectorized.__name__, unroll.__name__ = "serial", "parallel", "vectorized", "unroll"


def thread_binding(start, stop=None, thread=None, *, annotations=None):
    """The frame of a loop that the threads of a name, such as ``"threadIdx.x"``, execute."""
    if thread is None:
        if not isinstance(stop, str):
            raise ValueError("T.thread_binding needs the name of its thread")
        start, stop, thread = start, None, stop
    return ForFrame([_loop(start, stop, ForKind.THREAD_BINDING, thread, annotations)])


def launch_thread(thread, extent):
    """The frame of a loop that threads execute, by the name of a thread or by what :func:`env_thread` gave."""
    name = thread if isinstance(thread, str) else getattr(thread, "thread_tag", None)
    if name is None:
        raise TypeError("T.launch_thread takes the name of a thread, or what T.env_thread gave")
    var, *loop = _loop(extent, None, ForKind.THREAD_BINDING, name)
    return ForFrame([(getattr(thread, "var", var), *loop)])


class _EnvThread:
    """A thread that is launched later."""

    def __init__(self, thread_tag, dtype):
        self.thread_tag, self.var = thread_tag, Var("v", dtype)

    def asobject(self):
        """Its number, where it stands in an expression."""
        return self.var


def env_thread(thread_tag, dtype="int32"):
    """A thread by its name, for :func:`launch_thread`."""
    return _EnvThread(thread_tag, dtype)


def grid(*extents):
    """The frame of loops inside of each other, one for each number."""
    return ForFrame([_loop(extent, None, ForKind.SERIAL) for extent in extents])


def Assert(condition, message, error_kind="RuntimeError"):
    """The frame of statements behind a condition that must hold; else an error of a kind is raised with a message."""
    message = list(message) if isinstance(message, (list, tuple)) else [message]
    check = AssertStmt(StringImm(error_kind), condition, [StringImm(part) for part in message])
    return frame.AssertFrame(check)


def bind(value, type_annotation=None, *, var=None):
    """A variable that stands for a value in the statements behind it."""
    value = const(value) if isinstance(value, (bool, int, float)) else value
    if var is None:
        var = Var("v", type_annotation if type_annotation is not None else str(value.dtype))
    put(Bind(var, value))
    return var


let = Let = LetStmt = bind


def attr(node, attr_key=None, value=None):
    """The frame of statements under an attribute, or under those of a dictionary. ``node`` is what it is about: ``None`` or a number for the
    statements themselves, a text, a variable, a buffer."""
    if isinstance(node, dict):
        return frame.AttrFrame(list(node.items()))
    return frame.AttrFrame([(attr_key, value)], node)


def While(condition):
    """The frame of statements for as long as a condition holds."""
    return frame.WhileFrame(condition)


def If(condition):
    """The frame of a choice: ``with T.If(c): with T.Then(): ...; with T.Else(): ...``."""
    return frame.IfFrame(condition)


def Then():
    """The frame of what is done where the condition holds."""
    return frame.ThenFrame()


def Else():
    """The frame of what is done where it does not."""
    return frame.ElseFrame()


def buffer_store(buffer, value, indices, predicate=None):
    """Store a value at indices of a buffer; a number takes the buffer's type. Of a vector, the lanes of ``predicate`` are stored."""
    put(BufferStore(buffer, value, indices if isinstance(indices, (list, tuple)) else [indices], predicate))


def evaluate(value):
    """An expression that is evaluated for what it does."""
    put(Evaluate(value))


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(_names, name)


__all__ = ["Assert", "Buffer", "Else", "If", "Let", "LetStmt", "Then", "While", "alloc_buffer", "arg", "attr", "axis", "bind"]
__all__ += ["buffer_store", "decl_buffer", "env_thread", "evaluate", "func_attr", "func_name", "func_ret", "grid", "handle", "init"]
__all__ += ["launch_thread", "let", "match_buffer", "meta_var", "parallel", "prim_func", "ptr", "reads", "sblock", "sblock_alloc_buffer"]
__all__ += ["sblock_attr", "serial", "thread_binding", "unroll", "vectorized", "where", "writes"]
