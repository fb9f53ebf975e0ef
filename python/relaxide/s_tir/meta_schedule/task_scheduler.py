"""Schedulers: which task is tuned next."""

import random

from ...ir.utils import Outer
from .builder import BuilderInput
from .runner import RunnerInput, RunnerResult


class TaskRecord:
    """A task while it is tuned."""

    def __init__(
        self,
        ctx,
        task_weight=1.0,
        flop=1.0,
        is_terminated=False,
        build_error_count=0,
        run_error_count=0,
        measure_candidates=None,
        builder_results=None,
        runner_futures=None,
    ):
        self.ctx, self.task_weight, self.flop, self.is_terminated = ctx, task_weight, flop, is_terminated
        self.build_error_count, self.run_error_count = build_error_count, run_error_count
        self.measure_candidates, self.builder_results, self.runner_futures = measure_candidates, builder_results, runner_futures
        #: The best time after each batch, and how many candidates were measured.
        self.latencies, self.trials = [], 0


def _flop_of(mod):
    from ..analysis import estimate_tir_flops

    try:
        return max(1.0, float(estimate_tir_flops(mod)))
    except (ValueError, TypeError, RuntimeError):
        # Of what runs for lengths that are not known it cannot be said.
        return 1.0


class TaskScheduler:
    """The base of schedulers."""

    tasks_ = ()
    measure_callbacks_ = ()
    database_ = None
    cost_model_ = None
    remaining_tasks_ = 0

    def next_task_id(self):
        """The number of the task that is next; -1 when all have ended."""
        raise NotImplementedError(f"{type(self).__name__}.next_task_id")

    def join_running_task(self, task_id):
        """Wait for what a task measures; gives the results, which callbacks and the strategy are told."""
        task = self.tasks_[task_id]
        if task.runner_futures is None:
            raise RuntimeError(f"the task {task_id} measures nothing")
        results = [future.result() for future in task.runner_futures]
        candidates, built = task.measure_candidates, task.builder_results
        for callback in self.measure_callbacks_:
            callback.apply(self, task_id, candidates, built, results)
        task.ctx.notify_runner_results(candidates, results)
        task.build_error_count += sum(result.error_msg is not None for result in built)
        task.run_error_count += sum(r.error_msg is not None and b.error_msg is None for r, b in zip(results, built))
        times = [sum(r.run_secs) / len(r.run_secs) for r in results if r.run_secs]
        best = min([*times, *task.latencies[-1:]], default=float("inf"))
        task.latencies.append(best)
        task.trials += len(candidates)
        task.measure_candidates = task.builder_results = task.runner_futures = None
        return results

    def tune(
        self,
        tasks,
        task_weights,
        max_trials_global,
        max_trials_per_task,
        num_trials_per_iter,
        builder,
        runner,
        measure_callbacks,
        database,
        cost_model,
    ):
        """Tune tasks until ``max_trials_global`` candidates were measured, of each at most ``max_trials_per_task``."""
        if len(tasks) != len(task_weights):
            raise ValueError(f"{len(tasks)} tasks and {len(task_weights)} weights")
        self.tasks_ = [TaskRecord(ctx, float(weight), _flop_of(ctx.mod)) for ctx, weight in zip(tasks, task_weights)]
        self.remaining_tasks_ = len(self.tasks_)
        self.measure_callbacks_, self.database_, self.cost_model_ = list(measure_callbacks or ()), database, cost_model
        for task in self.tasks_:
            limit = min(max_trials_per_task, max_trials_global) if len(self.tasks_) > 1 else max_trials_per_task
            spaces = task.ctx.generate_design_space()
            task.ctx.pre_tuning(limit, num_trials_per_iter, spaces, database, cost_model)
        measured = 0
        while measured < max_trials_global or len(self.tasks_) == 1:
            task_id = self.next_task_id()
            if task_id == -1:
                break
            task = self.tasks_[task_id]
            if task.is_terminated:
                raise RuntimeError(f"next_task_id gave the task {task_id}, which has ended")
            if task.runner_futures is not None:
                self.join_running_task(task_id)
            candidates = task.ctx.generate_measure_candidates()
            if candidates is None:
                self.terminate_task(task_id)
                continue
            if candidates:
                measured += len(candidates)
                self._start(task, list(candidates), builder, runner)
        for index, task in enumerate(self.tasks_):
            if not task.is_terminated:
                if task.runner_futures is not None:
                    self.join_running_task(index)
                self.terminate_task(index)
            task.ctx.post_tuning()

    @staticmethod
    def _start(task, candidates, builder, runner):
        target = task.ctx.target
        task.measure_candidates = candidates
        task.builder_results = builder.build([BuilderInput(candidate.sch.mod, target) for candidate in candidates])
        device = "cpu" if target.kind.name in ("llvm", "c") else target.kind.name
        built = [(c, b) for c, b in zip(candidates, task.builder_results) if b.error_msg is None]
        futures = iter(runner.run([RunnerInput(b.artifact_path, device, c.args_info) for c, b in built]) if built else ())
        task.runner_futures = [next(futures) if b.error_msg is None else _Failed(b.error_msg) for b in task.builder_results]

    def terminate_task(self, task_id):
        """End a task."""
        task = self.tasks_[task_id]
        if not task.is_terminated:
            task.is_terminated = True
            self.remaining_tasks_ -= 1

    def touch_task(self, task_id):
        """Take in what a task has measured, if all of it has ended."""
        task = self.tasks_[task_id]
        if not task.is_terminated and task.runner_futures is not None and all(future.done() for future in task.runner_futures):
            self.join_running_task(task_id)

    def print_tuning_statistics(self):
        """Print a table of the tasks and their best times."""
        print(" ID | Name | FLOP | Weight | Speed (GFLOPS) | Latency (us) | Trials | Done")
        for index, task in enumerate(self.tasks_):
            best = task.latencies[-1] if task.latencies else float("inf")
            speed, time = ("N/A", "N/A") if best == float("inf") else (f"{task.flop / best / 1e9:.4f}", f"{best * 1e6:.4f}")
            done = "Y" if task.is_terminated else ""
            print(f"{index:3} | {task.ctx.task_name} | {task.flop:.0f} | {task.task_weight:g} | {speed} | {time} | {task.trials} | {done}")

    @staticmethod
    def create(kind="gradient", *args, **kwargs):
        """A scheduler by name: ``"gradient"``, ``"round-robin"``."""
        kinds = {"round-robin": RoundRobin, "gradient": GradientBased}
        if kind not in kinds:
            raise ValueError(f"Unknown TaskScheduler name: {kind}; there are {', '.join(kinds)}")
        return kinds[kind](*args, **kwargs)


