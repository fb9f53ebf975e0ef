"""The passes of Relax as functions of their parameters: ``transform.FuseOps()(mod)``; ``transform.names()`` lists them.

The functions come from the compiler's table of passes: ``help(transform.ToMixedPrecision)`` shows what it says.
"""

from .. import _core
from ..ffi import register_object
from ..ir.base import Node
from ..ir.op import noted_of_operators as _noted_of_operators
from ..ir.op import register_op_attr as _register_op_attr
from ..ir.pass_functions import function as _function
from ..ir.pass_functions import signature
from ..ir.transform import DataflowBlockPass, FunctionPass, Pass, Sequential
from ..ir.transform import module_pass as _module_pass
from ..ir.transform import _dataflowblock_pass as dataflowblock_pass
from ..ir.transform import _function_pass as function_pass
from ..tirx.index_map import index_map as _index_map


def names():
    """The names of all passes."""
    return _core.pass_names()


class PatternCheckContext:
    """What the check of a :class:`FusionPattern` sees of a match."""

    def __init__(self, matched_expr, annotated_expr, matched_bindings, var_usages, value_to_bound_var):
        #: The expression that matched.
        self.matched_expr = matched_expr
        #: What the annotated parts stand for, by name.
        self.annotated_expr = annotated_expr
        #: The variables that the match takes, with their values.
        self.matched_bindings = matched_bindings
        #: For each variable of the function, those whose values use it.
        self.var_usages = var_usages
        #: The variables of the function by their values.
        self.value_to_bound_var = value_to_bound_var


class FusionPattern:
    """A pattern of :func:`FuseOpsByPattern`: a name such as ``blas.matmul``, what is matched, names for parts, a check that
    may refuse a match, and a function from parts to attributes of the fused function."""

    def __init__(self, name, pattern, annotation_patterns=None, check=None, attrs_getter=None):
        self.name, self.pattern, self.check, self.attrs_getter = name, pattern, check, attrs_getter
        self.annotation_patterns = dict(annotation_patterns or {})


def FuseOpsByPattern(patterns, bind_constants=True, annotate_codegen=False, entry_functions=None):
    """Make functions of what patterns match; the first pattern that matches takes it.

    Parameters
    ----------
    patterns : list of FusionPattern or tuple
        The patterns; a tuple holds the arguments of :class:`FusionPattern`.
    bind_constants : bool
        Constants stay in the functions; else they become parameters.
    annotate_codegen : bool
        Each function is wrapped in one for ``RunCodegen``.
    entry_functions : list of str, optional
        The functions to work on; all, where nothing is said.
    """
    rows = []
    for one in patterns:
        one = FusionPattern(*one) if isinstance(one, (tuple, list)) else one
        if not isinstance(one, FusionPattern):
            raise ValueError(f"Invalid pattern: {one}")
        rows.append((one.name, one.pattern, one.annotation_patterns, one.check, one.attrs_getter))
    made = _core.fuse_ops_by_pattern_pass(rows, bind_constants, annotate_codegen, list(entry_functions or []))
    return Pass(made, FuseOpsByPattern.__doc__)


def LegalizeOps(customize_legalize_map=None, skip_ops=None, enable_warning=False):
    """Operators become kernels, which are written as TVM writes them: padding is a block of its own, a maximum starts with the least
    finite number. Pipelines (:func:`relaxide.relax.get_pipeline`) and ``relaxide.compile`` make those that take least time.

    Parameters
    ----------
    customize_legalize_map : dict of str to function, optional
        For operators by name, functions of the block builder and the call that return what takes its place. What is noted of an
        operator as ``FLegalize`` (:func:`relaxide.ir.register_op_attr`) takes part too, unless the map has the operator.
    skip_ops : list of str, optional
        Operators that stay.
    enable_warning : bool
        For programs that give it; an operator without a kernel stays as it is.

    Returns
    -------
    Pass
    """
    custom = {**_noted_of_operators("FLegalize"), **(customize_legalize_map or {})}
    return Pass(_core.legalize_ops_pass(custom, list(skip_ops or [])), LegalizeOps.__doc__)


def register_legalize(op_name, legal_func=None):
    """Let :func:`LegalizeOps` ask a function about an operator, which it gives the block builder and the call; without it, a decorator.

    Pipelines that are asked for by name (``"zero"``) ask it, too.
    """
    return _register_op_attr(op_name, "FLegalize", legal_func)


