"""Design spaces against what is expected of them."""

from ....ir import IRModule
from ...schedule import Schedule
from ...schedule.testing import assert_structural_equal_ignore_global_symbol
from ..schedule_rule import ScheduleRule
from ..space_generator import PostOrderApply
from ..tune_context import TuneContext, _normalize_mod


def get_rules(kind, types):
    """The rules for a kind of target that are of certain types."""
    return [rule for rule in ScheduleRule.create(kind) if isinstance(rule, types)]


def generate_design_space(kind, mod, target, types, sch_rules=None):
    """The design space of a module by rules, or by those of certain types."""
    rules = get_rules(kind, types) if sch_rules is None else sch_rules
    context = TuneContext(
        mod=mod, target=target, space_generator=PostOrderApply(sch_rules=rules, postprocs=[], mutator_probs={}), task_name="test"
    )
    return context.generate_design_space()


def _decided(trace, wanted):
    """A trace with other decisions, which come in the order of the steps."""
    wanted = list(wanted)
    for index in range(len(trace.insts)):
        inst = trace.insts[index]
        if inst in trace.decisions and wanted:
            name, decision = wanted.pop(0)
            assert inst.kind.name == name, f"step {index} is {inst.kind.name}, expected {name}"
            trace = trace.with_decision(inst, decision, False)
    return trace


def check_sketches(mod, sketches, expected_mods, expected_decisions, *, debug_mask="all"):
    """Fail unless each expected module is made by one of the schedules with the decisions that belong to it."""
    mod = _normalize_mod(mod)
    expected = [_normalize_mod(one) if not isinstance(one, IRModule) else one for one in expected_mods]
    left = list(sketches)
    assert len(left) == len(expected), f"{len(left)} schedules, {len(expected)} were expected"
    for number, (want, decisions) in enumerate(zip(expected, expected_decisions)):
        for sch in left:
            again = Schedule(mod, debug_mask=debug_mask)
            try:
                _decided(sch.trace.simplified(remove_postproc=True), decisions).apply_to_schedule(again, remove_postproc=True)
                assert_structural_equal_ignore_global_symbol(again.mod, want)
            except (AssertionError, ValueError, RuntimeError):
                continue
            left.remove(sch)
            break
        else:
            raise AssertionError(f"no schedule makes the module {number}")


def print_sketches(sketches):
    """Print what schedules make, as tests expect it."""
    for number, sch in enumerate(sketches):
        trace = sch.trace.simplified(remove_postproc=True)
        print(sch.mod.script())
        print(f"decision_{number} = [")
        for inst in trace.insts:
            if inst in trace.decisions:
                print(f'    ("{inst.kind.name}", {trace.decisions[inst]}),')
        print("]")


__all__ = ["check_sketches", "generate_design_space", "get_rules", "print_sketches"]
