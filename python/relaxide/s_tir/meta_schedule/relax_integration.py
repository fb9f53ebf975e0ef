"""Tuning of the kernels of Relax programs."""

from ... import transform
from ...ir import IRModule, structural_equal
from ...target import Target
from ...tirx import PrimFunc
from .extracted_task import ExtractedTask
from .logging import get_loggers_from_work_dir
from .tune import tune_tasks
from .tune_context import TuneContext
from .utils import fork_seed


def _module_of(mod):
    return mod if isinstance(mod, IRModule) else IRModule.from_expr(mod)


def extract_tasks(mod, target, params=None, module_equality="structural"):
    """The kernels that a program calls, each once, with how often it is called.

    ``params`` are values of the program's parameters by name, which are bound first.
    """
    from ... import relax
    from .database import _equality

    target, mod = target if isinstance(target, Target) else Target(target), _module_of(mod)
    if params:
        mod = relax.transform.BindParams("main", dict(params))(mod)
    counts = _calls(mod)
    equal, found = (structural_equal if module_equality == "structural" else _equality(module_equality)), []
    for var, func in mod.functions_items():
        count = counts.get(var.name_hint, 0)
        if not isinstance(func, PrimFunc) or not count or not _is_schedulable(func):
            continue
        kernel = IRModule({"main": func.with_attr("global_symbol", "main")})
        same = next((task for task in found if equal(task.dispatched[0], kernel)), None)
        if same is None:
            found.append(ExtractedTask(var.name_hint, kernel, target, [kernel], count))
        else:
            same.weight += count
    return found


def _is_schedulable(func):
    """Whether all lengths are known, and the kernel is one of blocks that is not scheduled yet."""
    from .. import SBlockRealize

    known = all(buffer is not None and all(hasattr(dim, "value") for dim in buffer.shape) for buffer in func.buffers)
    return known and isinstance(func.body, SBlockRealize) and not (func.attrs or {}).get("tirx.is_scheduled")


def _calls(mod):
    """How often each kernel is called."""
    from ... import relax

    counts = {}

    def visit(expr):
        if isinstance(expr, relax.Call):
            for arg in (expr.op, *expr.args):
                if isinstance(arg, relax.GlobalVar):
                    counts[arg.name_hint] = counts.get(arg.name_hint, 0) + 1

    for func in mod.functions.values():
        if isinstance(func, relax.Function):
            relax.analysis.post_order_visit(func, visit)
    return counts


def extracted_tasks_to_tune_contexts(
    extracted_tasks, work_dir, space="post-order-apply", strategy="evolutionary", num_threads="physical", seed=None
):
    """``(contexts, weights)`` for :func:`~relaxide.s_tir.meta_schedule.tune_tasks`."""
    loggers = get_loggers_from_work_dir(work_dir, [task.task_name for task in extracted_tasks])
    contexts = []
    for task, logger, state in zip(extracted_tasks, loggers, fork_seed(seed, len(extracted_tasks))):
        contexts.append(
            TuneContext(
                task.dispatched[0],
                target=task.target,
                space_generator=space,
                search_strategy=strategy,
                task_name=task.task_name,
                logger=logger,
                rand_state=state,
                num_threads=num_threads,
            ).clone()
        )
    return contexts, [task.weight for task in extracted_tasks]


def tune_relax(
    mod,
    params,
    target,
    work_dir,
    max_trials_global,
    max_trials_per_task=None,
    op_names=None,
    *,
    num_trials_per_iter=64,
    builder="local",
    runner="local",
    database="json",
    cost_model="xgb",
    measure_callbacks="default",
    task_scheduler="gradient",
    space="post-order-apply",
    strategy="evolutionary",
    seed=None,
    module_equality="structural",
):
    """Tune the kernels that a program calls; gives the database.

    ``op_names`` are parts of the names of kernels that are tuned, all by default. The other parameters are as
    :func:`~relaxide.s_tir.meta_schedule.tune_tir` has them.
    """
    found = extract_tasks(mod, target, params, module_equality)
    if op_names:
        found = [task for task in found if any(name in task.task_name for name in op_names)]
    tasks, weights = extracted_tasks_to_tune_contexts(found, work_dir, space, strategy, seed=seed)
    return tune_tasks(
        tasks=tasks,
        task_weights=weights,
        work_dir=work_dir,
        max_trials_global=max_trials_global,
        max_trials_per_task=max_trials_per_task,
        num_trials_per_iter=num_trials_per_iter,
        builder=builder,
        runner=runner,
        database=database,
        cost_model=cost_model,
        measure_callbacks=measure_callbacks,
        task_scheduler=task_scheduler,
        module_equality=module_equality,
    )


def apply_database(mod, database, target, enable_warning=False):
    """A module with its kernels as a database schedules them; those that it does not know stay."""
    import warnings

    changed = {}
    for var, func in mod.functions_items():
        if isinstance(func, PrimFunc) and not (func.attrs or {}).get("tirx.is_scheduled"):
            kernel = IRModule({"main": func.with_attr("global_symbol", "main")})
            found = database.query_ir_module(kernel, target, var.name_hint)
            if found is None:
                found = database.query_ir_module(IRModule({"main": func}), target, var.name_hint)
            if found is not None:
                func = _named_as(found["main"], func).with_attr("tirx.is_scheduled", True)
            elif enable_warning:
                warnings.warn(f"Tuning record is not found for primfunc: {var.name_hint}", stacklevel=2)
        changed[var] = func
    return IRModule(changed, attrs=mod.attrs, global_infos=mod.global_infos)


def _named_as(scheduled, func):
    name = (func.attrs or {}).get("global_symbol")
    return scheduled.with_attr("global_symbol", name) if name is not None else scheduled.without_attr("global_symbol")


def compile_relax(database, mod, target, params, enable_warning=False):
    """The executable of a program whose kernels are scheduled as a database says."""
    from ... import relax
    from ...compiler import compile as compile_module

    target, mod = target if isinstance(target, Target) else Target(target), _module_of(mod)
    if params:
        mod = relax.transform.BindParams("main", dict(params))(mod)
    with target, database, transform.PassContext(opt_level=3):
        mod = relax.transform.MetaScheduleApplyDatabase(enable_warning=enable_warning)(mod)
        return compile_module(mod, target)


__all__ = ["apply_database", "compile_relax", "extract_tasks", "extracted_tasks_to_tune_contexts", "tune_relax"]
