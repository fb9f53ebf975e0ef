"""MakePackedAPI: kernels in the convention of packed calls, with what is checked of the arguments written out.

::

    def main(n: T.int32, A: T.Buffer((n,), "float32")):      def main(self_handle, args, num_args, result) -> T.int32:
        A[0] = 1.0                                                assert num_args == 2, …
                                                        →         n_type_index = T.tvm_struct_get(args, 0, 13, "int32")
                                                                  …
                                                                  A = T.decl_buffer((n,), data=…)
                                                                  with T.attr(0, "compute_scope", "main_compute_"):
                                                                      A[0] = 1.0
                                                                  return 0

Symbolic variables are taken from the arguments before anything is checked against them. Code generation does all this itself,
and takes the kernels as they were.
"""

from ..error import InternalError
from ..ir.module import IRModule
from ..ir.prim import Cast, Select, StringImm, const
from ..ir.transform import module_pass
from ..ir.type import PointerType, PrimType
from ..target import Target
from ._walk import rebuilt
from .device_intrinsic import tvm_struct_get, tvm_struct_set
from .expr import Var
from .function import PrimFunc
from .op import call_intrin, if_then_else, isnullptr
from .stmt import AssertStmt, AttrStmt, Bind, DeclBuffer, Evaluate, For, ForKind, IfThenElse, Return, SeqStmt, stmt_list

#: Fields of what the C interface hands over, by their numbers.
DATA, SHAPE, STRIDES, NDIM, TYPE_CODE, TYPE_BITS, TYPE_LANES, BYTE_OFFSET, DEVICE_ID, DEVICE_TYPE = range(1, 11)
ANY_TYPE, ANY_PADDING, ANY_VALUE, INT64_ELEMENT = 13, 14, 15, 17
#: Kinds of packed values.
NONE, INT, BOOL, FLOAT, POINTER, TENSOR, RAW_STRING, FIRST_OBJECT, TENSOR_OBJECT = 0, 1, 2, 3, 4, 7, 8, 64, 70
#: Behind this many bytes of a tensor object is its description.
_OBJECT_HEAD = 24

#: The attribute that says how a kernel is called, and the number of packed calls.
_CONVENTION, _PACKED = "calling_conv", 1
#: What the names of packed functions begin with.
PREFIX = "__tvm_ffi_"


def MakePackedAPI():
    """Kernels that a library exports take packed arguments; the rest of the module calls them so.

    Returns
    -------
    Pass
    """
    return module_pass(_run, opt_level=0, name="tirx.MakePackedAPI")


def _run(mod, _ctx):
    kernels = {var: func for var, func in mod.functions_items() if isinstance(func, PrimFunc)}
    packed = {var.name_hint: func for var, func in kernels.items() if _is_exported(func)}
    functions = dict(mod.functions_items())
    for var, func in kernels.items():
        body = rebuilt(func.body, lambda stmt: _called(stmt, packed))
        func = func if body.same_as(func.body) else _with_body(func, body)
        functions[var] = _Packed(func).kernel if var.name_hint in packed else func
    return IRModule(functions, attrs=mod.attrs, global_infos=mod.global_infos)


def _is_exported(func):
    return func.attrs.get("global_symbol") is not None and func.attrs.get(_CONVENTION, 0) == 0


def _with_body(func, body):
    return PrimFunc(func.params, body, func.ret_type, func.attrs)


def _called(stmt, packed):
    """A call of a packed kernel of the module, in that convention; nothing for any other statement."""
    value = stmt.value if isinstance(stmt, Evaluate) else None
    if getattr(getattr(value, "op", None), "name", None) != "tirx.call_kernel" or value.args[0].value not in packed:
        return None
    symbol = StringImm(f"{PREFIX}{packed[value.args[0].value].attrs['global_symbol']}")
    return Evaluate(call_intrin("int32", "tirx.call_cpacked", symbol, *value.args[1:]))


def _type_name(param):
    if hasattr(param, "shape"):
        return f"Tensor([{', '.join(str(dim) for dim in param.shape)}], {param.dtype})"
    return str(param.dtype)


