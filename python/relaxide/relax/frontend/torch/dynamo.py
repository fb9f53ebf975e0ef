"""A back end of ``torch.compile``."""

import functools
import inspect
import warnings

from ._torch import torch
from .exported_program import from_exported_program


def _capture(graph_module, example_inputs):
    """The graph that dynamo hands over, exported. Its parameters are inputs of the graph or its own."""
    module = torch()
    fake = [value if not isinstance(value, module.SymInt) else int(value) for value in example_inputs]
    return module.export.export(graph_module, tuple(fake))


def relax_dynamo(pipeline=None, custom_convert_map=None):
    """A back end for ``torch.compile``, which runs what it can on Relaxide.

    Each graph is compiled for the shapes that it is called with. One that cannot be imported runs as PyTorch has it, with a
    warning that says why.

    Parameters
    ----------
    pipeline : tvm.transform.Pass, optional
        What the program goes through; the default pipeline where none is given.
    custom_convert_map : dict of str to callable, optional
        Rules for operators, as for :func:`from_exported_program`.

    Returns
    -------
    callable
        For ``torch.compile(model, backend=...)``.
    """

    def compile_graph(graph_module, example_inputs):
        from .... import compiler, runtime
        from ...vm import VirtualMachine

        module = torch()
        if any(isinstance(value, module.SymInt) for value in example_inputs):
            warnings.warn("Relaxide: a graph with symbolic sizes runs as PyTorch has it", stacklevel=2)
            return graph_module.forward
        try:
            exported = _capture(graph_module, example_inputs)
            program = from_exported_program(exported, custom_convert_map=custom_convert_map)
            executable = compiler.compile(program, target="llvm", relax_pipeline=pipeline or "default")
        except (NotImplementedError, ValueError, RuntimeError, module._dynamo.exc.TorchDynamoException) as reason:
            warnings.warn(f"Relaxide: a graph runs as PyTorch has it: {reason}", stacklevel=2)
            return graph_module.forward
        machine = VirtualMachine(executable, runtime.cpu())
        machine.set_strided_results(False)

        @functools.wraps(graph_module.forward)
        def run(*arguments):
            from ._torch import tensor_of

            given = [tensor_of(value) for value in arguments if isinstance(value, module.Tensor)]
            results = machine["main"](*given)
            return tuple(module.from_dlpack(result) for result in results)

        return run

    return compile_graph


def backend(graph_module, example_inputs, *, options=None, mode=None):
    """The back end ``"relaxide"`` of ``torch.compile``, by which an installed package is found.

    Parameters
    ----------
    graph_module : torch.fx.GraphModule
        The graph.
    example_inputs : list
        What it is called with.
    options : dict, optional
        The arguments of :func:`relax_dynamo`.
    mode : str, optional
        Only ``"default"``.

    Returns
    -------
    callable
        What is called in the graph's place.
    """
    if mode not in (None, "default"):
        raise ValueError(f"mode={mode!r}: the back end `relaxide` has the mode `default` alone")
    known = inspect.signature(relax_dynamo).parameters
    unknown = [name for name in options or {} if name not in known]
    if unknown:
        raise ValueError(f"the back end `relaxide` has no option {', '.join(map(repr, unknown))}; it has {', '.join(known)}")
    return relax_dynamo(**(options or {}))(graph_module, example_inputs)


def dynamo_capture_subgraphs(model, *params, **kwargs):
    """The graphs into which ``torch.compile`` divides a model, as functions of one module.

    Parameters
    ----------
    model : torch.nn.Module or callable
        What is called.
    params
        Arguments of the call.
    keep_params_as_input : bool
        As for :func:`from_exported_program`; the only keyword that is not an argument of the call.

    Returns
    -------
    IRModule
        With functions ``subgraph_0``, ``subgraph_1`` and so on.
    """
    from ....ir import IRModule

    keep = kwargs.pop("keep_params_as_input", False)
    module = torch()
    graphs = []

    def collect(graph_module, example_inputs):
        program = _capture(graph_module, example_inputs)
        graphs.append(from_exported_program(program, keep_params_as_input=keep))
        return graph_module.forward

    module._dynamo.reset()
    module.compile(model, backend=collect)(*params, **kwargs)
    module._dynamo.reset()
    functions = {}
    for at, graph in enumerate(graphs):
        name = f"subgraph_{at}"
        functions[name] = graph["main"].with_attr("global_symbol", name)
    return IRModule(functions)
