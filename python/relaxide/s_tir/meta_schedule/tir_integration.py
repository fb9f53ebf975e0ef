"""Tuning of kernels."""

from ...ir import IRModule
from ...target import Target
from ...tirx import PrimFunc
from ..schedule import Schedule
from .logging import get_loggers_from_work_dir
from .tune import tune_tasks
from .tune_context import TuneContext, _normalize_mod
from .utils import fork_seed


def _tasks(mod, target, work_dir, seed, space, special_space, **options):
    """A task for each kernel, with a logger and random numbers of its own."""
    if isinstance(mod, PrimFunc):
        mod = _normalize_mod(mod)
    kernels = [(var.name_hint, func) for var, func in mod.functions_items() if isinstance(func, PrimFunc)]
    loggers = get_loggers_from_work_dir(work_dir, [name for name, _ in kernels])
    return [
        TuneContext(
            IRModule({"main": func}) if len(kernels) > 1 else mod,
            target=target,
            space_generator=(special_space or {}).get(name, space),
            task_name=name,
            rand_state=state,
            logger=logger,
            **options,
        ).clone()
        for (name, func), logger, state in zip(kernels, loggers, fork_seed(seed, len(kernels)))
    ]


def tune_tir(
    mod,
    target,
    work_dir,
    max_trials_global,
    *,
    max_trials_per_task=None,
    num_trials_per_iter=64,
    builder="local",
    runner="local",
    database="json",
    cost_model="xgb",
    measure_callbacks="default",
    task_scheduler="gradient",
    space="post-order-apply",
    strategy="evolutionary",
    num_tuning_cores="physical",
    seed=None,
    module_equality="structural",
    special_space=None,
    post_optimization=False,
):
    """Tune the kernels of a module; gives the database of what was measured.

    Parameters
    ----------
    mod : IRModule or PrimFunc
        The kernels; each is a task of its own.
    target : Target or str
        What for.
    work_dir : str
        The folder of the database and the logs.
    max_trials_global, max_trials_per_task, num_trials_per_iter : int
        How many candidates are measured: in all, of each kernel, at once.
    builder, runner, database, cost_model, measure_callbacks, task_scheduler, space, strategy
        What does each part, or its name.
    num_tuning_cores : int, "physical" or "logical"
        How many cores the search uses.
    seed : int, optional
        Fixes what is drawn.
    module_equality : str
        When modules are the same.
    special_space : dict, optional
        Other spaces for kernels, by their names.
    post_optimization : bool
        Whether the best schedules are tuned further.
    """
    target = target if isinstance(target, Target) else Target(target)
    tasks = _tasks(mod, target, work_dir, seed, space, special_space, search_strategy=strategy, num_threads=num_tuning_cores)
    return tune_tasks(
        tasks=tasks,
        task_weights=[1.0] * len(tasks),
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
        post_optimization=post_optimization,
    )


def compile_tir(database, mod, target):
    """The best schedule of a kernel that a database knows, or ``None``."""
    target = target if isinstance(target, Target) else Target(target)
    found = database.query(_normalize_mod(mod), target, workload_name="main", kind="schedule")
    if found is not None and not isinstance(found, Schedule):
        raise TypeError(f"the database gave {type(found).__name__}, not a Schedule")
    return found


__all__ = ["compile_tir", "tune_tir"]
