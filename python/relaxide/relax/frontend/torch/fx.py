"""Graphs of ``torch.fx``."""

from ._torch import torch
from .exported_program import from_exported_program


def from_fx(
    model,
    input_info,
    *,
    keep_params_as_input=False,
    unwrap_unit_return_tuple=False,
    no_bind_return_tuple=False,
    custom_convert_map=None,
    default_image_layout="NCHW",
):
    """Import a module that ``torch.fx`` traced, or any module that can be exported.

    Parameters
    ----------
    model : torch.fx.GraphModule or torch.nn.Module
        The module, which is exported with inputs of the given shapes.
    input_info : list of (shape, dtype)
        Dimensions and element type (a name) of each input. A dimension may be a ``tirx.Var``, which stays symbolic.
    keep_params_as_input, unwrap_unit_return_tuple, no_bind_return_tuple, custom_convert_map
        As for :func:`from_exported_program`.
    default_image_layout : str
        ``"NCHW"``; PyTorch's own layout is what its operators mean.

    Returns
    -------
    IRModule
        With one function, ``main``.
    """
    if default_image_layout != "NCHW":
        raise NotImplementedError(f"default_image_layout={default_image_layout!r}: images are in the layout NCHW here")
    module = torch()
    arguments, dynamic = [], []
    names = {}
    for at, (shape, dtype) in enumerate(input_info):
        sizes, open_axes = [], {}
        for axis, dim in enumerate(shape):
            if isinstance(dim, int):
                sizes.append(dim)
                continue
            name = getattr(dim, "name", None) or f"dim{at}_{axis}"
            # Sizes that differ by name, so that the export does not take two dimensions for one.
            sizes.append(names.setdefault(name, 5 + 2 * len(names)))
            open_axes[axis] = module.export.Dim(name)
        arguments.append(_example(module, sizes, dtype))
        dynamic.append(open_axes or None)
    model = model.eval()
    given = tuple(dynamic) if any(dynamic) else None
    program = module.export.export(model, tuple(arguments), dynamic_shapes=given)
    options = {
        "keep_params_as_input": keep_params_as_input,
        # A result that the module does not put into a tuple is in none.
        "unwrap_unit_return_tuple": unwrap_unit_return_tuple or program.call_spec.out_spec.is_leaf(),
        "no_bind_return_tuple": no_bind_return_tuple,
        "custom_convert_map": custom_convert_map,
    }
    try:
        # The module's own operators, as it calls them.
        return from_exported_program(program, run_ep_decomposition=False, **options)
    except NotImplementedError:
        # PyTorch writes those that are not known in terms of others.
        return from_exported_program(program, **options)


def _example(module, sizes, dtype):
    kind = getattr(module, str(dtype))
    return module.zeros(sizes, dtype=kind)
