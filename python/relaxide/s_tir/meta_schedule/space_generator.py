"""Design spaces: schedules of a module with decisions that are still free."""

from ...ir import IRModule
from ...ir.utils import Outer
from ...tirx import PrimFunc
from ...tirx._walk import walk
from ..schedule import Schedule
from ..stmt import SBlock
from .mutator import Mutator
from .postproc import Postproc
from .schedule_rule import ApplyCustomRule, ScheduleRule

_FROM_TARGET = "from-target"


def _kind_of(target):
    """The name of the rules for a target."""
    if target is None:
        raise ValueError("rules that come from the target need one: give the context a target")
    name = target.kind.name
    if name in ("llvm", "c"):
        return "llvm"
    if "gpu" in target.keys or name in ("cuda", "rocm", "vulkan", "metal", "opencl"):
        return "cuda"
    raise ValueError(f"there are no rules for targets of kind {name}: give sch_rules, postprocs and mutator_probs")


class SpaceGenerator:
    """The base of generators. ``sch_rules``, ``postprocs`` and ``mutator_probs`` belong to the space: a list, a name (``"llvm"``,
    ``"cuda"``), or ``"from-target"``."""

    def __init__(self, sch_rules=_FROM_TARGET, postprocs=_FROM_TARGET, mutator_probs=_FROM_TARGET):
        self._given = (sch_rules, postprocs, mutator_probs)
        self.sch_rules, self.postprocs, self.mutator_probs = (None if isinstance(given, str) else given for given in self._given)
        self._context = None

    def _initialize_with_tune_context(self, context):
        self._context = context
        made = []
        for given, kind in zip(self._given, (ScheduleRule, Postproc, Mutator)):
            if isinstance(given, str):
                needs_target = given == _FROM_TARGET
                if needs_target and context.target is None:
                    given = {} if kind is Mutator else []
                else:
                    given = kind.create(_kind_of(context.target) if needs_target else given)
            made.append(given)
        self.sch_rules, self.postprocs, self.mutator_probs = made
        for part in (*(self.sch_rules or ()), *(self.postprocs or ()), *(self.mutator_probs or ())):
            part._initialize_with_tune_context(context)

    def generate_design_space(self, mod):
        """The schedules of a module."""
        raise NotImplementedError(f"{type(self).__name__}.generate_design_space")

    def clone(self):
        """The same, for another task."""
        raise NotImplementedError(f"{type(self).__name__}.clone")

    def _parts(self):
        """The rules as they were given, copied."""
        rules, posts, mutators = self._given
        rules = rules if isinstance(rules, str) or rules is None else [rule.clone() for rule in rules]
        posts = posts if isinstance(posts, str) or posts is None else [post.clone() for post in posts]
        mutators = mutators if isinstance(mutators, str) or mutators is None else {m.clone(): p for m, p in mutators.items()}
        return {"sch_rules": rules, "postprocs": posts, "mutator_probs": mutators}

    @staticmethod
    def create(kind="post-order-apply", *args, **kwargs):
        """A generator by name: ``"post-order-apply"``, ``"union"``; or of a function that schedules."""
        if callable(kind):
            return ScheduleFn(kind, *args, **kwargs)
        kinds = {"post-order-apply": PostOrderApply, "union": SpaceGeneratorUnion}
        if kind not in kinds:
            raise ValueError(f"Unknown SpaceGenerator: {kind}; there are {', '.join(kinds)}")
        return kinds[kind](*args, **kwargs)


class PySpaceGenerator(Outer, SpaceGenerator):
    """The base of generators of one's own."""


create = SpaceGenerator.create
#: What may be given for a generator, and for a function that schedules.
SpaceGenerator.SpaceGeneratorType = SpaceGenerator
SpaceGenerator.ScheduleFnType = "Callable[[Schedule], None | Schedule | list[Schedule]]"


