"""Sessions: a model, compiled, that takes arrays by name and gives arrays."""

import threading
import warnings

import numpy as np

from .. import _core, _onnx_values
from ..runtime import set_num_threads
from . import _compiled
from ._binding import IOBinding
from ._devices import get_ep_devices
from ._errors import Fail, InvalidArgument, ModelLoadCanceled, NotImplemented, OnnxRuntimeError, RuntimeException
from ._options import RunOptions, SessionOptions
from ._profile import Profile
from ._providers import KNOWN, PROVIDERS, asked_for, warn_of_absent
from ._typed import taken_number, taken_text
from ._values import ELEMENTS, OrtMemoryInfo, OrtValue, element_of_tensor

#: For how many lengths of its inputs a session compiles its model anew, beside the program for any length.
_MOST_EXACT = 8


class NodeArg:
    """An input or an output of a model.

    ``shape`` has a number for a known dimension, a text for a named one, and ``None`` where the model says nothing.
    """

    def __init__(self, name, type, shape):  # noqa: A002
        self.name, self.type, self.shape = name, type, shape

    def __repr__(self):
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape})"


def _node_arg(name, kind, shape, fixed):
    return NodeArg(name, kind, [fixed.get(dim, dim) if isinstance(dim, str) else dim for dim in shape])


class ModelMetadata:
    """What a model says of itself beside its inputs and outputs."""

    _FIELDS = ("producer_name", "graph_name", "domain", "description", "graph_description", "version", "custom_metadata_map")

    def __init__(self, head):
        for field in self._FIELDS:
            setattr(self, field, head[field])


