"""What a session and a run may be told."""

import os

from ._adapters import LoraAdapter
from ._apart import Apart
from ._errors import Fail, NotImplemented
from ._providers import PROVIDERS
from ._typed import Numbered, Typed, flag, member, number, taken_flag, taken_number, taken_text, text
from ._values import OrtValue


class GraphOptimizationLevel(Numbered):
    """How much a graph is optimized. Relaxide compiles every model in one way; the level is kept and changes nothing."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(Numbered):
    """Whether operators run side by side. Kernels use all threads, one after the other, in either mode."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(Numbered):
    """In which order operators run; the compiler chooses it."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


#: How long the key and the value of an entry may be.
_LONGEST_KEY, _LONGEST_VALUE = 1024, 8192


class _Config(Typed):
    """Entries of texts by key."""

    __slots__ = ("_entries",)

    def __init__(self):
        super().__init__()
        self._entries = {}

    def _add(self, key, value):
        key, value = taken_text(key, "the key of an entry"), taken_text(value, "the value of an entry")
        if not 0 < len(key.encode()) <= _LONGEST_KEY:
            raise RuntimeError(f"the key of an entry has 1 to {_LONGEST_KEY} bytes, and this one {len(key.encode())}")
        if len(value.encode()) > _LONGEST_VALUE:
            raise RuntimeError(f"the value of {key!r} has {len(value.encode())} bytes; at most {_LONGEST_VALUE} are kept")
        self._entries[key] = value

    def _get(self, key):
        try:
            return self._entries[taken_text(key, "the key of an entry")]
        except KeyError:
            raise RuntimeError(f"there is no entry {key!r}; there are: {', '.join(sorted(self._entries)) or 'none'}") from None


class SessionOptions(_Config):
    """How a session is made.

    ``intra_op_num_threads`` is how many threads kernels use. They are shared by all sessions of a process, so the last session
    that asks for a number sets it. ``add_free_dimension_override_by_name`` fixes a named dimension, for which faster kernels are
    made. With ``enable_profiling`` kernels are timed as they run, and ``InferenceSession.end_profiling`` writes what they took. Options of
    memory, logging and order are kept, and change nothing here.
    """

    __slots__ = ("_apart", "_cancelled", "_dims", "_providers")

    enable_cpu_mem_arena = flag(True)
    enable_mem_pattern = flag(True)
    enable_mem_reuse = flag(True)
    enable_profiling = flag(False)
    execution_mode = member(ExecutionMode.ORT_SEQUENTIAL)
    execution_order = member(ExecutionOrder.DEFAULT)
    graph_optimization_level = member(GraphOptimizationLevel.ORT_ENABLE_ALL)
    inter_op_num_threads = number(0)
    intra_op_num_threads = number(0)
    log_severity_level = number(-1)
    log_verbosity_level = number(0)
    logid = text("")
    profile_file_prefix = text("onnxruntime_profile_")
    use_deterministic_compute = flag(False)
    use_per_session_threads = flag(True)

    def __init__(self):
        super().__init__()
        self._dims = {}
        self._apart = Apart()
        self._providers = []
        self._cancelled = False

    def _opening(self, names):
        """The same with some of the model's weights as inputs, and without a profile of its own."""
        made = SessionOptions()
        made._values = self._values | {"enable_profiling": False}
        made._entries, made._dims, made._apart = self._entries, self._dims, self._apart.opening(names)
        return made

    @property
    def optimized_model_filepath(self):
        """Always empty: what is compiled is no ONNX model."""
        return ""

    @optimized_model_filepath.setter
    def optimized_model_filepath(self, value):
        if taken_text(value, "optimized_model_filepath"):
            raise NotImplemented("optimized models are not written; `relaxide compile MODEL -o model.so` writes a library")

    def add_session_config_entry(self, key, value):
        """Keep an entry. One is read: the folder of the files that belong to a model in memory."""
        self._add(key, value)
        if key == "session.model_external_initializers_file_folder_path":
            self._apart.folder = value

    def get_session_config_entry(self, key):
        """The entry of a key."""
        return self._get(key)

    def add_free_dimension_override_by_name(self, name, value):
        """Fix the dimension of a name."""
        _fix(self._dims, name, value)

    def add_free_dimension_override_by_denotation(self, denotation, value):
        """Fix the dimensions that a model says to stand for something (``DATA_BATCH``)."""
        _fix(self._apart.denoted, denotation, value)

    def add_provider(self, name, options):
        """Name the processor's provider, which is the only one."""
        name = taken_text(name, "the name of a provider")
        if not isinstance(options, dict) or not all(isinstance(part, str) for pair in options.items() for part in pair):
            raise TypeError("the options of a provider are a dictionary of texts")
        if name not in PROVIDERS:
            raise RuntimeError(f"there is no provider {name!r}: sessions run on the processor ({', '.join(PROVIDERS)})")
        self._providers.append(name)

    def has_providers(self):
        """Whether a provider was named."""
        return bool(self._providers)

    def set_load_cancellation_flag(self, is_cancelled):
        """Say that sessions are not to be made with these options any more."""
        self._cancelled = taken_flag(is_cancelled, "is_cancelled")

    def add_provider_for_devices(self, ep_devices, provider_options):
        """Kept for its name: everything runs on the processor."""
        for device in ep_devices:
            self.add_provider(device.ep_name, provider_options)

    def set_ep_context_data_read_func(self, read_func, max_data_size):
        """Kept for its name: models that other providers have compiled are not read."""
        taken_number(max_data_size, "max_data_size")
        if not callable(read_func):
            raise TypeError(f"read_func is a function, not {type(read_func).__name__}")

    def clear_ep_context_data_read_func(self):
        """Kept for its name, as :meth:`set_ep_context_data_read_func`."""

    def set_provider_selection_policy(self, policy):
        """Kept for its name: there is nothing to choose from."""

    def set_provider_selection_policy_delegate(self, delegate):
        """Kept for its name: there is nothing to choose from."""

    def add_initializer(self, name, ort_value):
        """Give a weight that is used in the place of the model's own of that name."""
        self._add_weight(name, ort_value, False)

    def add_external_initializers(self, names, ort_values):
        """Give weights that the model has in files beside it, so that these need not be there."""
        if not isinstance(names, list) or not isinstance(ort_values, list):
            raise TypeError("the names of weights are a list, and so are the weights")
        if len(names) != len(ort_values):
            raise RuntimeError(f"there are {len(names)} names of weights, and {len(ort_values)} weights")
        for name, value in zip(names, ort_values):
            self._add_weight(name, value, True)

    def add_external_initializers_from_files_in_memory(self, names, buffers, lengths):
        """Give the contents of files that the model's weights lie in, so that these need not be there."""
        if not len(names) == len(buffers) == len(lengths):
            raise RuntimeError(f"there are {len(names)} names of files, {len(buffers)} buffers and {len(lengths)} lengths")
        for name, buffer, length in zip(names, buffers, lengths):
            self._apart.files[str(name)] = bytes(memoryview(buffer).cast("B")[:length])

    def _add_weight(self, name, value, external):
        if not isinstance(name, str) or not isinstance(value, OrtValue):
            raise RuntimeError(f"the weight {name!r} is an OrtValue, not {type(value).__name__}")
        if not value.is_tensor() or value.data_type() == "tensor(string)":
            raise RuntimeError(f"the weight {name!r} is a {value.data_type()}; only tensors of numbers are given apart")
        self._apart.weights[str(name)] = (value, external)

    def register_custom_ops_library(self, path):
        """Refused: libraries of operators hold kernels for ONNX Runtime."""
        if path is None:
            raise RuntimeError("the path of a library is None")
        if not os.path.exists(taken_text(path, "the path of a library")):
            raise Fail(f"there is no library {path}")
        raise NotImplemented(f"{path}: operators of ONNX Runtime's libraries cannot be used; a model's own functions can")


