"""Search strategies: which schedules of a space are measured next."""

import random

from ...ir.utils import Outer
from ..schedule import Schedule, ScheduleError
from .arg_info import ArgInfo

#: What a step that a schedule refuses, or a trace that does not fit, raises.
_REFUSED = (ScheduleError, ValueError, RuntimeError)


class MeasureCandidate:
    """A schedule that is to be measured, with the arguments of its kernel."""

    def __init__(self, sch, args_info):
        self.sch, self.args_info = sch, args_info


class SearchStrategy:
    """The base of strategies.

    ``pre_tuning`` begins; ``generate_measure_candidates`` gives candidates, until it gives ``None``; ``notify_runner_results`` tells what
    came of them; ``post_tuning`` ends.
    """

    def _initialize_with_tune_context(self, context):
        self._context = context

    def pre_tuning(self, max_trials, num_trials_per_iter, design_spaces, database=None, cost_model=None):
        """Begin a search of at most ``max_trials`` candidates, ``num_trials_per_iter`` at once."""
        raise NotImplementedError(f"{type(self).__name__}.pre_tuning")

    def post_tuning(self):
        """End a search."""
        raise NotImplementedError(f"{type(self).__name__}.post_tuning")

    def generate_measure_candidates(self):
        """The next candidates, or ``None`` when the search has ended."""
        raise NotImplementedError(f"{type(self).__name__}.generate_measure_candidates")

    def notify_runner_results(self, measure_candidates, results):
        """Tell what came of candidates."""
        raise NotImplementedError(f"{type(self).__name__}.notify_runner_results")

    def clone(self):
        """A strategy that begins anew."""
        raise NotImplementedError(f"{type(self).__name__}.clone")

    @staticmethod
    def create(kind="evolutionary", *args, **kwargs):
        """A strategy by name: ``"evolutionary"``, ``"replay-trace"``, ``"replay-func"``."""
        kinds = {"evolutionary": EvolutionarySearch, "replay-trace": ReplayTrace, "replay-func": ReplayFunc}
        if kind not in kinds:
            raise ValueError(f"Unknown SearchStrategy: {kind}; there are {', '.join(kinds)}")
        return kinds[kind](*args, **kwargs)


class PySearchStrategy(Outer, SearchStrategy):
    """The base of strategies of one's own."""


create = SearchStrategy.create
#: What may be given for a strategy.
SearchStrategy.SearchStrategyType = SearchStrategy


class _Batches(SearchStrategy):
    """What the strategies here share: batches, until so many candidates were given."""

    _left = None

    def pre_tuning(self, max_trials, num_trials_per_iter, design_spaces, database=None, cost_model=None):
        """Begin."""
        if not design_spaces:
            raise ValueError("`design_spaces` must not be empty")
        if self._left is not None:
            raise RuntimeError("`pre_tuning` was called already: call `post_tuning` first")
        self._left, self._batch = max_trials, num_trials_per_iter
        self._spaces, self._database, self._model = list(design_spaces), database, cost_model
        self._args = ArgInfo.from_entry_func(self._context.mod)
        self._random = random.Random(self._context._fork_seed())

    def post_tuning(self):
        """End."""
        if self._left is None:
            raise RuntimeError("`post_tuning` without `pre_tuning`")
        self._left = None

    def generate_measure_candidates(self):
        """The next batch; ``None`` at the end."""
        if self._left is None:
            raise RuntimeError("`generate_measure_candidates` without `pre_tuning`")
        count = min(self._batch, self._left)
        if count <= 0:
            return None
        found = self._candidates(count)
        self._left -= len(found) if found is not None else 0
        return found

    def notify_runner_results(self, measure_candidates, results):
        """Nothing is learned here; a cost model is told by its callback."""
        if self._left is None:
            raise RuntimeError("`notify_runner_results` without `pre_tuning`")

    def _replayed(self, trace):
        """The schedule of a trace, with decisions drawn anew, behind the postprocessors; ``None`` where one refuses it."""
        return self._applied(trace, anew=True)

    def _applied(self, trace, anew=False):
        try:
            sch = Schedule(self._context.mod, seed=self._random.randint(1, 2147483647), debug_mask="none")
            if anew:
                _without_decisions(trace, self._context.mod).apply_to_schedule(sch, remove_postproc=True)
            else:
                trace.apply_to_schedule(sch, remove_postproc=True)
            return sch if self._postprocessed(sch) else None
        except _REFUSED:
            return None

    def _postprocessed(self, sch):
        sch.enter_postproc()
        return all(step.apply(sch) for step in self._context.space_generator.postprocs or ())


def _without_decisions(trace, mod):
    return _Undecided(trace)


class _Undecided:
    """A trace whose decisions are drawn when it is applied."""

    def __init__(self, trace):
        self._json = trace.as_json(True)

    def apply_to_schedule(self, sch, remove_postproc):
        from ..schedule import Trace

        Trace.apply_json_to_schedule([self._json[0], []], sch)


class ReplayFunc(_Batches):
    """Calls the function that schedules again and again; what it draws differs."""

    def clone(self):
        """A strategy that begins anew."""
        return ReplayFunc()

    def _candidates(self, count):
        found = []
        while len(found) < count:
            for sch in self._context.space_generator.generate_design_space(self._context.mod):
                if len(found) < count and self._postprocessed(sch):
                    found.append(MeasureCandidate(sch, self._args))
        return found


class ReplayTrace(_Batches):
    """Replays the traces of the design spaces with decisions drawn anew.

    ``max_fail_count`` replays that fail in a row end the search.
    """

    def __init__(self, max_fail_count=100):
        self.max_fail_count = max_fail_count

    def clone(self):
        """A strategy that begins anew."""
        return ReplayTrace(self.max_fail_count)

    def _candidates(self, count):
        found, failed = [], 0
        while len(found) < count and failed < self.max_fail_count:
            sch = self._replayed(self._random.choice(self._spaces).trace)
            if sch is None:
                failed += 1
                continue
            failed = 0
            found.append(MeasureCandidate(sch, self._args))
        return found or None


