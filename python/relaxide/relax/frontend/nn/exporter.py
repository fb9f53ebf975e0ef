"""From modules to programs: each method of a specification becomes a function."""

from ....ir.expr import Tuple, TupleGetItem, is_prim_expr
from ...analysis import well_formed
from ...block_builder import BlockBuilder
from ...expr import Var
from ...type import AnyType, ShapeType, TupleType
from . import _tree, spec as _spec
from ._module import Effect
from ._values import Tensor, _unwrap
from .effects import IOEffect

_open = []


class _Symbols(dict):
    """Symbolic variables of a function by name."""

    def __missing__(self, name):
        from ....tirx import Var as SymbolicVar

        self[name] = SymbolicVar(name, "int64")
        return self[name]


class Exporter:
    """Writes the program of a module; while it is open, :meth:`current` is it.

    Parameters
    ----------
    debug : bool
        Whether methods may print and call debug functions: functions then take and give the state of output.
    """

    def __init__(self, debug=False):
        self.builder = BlockBuilder()
        self.io_effect = IOEffect() if debug else None
        self.extern_mods = []

    @staticmethod
    def current():
        """The exporter that is writing a program now."""
        if not _open:
            raise RuntimeError("no program is being exported: external modules and debug functions are used in methods only")
        return _open[-1]

    def __enter__(self):
        _open.append(self)
        return self

    def __exit__(self, exc_type, exc, traceback):
        _open.pop()

    def add_external_module(self, mod):
        """Let the program use an external module; adding it again changes nothing."""
        if not any(mod is known for known in self.extern_mods):
            self.extern_mods.append(mod)

    def build(self, spec):
        """The program of a :class:`~relaxide.relax.frontend.nn.spec.ModuleSpec`.

        Returns
        -------
        (IRModule, list of (str, Parameter), list of ExternModule)
        """
        effects = [] if self.io_effect is None else [("", self.io_effect)]
        effects += _tree.find(spec.module, "", lambda value: isinstance(value, Effect))
        params = list(_tree.parameters(spec.module))
        kept = [(param, param._expr) for _, param in params]
        try:
            with self:
                if effects:
                    self._write_first_state(effects)
                for name, method in zip(spec.method_names, spec.method_specs):
                    for param, expr in kept:
                        param._expr = expr
                    self._write_method(name, method, params, effects)
        finally:
            # The variables of the last function would be those of the model, and hold its program.
            for param, expr in kept:
                param._expr = expr
        mod = self.builder.finalize()
        well_formed(mod)
        return mod, params, self.extern_mods

    def _write_first_state(self, effects):
        with self.builder.function("_initialize_effect", []):
            with self.builder.dataflow():
                states = [state for name, effect in effects for state in effect.emit_init(name, self.builder)]
                out = self.builder.emit_output(self.builder.emit(Tuple(states)))
            self.builder.emit_func_output(out)

    def _write_method(self, name, spec, params, effects):
        taken = {"plain": len(effects), "packed": 1, "none": 0}[spec.effect_mode]
        with self.builder.function(name, attrs={"num_input": len(spec.arg_specs) + taken}):
            with self.builder.dataflow():
                out, inputs = _Method(self.builder, spec).write(params, effects)
            self.builder.emit_func_output(out, inputs)


class _Method:
    """One function while it is written."""

    def __init__(self, builder, spec):
        self.builder, self.spec = builder, spec
        self.symbols = _Symbols()

    def write(self, params, effects):
        """``(result, parameters of the function)``."""
        pairs = [self._argument(name, spec) for name, spec in zip(self.spec.arg_names, self.spec.arg_specs)]
        inputs = [var for var, _ in pairs] + self._effects(effects) + self._params(params)
        out = _unwrap(self.spec.method(*(value() for _, value in pairs)))
        states = [state for _, effect in effects for state in effect.finalize()]
        if states and self.spec.effect_mode != "none":
            out = Tuple([out, Tuple(states)])
        return self.builder.emit_output(out), inputs

    def _argument(self, name, spec):
        """``(variable, what makes the method's argument from it)``."""
        if isinstance(spec, _spec.Int):
            dim = self.symbols[name]
            return Var(name, ShapeType([dim])), lambda: dim
        if isinstance(spec, _spec.Tuple):
            types = [self._argument(f"{name}_{at}", item)[0].ty for at, item in enumerate(spec.elements)]
            var = Var(name, TupleType(types))
            return var, lambda: self._fields(var, name, spec)
        var = Var(name, self._type(spec))
        return var, lambda: self._value(var, name, spec)

    def _type(self, spec):
        if isinstance(spec, _spec.Object):
            return AnyType()
        shape = [self.symbols[dim] if isinstance(dim, str) else dim for dim in spec.shape]
        return Tensor.placeholder(shape, spec.dtype)._expr.ty

    def _value(self, expr, name, spec):
        if isinstance(spec, _spec.Object):
            return spec.object_type(_expr=expr, _name=name)
        return Tensor(_expr=expr)

    def _fields(self, expr, name, spec):
        """The fields of a tuple, of the kind of sequence that the specification has."""
        fields = []
        for at, item in enumerate(spec.elements):
            field = self.builder.emit(TupleGetItem(expr, at), f"{name}_{at}")
            if isinstance(item, _spec.Tuple):
                fields.append(self._fields(field, f"{name}_{at}", item))
            elif isinstance(item, _spec.Int):
                fields.append(self.symbols[f"{name}_{at}"])
            else:
                fields.append(self._value(field, f"{name}_{at}", item))
        return type(spec.elements)(fields)

    def _params(self, params):
        """The function's parameters for the weights; symbolic dimensions of one name are one in a function."""
        dims = _Symbols()
        for name, param in params:
            shape = [dims[dim.name] if _is_symbol(dim) else dim for dim in param.shape]
            param._expr = Tensor.placeholder(shape, param.dtype, name)._expr
        variables = [param._expr for _, param in params]
        if self.spec.param_mode != "packed":
            return variables if self.spec.param_mode == "plain" else []
        packed = Var("packed_params", TupleType([var.ty for var in variables]))
        for at, (name, param) in enumerate(params):
            param._expr = self.builder.emit(TupleGetItem(packed, at), name.replace(".", "_"))
        return [packed]

    def _effects(self, effects):
        """The function's parameters for the state of effects."""
        states = [effect.create(name) for name, effect in effects]
        for (_, effect), variables in zip(effects, states):
            effect.set_state(variables)
        flat = [var for variables in states for var in variables]
        if self.spec.effect_mode != "packed":
            return flat if self.spec.effect_mode == "plain" else []
        packed = Var("packed_effects", TupleType([var.ty for var in flat]))
        at = 0
        for (_, effect), variables in zip(effects, states):
            fields = []
            for var in variables:
                fields.append(self.builder.emit(TupleGetItem(packed, at), var.name_hint))
                at += 1
            effect.set_state(fields)
        return [packed]


def _is_symbol(dim):
    return not isinstance(dim, int) and is_prim_expr(dim) and hasattr(dim, "name")


def add_extern(mod):
    """Let the program that is being exported use an external module."""
    Exporter.current().add_external_module(mod)


__all__ = ["Exporter", "add_extern"]
