"""What is written into Relax functions: parameters, bindings, results; and the operators, under their names of ``R``."""

import builtins

from ....ir.expr import Call, Expr
from ....ir.type import Type
from ....script import relax as _names
from ....script.ir_builder.base import IRBuilder, frame_of
from ....script.relax import ExternFunc, TupleGetItem, const, dtype, prim_value, rewriter, shape, str, tuple
from ...expr import Var, VarBinding
from . import frame
from .frame import BindingBlockFrame, FunctionFrame, IfFrame, SeqExprFrame

py_print = builtins.print
py_str = builtins.str
py_tuple = builtins.tuple


def function(is_pure=True, is_private=False):
    """The frame of a function: ``with R.function(): ...``. One that is private gets no symbol of its name."""
    return FunctionFrame(is_pure, is_private)


def _function(what):
    return frame_of(FunctionFrame, what)


def arg(name, ty):
    """The function's next parameter, by its name and type."""
    function = _function("R.arg")
    ty = ty() if not isinstance(ty, Type) and callable(ty) else ty
    if not isinstance(ty, Type):
        raise TypeError(f"the parameter {name} needs a type, got {type(ty).__name__}")
    var = Var(name, ty)
    function.params.append(var)
    function.block_builder._reserve(name)
    return var


def func_name(name):
    """The function's name; a ValueError where it has one."""
    function = _function("R.func_name")
    if function.name is not None:
        raise ValueError(f"the function has a name already: {function.name}")
    function.name = name


def func_attr(attrs):
    """Give the function attributes, a dictionary by name; a ValueError where it has one of a name with another value."""
    function = _function("R.func_attr")
    for key, value in attrs.items():
        if key in function.attrs and function.attrs[key] != value:
            raise ValueError(f"the function has an attribute {key} already")
        function.attrs[key] = value


def func_ret_ty(ret_ty):
    """The type of the function's result; a ValueError where it was said before."""
    function = _function("R.func_ret_ty")
    if function.ret_ty is not None:
        raise ValueError(f"the type of the function's result was said before: {function.ret_ty}")
    function.ret_ty = ret_ty() if not isinstance(ret_ty, Type) and callable(ret_ty) else ret_ty


func_ret_type = func_ret_ty


def func_ret_value(value):
    """The function's result; a ValueError where it was said before."""
    function = _function("R.func_ret_value")
    if function.output is not None:
        raise ValueError("the function has a result already")
    function.output = function.block_builder._normalize_python_tuple(value)


def dataflow():
    """The frame of a dataflow block: ``with R.dataflow() as block: ...``."""
    return BindingBlockFrame()


def output(*vars):
    """Say which variables of the dataflow block live on behind it; afterwards they are ``block.output_vars``."""
    frame_of(BindingBlockFrame, "R.output").say_output(vars)


def _bound(var, span_of=None):
    sequence = IRBuilder.current().find(SeqExprFrame)
    if not isinstance(sequence, FunctionFrame):
        sequence.output = var
    return var


def emit(value, annotate_ty=None):
    """Bind a value to a fresh variable, which is returned; of a type that is said, where one is."""
    function = _function("R.emit")
    if annotate_ty is None:
        return _bound(function.block_builder.emit(value))
    value = function.block_builder.normalize(function.block_builder._normalize_python_tuple(value))
    kind = Var
    if function.block_builder.current_block_is_dataflow():
        from ...expr import DataflowVar as kind
    var = kind(function.block_builder.get_unique_name("lv" if kind is not Var else "gv"), annotate_ty)
    function.block_builder.emit_normalized(VarBinding(var, value))
    return _bound(var)


def emit_te(func, *args, **kwargs):
    """The call of a kernel that a function of :mod:`relaxide.te` describes; the kernel goes into the module. Needs ``I.ir_module``."""
    from ....script.ir_builder.ir.ir import decl_function, lookup_name  # noqa: F401
    from ....script.ir_builder.ir.frame import IRModuleFrame
    from ...block_builder import BlockBuilder

    module = frame_of(IRModuleFrame, "R.emit_te")
    own = BlockBuilder()
    for name, func_of in module.functions.items():
        if func_of is not None:
            own.add_func(func_of, name)
    call = own.call_te(func, *args, **kwargs)
    for var, kernel in own.get().functions.items():
        if var.name not in module.functions:
            module.functions[var.name], module.global_vars[var.name] = kernel, var
    return call


def emit_match_cast(value, ty):
    """Bind a value that is checked to have a type; symbolic variables that the type mentions first are bound."""
    return _bound(_function("R.emit_match_cast").block_builder.match_cast(value, ty))


def emit_var_binding(value):
    """Add a binding as it is; its variable is returned."""
    _function("R.emit_var_binding").block_builder.emit_normalized(value)
    return _bound(value.var)


def emit_with_type(op, args, type_args):
    """The call of an operator, by its name, with types as arguments; one type may stand for a list of one."""
    return Call(op, args, ty_args=list(type_args) if isinstance(type_args, (list, py_tuple)) else [type_args])


def emit_with_ty(op, args, ty_args):
    """The same as :func:`emit_with_type`."""
    return emit_with_type(op, args, ty_args)


def SeqExpr():
    """The frame of a sequence of bindings."""
    return SeqExprFrame()


def If(condition):
    """The frame of a choice: ``with R.If(condition): with R.Then(): ...; with R.Else(): ...``."""
    return IfFrame(condition)


def Then():
    """The frame of what is computed where the condition holds; its last binding is the value."""
    return frame.ThenFrame()


def Else():
    """The frame of what is computed where the condition does not hold; its last binding is the value."""
    return frame.ElseFrame()


def to_vdevice(data, dst_vdevice):
    """A tensor copied to another device: a device, or text such as ``"llvm:0"`` that names one of the module's."""
    return _names.to_vdevice(data, _device(dst_vdevice))


def hint_on_device(data, dst_vdevice, memory_scope="global"):
    """A tensor that is to be computed on a device."""
    return _names.hint_on_device(data, dst_vdevice, memory_scope)


def _device(value):
    from ....script.ir_builder.ir.ir import lookup_vdevice

    if not isinstance(value, py_str):
        return value
    kind, _, index = value.partition(":")
    return lookup_vdevice(kind, int(index or 0))


def call_packed(func, *args, ty_args=None, **kwargs):
    """The call of a function outside the module, by its name; ``ty_args`` are the types of its result, other keywords attributes."""
    if ty_args is None:
        raise ValueError("R.call_packed needs the type of its result: ty_args")
    types = list(ty_args) if isinstance(ty_args, (list, py_tuple)) else [ty_args]
    types = [ty() if not isinstance(ty, Type) and callable(ty) else ty for ty in types]
    callee = ExternFunc(func) if isinstance(func, py_str) else func
    return Call(callee, [value if isinstance(value, Expr) else prim_value(value) for value in args], kwargs or None, types)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    from ... import op

    return getattr(op, name)


__all__ = ["Else", "ExternFunc", "If", "SeqExpr", "Then", "TupleGetItem", "arg", "call_packed", "const", "dataflow", "dtype", "emit"]
__all__ += ["emit_match_cast", "emit_te", "emit_var_binding", "emit_with_ty", "emit_with_type", "func_attr", "func_name"]
__all__ += ["func_ret_ty", "func_ret_type", "func_ret_value", "function", "hint_on_device", "output", "prim_value", "py_print"]
__all__ += ["py_str", "py_tuple", "rewriter", "shape", "str", "to_vdevice", "tuple"]
