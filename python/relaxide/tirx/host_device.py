"""Modules of kernels by what they are compiled for."""

from ..compiler import build
from ..ir import IRModule
from ..target import Target


def _target(func):
    """What a kernel is for, as far as it says."""
    said = (func.attrs or {}).get("target")
    return None if said is None else said if isinstance(said, Target) else Target(str(said))


def _is_of_host(func):
    target = _target(func)
    return target is None or target.kind.name in ("llvm", "c")


def split_host_device_mods(mod):
    """Part a module by the attribute ``target`` of its functions.

    Parameters
    ----------
    mod : IRModule
        The module.

    Returns
    -------
    host_mod : IRModule
        The functions for processors, and those that say nothing.
    device_mod_dict : dict of Target to IRModule
        The others, by target.
    """
    host = {var: func for var, func in mod.functions_items() if _is_of_host(func)}
    devices = {}
    for var, func in mod.functions_items():
        if not _is_of_host(func):
            target = _target(func)
            devices.setdefault(str(target), (target, {}))[1][var] = func
    return IRModule(host, attrs=mod.attrs), {target: IRModule(funcs, attrs=mod.attrs) for target, funcs in devices.values()}


def codegen_build(mod, target):
    """Compile a module of kernels for one target; ``made["name"]`` is a kernel to call."""
    return build(mod, target=target)


def tir_to_runtime(host_mod, device_mod_dict, target_host):
    """Compile the parts that :func:`split_host_device_mods` makes, as one; ``made["name"]`` is a kernel to call.

    Parameters
    ----------
    host_mod : IRModule
        The functions of the host.
    device_mod_dict : dict of Target to IRModule
        Those of devices, of one kind.
    target_host : Target
        What the host's are compiled for.

    Raises
    ------
    ValueError
        There are devices of several kinds.
    """
    devices = {target: mod for target, mod in device_mod_dict.items() if len(mod.functions)}
    if len(devices) > 1:
        raise ValueError(f"kernels for {' and '.join(map(str, devices))} are compiled one after the other, not as one module")
    whole = IRModule(dict(host_mod.functions_items()), attrs=host_mod.attrs)
    for mod in devices.values():
        whole.update(mod)
    target = next(iter(devices), None)
    return codegen_build(whole, Target(target_host) if target is None else target.with_host(target_host))


__all__ = ["codegen_build", "split_host_device_mods", "tir_to_runtime"]
