"""Traces: the steps of a schedule, with what was decided at random."""

import re

from ... import _core
from ...ir.expr import Expr


class InstructionKind:
    """A kind of step: ``name`` in traces, ``method`` of a schedule, and whether it leaves the program as it is."""

    _all = None

    def __init__(self, name, method, is_pure):
        self.name, self.method, self._is_pure = name, method, is_pure

    @property
    def is_pure(self):
        """Whether it leaves the program as it is."""
        return self._is_pure

    @staticmethod
    def get(name):
        """The kind of a name, ``"Split"`` for instance."""
        if InstructionKind._all is None:
            InstructionKind._all = {row[0]: InstructionKind(*row) for row in _core.schedule_kinds()}
        if name not in InstructionKind._all:
            raise ValueError(f"there is no step {name}")
        return InstructionKind._all[name]

    def same_as(self, other):
        """Whether it is this very kind."""
        return self is other

    def __repr__(self):
        return f"InstructionKind({self.name})"


class Instruction:
    """A step that was executed: its kind, inputs, constants, and the random variables of its results."""

    def __init__(self, kind, inputs, attrs, outputs):
        self.kind, self.inputs, self.attrs, self.outputs = kind, inputs, attrs, outputs

    def __repr__(self):
        (line,) = _core.Trace._of_rows([_row(self, None)]).as_python(False)
        quoted = re.split(r'("[^"]*")', line)
        return "".join(part if i % 2 else re.sub(r"\b[blv]\d+\b", "_", part) for i, part in enumerate(quoted))

    def same_as(self, other):
        """Whether it is this very step."""
        return self is other

    def __eq__(self, other):
        """Whether it makes the same random variables; a step that makes none is equal to itself alone."""
        if self is other:
            return True
        if not isinstance(other, Instruction) or not self.outputs or len(self.outputs) != len(other.outputs):
            return False
        return self.kind.name == other.kind.name and all(a.same_as(b) for a, b in zip(self.outputs, other.outputs))

    def __hash__(self):
        return hash((self.kind.name, len(self.inputs), len(self.outputs)))


class Trace(_core.Trace):
    """The steps of a schedule. ``str`` gives the Python function that executes them.

    Parameters
    ----------
    insts : list of Instruction
    decisions : dict of Instruction to what it decided
    """

    def __new__(cls, insts=(), decisions=None):
        if isinstance(insts, _core.Trace):
            return super().__new__(cls, insts)
        steps = [(step, (decisions or {}).get(step)) for step in insts]
        self = super().__new__(cls, _core.Trace._of_rows([_row(*step) for step in steps]))
        self._rows_read = steps
        return self

    def append(self, inst, decision=None):
        """Add a step, and what it decided."""
        rows = self._rows
        self._append(_row(inst, decision))
        rows.append((inst, decision))

    def pop(self):
        """Take the last step away and return it; None where there is none."""
        if not self._rows:
            return None
        self._pop()
        return self._rows_read.pop()[0]

    @property
    def _rows(self):
        if not hasattr(self, "_rows_read"):
            rows = [list(row) for row in self._steps()]
            self._rows_read = [(Instruction(InstructionKind.get(r[0]), *map(list, r[1:4])), r[4]) for r in rows]
        return self._rows_read

    @property
    def insts(self):
        """The steps, in order."""
        return [step for step, _ in self._rows]

    @property
    def decisions(self):
        """What was decided, by step."""
        return {step: _plain(decision) for step, decision in self._rows if decision is not None}

    def get_decision(self, inst):
        """What a step of this trace decided; None where it decided nothing."""
        return self.decisions.get(inst)

    def as_python(self, remove_postproc=False):
        """A line of Python for each step. ``remove_postproc`` leaves out what is behind ``enter_postproc``."""
        return super().as_python(remove_postproc)

    def as_json(self, remove_postproc=False):
        """The steps as lists of names and numbers, and the decisions."""
        return _plain(self._as_json(remove_postproc))

    def simplified(self, remove_postproc):
        """Without the steps that change nothing and whose results nothing uses."""
        return Trace(self._simplified(remove_postproc))

    def with_decision(self, inst, decision, remove_postproc):
        """The same steps, of which one decides otherwise."""
        changed = Trace(self._with_decision(self.insts.index(inst), decision))
        return Trace(changed._before_postproc()) if remove_postproc else changed

    def apply_to_schedule(self, sch, remove_postproc, decision_provider=None):
        """Carry the steps out on another schedule.

        ``decision_provider(instruction, inputs, attrs, decision)`` gives other decisions to the steps that decide.
        """
        trace = self
        if decision_provider is not None:
            for index, (step, decision) in enumerate(self._rows):
                if decision is not None:
                    other = decision_provider(step, step.inputs, step.attrs, _plain(decision))
                    trace = trace._with_decision(index, other)
        sch._apply(trace, remove_postproc)

    @staticmethod
    def apply_json_to_schedule(json_obj, sch):
        """Execute the steps that :meth:`as_json` wrote."""
        sch._apply_json(json_obj)

    def show(self, style=None, black_format=False):
        """Print the steps, coloured where the output shows colours."""
        from ...ir._highlight import show

        show(str(self))

    def __repr__(self):
        return str(self)


def _row(step, decision):
    return step.kind.name, list(step.inputs), list(step.attrs), list(step.outputs), decision


def _plain(value):
    """Lists and dictionaries of Python."""
    if isinstance(value, (str, bytes, Expr)) or value is None:
        return value
    if hasattr(value, "items"):
        return {key: _plain(item) for key, item in value.items()}
    if hasattr(value, "__len__") and hasattr(value, "__getitem__"):
        return [_plain(item) for item in value]
    return value


__all__ = ["Instruction", "InstructionKind", "Trace"]
