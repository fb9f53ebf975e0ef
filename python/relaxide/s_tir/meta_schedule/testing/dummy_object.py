"""Builders, runners and mutators that only pretend."""

import random

from ....ir.utils import derived_object
from ..builder import BuilderResult, PyBuilder
from ..mutator import PyMutator
from ..runner import PyRunner, PyRunnerFuture, RunnerResult


@derived_object
class DummyRunnerFuture(PyRunnerFuture):
    """Has ended, with random seconds."""

    def done(self):
        return True

    def result(self):
        return RunnerResult([random.uniform(5, 30) for _ in range(random.randint(1, 10))], None)


@derived_object
class DummyBuilder(PyBuilder):
    """Builds nothing."""

    def build(self, build_inputs):
        return [BuilderResult("test_path", None) for _ in build_inputs]


@derived_object
class DummyRunner(PyRunner):
    """Runs nothing."""

    def run(self, runner_inputs):
        return [DummyRunnerFuture() for _ in runner_inputs]


@derived_object
class DummyMutator(PyMutator):
    """Changes nothing."""

    def _initialize_with_tune_context(self, context):
        pass

    def apply(self, trace, _=None):
        return trace

    def clone(self):
        return DummyMutator()
