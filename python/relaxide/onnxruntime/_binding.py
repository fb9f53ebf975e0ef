"""Inputs and outputs that are bound to memory before a run."""

import ctypes

import numpy as np

from .. import _onnx_values
from ._typed import taken_text
from ._values import ELEMENTS, OrtValue, OrtValueVector, checked_device, element_of, taken_dims


class IOBinding:
    """What a session takes and where it puts what comes out.

    An input is an array, a value, or memory by its address. An output is put into a value or into memory where one is bound, and
    is a new value where only its name is.
    """

    def __init__(self, session):
        self._session = session
        self._inputs = {}
        # By name: nothing, a value, or an array over memory of the caller's.
        self._outputs = {}
        # What the last run gave, by name.
        self._results = {}

    def bind_cpu_input(self, name, arr_on_cpu):
        """Take an input from an array."""
        name = self._input(name)
        self._inputs[name] = OrtValue.ortvalue_from_numpy(arr_on_cpu)

    def bind_input(self, name, device_type, device_id, element_type, shape, buffer_ptr):
        """Take an input from memory, which must stay until the run has ended."""
        shape = taken_dims(shape)
        checked_device(device_type, device_id)
        name = self._input(name)
        self._inputs[name] = OrtValue.ortvalue_from_numpy(_array_at(buffer_ptr, shape, element_type))

    def bind_ortvalue_input(self, name, ortvalue):
        """Take an input from a value."""
        self._inputs[self._input(name)] = _value(ortvalue)

    def bind_output(self, name, device_type="cpu", device_id=0, element_type=None, shape=None, buffer_ptr=None):
        """Ask for an output, in memory of the caller's where an address is given."""
        self._results.pop(name, None)
        if buffer_ptr is not None and (element_type is None or shape is None):
            raise ValueError("memory for an output needs its element_type and shape")
        checked_device(device_type, device_id)
        if buffer_ptr is None:
            self._outputs[self._output(name)] = None
            return
        self._outputs[self._output(name)] = _array_at(buffer_ptr, shape, element_type)

    def bind_ortvalue_output(self, name, ortvalue):
        """Put an output into a value."""
        self._results.pop(name, None)
        self._outputs[self._output(name)] = _value(ortvalue)

    def synchronize_inputs(self):
        """Wait for copies of inputs; there are none on the processor."""

    def synchronize_outputs(self):
        """Wait for copies of outputs; there are none on the processor."""

    def get_outputs(self):
        """The outputs in the order in which they were bound: those of the last run, or the values that the next is to fill."""
        return [self._results.get(name) or _shown(value) for name, value in self._outputs.items()]

    def get_outputs_as_ortvaluevector(self):
        """The same as the extension module holds them."""
        return OrtValueVector(self.get_outputs())

    def copy_outputs_to_cpu(self):
        """The outputs of the last run as arrays."""
        return [value.numpy() for value in self.get_outputs()]

    def clear_binding_inputs(self):
        """Forget the inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self):
        """Forget the outputs."""
        self._outputs.clear()
        self._results.clear()

    def _input(self, name):
        return _known(name, self._session.get_inputs() + self._session.get_overridable_initializers(), "input")

    def _output(self, name):
        return _known(name, self._session.get_outputs(), "output")

    def _keep(self, names, values):
        """Hand out what a run gave."""
        results = {}
        for name, value in zip(names, values):
            bound = self._outputs[name]
            if bound is None:
                results[name] = OrtValue(value)
            elif isinstance(bound, OrtValue):
                made = OrtValue(value)
                if made.data_type() != bound.data_type():
                    raise RuntimeError(f"output {name} is {made.data_type()}, and the value that is bound {bound.data_type()}")
                bound.update_inplace(made)
                results[name] = bound
            else:
                array = _onnx_values.to_numpy(value)
                if array.shape != bound.shape or array.dtype != bound.dtype:
                    raise RuntimeError(
                        f"output {name} is {array.dtype}{list(array.shape)}, and its memory {bound.dtype}{list(bound.shape)}"
                    )
                np.copyto(bound, array)
                results[name] = OrtValue.ortvalue_from_numpy(bound)
        self._results = results


def _shown(bound):
    """What an output is bound to, as a value."""
    if isinstance(bound, np.ndarray):
        return OrtValue.ortvalue_from_numpy(bound)
    return OrtValue(None) if bound is None else bound


def _value(given):
    if not isinstance(given, OrtValue):
        raise TypeError(f"an OrtValue is bound, not {type(given).__name__}")
    return given


def _known(name, args, what):
    names = [arg.name for arg in args]
    if taken_text(name, f"the name of an {what}") not in names:
        raise RuntimeError(f"Invalid {what} name: {name}; the model has {', '.join(names) or 'none'}")
    return name


def _array_at(address, shape, element_type):
    """An array over memory that the caller answers for."""
    element = element_of(element_type)
    if element == "string":
        raise RuntimeError("texts have no memory to bind: use bind_cpu_input or bind_ortvalue_input")
    dtype = np.dtype(ELEMENTS[element][1])
    shape = tuple(taken_dims(shape))
    size = int(np.prod(shape, dtype="int64")) * dtype.itemsize
    if size and not address:
        raise RuntimeError("the address of the memory is zero")
    if not size:
        return np.empty(shape, dtype)
    memory = (ctypes.c_ubyte * size).from_address(int(address))
    return np.frombuffer(memory, dtype).reshape(shape)


__all__ = ["IOBinding"]