class EvolutionarySearch(_Batches):
    """Mutates the best schedules that are known; a cost model says which of the offspring look promising.

    Parameters
    ----------
    population_size : int
        How many schedules a generation has.
    init_measured_ratio : float
        The part of the first generation that comes from the database.
    init_min_unmeasured : int
        How many schedules of the first generation are drawn at least.
    max_fail_count : int
        How many rounds of drawing may give nothing.
    genetic_num_iters : int
        How many generations follow.
    genetic_mutate_prob : float
        How often a schedule is mutated.
    genetic_max_fail_count : int
        How many mutations of a schedule may fail.
    eps_greedy : float
        The part of the candidates that is drawn instead of picked.
    """

    def __init__(
        self,
        *,
        population_size=512,
        init_measured_ratio=0.2,
        init_min_unmeasured=50,
        max_fail_count=5,
        genetic_num_iters=4,
        genetic_mutate_prob=0.85,
        genetic_max_fail_count=10,
        eps_greedy=0.05,
    ):
        self.population_size, self.init_measured_ratio = population_size, init_measured_ratio
        self.init_min_unmeasured, self.max_fail_count = init_min_unmeasured, max_fail_count
        self.genetic_num_iters, self.genetic_mutate_prob = genetic_num_iters, genetic_mutate_prob
        self.genetic_max_fail_count, self.eps_greedy = genetic_max_fail_count, eps_greedy
        self.num_empty_iters_before_early_stop = 5

    def clone(self):
        """A strategy that begins anew."""
        return EvolutionarySearch(
            population_size=self.population_size,
            init_measured_ratio=self.init_measured_ratio,
            init_min_unmeasured=self.init_min_unmeasured,
            max_fail_count=self.max_fail_count,
            genetic_num_iters=self.genetic_num_iters,
            genetic_mutate_prob=self.genetic_mutate_prob,
            genetic_max_fail_count=self.genetic_max_fail_count,
            eps_greedy=self.eps_greedy,
        )

    def pre_tuning(self, max_trials, num_trials_per_iter, design_spaces, database=None, cost_model=None):
        """Begin; a database and a cost model are needed."""
        for what, given in (("database", database), ("cost_model", cost_model)):
            if given is None:
                raise ValueError(f"`{what}` must not be None for an evolutionary search")
        super().pre_tuning(max_trials, num_trials_per_iter, design_spaces, database, cost_model)
        self._workload = database.commit_workload(self._context.mod)
        self._seen, self._empty = set(), 0

    def _candidates(self, count):
        drawn = self._drawn(max(self.init_min_unmeasured, int(self.population_size * (1 - self.init_measured_ratio))))
        measured = self._measured(int(self.population_size * self.init_measured_ratio))
        best = self._evolved(measured + drawn)
        found = self._picked(best, drawn, count)
        if not found:
            self._empty += 1
            return None if self._empty >= self.num_empty_iters_before_early_stop else []
        self._empty = 0
        return [MeasureCandidate(sch, self._args) for sch in found]

    def _measured(self, count):
        records = self._database.get_top_k(self._workload, count)
        return [sch for sch in (self._applied(record.trace) for record in records) if sch is not None]

    def _drawn(self, count):
        found, failed = [], 0
        while len(found) < count and failed < self.max_fail_count:
            made = [self._replayed(self._random.choice(self._spaces).trace) for _ in range(count - len(found))]
            made = [sch for sch in made if sch is not None]
            failed += not made
            found += made
        return found

    def _scores(self, population):
        return [float(score) for score in self._model.predict(self._context, [MeasureCandidate(sch, self._args) for sch in population])]

    def _evolved(self, population):
        """The schedules of all generations, the most promising first."""
        best = {}
        for generation in range(self.genetic_num_iters + 1):
            if not population:
                break
            scores = self._scores(population)
            for sch, score in zip(population, scores):
                best.setdefault(_key(sch), (score, sch))
            if generation < self.genetic_num_iters:
                population = self._offspring(population, scores)
        return [sch for _, sch in sorted(best.values(), key=lambda pair: -pair[0])]

    def _offspring(self, population, scores):
        weights = [max(score, 0.0) + 1e-6 for score in scores]
        mutators = dict(self._context.space_generator.mutator_probs or {})
        made = []
        for parent in self._random.choices(population, weights, k=len(population)):
            child = self._mutated(parent, mutators) if mutators and self._random.random() < self.genetic_mutate_prob else None
            made.append(parent if child is None else child)
        return made

    def _mutated(self, parent, mutators):
        for _ in range(self.genetic_max_fail_count):
            (mutator,) = self._random.choices(list(mutators), list(mutators.values()))
            trace = mutator.apply(parent.trace)
            sch = None if trace is None else self._applied(trace)
            if sch is not None:
                return sch
        return None

    def _picked(self, best, drawn, count):
        by_chance = list(drawn)
        self._random.shuffle(by_chance)
        greedy = count - int(count * self.eps_greedy)
        found = []
        for pool, limit in ((best, greedy), (by_chance, count), (best, count)):
            for sch in pool:
                if len(found) >= limit:
                    break
                key = _key(sch)
                if key not in self._seen:
                    self._seen.add(key)
                    found.append(sch)
        return found


def _key(sch):
    from ...ir import structural_hash

    return structural_hash(sch.mod)


__all__ = ["EvolutionarySearch", "MeasureCandidate", "PySearchStrategy", "ReplayFunc", "ReplayTrace", "SearchStrategy", "create"]