class InferenceSession:
    """Runs a model.

    Parameters
    ----------
    path_or_bytes : str, path or bytes
        The model.
    sess_options : SessionOptions, optional
        See :class:`SessionOptions`.
    providers : list, optional
        Where to run; sessions run on the processor whatever else is wished for, which a warning says.
    provider_options : list of dict, optional
        Kept for its name.
    """

    def __init__(self, path_or_bytes, sess_options=None, providers=None, provider_options=None, **kwargs):
        if sess_options is not None and not isinstance(sess_options, SessionOptions):
            raise TypeError(f"sess_options is SessionOptions, not {type(sess_options).__name__}")
        unknown = kwargs.keys() - {"disabled_optimizers", "enable_fallback", "read_config_from_model"}
        if unknown:
            warnings.warn(f"InferenceSession knows no argument {', '.join(sorted(unknown))}", UserWarning, stacklevel=2)
        self._options = sess_options or SessionOptions()
        source = _compiled.source_of(path_or_bytes)
        self._model_path = source if isinstance(source, str) else None
        warn_of_absent(asked_for(providers, provider_options))
        if self._options._cancelled:
            raise ModelLoadCanceled("making the session was cancelled by its options")
        if self._options.intra_op_num_threads > 0:
            set_num_threads(self._options.intra_op_num_threads)
        self._profile = Profile(self._options.profile_file_prefix) if self._options.enable_profiling else None
        self._apart = self._options._apart
        self._model = _compiled.compiled(source, self._options._dims, apart=self._apart)
        if self._profile:
            self._profile.session("session_initialization", 0)
        self._is_loose = False
        # Programs for some lengths alone, by these; nothing where there is none.
        self._exact = {}
        self._lock = threading.Lock()
        head = self._model.head
        dims = self._options._dims
        self._inputs = [_node_arg(*described, dims) for described in head["inputs"]]
        self._outputs = [_node_arg(*described, dims) for described in head["outputs"]]
        self._by_name = {arg.name: arg for arg in self._inputs}
        self._places = {arg.name: i for i, arg in enumerate(self._outputs)}
        self._every = list(range(len(self._outputs)))
        described = [(arg.name, arg.type, _element_of(arg.type), arg.shape) for arg in self._inputs]
        self._usual = _core.OnnxRun(described, len(self._outputs), self._options._dims, InvalidArgument, _onnx_values.to_numpy)
        # Weights that may be given, and sessions in which some of them are inputs, by the names of these.
        self._weights = frozenset(name for name, *_ in head["overridable"]).difference(self._apart.opened)
        self._opened = {}
        # A model in memory is kept only where it may have to be compiled once more.
        is_open = any(not isinstance(dim, int) for arg in self._inputs for dim in arg.shape)
        self._source = source if is_open or self._weights else None

    def get_inputs(self):
        """The inputs, in order."""
        return list(self._inputs)

    def get_outputs(self):
        """The outputs, in order."""
        return list(self._outputs)

    def get_overridable_initializers(self):
        """Weights that the model lists among its inputs."""
        return [_node_arg(*described, self._options._dims) for described in self._model.head["overridable"]]

    def get_modelmeta(self):
        """Who made the model, and what for."""
        return ModelMetadata(self._model.head)

    def get_session_options(self):
        """The options that the session was made with."""
        return self._options

    def get_providers(self):
        """Where the session runs."""
        return list(PROVIDERS)

    def get_provider_options(self):
        """Options by provider."""
        return {name: {} for name in PROVIDERS}

    def set_providers(self, providers=None, provider_options=None):
        """Say where to run: on the processor, whatever else is asked for, which a warning says."""
        names = asked_for(providers, provider_options)
        unknown = [name for name in names if name not in KNOWN]
        if unknown:
            raise RuntimeError(f"there is no provider {', '.join(unknown)}: sessions run on the processor ({', '.join(PROVIDERS)})")
        warn_of_absent(names)

    def disable_fallback(self):
        """Kept for its name: there is nothing to fall back to."""

    def enable_fallback(self):
        """Kept for its name: there is nothing to fall back to."""

    def run(self, output_names, input_feed, run_options=None):
        """Compute outputs.

        Parameters
        ----------
        output_names : list of str, or None
            Which outputs, in which order; all where none is named.
        input_feed : dict of str to array
            Values of the inputs by name: arrays, lists of numbers, texts, `OrtValue`; lists of them for sequences.
        run_options : RunOptions, optional
            See :class:`RunOptions`.

        Returns
        -------
        list
            Arrays; for sequences lists of them, for maps dictionaries.
        """
        if run_options is None and self._profile is None and not self._exact and type(input_feed) is dict:
            arrays = self._run_usual(output_names, input_feed)
            if arrays is not None:
                return arrays
        return [_onnx_values.to_numpy(value) for value in self._call(output_names, input_feed, run_options)]

    def _run_usual(self, names, feed):
        """Outputs of arrays, where all is as usual; nothing where it is not, which :meth:`_call` has the words for."""
        wanted = self._every
        if names:
            wanted = [self._places.get(name) for name in names] if type(names) is list else [None]
            if None in wanted:
                return None
        try:
            return self._usual.run(self._model.main, feed, wanted)
        except _core.ShapeGuardError:
            return None  # The other way compiles the model for these lengths.
        except (MemoryError, KeyboardInterrupt):
            raise
        except Exception as error:
            raise RuntimeException(str(error)) from error

    def run_with_ort_values(self, output_names, input_dict_ort_values, run_options=None):
        """As :meth:`run`, from values to values."""
        self._check_missing(input_dict_ort_values)
        for value in input_dict_ort_values.values():
            if not isinstance(value, OrtValue):
                raise TypeError(f"run_with_ort_values takes OrtValue, not {type(value).__name__}: run takes arrays")
        values = self._call(output_names, input_dict_ort_values, run_options)
        return [OrtValue(value, kind=self._outputs[i].type) for value, i in zip(values, self._wanted(output_names))]

    def run_async(self, output_names, input_feed, callback, user_data, run_options=None):
        """Run in a thread of its own, which calls ``callback(results, user_data, error)`` at the end.

        ``error`` is empty where all went well.
        """

        def work():
            try:
                results, error = self.run(output_names, input_feed, run_options), ""
            except Exception as raised:  # It goes to the callback, which is who waits for it.
                results, error = [], str(raised)
            callback(results, user_data, error)

        threading.Thread(target=work, daemon=True).start()

    def io_binding(self):
        """Inputs and outputs that are bound to memory: see :class:`IOBinding`."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding, run_options=None):
        """Run on what is bound."""
        if iobinding._session is not self:
            raise ValueError("the binding is that of another session")
        names = list(iobinding._outputs)
        if not names:
            raise RuntimeError("no output is bound: use bind_output")
        try:
            if run_options is not None and run_options._adapters:
                warnings.warn("adapters of run_options have no effect where inputs are bound: bind their values", UserWarning, stacklevel=2)
            values = self._call(names, iobinding._inputs, run_options, adapts=False)
        except (OnnxRuntimeError, ValueError) as error:
            raise RuntimeError(f"Error in execution: {error}") from error
        iobinding._keep(names, values)

    def end_profiling(self):
        """Write the times of what was run since the session was made, and say in which file."""
        if self._profile is None:
            return ""
        profile, self._profile = self._profile, None
        return profile.write()

    def get_profiling_start_time_ns(self):
        """When profiling began, in nanoseconds of the system's clock; 0 where nothing is profiled."""
        return self._profile.start_ns if self._profile else 0

    def create_ortvalue_from_shape_and_type(self, shape, element_type=None, device_type="cpu", device_id=0, vendor_id=-1):
        """A tensor whose content is undefined."""
        return OrtValue.ortvalue_from_shape_and_type(shape, element_type or np.float32, device_type, device_id, vendor_id)

    def get_input_memory_infos(self):
        """Where each input is expected."""
        return [OrtMemoryInfo.of_host() for _ in self._inputs]

    def get_output_memory_infos(self):
        """Where each output comes."""
        return [OrtMemoryInfo.of_host() for _ in self._outputs]

    def get_input_epdevices(self):
        """What takes each input."""
        return [device for _ in self._inputs for device in get_ep_devices()]

    def get_tuning_results(self):
        """What was tuned when the session was made: nothing."""
        return []

    def set_tuning_results(self, results, *, error_on_invalid=False):
        """Kept for its name: nothing here is tuned by them."""
        if not isinstance(results, list):
            raise TypeError(f"results is a list, not {type(results).__name__}")

    def set_ep_dynamic_options(self, options):
        """Kept for its name: the processor has none."""
        if not isinstance(options, dict):
            raise TypeError(f"options is a dictionary of texts, not {type(options).__name__}")
        if not options:
            raise RuntimeError("there are no options to set")

    def get_provider_graph_assignment_info(self):
        """Refused: the nodes of a model are joined into kernels, which belong to no provider."""
        if self._options._entries.get("session.record_ep_graph_assignment_info") != "1":
            raise Fail('the entry "session.record_ep_graph_assignment_info" of the options is not "1"')
        raise NotImplemented("nodes are joined into kernels, all on the processor: `relaxide inspect --graph` shows what became of them")

    def release_captured_graph(self, graph_annotation_id=0):
        """Kept for its name: the processor captures no graphs."""
        taken_number(graph_annotation_id, "graph_annotation_id")

    def run_with_ortvaluevector(self, run_options, feed_names, feeds, fetch_names, fetches, fetch_devices):
        """Run on a vector of values, and append what comes out to another."""
        if len(feed_names) != len(feeds):
            raise InvalidArgument(f"there are {len(feed_names)} names of inputs, and {len(feeds)} values")
        fetches.extend(self.run_with_ort_values(fetch_names, dict(zip(feed_names, feeds)), run_options))

    def _call(self, output_names, feed, run_options, adapts=True):
        if run_options is not None:
            if not isinstance(run_options, RunOptions):
                raise TypeError(f"run_options is RunOptions, not {type(run_options).__name__}")
            if run_options.terminate:
                raise Fail("the run was ended by RunOptions.terminate")
        self._check_missing(feed)
        if run_options is not None and adapts:
            feed = run_options._adapted(feed)
        for name in feed:
            taken_text(name, "the name of an input")
        if not self._weights.isdisjoint(feed):
            return self._opening(self._weights.intersection(feed))._call(output_names, feed, run_options, adapts=False)
        wanted = self._wanted(output_names)
        args = self._arguments(feed)
        try:
            result = self._run(args)
        except (MemoryError, KeyboardInterrupt):
            raise
        except Exception as error:
            raise RuntimeException(str(error)) from error
        outputs = [result] if len(self._outputs) == 1 else list(result)
        return [outputs[i] for i in wanted]

    def _check_missing(self, feed):
        missing = [name for name in self._by_name if name not in feed]
        if missing:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({list(feed)}).")

    def _opening(self, names):
        """A session in which some of the model's weights are inputs."""
        with self._lock:
            if names not in self._opened:
                self._opened[names] = InferenceSession(self._source, self._options._opening(names))
        opened = self._opened[names]
        opened._profile = self._profile
        return opened

    def _run(self, args):
        try:
            return self._compute(self._program(args), args)
        except _core.ShapeGuardError:
            exact = self._specialize(self._lengths(args))
            if exact is None:
                raise
        return self._compute(exact, args)

    def _compute(self, program, args):
        profile = self._profile
        if profile is None:
            return program(args)
        since = profile.now()
        result, trace = program.profile(args)
        profile.session("model_run", since)
        profile.kernels(trace, since)
        return result

    def _program(self, args):
        """What computes values of such lengths."""
        return (self._exact.get(self._lengths(args)) if self._exact else None) or self._model

    def _lengths(self, args):
        """The lengths of all inputs, or nothing where one is no tensor."""
        if self._source is None or not all(map(_onnx_values.is_tensor, args)):
            return None
        return tuple(tuple(int(dim) for dim in value.shape) for value in args)

    def _specialize(self, lengths):
        """A program for these lengths alone, where none was made before.

        A program for any length has a number of axes for each value, which some models let depend on lengths (``Squeeze`` without
        axes, of a batch of one), and refuses the others when it runs.
        """
        with self._lock:
            if lengths is None or lengths in self._exact or len(self._exact) == _MOST_EXACT:
                return None
            shapes = {arg.name: list(shape) for arg, shape in zip(self._inputs, lengths)}
            try:
                self._exact[lengths] = _compiled.compiled(self._source, self._options._dims, lengths=shapes, apart=self._apart)
            except OnnxRuntimeError:  # What the program for any length said is what is wrong.
                self._exact[lengths] = None
            return self._exact[lengths]

    def _wanted(self, names):
        if not names:
            return self._every
        if not isinstance(names, (list, tuple)):
            raise TypeError(f"output_names is a list of names, not {type(names).__name__}")
        for name in names:
            if taken_text(name, "the name of an output") not in self._places:
                raise InvalidArgument(f"Invalid output name: {name}; the model has {', '.join(self._places)}")
        return [self._places[name] for name in names]

    def _arguments(self, feed):
        for name in feed:
            if name not in self._by_name:
                raise InvalidArgument(f"Invalid input name: {name}; the model has {', '.join(self._by_name) or 'none'}")
        args = [_argument(arg, feed[arg.name]) for arg in self._inputs]
        if not self._usual.fits(args) and not self._is_loose:
            self._loosen()
        return args

    def _loosen(self):
        """Compile the model once more, without taking dimensions of equal names to be equal."""
        with self._lock:
            if not self._is_loose:
                self._model = _compiled.compiled(self._source, self._options._dims, loose=True, apart=self._apart)
                self._is_loose = True


