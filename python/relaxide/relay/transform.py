"""Passes of Relay, by TVM's names: ``transform.FoldConstant()(mod)``.

``Sequential`` runs passes in order, those up to the level of the context in force, as TVM does.
"""

import functools

from ..ir.transform import PassContext
from . import _api
from .module import IRModule, module_of


class Pass:
    """A pass: called with a module, it gives another."""

    def __init__(self, name, opt_level, run, options=None):
        self.name, self.opt_level, self._run, self._options = name, opt_level, run, options or {}

    @property
    def info(self):
        """Name and level."""
        return self

    def __call__(self, mod):
        made = self._run(module_of(mod))
        return made if isinstance(made, IRModule) else IRModule.of(made)

    def __repr__(self):
        return f"{self.name}(opt_level={self.opt_level})"


_PASSES = {str(name): (int(level), str(doc)) for name, level, doc in _api.ir.PassNames()}


def _core_pass(name, options):
    level, _ = _PASSES[name]
    return Pass(name, level, lambda mod: _api.ir.RunPass(name, mod._node, options))


def _maker(name, parameters):
    def make(*args, **kwargs):
        if len(args) > len(parameters):
            raise TypeError(f"{name} takes {len(parameters)} arguments, and {len(args)} are given")
        given = {**dict(zip(parameters, args)), **kwargs}
        unknown = set(given) - set(parameters)
        if unknown:
            raise TypeError(f"{name} has no parameter {sorted(unknown)[0]!r}; it has {', '.join(parameters) or 'none'}")
        return _core_pass(name, {key: value for key, value in given.items() if value is not None})

    make.__name__ = make.__qualname__ = name
    make.__doc__ = _PASSES[name][1]
    return make


#: Parameters of passes that have some.
_PARAMETERS = {
    "ConvertLayout": ("desired_layouts",),
    "ToMixedPrecision": ("mixed_precision_type", "missing_op_mode"),
    "FuseOps": ("fuse_opt_level",),
    "EtaExpand": ("expand_constructor", "expand_global_var"),
    "DeadCodeElimination": ("inline_once", "ignore_impurity"),
    "RemoveUnusedFunctions": ("entry_functions",),
    "EliminateCommonSubexpr": ("fskip",),
    "FoldConstant": ("fold_qnn",),
    "Legalize": ("legalize_map_attr_name",),
    "PlanDevices": ("default", "host"),
}

for _name in _PASSES:
    globals()[_name] = _maker(_name, _PARAMETERS.get(_name, ()))


class Sequential(Pass):
    """Passes in order."""

    def __init__(self, passes=None, opt_level=0, name="sequential", required=None):
        self.passes = list(passes or [])
        super().__init__(name, opt_level, self._in_order)

    def _in_order(self, mod):
        context = PassContext.current()
        for one in self.passes:
            wanted = one.opt_level <= context.opt_level or one.name in context.required_pass
            if wanted and one.name not in context.disabled_pass:
                mod = one(mod)
        return mod


def module_pass(pass_func=None, opt_level=None, name=None, required=None):
    """A pass of a function of a module and the context."""

    def make(function):
        run = lambda mod: function(mod, PassContext.current())
        return Pass(name or function.__name__, opt_level or 0, run)

    return make if pass_func is None else make(pass_func)


def function_pass(pass_func=None, opt_level=None, name=None, required=None):
    """A pass of a function of a function, the module and the context."""

    def make(function):
        @functools.wraps(function)
        def run(mod):
            changed = mod.clone()
            for var, func in mod.functions.items():
                changed[var] = function(func, mod, PassContext.current())
            return changed

        return Pass(name or function.__name__, opt_level or 0, run)

    return make if pass_func is None else make(pass_func)


def InferTypeLocal(expr):
    """The type of an expression alone."""
    return _api.ir.TypeOf(expr, None)


__all__ = ["InferTypeLocal", "Pass", "PassContext", "Sequential", "function_pass", "module_pass", *_PASSES]
