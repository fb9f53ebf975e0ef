"""The public names of a package that is laid out as TVM's: modules, what they define, members of classes, parameters of functions.

A name belongs to the module that people import it from. Names that begin with an underscore, modules of other packages and
re-exports of the standard library are not counted.
"""

import enum
import importlib
import inspect
import pkgutil
import types
import warnings

# Packages whose names make sense with a vendor's hardware or library only, or that TVM keeps for its own build.
OUT_OF_SCOPE = (
    "backend.",
    "contrib.cutlass",
    "contrib.hexagon",
    "contrib.nvcc",
    "relax.backend.cuda",
    "relax.backend.rocm",
    "relax.backend.metal",
    "relax.backend.adreno",
    "topi.cpp",
    "topi.gpu",
    "topi.hexagon",
    "tirx.script",
    "tirx.operator",
    "tirx.lang",
    "tirx.bench",
)


def modules(package):
    """The names of the public modules of a package, which need not be importable."""
    root = importlib.import_module(package)
    yield ""
    for found in pkgutil.walk_packages(root.__path__, f"{package}.", onerror=lambda _: None):
        name = found.name.removeprefix(f"{package}.")
        if any(part.startswith("_") for part in name.split(".")):
            continue
        if any(f"{name}.".startswith(prefix if prefix.endswith(".") else f"{prefix}.") for prefix in OUT_OF_SCOPE):
            continue
        yield name


def load(package, name):
    """The module, or None where it does not import here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(f"{package}.{name}" if name else package)
        except BaseException as refusal:
            if isinstance(refusal, KeyboardInterrupt):
                raise
            return None


def names(module, package):
    """The public names of a module that its package defines."""
    listed = getattr(module, "__all__", None)
    for name in sorted(set(listed if listed is not None else vars(module))):
        if name.startswith("_"):
            continue
        try:
            value = getattr(module, name)
        except AttributeError:
            continue
        if isinstance(value, types.ModuleType):
            continue
        owner = getattr(value, "__module__", None) or package
        if not isinstance(owner, str) or owner.split(".")[0] in (package, f"{package}_ffi") or listed is not None:
            yield name, value


def members(cls):
    """The public members that a class defines itself."""
    if issubclass(cls, enum.Enum):
        return sorted(cls.__members__)
    return sorted(name for name in vars(cls) if not name.startswith("_"))


def parameters(function):
    """Names of the parameters, or None where the function has no signature."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return [f"{'*' * ('VAR' in p.kind.name) + '*' * (p.kind is p.VAR_KEYWORD)}{p.name}" for p in found]
