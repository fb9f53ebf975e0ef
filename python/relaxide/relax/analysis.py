"""Questions about Relax programs."""

from enum import IntEnum

from .. import _core
from ..ir import IRModule, IntImm, _api, structural_equal
from ..ir.op import noted_of_operators as _noted_of_operators
from ..ir.type import AnyType, FuncType, ShapeType, TensorType, TupleType
from ..sym import Analyzer
from ..tirx import Evaluate
from ..tirx.index_map import index_map as _index_map
from .expr import BindingBlock, DataflowBlock, DataflowVar, Function, SeqExpr, Tuple, Var

_analysis = _api.Api("relax.analysis")


def free_vars(expr):
    """Variables that an expression uses and does not bind."""
    return list(_analysis.free_vars(expr))


def bound_vars(expr):
    """Variables that an expression binds: parameters and bindings."""
    return list(_analysis.bound_vars(expr))


def all_vars(expr):
    """Variables that an expression binds or uses."""
    return list(_analysis.all_vars(expr))


def used_vars(expr):
    """Variables that an expression uses, bound or not."""
    return list(_analysis.used_vars(expr))


def all_global_vars(expr):
    """Functions of the module that an expression names."""
    return list(_analysis.all_global_vars(expr))


def defined_symbolic_vars(func):
    """Symbolic dimensions that a function defines."""
    return list(_analysis.defined_symbolic_vars(func))


def free_symbolic_vars(func):
    """Symbolic dimensions that a function uses and does not define."""
    return list(_analysis.free_symbolic_vars(func))


def contains_impure_call(expr, own_name=None):
    """Whether evaluating an expression (of a function: its body) has effects; calls of ``own_name`` do not count."""
    body = expr.body if isinstance(expr, Function) else expr
    return _analysis.contains_impure_call(body, own_name if isinstance(own_name, Var) else None)


def has_reshape_pattern(func):
    """Whether a kernel of one input and one output copies elements in order, as a reshape does."""
    return bool(_analysis.has_reshape_pattern(func))


def computable_at_compile_time(func):
    """Variables whose values follow from parameters that are weights alone."""
    return list(_analysis.computable_at_compile_time(func))


def detect_recursion(mod):
    """Groups of functions that call each other in a circle."""
    return [list(group) for group in _analysis.detect_recursion(mod)]


def estimate_memory_usage(mod):
    """How much memory the tensors of a module take, before and after planning, as text."""
    if isinstance(mod, type):
        raise TypeError("a module is expected")
    return _analysis.estimate_memory_usage(mod)


def tir_vars_in_type(ty):
    """Symbolic variables that a type mentions."""
    return list(_analysis.tir_vars_in_type(ty))


def definable_tir_vars_in_type(ty):
    """Symbolic variables that a parameter of a type defines."""
    return list(_analysis.definable_tir_vars_in_type(ty))


def erase_to_well_defined(ty, shape_var_map=None, var_map=None):
    """The type without what it says of variables that are not in ``shape_var_map``, and with their values of those that are.

    ``var_map`` is about variables that hold shapes: types here keep what is known of such a shape, and not the variable.
    """
    known = dict(shape_var_map or {})
    erased = _analysis.erase_to_well_defined(ty, list(known))
    changed = {var: value for var, value in known.items() if value is not var and not var.same_as(value)}
    return _with_dims(erased, lambda dim: _api.tirx.Substitute(Evaluate(dim), changed).value) if changed else erased


def _with_dims(ty, new):
    """The type with another dimension in the place of each."""
    if isinstance(ty, TensorType) and ty.shape is not None:
        return TensorType([new(dim) for dim in ty.shape.values], ty.dtype, ty.vdevice)
    if isinstance(ty, ShapeType) and ty.values is not None:
        return ShapeType([new(dim) for dim in ty.values])
    if isinstance(ty, TupleType):
        return TupleType([_with_dims(field, new) for field in ty.fields])
    if isinstance(ty, FuncType) and ty.params is not None:
        return FuncType([_with_dims(param, new) for param in ty.params], _with_dims(ty.ret, new), ty.purity)
    return ty


def collect_non_negative_expressions(ty):
    """Dimensions that a type mentions, without constants: they are not negative in any value of the type."""
    found = []

    def keep(dim):
        if not isinstance(dim, IntImm) and not any(structural_equal(dim, other) for other in found):
            found.append(dim)
        return dim

    _with_dims(ty, keep)
    return found


def type_lca(lhs, rhs):
    """The narrowest type that values of both types have."""
    return _analysis.type_lca(lhs, rhs)


