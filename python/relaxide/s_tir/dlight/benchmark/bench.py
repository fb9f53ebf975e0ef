"""Measurements of kernels."""

import numpy as np

from .... import runtime
from ....compiler import build
from ....ir import GlobalVar, IRModule
from ....target import Target
from ....tirx import PrimFunc
from ...meta_schedule.runner import EvaluatorConfig
from .extract import extract_all_func_info_from_relax, extract_func_info_from_prim_func
from .utils import default_dym_var_sample_func, dym_var_sample_str, get_func_name_from_gv, populuate_input_shape, print_results


def _one_kernel(mod_or_func, func_name):
    """``(module, name, kernel)`` of a kernel or of a module of one."""
    if isinstance(mod_or_func, PrimFunc):
        func_name = func_name or "main"
        func = mod_or_func.with_attr("global_symbol", func_name)
        return IRModule.from_expr(func), func_name, func
    names = [var.name_hint for var in mod_or_func.get_global_vars()]
    if func_name is None and len(names) != 1:
        raise ValueError(f"the module has the functions {', '.join(names)}: say which by func_name=")
    func_name = func_name or names[0]
    return mod_or_func, func_name, mod_or_func[func_name]


def _random(shape, dtype):
    """A tensor of small random numbers."""
    if dtype.startswith(("int", "uint")):
        return np.random.randint(0, 8, shape).astype(dtype)
    if dtype == "bool":
        return np.random.randint(0, 2, shape).astype(dtype)
    return np.random.uniform(-1, 1, shape).astype(dtype)


def benchmark(mod_or_func, *, dym_var_sample, args=None, target=None, func_name=None, evaluator_config=None, rpc_config=None):
    """How long a kernel takes at a sample of its dimensions.

    Parameters
    ----------
    mod_or_func : PrimFunc or IRModule
        The kernel, or a module of it.
    dym_var_sample : dict of str to int
        The dimensions by their names.
    args : list, optional
        What it is called with, as :func:`~relaxide.s_tir.dlight.benchmark.utils.populuate_input_shape` takes it; the kernel itself says it
        otherwise.
    target : Target or str, optional
        What it is compiled for; the target around, where none is given.
    func_name : str, optional
        The kernel's name.
    evaluator_config : EvaluatorConfig, optional
        How often it is run.
    rpc_config : RPCConfig, optional
        On which machine it is run; on this one, where nothing is said.

    Returns
    -------
    input_infos : list of tuple
        Shape and element type of each argument.
    median, std : float
        Of the seconds that a run took.
    """
    mod, func_name, func = _one_kernel(mod_or_func, func_name)
    target = Target.current() if target is None else Target(target)
    if target is None:
        raise ValueError("no target is given, and none is around: pass target=")
    if target.kind.name not in ("llvm", "c"):
        raise ValueError(f"kernels for targets of kind {target.kind.name} are not measured here, but those for processors")
    infos = populuate_input_shape(extract_func_info_from_prim_func(func)[0] if args is None else args, dym_var_sample)
    tensors = [_random(shape, dtype) for shape, dtype in infos if dtype != "scalar"]
    scalars = [shape[0] for shape, dtype in infos if dtype == "scalar"]
    config = EvaluatorConfig._normalized(evaluator_config)
    made = build(mod, target=target)
    if rpc_config is not None:
        from ....testing import rpc_run

        _, result = rpc_run(made, "cpu", tensors + scalars, rpc_config=rpc_config, evaluator_config=config)
        return infos, result.median, result.std
    flush = "cache_flush_cpu_non_first_arg" if config.enable_cpu_cache_flush else ""
    options = {"number": config.number, "repeat": config.repeat, "min_repeat_ms": config.min_repeat_ms, "f_preproc": flush}
    device = runtime.cpu()
    result = made.time_evaluator(func_name, device, **options)(*(runtime.tensor(t, device) for t in tensors), *scalars)
    return infos, result.median, result.std


