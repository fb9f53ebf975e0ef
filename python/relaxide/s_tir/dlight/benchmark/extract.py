"""What kernels are called with in a module, and programs that measure one kernel each."""

from pathlib import Path

from ....ffi import structural_hash
from ....ir import Call, GlobalVar, Tuple
from ....ir.expr import is_prim_var
from ....relax import Function, ShapeType, TensorType, TupleType
from ....target import Target
from ....tirx import PrimFunc
from .utils import get_func_name_from_gv

#: The program that :func:`extract_prim_func` fills in.
SKETCH = '''"""How long the kernel {prim_func_name} of {model_name} takes."""

import relaxide as tvm
from relaxide.s_tir.dlight.benchmark import benchmark_prim_func
from relaxide.script import tirx as T

MODEL_NAME = "{model_name}"
RELAX_FUNC_NAME = "{relax_func_name}"
PRIM_FUNC_NAME = "{prim_func_name}"
FUNC_HASH = {func_hash}
WEIGHT = {weight}
SAMPLE_NUMBER = {sample_number}

# Shapes, with names for what is not known, and element types.
INPUT_ARGS = {input_args}
# The types of those names.
DYM_VAR_DICT = {dym_var_dict}

{func_script}

if __name__ == "__main__":
    benchmark_prim_func(
        {func_name},
        args=INPUT_ARGS,
        dym_var_dict=DYM_VAR_DICT,
        sample_number=SAMPLE_NUMBER,
        target=tvm.target.Target({target!r}),
        weight=WEIGHT,
        relax_func_name=RELAX_FUNC_NAME,
        prim_func_name=PRIM_FUNC_NAME,
    )
'''


def extract_shape(arg):
    """The types of an argument, or of those in a tuple or list of them, in one list."""
    if isinstance(arg, (tuple, list, Tuple)):
        return [ty for part in arg for ty in extract_shape(part)]
    return [arg.ty]


def _tensors(types):
    """Types without tuples around them."""
    for ty in types:
        if isinstance(ty, TupleType):
            yield from _tensors(ty.fields)
        else:
            yield ty


def extract_dynamic_var(func_dict):
    """The symbolic dimensions of each function: their types by their names.

    ``func_dict`` has, by functions and by the kernels that they call, pairs of argument types and how often they occur.
    """
    found = {gv: {} for gv in func_dict}
    for gv, kernels in func_dict.items():
        for calls in kernels.values():
            for types, _ in calls:
                for ty in _tensors(types):
                    if not isinstance(ty, (ShapeType, TensorType)):
                        raise NotImplementedError(f"an argument of type {ty} has no dimensions")
                    dims = ty.values if isinstance(ty, ShapeType) else ty.shape.values
                    found[gv].update((dim.name, str(dim.dtype)) for dim in dims if is_prim_var(dim))
    return found


def update_records(records, new_args):
    """Count argument types in a list of pairs of them and a number: one more, or a new pair."""
    for at, (args, count) in enumerate(records):
        if len(args) == len(new_args) and all(a == b for a, b in zip(args, new_args)):
            records[at] = (args, count + 1)
            return
    records.append((new_args, 1))


def extract_func_info_from_prim_func(func):
    """``(arguments, dimensions)`` of a kernel: pairs of a shape and an element type, and the types of symbolic dimensions by name.

    Raises
    ------
    ValueError
        A dimension is computed of others.
    """
    args, dims = [], {}
    for buffer in (buffer for buffer in func.buffers if buffer is not None):
        shape = []
        for dim in buffer.shape:
            if hasattr(dim, "value"):
                shape.append(int(dim.value))
            elif is_prim_var(dim):
                dims[dim.name] = str(dim.dtype)
                shape.append(dim)
            else:
                raise ValueError(f"the dimension {dim} of {buffer.name} is neither a number nor a variable")
        args.append((tuple(shape), str(buffer.dtype)))
    return args, dims


