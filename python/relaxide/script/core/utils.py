"""What functions and classes see of their surroundings."""

import inspect


def get_func_nonlocals(func):
    """The names of outer functions that a function uses, with their values."""
    if not inspect.isfunction(func):
        return {}
    cells = func.__closure__ or ()
    names = {}
    for name, cell in zip(func.__code__.co_freevars, cells):
        try:
            names[name] = cell.cell_contents
        except ValueError:
            # The outer function has not given it a value yet.
            continue
    return names


def inspect_function_capture(func):
    """The names that a function sees: of its module, and of outer functions."""
    return {**func.__globals__, **get_func_nonlocals(func)}


def inspect_class_capture(cls):
    """The names that the functions of a class see."""
    names = {}
    for value in vars(cls).values():
        if inspect.isfunction(value):
            names.update(inspect_function_capture(value))
    return names


def is_defined_in_class(frames, obj):
    """Whether a decorator that runs in these frames stands on a function in the body of a class."""
    if len(frames) > 2:
        frame = frames[2]
        if frame.code_context and frame.code_context[0].strip().startswith("class "):
            return True
        return frame.function in getattr(obj, "__qualname__", "").split(".")[:-1] and "__qualname__" in frame.frame.f_locals
    return False


def resolve_closure_vars(source_obj, extra_vars, outer_stack):
    """Add to a dictionary of names those that an object uses and that outer frames have."""
    import builtins

    code = getattr(source_obj, "__code__", None)
    used = set(code.co_names + code.co_freevars) if code is not None else None
    for frame in outer_stack:
        for name, value in frame.frame.f_locals.items():
            if name not in extra_vars and not hasattr(builtins, name) and (used is None or name in used):
                extra_vars[name] = value


__all__ = ["get_func_nonlocals", "inspect_class_capture", "inspect_function_capture", "is_defined_in_class", "resolve_closure_vars"]