def benchmark_prim_func(
    mod_or_func,
    *,
    dym_var_sample_func=default_dym_var_sample_func,
    args=None,
    dym_var_dict=None,
    sample_number=5,
    target=None,
    weight=1,
    relax_func_name=None,
    prim_func_name=None,
    evaluator_config=None,
    rpc_config=None,
    sort_by=None,
    desc=True,
):
    """Print how long a kernel takes at samples of its dimensions.

    Parameters
    ----------
    mod_or_func : PrimFunc or IRModule
        The kernel, or a module of it.
    dym_var_sample_func : function
        Makes a sample: values by names, of types by names.
    args, dym_var_dict : list and dict, optional
        Its arguments and the types of its dimensions, which the kernel itself says otherwise.
    sample_number : int
        How many samples there are.
    target, evaluator_config, rpc_config
        As :func:`benchmark` takes them.
    weight : int
        How often it is called, by which its time is multiplied.
    relax_func_name, prim_func_name : str, optional
        Columns of the table.
    sort_by : str, optional
        The column that rows are sorted by.
    desc : bool
        Whether the largest comes first.
    """
    if dym_var_dict is None or args is None:
        args, dym_var_dict = extract_func_info_from_prim_func(_one_kernel(mod_or_func, None)[2])
    options = {"target": target, "evaluator_config": evaluator_config, "rpc_config": rpc_config}
    rows = []
    for _ in range(sample_number):
        sample = dym_var_sample_func(dym_var_dict)
        _, median, std = benchmark(mod_or_func, args=args, dym_var_sample=sample, **options)
        row = {"InputInfo": dym_var_sample_str(sample), "Time(us)": median * 1e6, "Std(us)": std * 1e6}
        names = {"RelaxFunc": relax_func_name, "PrimFunc": prim_func_name}
        row.update((column, name) for column, name in names.items() if name is not None)
        times = 1 if weight is None else weight
        rows.append({**row, "Weight": times, "WxTime(ms)": times * median * 1e3})
    print_results(rows, sort_by=sort_by, desc=desc)


def benchmark_relax_func(
    mod,
    relax_func,
    sample_number=2,
    dym_var_sample_func=default_dym_var_sample_func,
    target=None,
    evaluator_config=None,
    rpc_config=None,
):
    """Print how long each kernel takes that a function calls, at samples of its dimensions.

    Parameters
    ----------
    mod : IRModule
        The module, whose operators are kernels.
    relax_func : GlobalVar or str
        The function.
    sample_number : int
        How many samples there are.
    dym_var_sample_func : function
        Makes a sample: values by names, of types by names.
    target : Target, str or dict, optional
        What kernels are compiled for: this machine's processor, where none is given.
    evaluator_config, rpc_config
        As :func:`benchmark` takes them.
    """
    target = Target("llvm" if target is None else target)
    calls, dims = extract_all_func_info_from_relax(mod)
    name = get_func_name_from_gv(relax_func) if isinstance(relax_func, GlobalVar) else relax_func
    found = next((gv for gv in calls if get_func_name_from_gv(gv) == name), None)
    if found is None:
        known = ", ".join(map(get_func_name_from_gv, calls))
        raise ValueError(f"no function {name} calls kernels; there are {known or 'none that do'}")
    for _ in range(sample_number):
        sample = dym_var_sample_func(dims[found])
        rows = []
        for kernel, records in calls[found].items():
            for args, weight in records:
                options = {"target": target, "evaluator_config": evaluator_config, "rpc_config": rpc_config}
                _, median, _ = benchmark(mod[kernel], args=args, dym_var_sample=sample, **options)
                rows.append(
                    {
                        f"PrimFuncs in {name}": get_func_name_from_gv(kernel),
                        f"InputInfo({dym_var_sample_str(sample)})": ", ".join(map(str, args)),
                        "Time(us)": median * 1e6,
                        "Weight": weight,
                        "WxTime(ms)": median * weight * 1e3,
                    }
                )
        print_results(rows)


__all__ = ["benchmark", "benchmark_prim_func", "benchmark_relax_func"]
