"""Mutators: they change one decision of a trace."""

import random

from ...ir.utils import Outer
from ..schedule import Schedule, ScheduleError, Trace


class Mutator:
    """The base of mutators."""

    _context = None

    def _initialize_with_tune_context(self, context):
        self._context = context
        self._random = random.Random(context._fork_seed())

    def apply(self, trace):
        """The trace with another decision; ``None`` where there is none to change."""
        raise NotImplementedError(f"{type(self).__name__}.apply")

    def clone(self):
        """The same, for another task."""
        raise NotImplementedError(f"{type(self).__name__}.clone")

    @staticmethod
    def create(kind):
        """The mutators for a kind of target with their probabilities: ``"llvm"``, ``"cuda"``."""
        if kind == "llvm":
            return {MutateTileSize(): 0.9, MutateComputeLocation(): 0.05, MutateUnroll(): 0.03, MutateParallel(max_jobs_per_core=16): 0.02}
        if kind in ("cuda", "cuda-tensorcore"):
            return {MutateTileSize(): 0.9, MutateUnroll(): 0.08, MutateThreadBinding(): 0.02}
        raise ValueError(f"Unsupported kind {kind} for mutators; there are llvm, cuda, cuda-tensorcore")


class PyMutator(Outer, Mutator):
    """The base of mutators of one's own."""


create = Mutator.create


class _Here(Mutator):
    """What the mutators here share."""

    _random = random.Random()

    def clone(self):
        """The same, for another task."""
        return type(self)()


def _kinds(trace, name):
    return [inst for inst in trace.insts if inst.kind.name == name]


def _uses(trace, inst, key):
    """Whether what a step drew is the value of an annotation whose name begins so."""
    drawn = inst.outputs[0]
    for other in _kinds(trace, "Annotate"):
        if str(other.attrs[0]).startswith(key) and len(other.inputs) > 1 and _same(other.inputs[1], drawn):
            return True
    return False


def _same(a, b):
    return a is b or (hasattr(a, "same_as") and hasattr(b, "ty") and a.same_as(b))


class MutateTileSize(_Here):
    """Moves a factor of a tiled loop from one level to another."""

    def apply(self, trace):
        """The trace with other factors."""
        tiles = []
        for inst in _kinds(trace, "SamplePerfectTile"):
            decision = trace.get_decision(inst)
            if decision is not None and len(decision) > 1 and _product(decision) > 1:
                tiles.append((inst, [int(factor) for factor in decision]))
        if not tiles:
            return None
        inst, factors = self._random.choice(tiles)
        limit = int(inst.attrs[1])
        moves = []
        for source, value in enumerate(factors):
            for factor in _divisors(value)[1:]:
                for to in range(len(factors)):
                    if to != source and (to != len(factors) - 1 or limit == -1 or factors[to] * factor <= limit):
                        moves.append((source, to, factor))
        if not moves:
            return None
        source, to, factor = self._random.choice(moves)
        factors[source] //= factor
        factors[to] *= factor
        return trace.with_decision(inst, factors, True)


def _product(values):
    made = 1
    for value in values:
        made *= int(value)
    return made


def _divisors(value):
    return [divisor for divisor in range(1, value + 1) if value % divisor == 0]


class _Categorical(_Here):
    """Draws another of the numbers that an annotation can have."""

    def _steps(self, trace):
        raise NotImplementedError

    def apply(self, trace):
        """The trace with another number."""
        steps = [inst for inst in self._steps(trace) if len(inst.attrs[0]) > 1]
        if not steps:
            return None
        inst = self._random.choice(steps)
        probs = [float(getattr(p, "value", p)) for p in inst.attrs[1]]
        now = int(trace.get_decision(inst))
        others = [index for index in range(len(probs)) if index != now]
        weights = [probs[index] for index in others]
        (chosen,) = self._random.choices(others, weights if sum(weights) > 0 else None)
        return trace.with_decision(inst, chosen, True)


class MutateUnroll(_Categorical):
    """Draws another limit up to which loops are unrolled."""

    def _steps(self, trace):
        return [inst for inst in _kinds(trace, "SampleCategorical") if _uses(trace, inst, "meta_schedule.unroll")]


class MutateThreadBinding(_Categorical):
    """Draws another number of threads of a loop that is bound."""

    def _steps(self, trace):
        splits = _kinds(trace, "Split")
        bound = [inst.inputs[0] for inst in _kinds(trace, "Bind") if str(inst.attrs[0]).startswith("threadIdx")]
        found = []
        for inst in _kinds(trace, "SampleCategorical"):
            for split in splits:
                if any(_same(value, inst.outputs[0]) for value in split.inputs[1:]):
                    if any(_same(loop, out) for loop in bound for out in split.outputs):
                        found.append(inst)
        return found


class MutateComputeLocation(_Here):
    """Moves a block that is computed under a loop of another to another loop."""

    def apply(self, trace):
        """The trace with another place."""
        choices = []
        sch = Schedule(self._context.mod)
        for inst in _kinds(trace, "SampleComputeLocation"):
            now = int(trace.get_decision(inst))
            choices += [(inst, place) for place in self._places(sch, trace, inst) if place != now]
        if not choices:
            return None
        inst, place = self._random.choice(choices)
        return trace.with_decision(inst, place, True)

    @staticmethod
    def _places(sch, trace, inst):
        """The places that the step can decide for: those that it takes."""
        found = []
        for place in range(-2, 16):
            try:
                trace.with_decision(inst, place, True).apply_to_schedule(sch.copy(), remove_postproc=True)
            except (ScheduleError, ValueError, RuntimeError, IndexError):
                continue
            found.append(place)
        return found


class MutateParallel(_Here):
    """Lets other numbers of iterations run in parallel, at most ``max_jobs_per_core`` for each core."""

    def __init__(self, max_jobs_per_core):
        self.max_jobs_per_core = max_jobs_per_core

    def clone(self):
        """The same, for another task."""
        return MutateParallel(self.max_jobs_per_core)

    def apply(self, trace):
        """The trace with another limit."""
        rows = trace.as_json(True)
        steps = rows[0]
        marks = [step for step in steps if step[0] == "Annotate" and "meta_schedule.parallel" in str(step[2])]
        if not marks:
            return None
        sch = Schedule(self._context.mod)
        Trace.apply_json_to_schedule(rows, sch)
        now = int(marks[-1][1][1])
        limits = self._limits(sch)
        known = [limit for limit in limits if limit <= now]
        others = [limit for limit in limits if limit != (max(known) if known else None)]
        if not others:
            return None
        marks[-1][1][1] = self._random.choice(others)
        changed = Schedule(self._context.mod)
        Trace.apply_json_to_schedule(rows, changed)
        return changed.trace

    def _limits(self, sch):
        """The products of lengths of outer loops that can run in parallel."""
        from .postproc.parallel import leaf_blocks, spatial_prefix

        most = self.max_jobs_per_core * max(1, _num_cores(self._context.target))
        found = {1}
        # The blocks are found on a copy, whose random variables the schedule itself does not know.
        probe = sch.copy()
        for block in leaf_blocks(probe):
            product = 1
            for extent in spatial_prefix(probe, block):
                product *= extent
                if product > most:
                    break
                found.add(product)
        return sorted(found)


def _num_cores(target):
    said = None if target is None else target.attrs.get("num-cores")
    from .utils import cpu_count

    return int(said) if said is not None else cpu_count(logical=False)


__all__ = ["MutateComputeLocation", "MutateParallel", "MutateThreadBinding", "MutateTileSize", "MutateUnroll", "Mutator", "PyMutator", "create"]