def extract_all_func_info_from_relax(mod):
    """``(calls, dimensions)`` of a module: what :func:`extract_dynamic_var` takes and gives, of all functions that call kernels."""
    calls = {}
    for gv, func in mod.functions_items():
        if not isinstance(func, Function):
            continue
        for binding in (binding for block in func.body.blocks for binding in block.bindings):
            value = binding.value
            if not isinstance(value, Call) or not value.args or not isinstance(value.args[0], GlobalVar):
                continue
            kernel = value.args[0]
            if isinstance(mod[kernel], PrimFunc):
                types = extract_shape(value.args[1:]) + extract_shape(value)
                update_records(calls.setdefault(gv, {}).setdefault(kernel, []), types)
    return calls, extract_dynamic_var(calls)


def _literal(args):
    """Argument types as text of Python: names for dimensions that are not known."""
    shown = []
    for arg in args:
        if isinstance(arg, ShapeType):
            dims, dtype = arg.values, None
        else:
            dims, dtype = (arg.shape.values, arg.dtype) if isinstance(arg, TensorType) else arg
        dims = tuple(dim if isinstance(dim, (int, str)) else int(dim.value) if hasattr(dim, "value") else dim.name for dim in dims)
        shown.append(f"tvm.relax.ShapeType([tvm.tirx.Var({dims[0]!r}, 'int64')])" if dtype is None else repr((dims, str(dtype))))
    return "[" + ", ".join(shown) + "]"


def _text(func):
    """A kernel as a program, with what its text says to import."""
    lines = func.script().splitlines()
    return "\n".join(line[2:] if line.startswith(("# from typing ", "# import ")) else line for line in lines)


def _target(target):
    target = Target.current() if target is None else Target(target)
    if target is None:
        raise ValueError("no target is given, and none is around: pass target=")
    return target


def extract_prim_func(
    model_name,
    relax_func_name,
    prim_func_name,
    func,
    *,
    func_args=None,
    dym_var_dict=None,
    weight=1,
    sample_number=5,
    target=None,
):
    """The text of a program that measures one kernel.

    Parameters
    ----------
    model_name, relax_func_name, prim_func_name : str
        Where the kernel is from.
    func : PrimFunc
        The kernel.
    func_args, dym_var_dict : list and dict, optional
        Its arguments and dimensions (:func:`extract_func_info_from_prim_func`), which the kernel itself says otherwise.
    weight : int
        How often it is called.
    sample_number : int
        How many samples of its dimensions are measured.
    target : Target or str, optional
        What it is compiled for; the target around, where none is given.

    Returns
    -------
    str
    """
    found_args, found_dims = extract_func_info_from_prim_func(func)
    args = found_args if func_args is None else list(_tensors(func_args))
    return SKETCH.format(
        model_name=model_name,
        relax_func_name=relax_func_name,
        prim_func_name=prim_func_name,
        func_hash=structural_hash(func),
        weight=weight,
        sample_number=sample_number,
        input_args=_literal(args),
        dym_var_dict=dict(found_dims if dym_var_dict is None else dym_var_dict),
        func_script=_text(func.with_attr("global_symbol", "main")),
        func_name="main",
        target=str(_target(target)),
    )


def extract_from_relax(mod, model_name, file_path, target=None):
    """Write a program for each kernel that a module calls, ``FUNCTION_KERNEL.py``, into a folder.

    Parameters
    ----------
    mod : IRModule
        The module, whose operators are kernels.
    model_name : str
        Its name.
    file_path : str
        The folder, which is made where it is not there.
    target : Target or str, optional
        What kernels are compiled for; the target around, where none is given.
    """
    calls, dims = extract_all_func_info_from_relax(mod)
    folder = Path(file_path)
    folder.mkdir(parents=True, exist_ok=True)
    for gv, kernels in calls.items():
        for kernel, records in kernels.items():
            names = {"relax_func_name": get_func_name_from_gv(gv), "prim_func_name": get_func_name_from_gv(kernel)}
            for args, weight in records:
                text = extract_prim_func(
                    model_name, func=mod[kernel], func_args=args, dym_var_dict=dims[gv], weight=weight, target=_target(target), **names
                )
                (folder / f"{names['relax_func_name']}_{names['prim_func_name']}.py").write_text(text)


__all__ = ["SKETCH", "extract_all_func_info_from_relax", "extract_dynamic_var", "extract_from_relax", "extract_func_info_from_prim_func"]
__all__ += ["extract_prim_func", "extract_shape", "update_records"]
