"""Passes over memory that several processes' GPUs share."""

from ..ffi import get_global_func
from ..ir.expr import Call, Var
from ..ir.prim import IntImm, StringImm
from ..ir.transform import module_pass
from ..ir.type import AnyType
from .expr import ExternFunc, Function, ShapeExpr
from .expr_functor import PyExprMutator, PyExprVisitor, mutator, visitor
from .op import memory

#: The scope of memory that is shared.
_SHARED = "ipc_memory"
_ALLOCATE = "runtime.disco.cuda_ipc.alloc_storage"
_SUM = "runtime.disco.allreduce"
_FAST_SUM = "runtime.disco.cuda_ipc.custom_allreduce"


def _is_op(value, name):
    return isinstance(value, Call) and getattr(value.op, "name", None) == f"relax.{name}"


def _each_function(mod, change):
    """The module with what ``change`` makes of each Relax function."""
    for var, func in mod.functions_items():
        if isinstance(func, Function):
            mod = change(mod, var, func)
    return mod


@mutator
class _Allocate(PyExprMutator):
    """Asks the runtime for storage that is shared."""

    def visit_call_(self, op):
        call = super().visit_call_(op)
        if _is_op(call, "memory.alloc_storage") and _in_shared(call.args[2]):
            return _storage(call.args[0], call.args[3])
        if _is_op(call, "builtin.alloc_tensor") and _in_shared(call.args[3]):
            shape, dtype = call.args[0], call.args[1]
            storage = self.builder_.emit(_storage(shape, dtype))
            return memory.alloc_tensor(storage, 0, shape, dtype.value)
        return call


def _in_shared(scope):
    return isinstance(scope, StringImm) and scope.value == _SHARED


def _storage(shape, dtype):
    return Call(ExternFunc(_ALLOCATE), [shape, dtype], ty_args=[AnyType()])


def LowerGPUIPCAllocStorage():
    """Allocations in the scope ``ipc_memory`` become calls of the runtime's function for memory that processes share.

    No runtime of this package has that function: running such a program says so.
    """

    def lower(mod, _ctx):
        def change(mod, var, func):
            work = _Allocate(mod)
            work.builder_.update_func(var, work.visit_expr(func))
            return work.builder_.get()

        return _each_function(mod, change)

    return module_pass(lower, opt_level=0, name="LowerGPUIPCAllocStorage")


@visitor
class _Sums(PyExprVisitor):
    """Finds the sums over processes, and the tensors whose memory they read."""

    def __init__(self):
        self.values, self.sums, self.shared = {}, [], []

    def visit_var_binding_(self, binding):
        value = binding.value
        self.values[binding.var] = value
        if isinstance(value, Call) and isinstance(value.op, ExternFunc) and value.op.global_symbol == _SUM:
            allocation = self.allocation(value.args[0])
            if allocation is not None and _adds_up(value.args[1]):
                self.sums.append(value)
                self.shared.append(allocation)

    def allocation(self, tensor):
        """What allocated a tensor that is known by other names or in other shapes."""
        while isinstance(tensor, Var):
            value = self.values.get(tensor)
            if _is_op(value, "builtin.alloc_tensor"):
                return value
            tensor = value.args[0] if _is_op(value, "reshape") or _is_op(value, "memory.view") else value
        return None


def _adds_up(how):
    """Whether a reduction is the sum, which has the number 0."""
    return isinstance(how, ShapeExpr) and [int(v) for v in how.values] == [0]


@mutator
class _Share(PyExprMutator):
    """Sums over shared memory."""

    def __init__(self, mod, found, strategy):
        super().__init__(mod)
        self.found, self.strategy = found, strategy

    def visit_call_(self, op):
        call = super().visit_call_(op)
        if any(op.same_as(known) for known in self.found.sums):
            tensor, out = call.args[0], call.args[3]
            return Call(ExternFunc(_FAST_SUM), [tensor, IntImm("int64", self.strategy), out], call.attrs, call.ty_args)
        if any(op.same_as(known) for known in self.found.shared):
            return Call(call.op, [*call.args[:3], StringImm(_SHARED)], call.attrs, call.ty_args)
        return call


def IPCAllReduceRewrite(allreduce_strategy):
    """Sums over processes read memory that the processes share, where the runtime has a function for that.

    Parameters
    ----------
    allreduce_strategy : int
        What that function is told of how to go about it.

    No runtime of this package has the function; where no other library registers it, programs stay as they are.
    """

    def rewrite(mod, _ctx):
        if get_global_func(_FAST_SUM, allow_missing=True) is None:
            return mod

        def change(mod, var, func):
            found = _Sums()
            found.visit_expr(func)
            work = _Share(mod, found, int(allreduce_strategy))
            work.builder_.update_func(var, work.visit_expr(func))
            return work.builder_.get()

        return _each_function(mod, change)

    return module_pass(rewrite, opt_level=0, name="IPCAllReduceRewrite")