def _element_of(kind):
    """What the runtime calls the elements of a tensor's type; nothing for another type, and for texts."""
    element = kind[len("tensor(") : -1] if kind.startswith("tensor(") else "string"
    return ELEMENTS[element][1] if element in ELEMENTS and element != "string" else None


def _argument(arg, value):
    """A value as the program takes it, of the type that the model says."""
    if isinstance(value, OrtValue):
        value = value._value
        if _onnx_values.is_tensor(value):
            _check_element(arg, element_of_tensor(value))
        return _core.aligned_tensor(value) if isinstance(value, _core.Tensor) else value
    if value is None or not arg.type.startswith("tensor("):
        return _onnx_values.to_runtime(value, share=True)
    if isinstance(value, (int, float, complex, np.generic)):
        raise RuntimeError(f"{arg.name} is an array or a list, not {type(value).__name__}: numpy.asarray makes one of a number")
    try:
        value = _tensor_of(value, arg.type[len("tensor(") : -1])
        given = None if isinstance(value, np.ndarray) else element_of_tensor(value)
    except (AttributeError, BufferError, TypeError, ValueError) as error:
        raise RuntimeError(f"{arg.name} cannot be {arg.type}: {error}") from error
    if given is None:
        raise InvalidArgument(f"Unexpected input data type of {arg.name}: got an array of {value.dtype}, expected {arg.type}")
    _check_element(arg, given)
    return value


def _tensor_of(value, element):
    """An array, or what becomes one, as a tensor; the array itself where its elements are texts or objects, and these are not wanted."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "OUST":
            if element != "string":
                return value
            return _onnx_values.to_runtime(value if value.dtype.kind != "O" else value.astype(str))
        return _onnx_values.shared(value if value.dtype.isnative else value.astype(value.dtype.newbyteorder("=")))
    if hasattr(value, "dtype") or hasattr(value, "__dlpack__"):
        return _onnx_values.shared(value) if hasattr(value, "__dlpack__") else _onnx_values.to_runtime(value, share=True)
    if element == "string":
        return _onnx_values.to_runtime(np.asarray(value).astype(str))
    return _onnx_values.to_runtime(np.asarray(value, ELEMENTS[element][1]) if element in ELEMENTS else value, share=True)


def _check_element(arg, given):
    if arg.type.startswith("tensor(") and arg.type != f"tensor({given})":
        raise InvalidArgument(f"Unexpected input data type of {arg.name}: got tensor({given}), expected {arg.type}")


__all__ = ["InferenceSession", "ModelMetadata", "NodeArg"]