class _Failed:
    """The measurement of what could not be built."""

    def __init__(self, message):
        self._message = message

    def done(self):
        return True

    def result(self):
        return RunnerResult(None, self._message)


class PyTaskScheduler(Outer, TaskScheduler):
    """The base of schedulers of one's own: define ``next_task_id``."""

    def next_task_id(self):
        """The number of the next task."""
        raise ValueError("next_task_id is not defined")


create = TaskScheduler.create
#: What may be given for a scheduler.
TaskScheduler.TaskSchedulerType = TaskScheduler


class RoundRobin(TaskScheduler):
    """Tunes one task after the other, a batch of each."""

    def __init__(self):
        self.task_id = -1

    def next_task_id(self):
        """The next that has not ended."""
        for _ in self.tasks_:
            self.task_id = (self.task_id + 1) % len(self.tasks_)
            if not self.tasks_[self.task_id].is_terminated:
                if self.tasks_[self.task_id].runner_futures is not None:
                    self.join_running_task(self.task_id)
                return self.task_id
        return -1


class GradientBased(TaskScheduler):
    """Tunes the task next of which most is gained, as far as its past tells.

    ``alpha`` weighs what the last batches gained against what tuning has gained on average, ``window_size`` is how many batches count as
    the last ones.
    """

    def __init__(self, *, alpha=0.2, window_size=3, seed=-1):
        self.alpha, self.window_size = alpha, window_size
        self._random = random.Random(None if seed == -1 else seed)
        self._rounds = 0

    def next_task_id(self):
        """Each task once, and then by what it gains."""
        while self._rounds < len(self.tasks_):
            self._rounds += 1
            if not self.tasks_[self._rounds - 1].is_terminated:
                return self._rounds - 1
        alive = [index for index, task in enumerate(self.tasks_) if not task.is_terminated]
        if not alive:
            return -1
        for index in alive:
            self.touch_task(index)
        gains = [self._gain(self.tasks_[index]) for index in alive]
        best = max(gains)
        chosen = alive[gains.index(best)] if best > 0 else self._random.choice(alive)
        if self.tasks_[chosen].runner_futures is not None:
            self.join_running_task(chosen)
        return chosen

    def _gain(self, task):
        """How much the weighted time falls with a batch more."""
        history = task.latencies
        if not history or history[-1] == float("inf"):
            return float("inf") if not history else 0.0
        count, now = len(history), history[-1]
        before = history[-1 - min(self.window_size, count - 1)]
        lately = (before - now) / min(self.window_size, count) if before != float("inf") else now / count
        return task.task_weight * (self.alpha * lately + (1 - self.alpha) * now / count)


__all__ = ["GradientBased", "PyTaskScheduler", "RoundRobin", "TaskRecord", "TaskScheduler", "create"]
