"""What is written into modules."""

from ....ir.expr import GlobalVar
from ....ir.function import BaseFunc
from ....ir.global_info import DummyGlobalInfo, VDevice
from ....ir.module import IRModule
from ..base import IRBuilder, frame_of
from .frame import IRModuleFrame


class meta_var:
    """A Python value that stays one: it is not bound in the program. Iterating over it gives such values of its items."""

    def __init__(self, value):
        self.value = value

    def __iter__(self):
        return (meta_var(item) for item in self.value)


def ir_module():
    """The frame of a module: ``with I.ir_module(): ...``."""
    return IRModuleFrame()


def _frame(what):
    return frame_of(IRModuleFrame, what)


def decl_function(func_name, func_signature):
    """Declare a function by its signature, and get its name for calls; a ValueError where it is none or the name is taken."""
    if not isinstance(func_signature, BaseFunc):
        raise ValueError(
            f"decl_function expects an instance of BaseFunc, but {func_signature} is of type {type(func_signature)}"
        )
    frame = _frame("decl_function")
    if func_name in frame.functions:
        raise ValueError(f"the module has a function {func_name} already")
    # The type of calls is the function's, which a name alone does not know.
    frame.global_vars[func_name] = IRModule({func_name: func_signature}).get_global_var(func_name)
    frame.functions[func_name] = None
    return frame.global_vars[func_name]


def def_function(func_name, func):
    """Define a function; a ValueError where one of this name was defined before."""
    frame = _frame("def_function")
    if frame.functions.get(func_name) is not None:
        raise ValueError(f"the module has a function {func_name} already")
    frame.functions[func_name] = func
    frame.global_vars.setdefault(func_name, GlobalVar(func_name))


def module_attrs(attrs, allow_overwrite=False):
    """Give the module attributes, a dictionary by name; a ValueError where it has some and they may not be replaced."""
    frame = _frame("module_attrs")
    if frame.attrs and not allow_overwrite:
        raise ValueError(f"the module has attributes already: {', '.join(frame.attrs)}; allow_overwrite=True replaces them")
    frame.attrs = dict(attrs)


def module_get_attr(attr_key):
    """An attribute of the module by its name; ``None`` where it has none."""
    return _frame("module_get_attr").attrs.get(attr_key)


def module_set_attr(attr_key, attr_value, allow_overwrite=False):
    """Give the module one attribute, or take it away with ``None``; a ValueError where it has it and may not be replaced."""
    attrs = _frame("module_set_attr").attrs
    if attr_key in attrs and not allow_overwrite:
        raise ValueError(f"the module has an attribute {attr_key} already; allow_overwrite=True replaces it")
    attrs.pop(attr_key, None)
    if attr_value is not None:
        attrs[attr_key] = attr_value


def module_global_infos(global_infos):
    """Give the module what its functions refer to, such as ``{"vdevice": [...]}``; a ValueError where it has some."""
    frame = _frame("module_global_infos")
    if frame.global_infos:
        raise ValueError("the module has global infos already")
    frame.global_infos = {name: list(infos) for name, infos in global_infos.items()}


def lookup_vdevice(target_kind=None, device_index=-1):
    """A device of the module's, by the kind of its target and its number among those; the first of all where neither is said.

    A ValueError where the module has no such device.
    """
    devices = _frame("lookup_vdevice").global_infos.get("vdevice", [])
    found = [device for device in devices if target_kind in (None, "vdevice") or device.target.kind.name == target_kind]
    index = max(device_index, 0)
    if index >= len(found):
        raise ValueError(f"the module has no device {index} of the kind {target_kind}; declare it with module_global_infos")
    return found[index]


def lookup_name(name):
    """The name of a function of the module, for calls; a ValueError where it has none of that name."""
    frame = _frame("lookup_name")
    if name not in frame.global_vars:
        raise ValueError(f"the module has no function {name}; it has {', '.join(frame.global_vars) or 'none'}")
    return frame.global_vars[name]


def vdevice(target=None, vdevice_id=0, memory_scope="global"):
    """A device that tensors may live on."""
    return VDevice(target, vdevice_id, memory_scope)


def dummy_global_info():
    """Something that functions share of which nothing is known."""
    return DummyGlobalInfo()


def place_function(name, func):
    """Put a finished function into the module around it; without one, it is what the builder builds."""
    builder = IRBuilder.current()
    if builder.find(IRModuleFrame) is None:
        builder.finish(func)
    elif not name:
        raise ValueError("a function of a module has a name: say func_name in it")
    else:
        def_function(name, func)


__all__ = ["decl_function", "def_function", "ir_module", "lookup_name", "lookup_vdevice", "meta_var", "module_attrs"]
__all__ += ["dummy_global_info", "module_get_attr", "module_global_infos", "module_set_attr", "vdevice"]
