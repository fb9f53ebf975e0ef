"""Relaxide as a backend of ONNX: the interface that tools and the test suite of the package `onnx` know.

::

    from relaxide.onnx_backend import RelaxideBackend

    program = RelaxideBackend.prepare(model)   # imports and compiles
    y, = program.run([x])                      # inputs in the graph's order, or by name

Values are numpy arrays, of objects that are ``str`` for tensors of texts; sequences are lists of them, maps are dicts, and an
optional value that is absent is ``None``. Elements that numpy lacks (bfloat16, floats of eight bits, integers of four) are those of `ml_dtypes`. What cannot be
imported or compiled raises at `prepare`.
"""

import numpy as np
from onnx.backend.base import Backend, BackendRep

from . import _onnx_values, compiler
from .relax.frontend.onnx import from_onnx
from .relax.vm import VirtualMachine
from .runtime import cpu, opencl


class RelaxideRep(BackendRep):
    """A compiled model."""

    def __init__(self, vm, inputs, device):
        self._vm = vm
        self._device = device
        #: Names of the inputs that are no weights, in order.
        self.inputs = inputs

    def run(self, inputs, **kwargs):
        """The outputs, in order, for inputs in order (or a dict of them by name)."""
        if kwargs:
            raise TypeError(f"unknown arguments: {', '.join(sorted(kwargs))}")
        if isinstance(inputs, dict):
            missing = [name for name in self.inputs if name not in inputs]
            if missing:
                raise ValueError(f"inputs are missing: {', '.join(missing)}")
            inputs = [inputs[name] for name in self.inputs]
        elif isinstance(inputs, np.ndarray):
            inputs = [inputs]
        if len(inputs) != len(self.inputs):
            raise ValueError(f"the model has {len(self.inputs)} inputs, {len(inputs)} are given")
        result = self._vm["main"](*(_onnx_values.to_runtime(value, self._device) for value in inputs))
        return tuple(_onnx_values.to_numpy(part) for part in self._outputs(result))

    def _outputs(self, result):
        return [result] if self._single else list(result)

    _single = True


class RelaxideBackend(Backend):
    """Compiles ONNX models for this machine's CPU, or for a device of OpenCL."""

    @classmethod
    def prepare(cls, model, device="CPU", *, target=None, **kwargs):
        """Import and compile a model.

        Parameters
        ----------
        model : onnx.ModelProto, bytes, str or path
            The model.
        device : str
            Where it is to run: ``"CPU"``, ``"OPENCL"`` or, of several of these devices, ``"OPENCL:1"``.
        target : str, optional
            What it is compiled for; where nothing is said, for the kind of device that it runs on.
        kwargs
            Further arguments of :func:`relaxide.relax.frontend.onnx.from_onnx`.
        """
        if not cls.supports_device(device):
            raise ValueError(f"there is no device {device!r} here; expected 'CPU', or 'OPENCL' where it has a driver")
        place = _device(device)
        target = target or ("llvm" if place.dlpack_device_type() == cpu().dlpack_device_type() else "opencl")
        model = _loaded(model)
        weights = {tensor.name for tensor in model.graph.initializer}
        weights |= {tensor.values.name for tensor in model.graph.sparse_initializer}
        names = [info.name for info in model.graph.input if info.name not in weights]
        module = from_onnx(model, **kwargs)
        rep = RelaxideRep(VirtualMachine(compiler.compile(module, target=target), place), names, place)
        rep._single = len(model.graph.output) == 1
        return rep

    @classmethod
    def run_model(cls, model, inputs, device="CPU", **kwargs):
        """The outputs of a model that is compiled, run once and forgotten."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def supports_device(cls, device):
        """Whether models run on a device, as ONNX writes it: ``"CPU"``, ``"CUDA:1"``."""
        place = _device(device)
        return place is not None and place.exist


def _device(name):
    """The device that ONNX writes so; nothing for kinds that there are no kernels for."""
    kind, _, number = name.partition(":")
    makers = {"CPU": cpu, "OPENCL": opencl}
    return makers[kind.upper()](int(number or 0)) if kind.upper() in makers and (number or "0").isdigit() else None


def _loaded(model):
    if hasattr(model, "SerializeToString"):
        return model
    import onnx

    return onnx.load_from_string(bytes(model)) if isinstance(model, (bytes, bytearray)) else onnx.load(model)


prepare = RelaxideBackend.prepare
run_model = RelaxideBackend.run_model
supports_device = RelaxideBackend.supports_device

__all__ = ["RelaxideBackend", "RelaxideRep", "prepare", "run_model", "supports_device"]