class ScheduleFn(SpaceGenerator):
    """The space of a function: what ``sch_fn(sch)`` draws is free. It may return nothing, a schedule, or a list of schedules."""

    def __init__(self, sch_fn, sch_rules=_FROM_TARGET, postprocs=_FROM_TARGET, mutator_probs=_FROM_TARGET):
        super().__init__(sch_rules, postprocs, mutator_probs)
        self.sch_fn = sch_fn

    def generate_design_space(self, mod):
        """What the function makes."""
        sch = _fresh(mod, self._context)
        made = self.sch_fn(sch)
        if made is None:
            return [sch]
        if isinstance(made, Schedule):
            return [made]
        made = list(made)
        if not all(isinstance(one, Schedule) for one in made):
            raise TypeError(f"a function that schedules gives nothing, a Schedule or a list of them, got {made!r}")
        return made

    def clone(self):
        """The same, for another task."""
        return ScheduleFn(self.sch_fn, **self._parts())


def _fresh(mod, context):
    mod = IRModule({"main": mod}) if isinstance(mod, PrimFunc) else mod
    return Schedule(mod, seed=None if context is None else context._fork_seed())


class PostOrderApply(SpaceGenerator):
    """Applies rules to the blocks of a module, from the root to the first; each rule may make several schedules of one.

    ``f_block_filter(block)`` says which blocks rules see.
    """

    def __init__(self, f_block_filter=None, sch_rules=_FROM_TARGET, postprocs=_FROM_TARGET, mutator_probs=_FROM_TARGET):
        super().__init__(sch_rules, postprocs, mutator_probs)
        self.f_block_filter = f_block_filter

    def generate_design_space(self, mod):
        """What the rules make."""
        if self.sch_rules is None:
            raise ValueError("`sch_rules` is not given: a context with a target, or rules, are needed")
        sch = _fresh(mod, self._context)
        blocks, made = self._blocks(sch), [sch]
        for rule in self.sch_rules:
            made = _applied(rule, made, blocks)
        return made

    def _blocks(self, sch):
        found = []
        for var, func in sch.mod.functions_items():
            if not isinstance(func, PrimFunc):
                continue
            names = set()
            for block in _post_order(func.body):
                if block.name in names:
                    raise ValueError(f"{var.name_hint} has two blocks named {block.name}: rename one, since spaces find blocks by name")
                names.add(block.name)
                if self.f_block_filter is None or self.f_block_filter(block):
                    found.append((block.name, sch.get_sblock(block.name, func_name=var.name_hint)))
        return [rv for _, rv in found]

    def clone(self):
        """The same, for another task."""
        return PostOrderApply(self.f_block_filter, **self._parts())


def _post_order(stmt):
    """Blocks, those inside of others first."""
    from ...tirx._walk import children

    for part in children(stmt):
        yield from _post_order(part)
    if isinstance(stmt, SBlock):
        yield stmt


def _applied(rule, schedules, blocks):
    stack, made = [(sch, blocks) for sch in schedules], []
    while stack:
        sch, left = stack.pop()
        if not left:
            made.append(sch)
            continue
        *left, block = left
        if not _is_there(sch, block) or _is_custom(sch, block) != isinstance(rule, ApplyCustomRule):
            stack.append((sch, left))
            continue
        stack += [(one, left) for one in rule.apply(sch, block)]
    return made


def _is_there(sch, block):
    try:
        node = sch.get(block)
    except (ValueError, RuntimeError):
        return False
    return any(part.same_as(node) for func in sch.mod.functions.values() if isinstance(func, PrimFunc) for part in walk(func.body))


def _is_custom(sch, block):
    return "schedule_rule" in (sch.get(block).annotations or {})


class SpaceGeneratorUnion(SpaceGenerator):
    """The spaces of several generators together."""

    def __init__(self, space_generators, sch_rules=_FROM_TARGET, postprocs=_FROM_TARGET, mutator_probs=_FROM_TARGET):
        super().__init__(sch_rules, postprocs, mutator_probs)
        self.space_generators = list(space_generators)

    def _initialize_with_tune_context(self, context):
        super()._initialize_with_tune_context(context)
        for generator in self.space_generators:
            generator._initialize_with_tune_context(context)

    def generate_design_space(self, mod):
        """What all make."""
        return [sch for generator in self.space_generators for sch in generator.generate_design_space(mod)]

    def clone(self):
        """The same, for another task."""
        return SpaceGeneratorUnion([generator.clone() for generator in self.space_generators], **self._parts())


__all__ = ["PostOrderApply", "PySpaceGenerator", "ScheduleFn", "SpaceGenerator", "SpaceGeneratorUnion", "create"]
