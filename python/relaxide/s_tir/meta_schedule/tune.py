"""Tuning of tasks."""

import os

from . import builder as builders
from .cost_model import CostModel
from .database import Database
from .measure_callback import MeasureCallback
from .runner import Runner
from .task_scheduler import TaskScheduler


def tune_tasks(
    *,
    tasks,
    task_weights,
    work_dir,
    max_trials_global,
    max_trials_per_task=None,
    num_trials_per_iter=64,
    builder="local",
    runner="local",
    database="json",
    cost_model="xgb",
    measure_callbacks="default",
    task_scheduler="gradient",
    module_equality="structural",
    post_optimization=False,
):
    """Tune tasks, and keep what was measured in a database, which is given back.

    Parameters
    ----------
    tasks : list of TuneContext
        What is tuned.
    task_weights : list of float
        How much each counts.
    work_dir : str
        The folder of the database and the logs.
    max_trials_global, max_trials_per_task : int
        How many candidates are measured, in all and of each task.
    num_trials_per_iter : int
        How many are measured at once.
    builder, runner, database, cost_model, measure_callbacks, task_scheduler
        What does each part, or its name.
    module_equality : str
        When modules are the same (:class:`~relaxide.s_tir.meta_schedule.database.MemoryDatabase`).
    post_optimization : bool
        Tuning of the best schedules beyond the search, which is not here: an error where it is asked for.
    """
    from .utils import cpu_count

    if post_optimization:
        raise NotImplementedError("post_optimization is not here: give more trials (max_trials_global) instead")

    if not tasks:
        raise ValueError("there is nothing to tune: no task was given")
    if len(tasks) != len(task_weights):
        raise ValueError(f"{len(tasks)} tasks and {len(task_weights)} weights: each task needs one")
    os.makedirs(work_dir, exist_ok=True)
    cores = cpu_count(logical=False)
    if builder == "local":
        builder = builders.LocalBuilder(max_workers=cores)
    if isinstance(runner, str):
        runner = Runner.create(runner, max_workers=cores) if runner == "rpc" else Runner.create(runner)
    if database == "json":
        database = Database.create("json", work_dir=work_dir, module_equality=module_equality)
    elif isinstance(database, str):
        database = Database.create(database, module_equality=module_equality)
    if isinstance(cost_model, str):
        cost_model = CostModel.create(cost_model, num_tuning_cores=cores)
    if isinstance(measure_callbacks, MeasureCallback):
        measure_callbacks = [measure_callbacks]
    elif measure_callbacks == "default":
        measure_callbacks = MeasureCallback.create(measure_callbacks)
    if isinstance(task_scheduler, str):
        task_scheduler = TaskScheduler.create(task_scheduler)
    task_scheduler.tune(
        tasks=tasks,
        task_weights=task_weights,
        max_trials_global=max_trials_global,
        max_trials_per_task=max_trials_global if max_trials_per_task is None else max_trials_per_task,
        num_trials_per_iter=num_trials_per_iter,
        builder=builder,
        runner=runner,
        measure_callbacks=measure_callbacks,
        database=database,
        cost_model=cost_model,
    )
    return database


__all__ = ["tune_tasks"]