class BaseCheckResult(IntEnum):
    """What is known of a value of one type where another is expected.

    ``FAIL_L0``: no value is of both types. ``FAIL_L1``: the other type says less, so that only the run tells. ``FAIL_L2``: they differ in
    dimensions alone, which are not known to be equal. ``PASS``: every value fits.
    """

    FAIL_L0 = 0
    FAIL_L1 = 1
    FAIL_L2 = 2
    PASS = 3


def type_base_check(base, derived):
    """Whether values of a type are values of a base, as a :class:`BaseCheckResult`."""
    if isinstance(base, AnyType):
        return BaseCheckResult.PASS
    if isinstance(derived, AnyType):
        return BaseCheckResult.FAIL_L1
    if type(base) is not type(derived):
        return BaseCheckResult.FAIL_L0
    if isinstance(base, TensorType):
        return min(_check_tensor_parts(base, derived), _check_dims(base, derived))
    if isinstance(base, ShapeType):
        return _check_dims(base, derived)
    if isinstance(base, TupleType):
        return _check_each(base.fields, derived.fields)
    if isinstance(base, FuncType):
        return _check_functions(base, derived)
    return BaseCheckResult.PASS if _analysis.type_is_of(derived, base) else BaseCheckResult.FAIL_L0


def _check_tensor_parts(base, derived):
    """Of element types and devices: what the base says must be said by the other, and be the same."""
    pairs = [(str(base.dtype or ""), str(derived.dtype or "")), (base.vdevice, derived.vdevice)]
    found = BaseCheckResult.PASS
    for expected, given in pairs:
        if expected in ("", "void", None) or structural_equal(expected, given):
            continue
        if given not in ("", "void", None):
            return BaseCheckResult.FAIL_L0
        found = BaseCheckResult.FAIL_L1
    return found


def _check_dims(base, derived):
    """Of ranks and dimensions."""
    if base.ndim != derived.ndim:
        unknown = {base.ndim: BaseCheckResult.PASS, derived.ndim: BaseCheckResult.FAIL_L1}
        return unknown.get(-1, BaseCheckResult.FAIL_L0)
    dims, others = _dims_of(base), _dims_of(derived)
    if dims is None:
        return BaseCheckResult.PASS
    if others is None:
        return BaseCheckResult.FAIL_L2
    found = BaseCheckResult.PASS
    analyzer = Analyzer()
    for dim, other in zip(dims, others):
        if analyzer.can_prove_equal(dim, other):
            continue
        if analyzer.can_prove(dim != other):
            return BaseCheckResult.FAIL_L0
        found = BaseCheckResult.FAIL_L2
    return found


def _dims_of(ty):
    return ty.shape if isinstance(ty, TensorType) else ty.values


def _check_each(base, derived):
    """Of lists of types: the worst of them."""
    if len(base) != len(derived):
        return BaseCheckResult.FAIL_L0
    return min((type_base_check(*pair) for pair in zip(base, derived)), default=BaseCheckResult.PASS)


def _check_functions(base, derived):
    """Of functions: the other must take all that the base takes, give what it gives, and have no effects where it has none."""
    if base.purity and not derived.purity:
        return BaseCheckResult.FAIL_L0
    if base.params is None or derived.params is None:
        known = derived.params is None and base.params is not None
        return BaseCheckResult.FAIL_L1 if known else type_base_check(base.ret, derived.ret)
    # Each binds the dimensions of its own parameters.
    if structural_equal(base, derived):
        return BaseCheckResult.PASS
    return min(_check_each(base.params, derived.params), type_base_check(base.ret, derived.ret))


def get_static_type(ty):
    """The type without dimensions."""
    if isinstance(ty, TensorType):
        return TensorType(None, ty.dtype, ty.vdevice, ndim=ty.ndim)
    if isinstance(ty, ShapeType):
        return ShapeType(ndim=ty.ndim)
    if isinstance(ty, TupleType):
        return TupleType([get_static_type(field) for field in ty.fields])
    if isinstance(ty, FuncType) and ty.params is not None:
        return FuncType([get_static_type(param) for param in ty.params], get_static_type(ty.ret), ty.purity)
    return ty


def derive_call_ret_type(func_ty, call, ctx=None):
    """The type of a call of a function of a type."""
    return _analysis.call_type(func_ty, call)


def post_order_visit(expr, fvisit):
    """Call a function with every part of an expression, parts first; each part once."""
    from ..ir.expr import Expr
    from .expr_functor import PyExprVisitor

    seen = set()

    class Visit(PyExprVisitor):
        def visit_expr(self, expr):
            if expr in seen:
                return
            seen.add(expr)
            super().visit_expr(expr)
            fvisit(expr)

        def visit_var_def(self, var):
            self.visit_expr(var)

        def visit_expr_fallback_(self, op):
            if isinstance(op, Expr) and op not in seen:
                seen.add(op)
                fvisit(op)

    Visit().visit_expr(expr)


