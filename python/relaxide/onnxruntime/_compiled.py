"""From a model to something that runs: what it says of itself, its program, and the cache in between."""

import os

from .. import _core
from ..compiler import compile
from ..relax.frontend.onnx import imported
from ..relax.vm import VirtualMachine
from ..runtime import cpu, load_module
from ..runtime.profiling import Report
from . import _cache
from ._apart import Apart
from ._errors import Fail, InvalidArgument, InvalidGraph, InvalidProtobuf, NoSuchFile, NotImplemented


class Compiled:
    """A model that is ready to run."""

    def __init__(self, head, machine):
        #: What the model says of itself: see ``_core.onnx_signature``.
        self.head = head
        #: The function.
        self.main = machine["main"]
        self._machine = machine

    def __call__(self, args):
        return self.main(*args)

    def profile(self, args):
        """What it gives, and every call of that run, as ``runtime.profiling.Report.chrome_trace`` writes them."""
        result, report = self._machine.module["profile_run"]("main", *args)
        return result, Report(report).chrome_trace()


def source_of(path_or_bytes):
    """A path or the bytes of a model, of what a session is given."""
    if isinstance(path_or_bytes, str) and not path_or_bytes:
        raise TypeError("the path of a model is empty")
    if isinstance(path_or_bytes, (str, os.PathLike)):
        return os.fspath(path_or_bytes)
    if isinstance(path_or_bytes, (bytes, bytearray, memoryview)):
        return bytes(path_or_bytes)
    raise TypeError(f"a session is made of a path or of the bytes of a model, not of {type(path_or_bytes).__name__}")


def compiled(source, dims, loose=False, lengths=None, apart=None):
    """A model with some named dimensions fixed.

    With ``loose``, dimensions of equal names in several inputs are not taken to be equal: files exist in which they are not.
    ``lengths`` are those of all inputs, by name, where the program is for these alone. ``apart`` is what is given beside the
    model (:class:`Apart`).
    """
    apart = apart or Apart()
    head = signature(source, apart)
    folder = os.path.dirname(source) if isinstance(source, str) else apart.folder
    beside = [] if folder is None else [_identity(os.path.join(folder, name)) for name in head["files"]]
    options = {"dims": dims, "loose": loose, "beside": beside, **({"lengths": lengths} if lengths else {}), **apart.described()}
    place = _cache.entry(source, options)
    kept = place.find() if place else None
    if kept is not None:
        try:
            return Compiled(head, VirtualMachine(load_module(kept), cpu()))
        except (OSError, RuntimeError, ValueError):
            place.drop()  # It was damaged, or is for another processor.
    executable = _compile(source, lengths or _shapes(head, dims, loose), apart)
    if place:
        place.keep(executable.export_library)
    return Compiled(head, VirtualMachine(executable, cpu()))


def signature(source, apart):
    """What a model says of itself."""
    try:
        return _core.onnx_signature(source, apart.parts())
    except FileNotFoundError as error:
        raise NoSuchFile(f"{source}: the file does not exist") from error
    except (OSError, PermissionError) as error:
        raise Fail(str(error)) from error
    except NotImplementedError as error:
        raise NotImplemented(str(error)) from error
    except Exception as error:
        if isinstance(source, bytes) and not source:
            raise InvalidArgument("the model has no bytes") from error
        raise InvalidProtobuf(f"{'the bytes' if isinstance(source, bytes) else source}: {error}") from error


def _identity(path):
    try:
        return _cache.identity(path)
    except OSError:
        return path  # The import says what is wrong with it.


def _shapes(head, dims, loose):
    """Shapes in place of the model's own, of the inputs for which they differ."""
    shapes = {}
    for name, _, shape in head["inputs"]:
        fixed = [dims.get(dim, dim) if isinstance(dim, str) else dim for dim in shape]
        if loose:
            fixed = [f"{name}_{axis}" if isinstance(dim, str) else dim for axis, dim in enumerate(fixed)]
        if fixed != shape:
            unknown = [f"{name}_{axis}" if dim is None else dim for axis, dim in enumerate(fixed)]
            shapes[name] = unknown
    return shapes


def _compile(source, shapes, apart):
    try:
        return compile(imported(source, shapes, apart=apart.parts()))
    except NotImplementedError as error:
        raise NotImplemented(str(error)) from error
    except MemoryError:
        raise
    except Exception as error:
        raise InvalidGraph(str(error)) from error