def conv2d_NCHWc_OIHWo(bb, call):
    """What ``LegalizeOps({"relax.nn.conv2d": conv2d_NCHWc_OIHWo})`` makes of a convolution of packed layouts: one kernel over them, whose
    result lies where the convolution's does."""
    from ..ir.expr import Call
    from ..topi.nn import conv2d_NCHWc_OIHWo as compute

    attrs, device = call.attrs, call.ty.vdevice
    made = bb.call_te(
        compute,
        data=call.args[0],
        kernel=call.args[1],
        stride=attrs.strides,
        padding=attrs.padding,
        dilation=attrs.dilation,
        layout=attrs.data_layout,
        out_layout=attrs.out_layout,
        primfunc_name_hint="conv2d_NCHWc_OIHWo" + (f"_{device.target.kind.name}" if device else ""),
    )
    return Call(made.op, made.args, made.attrs, [call.ty], made.span)


def _gradient_of_kernel(*given):
    from .training.utils import gradient_of_kernel

    return gradient_of_kernel(*given)


def Gradient(func_name, require_grads=None, target_index=0):
    """Adds a function that computes derivatives of another one's result.

    Operators have derivatives of the compiler's, of :func:`relaxide.relax.op.register_gradient`, and calls of kernels
    (``call_tir_with_grad``) those of :func:`relaxide.relax.training.utils.register_te_gradient`.

    Parameters
    ----------
    func_name : str
        The function.
    require_grads : Var, str or list of them, optional
        The parameters by which it is derived; all, where nothing is said.
    target_index : int
        Which of several results is derived.

    Returns
    -------
    Pass
    """
    given = require_grads if isinstance(require_grads, (list, tuple)) or require_grads is None else [require_grads]
    names = None if given is None else [getattr(param, "name_hint", param) for param in given]
    custom = {**_noted_of_operators("FPrimalGradient"), "relax.call_tir_with_grad": _gradient_of_kernel}
    return Pass(_core.gradient_pass(func_name, names, target_index, custom), Gradient.__doc__)


def BindSymbolicVars(binding_map, func_name=None):
    """Symbolic dimensions take given values.

    Parameters
    ----------
    binding_map : dict of str or Var to int or PrimExpr
        Values of symbolic variables, which are given themselves or by their names.
    func_name : str, optional
        The function; all, where nothing is said.

    Returns
    -------
    Pass

    Raises
    ------
    PassError
        The pass finds no such variable, or several of the name.
    """
    return Pass(_core.bind_symbolic_vars_pass(list(binding_map.items()), func_name), BindSymbolicVars.__doc__)


def CombineParallelMatmul(check=None):
    """Products of one left factor become one product.

    Parameters
    ----------
    check : function, optional
        Says of the left factor, the right factors, the biases and the values of the block's variables whether the products
        are combined.

    Returns
    -------
    Pass
    """
    made = _core.combine_parallel_matmul_pass(check) if check else _core.make_pass("CombineParallelMatmul", {})
    return Pass(made, CombineParallelMatmul.__doc__)


def UpdateParamType(ty_func):
    """Parameters of functions get other types; what uses them is typed anew.

    Parameters
    ----------
    ty_func : function
        The new type of a parameter, or ``None`` where it keeps its own.

    Returns
    -------
    Pass
    """
    return Pass(_core.update_param_type_pass(ty_func), UpdateParamType.__doc__)


@register_object("relax.MatchResult")
class MatchResult(Node):
    """A stage of a kernel that is what a pattern says: the ``pattern``, what its symbols stand for (``symbol_values``) and what
    its buffers stand for (``matched_buffers``), in the order of its parameters."""


def SplitCallTIRByPattern(patterns, fcodegen):
    """The stages of kernels that patterns describe become calls of a library.

    Parameters
    ----------
    patterns : list of PrimFunc
        Kernels of one loop nest; parameters behind the buffers are symbols, which stand for literals.
    fcodegen : function
        Is given a list of :class:`MatchResult`, one for each stage in front that matches, and returns a list of the source of
        the library function, the number of stages that it stands for, and the buffers that it takes. In the source
        ``{global_symbol}`` stands for the name of the function.

    Returns
    -------
    Pass
    """
    return Pass(_core.split_call_tir_by_pattern_pass(list(patterns), fcodegen), SplitCallTIRByPattern.__doc__)


def AlterOpImpl(op_impl_map, op_buffer_transforms):
    """Kernels of an operator are replaced by the user's, which may take and give tensors in other layouts.

    Parameters
    ----------
    op_impl_map : dict of str to PrimFunc
        By the attribute ``operator_name`` of kernels, the kernel in their place.
    op_buffer_transforms : dict of str to list of IndexMap or function
        For each parameter of the kernel the map of indices to its layout, or ``None`` where it lies as before.

    Returns
    -------
    Pass
    """
    maps = {name: [_index_map(value) for value in given] for name, given in op_buffer_transforms.items()}
    made = _core.make_pass("AlterOpImpl", {"op_impl_map": dict(op_impl_map), "op_buffer_transforms": maps})
    return Pass(made, AlterOpImpl.__doc__)


