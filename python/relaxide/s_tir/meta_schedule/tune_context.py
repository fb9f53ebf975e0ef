"""A task of tuning: a module, a target, how its space is made and searched."""

import random

from ...ir import IRModule
from ...target import Target
from ...tirx import PrimFunc


def _normalize_mod(mod):
    """A module whose kernel is its entry; a kernel becomes ``main``."""
    return IRModule({"main": mod}) if isinstance(mod, PrimFunc) else mod


class TuneContext:
    """What is tuned, and how.

    Parameters
    ----------
    mod : IRModule or PrimFunc, optional
        What is scheduled.
    target : Target or str, optional
        What for; by default the target whose ``with`` is open.
    space_generator : SpaceGenerator, function or str, optional
        What makes the design space.
    search_strategy : SearchStrategy or str, optional
        What picks candidates.
    task_name : str
        A name for logs.
    rand_state : int
        A seed; -1 draws one.
    num_threads : int, "physical" or "logical"
        How many threads a search may use.
    logger : logging.Logger, optional
        Where it writes.
    """

    def __init__(
        self,
        mod=None,
        *,
        target=None,
        space_generator=None,
        search_strategy=None,
        task_name="main",
        rand_state=-1,
        num_threads="physical",
        logger=None,
    ):
        from . import utils
        from .logging import get_logger
        from .search_strategy import SearchStrategy
        from .space_generator import SpaceGenerator

        self.mod = None if mod is None else _normalize_mod(mod)
        self.target = Target.current(allow_none=True) if target is None else target if isinstance(target, Target) else Target(target)
        if space_generator is not None and not isinstance(space_generator, SpaceGenerator):
            space_generator = SpaceGenerator.create(space_generator)
        if isinstance(search_strategy, str):
            search_strategy = SearchStrategy.create(search_strategy)
        self.space_generator, self.search_strategy, self.task_name = space_generator, search_strategy, task_name
        self.rand_state = random.randint(1, 2147483647) if rand_state in (None, -1) else int(rand_state)
        counted = {"physical": utils.cpu_count(logical=False), "logical": utils.cpu_count(logical=True)}
        self.num_threads = counted[num_threads] if isinstance(num_threads, str) else num_threads
        self.logger = get_logger(__name__) if logger is None else logger
        self._random = random.Random(self.rand_state)
        self._initialize()

    def _initialize(self):
        for part in (self.space_generator, self.search_strategy):
            if part is not None:
                part._initialize_with_tune_context(self)

    def _fork_seed(self):
        return self._random.randint(1, 2147483647)

    def generate_design_space(self):
        """The schedules of the space, whose decisions are free."""
        if self.space_generator is None:
            raise ValueError("space_generator is not provided")
        return self.space_generator.generate_design_space(self.mod)

    def pre_tuning(self, max_trials, num_trials_per_iter=64, design_spaces=None, database=None, cost_model=None):
        """Begin a search; what is not given is made: the space, a database in memory, a random model."""
        if self.search_strategy is None:
            raise ValueError("search_strategy is not provided")
        from .cost_model import RandomModel
        from .database import MemoryDatabase

        spaces = self.generate_design_space() if design_spaces is None else design_spaces
        database = MemoryDatabase() if database is None else database
        cost_model = RandomModel() if cost_model is None else cost_model
        return self.search_strategy.pre_tuning(max_trials, num_trials_per_iter, spaces, database, cost_model)

    def post_tuning(self):
        """End a search."""
        return self.search_strategy.post_tuning()

    def generate_measure_candidates(self):
        """The next candidates; ``None`` at the end."""
        return self.search_strategy.generate_measure_candidates()

    def notify_runner_results(self, measure_candidates, results):
        """Tell the strategy what came of candidates."""
        return self.search_strategy.notify_runner_results(measure_candidates, results)

    def clone(self):
        """The same task, to be begun anew."""
        return TuneContext(
            self.mod,
            target=self.target,
            space_generator=None if self.space_generator is None else self.space_generator.clone(),
            search_strategy=None if self.search_strategy is None else self.search_strategy.clone(),
            task_name=self.task_name,
            rand_state=self._fork_seed(),
            num_threads=self.num_threads,
            logger=self.logger,
        )


__all__ = ["TuneContext"]