class _Packed:
    """Writes one kernel."""

    def __init__(self, func):
        self.func, self.symbol = func, str(func.attrs["global_symbol"])
        target = func.attrs.get("target")
        if target is None:
            raise ValueError(f"kernel {self.symbol} names no target: run BindTarget first")
        self.target = Target(target)
        self.args, self.result = Var("args", PrimType("handle")), Var("result", PrimType("handle"))
        named = ", ".join(f"{param.name}: {_type_name(param)}" for param in func.params)
        self.calling = [" when calling:\n  `", f"{self.symbol}({named})"]
        #: Statements that define, then those that check, then those that declare buffers.
        self.defines, self.checks, self.declares = [], [], []
        self.known, self.device_id = set(), None
        for place, param in enumerate(func.params):
            self.take(place, param)
        for place, param in enumerate(func.params):
            if hasattr(param, "shape"):
                self.buffer(place, param)

    @property
    def kernel(self):
        """The kernel in the packed convention."""
        count = len(self.func.params)
        number = Var("num_args", "int32")
        first = [self.check("TypeError", number.equal(count), ["Expected ", str(count), " arguments"], None)]
        if count:
            first.append(self.check("TypeError", _not(isnullptr(self.args)), ["args pointer is NULL"], None))
        body = rebuilt(self.func.body, self.returned)
        scope = AttrStmt(0, "compute_scope", StringImm(f"{self.symbol}_compute_"), body)
        inner = [*self.checks, *self.declares, scope, Return(const(0, "int32"))]
        if self.device_id is not None:
            kind = const(Target(self.target).get_target_device_type(), "int32")
            inner = [AttrStmt(None, "device_id", self.device_id, AttrStmt(None, "device_type", kind, _sequence(inner)))]
        whole = _sequence([*first, *self.defines, *inner])
        attrs = dict(self.func.attrs)
        attrs |= {_CONVENTION: _PACKED, "global_symbol": PREFIX + self.symbol, "target": self.target.host or self.target}
        params = [Var("self_handle", PrimType("handle")), self.args, number, self.result]
        return PrimFunc(params, whole, PrimType("int32"), attrs)

    def check(self, kind, condition, message, expected):
        """That a condition holds, with a message that ends with the call, and perhaps with what was expected."""
        tail = ["`"] if expected is None else ["`,\n  expected ", expected]
        return AssertStmt(kind, condition, [*message, *self.calling, *tail])

    def take(self, place, param):
        """Takes an argument out of the packed ones."""
        def field(dtype):
            return tvm_struct_get(self.args, place, ANY_VALUE, dtype)

        index = Var(f"{param.name}_type_index", "int32")
        self.defines.append(Bind(index, tvm_struct_get(self.args, place, ANY_TYPE, "int32")))
        is_tensor, dtype = hasattr(param, "shape"), str(param.dtype)
        if is_tensor or dtype == "handle":
            kinds, wanted = [NONE, POINTER, TENSOR], "Tensor" if is_tensor else "pointer"
            holds = _any([index.equal(kind) for kind in kinds] + [index >= FIRST_OBJECT])
            pointer = field("handle")
            inside = call_intrin("handle", "tirx.handle_add_byte_offset", pointer, _OBJECT_HEAD)
            value = if_then_else(index.equal(TENSOR_OBJECT), inside, pointer)
        elif dtype == "bool":
            holds, wanted, value = _any([index.equal(BOOL), index.equal(INT)]), "boolean", Cast(dtype, field("int64"))
        elif dtype.startswith(("float", "bfloat")):
            holds, wanted = _any([index.equal(FLOAT), index.equal(INT), index.equal(BOOL)]), "float"
            value = Select(index.equal(FLOAT), Cast(dtype, field("float64")), Cast(dtype, field("int64")))
        else:
            holds, wanted = _any([index.equal(INT), index.equal(BOOL)]), "int"
            value = field("int64") if dtype == "int64" else Cast(dtype, field("int64"))
        self.defines.append(self.check("TypeError", holds, ["Mismatched type on argument #", str(place)], wanted))
        var = Var(f"{param.name}_handle", PrimType("handle")) if is_tensor else param
        self.defines.append(Bind(var, value))
        if is_tensor:
            self.handles = {**getattr(self, "handles", {}), place: var}
        else:
            self.known.add(param)

    def buffer(self, place, buffer):
        """Takes the description of a tensor apart, and declares the buffer."""
        handle = self.handles[place]

        def field(number, dtype, of=handle, at=0):
            return tvm_struct_get(of, at, number, dtype)

        def check(kind, condition, about, wanted, to=self.checks):
            message = [*about, " on argument #" if len(about) > 1 else "Mismatched type on argument #", str(place)]
            to.append(self.check(kind, condition, message, wanted))

        name, defines, dtype = buffer.name, self.defines, buffer.dtype
        check("TypeError", _not(isnullptr(handle)), [], "Tensor", defines)
        rank = const(len(buffer.shape), "int32").equal(field(NDIM, "int32"))
        check("ValueError", rank, ["Mismatched ", f"{name}.ndim"], str(len(buffer.shape)), defines)
        parts = ((TYPE_CODE, "uint8", dtype.type_code), (TYPE_BITS, "uint8", dtype.bits), (TYPE_LANES, "uint16", dtype.lanes))
        alike = _all([field(number, kind).equal(const(int(value), kind)) for number, kind, value in parts])
        check("TypeError", alike, ["Mismatched ", f"{name}.dtype"], str(dtype), defines)
        shape = self.pointer(f"{self.symbol}_{name}_shape", field(SHAPE, "handle"))
        for at, dim in enumerate(buffer.shape):
            found = _as(dim, field(INT64_ELEMENT, "int64", shape, at))
            self.define(dim, found, lambda c, w, at=at: check("ValueError", c, ["Invalid ", f"{name}.shape[{at}]"], w))
        strides = self.pointer(f"{self.symbol}_{name}_strides", field(STRIDES, "handle"))
        self.strides(buffer, strides, field, check)
        wanted = self.target.get_target_device_type()
        check("ValueError", field(DEVICE_TYPE, "int32").equal(wanted), ["Mismatched ", f"{name}.device_type"], self.target.kind, defines)
        if self.device_id is None:
            self.device_id = Var("dev_id", "int32")
            defines.append(Bind(self.device_id, field(DEVICE_ID, "int32")))
        else:
            same = self.device_id.equal(field(DEVICE_ID, "int32"))
            check("ValueError", same, ["Mismatched ", f"{name}.device_id"], "that of the other tensors")
        offset, size = field(BYTE_OFFSET, "uint64"), (int(dtype.bits) * int(dtype.lanes) + 7) // 8
        if isinstance(buffer.elem_offset, Var):
            defines.append(Bind(buffer.elem_offset, Cast(buffer.elem_offset.dtype, offset // const(size, "uint64"))))
        else:
            check("ValueError", const(0, "uint64").equal(offset), ["Invalid ", f"{name}.byte_offset"], "0")
        data = call_intrin("handle", "tirx.reinterpret", field(DATA, "handle"))
        count = const(1, "int64")
        for dim in buffer.shape:
            count = count * (dim if str(getattr(dim, "dtype", "")) == "int64" else Cast("int64", dim))
        check("ValueError", _any([count.equal(0), _not(isnullptr(data))]), [name, " data pointer is NULL"], None)
        self.declares.append(DeclBuffer(buffer, data))

    def strides(self, buffer, strides, field, check):
        """Binds strides that are variables, and checks the others; without any, elements follow each other."""
        name, plain = buffer.name, const(1, "int64")
        given = list(buffer.strides or [])
        for at in reversed(range(len(given))):
            found = if_then_else(isnullptr(strides), plain, field(INT64_ELEMENT, "int64", strides, at))
            found = _as(given[at], found)
            self.define(given[at], found, lambda c, w, at=at: check("ValueError", c, ["Invalid ", f"{name}.strides[{at}]"], w))
            plain = plain * _as(const(0, "int64"), buffer.shape[at])
        if given or not buffer.shape:
            return
        parts, plain = [], const(1, "int64")
        for at in reversed(range(len(buffer.shape))):
            parts.append(plain.equal(field(INT64_ELEMENT, "int64", strides, at)))
            plain = plain * _as(const(0, "int64"), buffer.shape[at])
        told = self.check("ValueError", _all(parts), ["Mismatched ", f"{name}.strides"], None)
        self.checks.append(IfThenElse(_not(isnullptr(strides)), told, None))

    def pointer(self, name, value):
        var = Var(name, PointerType(PrimType("int64")))
        self.defines.append(Bind(var, value))
        return var

    def define(self, expr, found, check):
        """What stands alone as a variable that nothing defines yet is defined; anything else is checked."""
        if isinstance(expr, Var) and expr not in self.known:
            self.known.add(expr)
            self.defines.append(Bind(expr, found))
        else:
            check(found.equal(expr), str(expr))

    def returned(self, stmt):
        """A return gives its value to the caller; nothing for any other statement."""
        if isinstance(stmt, For) and stmt.kind == ForKind.PARALLEL:
            rebuilt(stmt.body, _refused)
        if not isinstance(stmt, Return):
            return None
        value, dtype = stmt.value, str(stmt.value.dtype)
        kind = POINTER if dtype == "handle" else BOOL if dtype == "bool" else FLOAT if "float" in dtype else INT
        wide = {POINTER: dtype, FLOAT: "float64"}.get(kind, "int64")
        value = value if kind == POINTER else Cast(wide, value)
        sets = ((ANY_TYPE, const(kind, "int32")), (ANY_PADDING, const(0, "int32")), (ANY_VALUE, value))
        stored = [Evaluate(tvm_struct_set(self.result, 0, field, part)) for field, part in sets]
        return _sequence([*stored, Return(const(0, "int32"))])


def _refused(stmt):
    if isinstance(stmt, Return):
        raise InternalError("Return cannot be used in parallel scope")


def _as(like, value):
    dtype = str(like.dtype)
    return value if str(value.dtype) == dtype else Cast(dtype, value)


def _not(condition):
    from ..ir.prim import Not

    return Not(condition)


def _any(conditions):
    from ..ir.prim import Or

    whole = conditions[0]
    for condition in conditions[1:]:
        whole = Or(whole, condition)
    return whole


def _all(conditions):
    from ..ir.prim import And

    whole = conditions[0]
    for condition in conditions[1:]:
        whole = And(whole, condition)
    return whole


def _sequence(stmts):
    """Statements in a row, those of rows among them in their place."""
    flat = [part for stmt in stmts for part in stmt_list(stmt)]
    return flat[0] if len(flat) == 1 else SeqStmt(flat)


__all__ = ["MakePackedAPI"]
