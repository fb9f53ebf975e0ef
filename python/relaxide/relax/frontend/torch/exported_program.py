"""Programs that ``torch.export`` makes."""

import inspect
import os
import warnings

from .... import _core
from ._torch import tensor_of, torch


def from_exported_program(
    exported_program,
    *,
    keep_params_as_input=False,
    unwrap_unit_return_tuple=False,
    no_bind_return_tuple=False,
    custom_convert_map=None,
    run_ep_decomposition=True,
):
    """Import a program that PyTorch exported.

    Parameters
    ----------
    exported_program : torch.export.ExportedProgram, str or path
        The program, or the file that ``torch.export.save`` wrote it to (``.pt2``), which is read without PyTorch.
    keep_params_as_input : bool
        Make the weights parameters of ``main``, behind the inputs, with their values in its attribute ``params``. Buffers and
        constants stay inside.
    unwrap_unit_return_tuple : bool
        Return a single result as it is, not as a tuple of one.
    no_bind_return_tuple : bool
        Return the tuple of results without binding it to a variable.
    custom_convert_map : dict of str to callable, optional
        Rules for operators, by their names with the overload (``"my_op.default"``). Each is called with the node and with the
        names and arguments as a :class:`CustomCall`, and returns an expression.
    run_ep_decomposition : bool
        Let PyTorch write composite operators in terms of its core ones first.

    Returns
    -------
    IRModule
        With one function, ``main``, of the user's inputs in order. Symbolic dimensions keep their names and their ranges.

    Raises
    ------
    NotImplementedError
        With all operators that are not imported, and the lines of the user's module that they come from.
    """
    if custom_convert_map:
        raise NotImplementedError(
            "custom_convert_map is not supported yet: register the operator's decomposition with PyTorch "
            "(`exported_program.run_decompositions({torch.ops.my.op.default: function})`)"
        )
    if isinstance(exported_program, (str, os.PathLike)):
        source, weights = os.fspath(exported_program), {}
    else:
        source, weights = _described(exported_program, run_ep_decomposition)
    module = _core.from_torch(source, weights, keep_params_as_input, unwrap_unit_return_tuple, no_bind_return_tuple)
    written = module["main"].attrs.get("dropped_writes")
    if written:
        names = ", ".join(map(str, written))
        warnings.warn(f"what the module writes into {names} is not kept between calls, and not returned", stacklevel=2)
    return module


def _described(program, decompose):
    """The program as its file would describe it, and its weights where they lie."""
    module = torch()
    if not isinstance(program, module.export.ExportedProgram):
        raise TypeError(
            f"expected a torch.export.ExportedProgram or the path of a .pt2 file, got {type(program).__name__}; "
            "export a module with `torch.export.export(module, args)`"
        )
    if decompose and not _is_sparse(module, program):
        program = program.run_decompositions()
    from torch._export.serde.serialize import serialize

    # Weights are taken where they lie. Versions of PyTorch before these options write them too, which costs a copy.
    unwanted = {"serialize_state_dict", "serialize_constants", "serialize_example_inputs"}
    artifact = serialize(program, **dict.fromkeys(unwanted & inspect.signature(serialize).parameters.keys(), False))
    values = {**program.constants, **dict(program.named_buffers()), **program.state_dict}
    weights = {name: tensor_of(value) for name, value in values.items() if isinstance(value, module.Tensor)}
    return bytes(artifact.exported_program), weights


def _is_sparse(module, program):
    values = [*program.constants.values(), *program.state_dict.values()]
    return any(isinstance(value, module.Tensor) and value.layout is not module.strided for value in values)