def _fix(lengths, name, value):
    """A length for a dimension; a negative one leaves it open."""
    value = taken_number(value, "the length of a dimension")
    if name is None:
        raise RuntimeError("a dimension that is fixed has a name")
    name = taken_text(name, "the name of a dimension")
    if value >= 0:
        lengths[name] = value
    else:
        lengths.pop(name, None)


class RunOptions(_Config):
    """How a model is run; ``terminate`` ends runs that begin afterwards."""

    __slots__ = ("_adapters",)

    log_severity_level = number(-1)
    log_verbosity_level = number(0)
    logid = text("")
    only_execute_path_to_fetches = flag(False)
    terminate = flag(False)
    training_mode = flag(False)

    def add_run_config_entry(self, key, value):
        """Keep an entry, which nothing here reads."""
        self._add(key, value)

    def __init__(self):
        super().__init__()
        self._adapters = []

    def add_active_adapter(self, adapter):
        """Give the parameters of an adapter to every run, in the place of the weights that the model lists among its inputs."""
        if not isinstance(adapter, LoraAdapter):
            raise TypeError(f"adapter is a LoraAdapter, not {type(adapter).__name__}")
        self._adapters.append(adapter)

    def _adapted(self, feed):
        """What is given to a run, and the parameters of all adapters."""
        for adapter in self._adapters:
            feed = {**feed, **adapter._parameters}
        return feed

    def get_run_config_entry(self, key):
        """The entry of a key."""
        return self._get(key)


__all__ = ["ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "RunOptions", "SessionOptions"]
