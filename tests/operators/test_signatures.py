"""Every operator takes the arguments that TVM's takes: by position, by name, and with the same defaults."""

import inspect
import types

import pytest
import relaxide
import tvm

#: Where ours takes more than TVM's, or says a default in another form, and why.
DIFFERENCES = {
    "call_tir": "tir_vars, which older programs give",
    "call_tir_inplace": "tir_vars, which older programs give",
    "builtin.alloc_tensor": "made by passes: the memory scope is always said",
    "memory.alloc_storage": "made by passes: the device is called as in the other calls",
    "memory.alloc_tensor": "made by passes: the device is called as in the other calls",
    "vm.alloc_storage": "made by passes: the device is called as in the other calls",
    "vm.alloc_tensor": "made by passes: the device is called as in the other calls",
}
#: Operators that only TVM has.
MISSING = {
    "distributed.annotate_sharding": "programs over several machines are not compiled",
    "distributed.call_tir_local_view": "programs over several machines are not compiled",
    "distributed.redistribute": "programs over several machines are not compiled",
    "distributed.redistribute_replica_to_shard": "programs over several machines are not compiled",
}


#: The modules of ``relax.op`` that users name; others are where TVM's files are.
NAMESPACES = ("builtin", "ccl", "distributed", "grad", "image", "inspect", "memory", "nn", "vision", "vm")


def _functions(module, prefix=""):
    found = {}
    for name in dir(module):
        value = getattr(module, name)
        if name.startswith("_") or inspect.isclass(value):
            continue
        if isinstance(value, types.ModuleType):
            if not prefix and name in NAMESPACES and value.__name__.startswith("tvm.relax.op"):
                found.update(_functions(value, f"{name}."))
        elif callable(value) and getattr(value, "__module__", "").startswith("tvm.relax.op"):
            found[prefix + name] = value
    return found


TVMS = _functions(tvm.relax.op)


def _ours(name):
    value = relaxide.relax.op
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def _default(value):
    """A default in one form: what is said for each of several dimensions may be said once, or for both ends."""
    if isinstance(value, (tuple, list)):
        distinct = {float(item) for item in value}
        return distinct.pop() if len(distinct) == 1 else tuple(value)
    if isinstance(value, (bool, str)) or value is None or value is inspect.Parameter.empty:
        return value
    return float(value)


def test_operators_are_found():
    assert len(TVMS) > 200


@pytest.mark.parametrize("name", sorted(set(TVMS) - set(MISSING)))
def test_an_operator_takes_what_tvms_takes(name):
    ours = _ours(name)
    assert callable(ours), f"there is no relax.op.{name}"
    if name in DIFFERENCES:
        return
    theirs = inspect.signature(TVMS[name]).parameters
    own = inspect.signature(ours).parameters
    by_position = list(own)[: len(theirs)]
    assert by_position == list(theirs)
    for parameter in theirs.values():
        if parameter.default is inspect.Parameter.empty:
            continue
        # A dtype that is not said is that of the operands, or float32, in both.
        if parameter.name == "dtype" and own[parameter.name].default in (None, parameter.default):
            continue
        # Where TVM's function makes a region of zeros of none, that is the default here.
        if parameter.name == "roi" and parameter.default is None and not any(own[parameter.name].default):
            continue
        if own[parameter.name].default is None and parameter.name == "variances":
            continue
        assert _default(own[parameter.name].default) == _default(parameter.default), parameter.name
    for name_of_more in list(own)[len(theirs) :]:
        assert own[name_of_more].default is not inspect.Parameter.empty, f"{name_of_more} must be given here only"


@pytest.mark.parametrize("name", sorted(MISSING))
def test_what_is_missing_is_missing(name):
    assert _ours(name) is None
