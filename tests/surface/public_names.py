"""The public names of a package that is laid out as TVM's, as JSON: modules, what they define, members, parameters.

``python public_names.py PACKAGE``. A name belongs to the module that defines it and to those above it that hand it on. Names that begin
with an underscore and names of other packages are not counted.
"""

import enum
import importlib
import inspect
import json
import pkgutil
import sys
import types
import warnings

# What makes sense with a vendor's hardware or library only, or what TVM keeps for its own build and its own tests of it.
OUT_OF_SCOPE = (
    "backend",
    "contrib.coreml_runtime",
    "contrib.cublas",
    "contrib.cublaslt",
    "contrib.cudnn",
    "contrib.cutlass",
    "contrib.hexagon",
    "contrib.hipblas",
    "contrib.mkl",
    "contrib.nnpack",
    "contrib.nvcc",
    "contrib.thrust",
    "relax.backend.adreno",
    "relax.backend.contrib.nnapi",
    "relax.backend.cuda",
    "relax.backend.metal",
    "relax.backend.rocm",
    "relax.transform.legalize_ops.adreno",
    "rpc.server_ios_launcher",
    "s_tir.backend.adreno",
    "s_tir.dlight.adreno",
    "s_tir.meta_schedule.testing",
    "s_tir.tensor_intrin",
    "support.nvcc",
    "support.rocm",
    "support.xcode",
    "tirx.bench",
    # The language of tiles, which is of one vendor's GPUs: `tirx.lang` below is its other half.
    "tirx.lang",
    "tirx.operator",
    "tirx.script",
    "topi.cpp",
    "topi.gpu",
    "topi.hexagon",
)


def is_in_scope(name):
    parts = name.split(".")
    outside = any(f"{name}.".startswith(f"{prefix}.") for prefix in OUT_OF_SCOPE)
    return not outside and not any(part.startswith("_") for part in parts)


def modules(package):
    """The public modules that are files of a package, by name below it."""
    yield "", importlib.import_module(package)
    yield from below(package, importlib.import_module(package), "")


def below(package, parent, prefix):
    for found in pkgutil.iter_modules(parent.__path__):
        name = f"{prefix}{found.name}"
        # What is out of scope is not imported: some of it takes long.
        module = load(f"{package}.{name}") if is_in_scope(name) else None
        if module is not None:
            yield name, module
            if found.ispkg:
                yield from below(package, module, f"{name}.")


def load(name):
    """The module, or None where it does not import here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(name)
        except (Exception, SystemExit):
            return None


def public(module, whole):
    """``(name, value)`` of what a module defines or hands on from below it."""
    for name, value in sorted(vars(module).items()):
        if name.startswith("_") or isinstance(value, types.ModuleType):
            continue
        owner = getattr(value, "__module__", None)
        if callable(value) and isinstance(owner, str) and not f"{owner}.".startswith(f"{whole}."):
            continue
        # What a module hands on from one that is out of scope is, too; `TYPE_CHECKING` is Python's.
        package = whole.partition(".")[0]
        if name == "TYPE_CHECKING" or (isinstance(owner, str) and owner.startswith(f"{package}.") and not is_in_scope(owner[len(package) + 1 :])):
            continue
        if callable(value) or isinstance(value, (bool, int, float, str)):
            yield name, value


def described(value):
    """What is compared of a name: the members of a class, the parameters of a function."""
    if inspect.isclass(value):
        if issubclass(value, enum.Enum):
            return {"members": sorted(value.__members__)}
        # Fields of nodes are members of their values, in both packages; here they are looked up when they are asked for.
        own = ((name, member) for name, member in vars(value).items() if type(member).__name__ != "FFIProperty")
        return {"members": sorted(name for name, _ in own if not name.startswith("_"))}
    try:
        return {"parameters": list(inspect.signature(value).parameters)} if callable(value) else {}
    except (TypeError, ValueError):
        return {}


def surface(package):
    """``{module: {name: what is compared}}``."""
    return {
        name: {key: described(value) for key, value in public(module, f"{package}.{name}".rstrip("."))}
        for name, module in modules(package)
    }


def held(package, wanted):
    """The same of a package, for the modules and names that another has: they may come from elsewhere."""
    found = {}
    for name, names in wanted.items():
        module = load(f"{package}.{name}".rstrip("."))
        if module is None:
            continue
        found[name] = {}
        for key, what in names.items():
            value = getattr(module, key, None)
            if value is None:
                continue
            entry = described(value)
            if "members" in what:
                entry["members"] = [member for member in what["members"] if hasattr(value, member)]
            found[name][key] = entry
    return found


if __name__ == "__main__":
    given = json.load(sys.stdin) if len(sys.argv) > 2 else None
    json.dump(held(sys.argv[1], given) if given is not None else surface(sys.argv[1]), sys.stdout)
