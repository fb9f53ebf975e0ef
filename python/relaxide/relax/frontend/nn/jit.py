"""Models that are compiled and loaded at once."""

from ....ffi import device as as_device
from ....runtime import empty
from ...vm import VirtualMachine
from .exporter import Exporter
from .spec import ModuleSpec


def values(params, device):
    """The parameters' values on a device; one without a value is a ``ValueError``."""
    found, missing = [], []
    for name, param in params:
        if param.data is None:
            missing.append(name)
        else:
            found.append(param.data.copyto(empty(param.data.shape, param.data.dtype, device)))
    if missing:
        raise ValueError(f"Parameters are not set to any concrete values: {', '.join(missing)}; set `.data` of each")
    return found


def jit(module, spec, device, pipeline, out_format, debug):
    """See :meth:`relaxide.relax.frontend.nn.Module.jit`."""
    if out_format not in ("torch", "tvm"):
        raise ValueError(f'Unknown out_format: {out_format}; it is "torch" or "tvm"')
    device = as_device(device) if isinstance(device, str) else device
    spec = ModuleSpec.from_raw(spec, module)
    mod, params, externs = Exporter(debug=debug).build(spec)
    for extern in externs:
        # It says what cannot be linked, before anything is compiled.
        extern.load()
    from ... import build

    machine = VirtualMachine(build(mod, relax_pipeline=pipeline), device)
    weights = values(params, device)
    if out_format == "tvm":
        return machine, weights
    from .torch import TorchModule

    return TorchModule(spec, machine, weights)


__all__ = ["jit", "values"]
