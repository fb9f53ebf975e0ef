"""What both runners do."""


def alloc_argument_common(f_random_fill, device, args_info, alloc_repeat):
    """``alloc_repeat`` lists of arguments, made on a device and filled by ``f_random_fill(tensor)``."""
    from ....runtime import empty

    def one(info):
        tag, dtype, shape = info
        if tag != "TENSOR":
            raise NotImplementedError(f"an argument is a TENSOR, got {tag!r}")
        tensor = empty(tuple(shape), str(dtype), device)
        f_random_fill(tensor)
        return tensor

    return [[one(info) for info in args_info] for _ in range(alloc_repeat)]


def run_evaluator_common(rt_mod, device, evaluator_config, repeated_args):
    """The seconds of the runs of a library's kernel, for each list of arguments."""
    evaluator = rt_mod.time_evaluator(
        rt_mod.entry_name if hasattr(rt_mod, "entry_name") and rt_mod.entry_name else "main",
        device,
        number=evaluator_config.number,
        repeat=evaluator_config.repeat,
        min_repeat_ms=evaluator_config.min_repeat_ms,
    )
    return [float(sec) for args in repeated_args for sec in evaluator(*args).results]


__all__ = ["alloc_argument_common", "run_evaluator_common"]