def _bindings(func):
    for block in func.body.blocks if isinstance(func, Function) else func.blocks:
        yield from block.bindings


def get_var2val(func):
    """The value of every variable that a function binds."""
    from .expr_functor import PyExprVisitor

    values = {}

    class Collect(PyExprVisitor):
        def visit_binding(self, binding):
            values[binding.var] = binding.value
            super().visit_binding(binding)

    Collect().visit_expr(func)
    return values


def name_to_binding(func):
    """The bindings of a function by the names of their variables."""
    names = {}
    for binding in _bindings(func):
        names.setdefault(binding.var.name_hint, []).append(binding)
    return names


def udchain(dfb):
    """For each variable of a block, those whose values use it."""
    seq = SeqExpr([dfb], dfb.bindings[-1].var) if isinstance(dfb, DataflowBlock) or hasattr(dfb, "bindings") else dfb
    users, _ = _analysis.use_def(seq)
    return {var: list(found) for var, found in users.items()}


def remove_all_unused(func):
    """The function, sequence or dataflow block without bindings that nothing uses.

    What a block gives away are its variables that live on behind it.
    """
    if isinstance(func, Function):
        return _analysis.remove_all_unused(func)
    if isinstance(func, BindingBlock):
        given = [binding.var for binding in func.bindings if not isinstance(binding.var, DataflowVar)]
        blocks = remove_all_unused(SeqExpr([func], Tuple(given))).blocks
        return blocks[0] if blocks else type(func)([])
    return _analysis.remove_all_unused(Function(free_vars(func), func, is_pure=False)).body


def suggest_layout_transforms(func, write_buffer_transforms):
    """Layouts of a kernel's blocks and inputs that go with new layouts of its outputs.

    Parameters
    ----------
    func : PrimFunc
        The kernel.
    write_buffer_transforms : list of IndexMap or function
        For each output, which are the last parameters, the map of indices to its new layout.

    Returns
    -------
    dict of SBlock to dict
        For each block that can follow, maps by what they are of: the block itself, and buffers that it reads and writes.
    """
    maps = [_index_map(value) for value in write_buffer_transforms]
    found = {}
    for block, axes, *buffers in _analysis.suggest_layout_transforms(func, maps):
        found[block] = {block: axes, **dict(zip(buffers[::2], buffers[1::2]))}
    return found


def well_formed(obj, check_ty=True):
    """Raise a ValueError that says what breaks the rules of the language, if something does."""
    problems = _problems(obj)
    if problems:
        raise ValueError("the program is not well-formed:\n" + "\n".join(problems))


def check_well_formed(obj, check_ty=True):
    """Whether a module or function keeps the rules of the language."""
    return not _problems(obj)


def _problems(obj):
    if isinstance(obj, Function):
        return _core.well_formed_alone(obj) + _of_operators([("main", obj)])
    module = obj if isinstance(obj, IRModule) else IRModule.from_expr(obj)
    functions = [(var.name_hint, func) for var, func in module.functions_items()]
    return _core.well_formed(module) + list(_of_symbols(functions)) + _of_operators(functions)


def _of_symbols(functions):
    """Functions of Relax that are exported by another name than they have."""
    for name, func in functions:
        symbol = (func.attrs or {}).get("global_symbol") if isinstance(func, Function) else None
        if symbol is not None and str(symbol) != name:
            yield f"function `{name}` has the symbol `{symbol}`: NormalizeGlobalVar makes the two one"


def _of_operators(functions):
    """What operators that the program added say against calls."""
    if not _noted_of_operators("FNormalize"):
        return []
    from ._normal_calls import problems

    return [line for name, func in functions if isinstance(func, Function) for line in problems(func, name)]


__all__ = ["BaseCheckResult", "all_global_vars", "all_vars", "bound_vars", "check_well_formed", "collect_non_negative_expressions"]
__all__ += ["computable_at_compile_time", "contains_impure_call", "definable_tir_vars_in_type", "defined_symbolic_vars", "has_reshape_pattern"]
__all__ += ["derive_call_ret_type", "detect_recursion", "erase_to_well_defined", "estimate_memory_usage"]
__all__ += ["free_symbolic_vars", "free_vars", "get_static_type", "get_var2val", "name_to_binding"]
__all__ += ["post_order_visit", "remove_all_unused", "suggest_layout_transforms", "tir_vars_in_type", "type_base_check", "type_lca", "udchain"]
__all__ += ["used_vars", "well_formed"]
