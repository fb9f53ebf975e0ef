"""What a session and a run may be told."""

import enum

from ._apart import Apart
from ._errors import Fail, InvalidArgument, NotImplemented
from ._values import OrtValue


class GraphOptimizationLevel(enum.IntEnum):
    """How much a graph is optimized. Relaxide compiles every model in one way; the level is kept and changes nothing."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """Whether operators run side by side. Kernels use all threads, one after the other, in either mode."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    """In which order operators run; the compiler chooses it."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class _Config:
    """Entries of texts by key."""

    def __init__(self):
        self._entries = {}

    def _add(self, key, value):
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"an entry is two texts, and {key!r}: {value!r} is not")
        if not key:
            raise Fail("the key of an entry is empty")
        self._entries[key] = value

    def _get(self, key):
        try:
            return self._entries[key]
        except KeyError:
            raise Fail(f"there is no entry {key!r}; there are: {', '.join(sorted(self._entries)) or 'none'}") from None


class SessionOptions(_Config):
    """How a session is made.

    ``intra_op_num_threads`` is how many threads kernels use. They are shared by all sessions of a process, so the last session
    that asks for a number sets it. ``add_free_dimension_override_by_name`` fixes a named dimension, for which faster kernels are
    made. With ``enable_profiling`` runs are computed twice, and ``InferenceSession.end_profiling`` writes their times. Options of memory, logging and order are kept, and change nothing here.
    """

    def __init__(self):
        super().__init__()
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.enable_profiling = False
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order = ExecutionOrder.DEFAULT
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.inter_op_num_threads = 0
        self.intra_op_num_threads = 0
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.profile_file_prefix = "onnxruntime_profile_"
        self.use_deterministic_compute = False
        self.use_per_session_threads = True
        self._dims = {}
        self._apart = Apart()

    @property
    def optimized_model_filepath(self):
        """Always empty: what is compiled is no ONNX model."""
        return ""

    @optimized_model_filepath.setter
    def optimized_model_filepath(self, value):
        if value:
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
        if int(value) < 0:
            raise Fail(f"dimension {name!r} cannot be {value}: it must not be negative")
        self._dims[str(name)] = int(value)

    def add_free_dimension_override_by_denotation(self, denotation, value):
        """Fix the dimensions that a model says to stand for something (``DATA_BATCH``)."""
        if int(value) < 0:
            raise Fail(f"dimension {denotation!r} cannot be {value}: it must not be negative")
        self._apart.denoted[str(denotation)] = int(value)

    def add_provider(self, name, options=None):
        """Kept for its name: everything runs on the processor."""
        self._add(f"provider.{name}", str(options or {}))

    def has_providers(self):
        """Whether :meth:`add_provider` was called."""
        return any(key.startswith("provider.") for key in self._entries)

    def add_provider_for_devices(self, ep_devices, provider_options):
        """Kept for its name: everything runs on the processor."""
        for device in ep_devices:
            self.add_provider(device.ep_name, provider_options)

    def set_provider_selection_policy(self, policy):
        """Kept for its name: there is nothing to choose from."""

    def set_provider_selection_policy_delegate(self, delegate):
        """Kept for its name: there is nothing to choose from."""

    def add_initializer(self, name, ort_value):
        """Give a weight that is used in the place of the model's own of that name."""
        self._add_weight(name, ort_value, False)

    def add_external_initializers(self, names, ort_values):
        """Give weights that the model has in files beside it, so that these need not be there."""
        if len(names) != len(ort_values):
            raise InvalidArgument(f"there are {len(names)} names of weights, and {len(ort_values)} weights")
        for name, value in zip(names, ort_values):
            self._add_weight(name, value, True)

    def add_external_initializers_from_files_in_memory(self, names, buffers, lengths):
        """Give the contents of files that the model's weights lie in, so that these need not be there."""
        if not len(names) == len(buffers) == len(lengths):
            raise InvalidArgument(f"there are {len(names)} names of files, {len(buffers)} buffers and {len(lengths)} lengths")
        for name, buffer, length in zip(names, buffers, lengths):
            self._apart.files[str(name)] = bytes(memoryview(buffer).cast("B")[:length])

    def _add_weight(self, name, value, external):
        if not isinstance(value, OrtValue):
            raise TypeError(f"the weight {name!r} is an OrtValue, not {type(value).__name__}")
        if not value.is_tensor() or value.data_type() == "tensor(string)":
            raise NotImplemented(f"the weight {name!r} is a {value.data_type()}; only tensors of numbers are given apart")
        self._apart.weights[str(name)] = (value, external)

    def register_custom_ops_library(self, path):
        """Refused: libraries of operators hold kernels for ONNX Runtime."""
        raise NotImplemented(f"{path}: operators of ONNX Runtime's libraries cannot be used; a model's own functions can")


class RunOptions(_Config):
    """How a model is run; ``terminate`` ends runs that begin afterwards."""

    def __init__(self):
        super().__init__()
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self.terminate = False
        self.training_mode = False

    def add_run_config_entry(self, key, value):
        """Keep an entry, which nothing here reads."""
        self._add(key, value)

    def add_active_adapter(self, adapter):
        """Refused: adapters are not applied."""
        raise NotImplemented("adapters (LoRA) are not applied when a model runs; merge them into its weights")

    def get_run_config_entry(self, key):
        """The entry of a key."""
        return self._get(key)


__all__ = ["ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "RunOptions", "SessionOptions"]
