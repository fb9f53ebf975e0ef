"""Runs cases in processes of their own, each within a time limit: a case may crash or hang, and the rest goes on."""

import multiprocessing
import os
import time
import traceback
from dataclasses import dataclass
from multiprocessing.connection import wait


@dataclass
class Outcome:
    """How a case went: `stage` is empty for one that passed, else where it failed."""

    name: str
    stage: str = ""
    reason: str = ""
    seconds: float = 0.0

    @property
    def passed(self):
        return not self.stage


def run_case(case, backend):
    """One case, here and now."""
    start = time.perf_counter()
    stage = "prepare"
    try:
        model = case.model()
        data = case.data_sets(model)
        run = backend(model)
        for inputs, expected in data:
            stage = "run"
            got = run(inputs)
            stage = "compare"
            case.check(expected, got)
    except BaseException as error:  # noqa: BLE001 - whatever a backend raises, the others go on
        if isinstance(error, KeyboardInterrupt):
            raise
        reason = str(error) or traceback.format_exc(limit=1)
        return Outcome(case.name, stage, f"{type(error).__name__}: {reason}", time.perf_counter() - start)
    return Outcome(case.name, seconds=time.perf_counter() - start)


class Worker:
    """A process that executes one case after another."""

    def __init__(self, cases, backend, threads):
        context = multiprocessing.get_context("fork")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, cases, backend, threads), daemon=True)
        self.process.start()
        theirs.close()
        self.at = None
        self.since = 0.0

    def begin(self, at):
        self.at, self.since = at, time.monotonic()
        self.pipe.send(at)

    def end(self):
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _serve(pipe, cases, backend, threads):
    for name in ("OMP_NUM_THREADS", "TVM_NUM_THREADS", "RELAXIDE_NUM_THREADS"):
        os.environ[name] = str(threads)
    # What a backend prints is its own business.
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    while True:
        try:
            at = pipe.recv()
        except EOFError:
            return
        pipe.send(run_case(cases[at], backend))


def run_cases(cases, backend, processes=2, limit=60.0, threads=1, tell=lambda outcome: None):
    """The outcomes of all cases, in order; `tell` is given each as it comes."""
    outcomes = [None] * len(cases)
    todo = list(range(len(cases)))[::-1]
    workers = [Worker(cases, backend, threads) for _ in range(min(processes, len(cases)))]
    busy = []
    for worker in workers:
        worker.begin(todo.pop())
        busy.append(worker)

    def replace(worker, stage, reason):
        outcomes[worker.at] = Outcome(cases[worker.at].name, stage, reason, time.monotonic() - worker.since)
        tell(outcomes[worker.at])
        worker.end()
        busy.remove(worker)
        if todo:
            fresh = Worker(cases, backend, threads)
            fresh.begin(todo.pop())
            busy.append(fresh)

    while busy:
        for pipe in wait([worker.pipe for worker in busy], timeout=1.0):
            worker = next(w for w in busy if w.pipe is pipe)
            try:
                outcomes[worker.at] = pipe.recv()
            except (EOFError, OSError):
                worker.process.join()
                replace(worker, "crash", f"the process ended with {worker.process.exitcode}")
                continue
            tell(outcomes[worker.at])
            if todo:
                worker.begin(todo.pop())
            else:
                busy.remove(worker)
                worker.end()
        for worker in list(busy):
            if time.monotonic() - worker.since > limit:
                replace(worker, "time", f"longer than {limit:g} s")
    return outcomes
