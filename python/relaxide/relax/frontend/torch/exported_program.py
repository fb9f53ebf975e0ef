"""Programs that ``torch.export`` makes."""

import inspect
import os
import warnings

from .... import _core
from ._torch import tensor_of, torch
from .converters import Converters, check, names_of


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
        Rules for operators, by their names with the overload (``"my_op.default"``), or as
        :class:`~relaxide.relax.frontend.torch.converters.Converters` says. Each is called with the node and an
        :class:`~relaxide.relax.frontend.torch.converters.Importer`, and gives an expression, or a tuple of them. They go before
        rules that there are, and operators that they are for are not decomposed.
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
    table = dict(custom_convert_map or {})
    check(table)
    if isinstance(exported_program, (str, os.PathLike)) and not table:
        source, weights, rules = os.fspath(exported_program), {}, None
    else:
        if isinstance(exported_program, (str, os.PathLike)):
            # Rules are given PyTorch's nodes, which PyTorch reads. A file is imported as it is.
            exported_program, run_ep_decomposition = torch().export.load(os.fspath(exported_program)), False
        source, weights, rules = _described(exported_program, run_ep_decomposition, table)
    given = (set(rules.nodes), rules) if rules else None
    try:
        module = _core.from_torch(
            source, weights, keep_params_as_input, unwrap_unit_return_tuple, no_bind_return_tuple, given
        )
    except NotImplementedError as error:
        if rules is not None and rules.raised is not None:
            raise error from rules.raised
        raise
    written = module["main"].attrs.get("dropped_writes")
    if written:
        names = ", ".join(map(str, written))
        warnings.warn(f"what the module writes into {names} is not kept between calls, and not returned", stacklevel=2)
    return module


# Layers that PyTorch would write step by step, and that become loops; and attention, of whose parts PyTorch says other strides than of
# the whole, so that views behind it may fail.
_KEPT = (
    "aten::lstm.input",
    "aten::gru.input",
    "aten::rnn_tanh.input",
    "aten::rnn_relu.input",
    "aten::scaled_dot_product_attention",
)


def _decomposed(module, program, table):
    """The program in terms of core operators, those that are kept whole, and those that the user has rules for."""
    kept = {**dict.fromkeys(_KEPT), **table}
    decompositions = module.export.default_decompositions()
    for operator in list(decompositions):
        if any(name in kept for name in names_of(operator)):
            del decompositions[operator]
    return program.run_decompositions(decompositions)


def _described(program, decompose, table):
    """The program as its file would describe it, its weights where they lie, and the user's rules for its nodes."""
    module = torch()
    if not isinstance(program, module.export.ExportedProgram):
        raise TypeError(
            f"expected a torch.export.ExportedProgram or the path of a .pt2 file, got {type(program).__name__}; "
            "export a module with `torch.export.export(module, args)`"
        )
    if decompose and not _is_sparse(module, program):
        program = _decomposed(module, program, table)
    from torch._export.serde.serialize import serialize

    # Weights are taken where they lie. Versions of PyTorch before these options write them too, which costs a copy.
    unwanted = {"serialize_state_dict", "serialize_constants", "serialize_example_inputs"}
    artifact = serialize(program, **dict.fromkeys(unwanted & inspect.signature(serialize).parameters.keys(), False))
    values = {**program.constants, **dict(program.named_buffers()), **program.state_dict}
    weights = {name: tensor_of(value) for name, value in values.items() if isinstance(value, module.Tensor)}
    rules = Converters(table, program.graph_module) if table else None
    return bytes(artifact.exported_program), weights, rules


def _is_sparse(module, program):
    values = [*program.constants.values(), *program.state_dict.values()]
    return any(isinstance(value, module.Tensor) and value.layout is not module.strided for value in values)