def MetaScheduleApplyDatabase(work_dir=None, enable_warning=False):
    """Schedule kernels as a database of tuning says: the one whose ``with`` is open, or the one in ``work_dir``. Kernels that it does not
    know stay; ``enable_warning`` tells of them."""

    def transform(mod, _):
        from ..s_tir.meta_schedule.database import Database, JSONDatabase
        from ..s_tir.meta_schedule.relax_integration import apply_database

        target = _target("MetaScheduleApplyDatabase")
        database = Database.current()
        if database is None and work_dir is None:
            raise ValueError("MetaScheduleApplyDatabase needs a database: open one (`with database:`) or give work_dir")
        if database is None:
            database = JSONDatabase(work_dir=work_dir)
        return apply_database(mod, database, target, enable_warning)

    return _module_pass(transform, opt_level=0, name="MetaScheduleApplyDatabase")


def _target(name):
    from ..target import Target

    target = Target.current(allow_none=True)
    if target is None:
        raise ValueError(f"{name} needs a target: open one, `with Target('llvm'):`")
    return target


def MetaScheduleTuneIRMod(params, work_dir, max_trials_global, max_trials_per_task=None, op_names=None):
    """Tune the kernels that a program calls, and keep what was measured in ``work_dir``; the program stays.

    ``params`` are values of its parameters by name, ``op_names`` parts of the names of kernels that are tuned.
    """

    def transform(mod, _):
        from ..s_tir.meta_schedule.relax_integration import tune_relax

        target = _target("MetaScheduleTuneIRMod")
        tune_relax(mod, params, target, work_dir, max_trials_global, max_trials_per_task, op_names, cost_model=_cost_model())
        return mod

    return _module_pass(transform, opt_level=0, name="MetaScheduleTuneIRMod")


def MetaScheduleTuneTIR(work_dir, max_trials_global):
    """Tune the kernels of a module, and keep what was measured in ``work_dir``; the module stays."""

    def transform(mod, _):
        from ..s_tir.meta_schedule import tune_tir

        tune_tir(mod, _target("MetaScheduleTuneTIR"), work_dir, max_trials_global, cost_model=_cost_model())
        return mod

    return _module_pass(transform, opt_level=0, name="MetaScheduleTuneTIR")


def _cost_model():
    """Boosted trees where the package for them is installed; else candidates are drawn."""
    import importlib.util

    return "xgb" if importlib.util.find_spec("xgboost") else "random"


@_module_pass(opt_level=0, name="AttachExternModules")
class AttachExternModules:
    """The pass that gives a module what its external functions are in, for the build to import.

    ``extern_modules`` are :class:`~relaxide.relax.frontend.nn.ExternModule`; each is loaded when the pass runs, and stands behind those
    that the module has in its attribute ``external_mods``. A TypeError where one is something else.
    """

    def __init__(self, extern_modules):
        self.extern_modules = extern_modules

    def transform_module(self, mod, ctx):
        """The module with the loaded modules among its attributes."""
        from .frontend.nn import ExternModule

        for extern in self.extern_modules:
            if not isinstance(extern, ExternModule):
                raise TypeError(f"AttachExternModules takes external modules of `relax.frontend.nn`, not {type(extern).__name__}")
        known = list((mod.attrs or {}).get("external_mods", ()))
        return mod.with_attr("external_mods", [*known, *(extern.load() for extern in self.extern_modules)])


def VMBuiltinLower():
    """The old name of ``LowerRuntimeBuiltin``."""
    return _function("LowerRuntimeBuiltin", __name__)()


#: What builds on this module, by the files that it is in.
_ELSEWHERE = {
    "FastMathCodeGenerator": ".fast_math",
    "IPCAllReduceRewrite": "._gpu_memory",
    "LowerGPUIPCAllocStorage": "._gpu_memory",
    "clip_cast": ".quantized_values",
    "is_const_scalar": ".quantized_values",
}


def __getattr__(name):
    if name in _ELSEWHERE:
        import importlib

        return getattr(importlib.import_module(_ELSEWHERE[name], __package__), name)
    if name in _core.pass_names():
        function = globals()[name] = _function(name, __name__)
        return function
    raise AttributeError(f"there is no pass {name!r}; transform.names() lists the passes")


def __dir__():
    return sorted([*_core.pass_names(), *globals()])


__all__ = ["DataflowBlockPass", "FunctionPass", "MatchResult", "Pass", "Sequential", "dataflowblock_pass", "function_pass", "names"]
__all__ += ["signature"]
