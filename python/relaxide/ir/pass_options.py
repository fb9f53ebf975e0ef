"""Options of passes that have several entries: ``PassContext(config={"tirx.UnrollLoop": {"auto_max_step": 16}})``.

Their entries, with defaults and documentation, are rows of the compiler's table of options. A context holds an object of the option's class,
whose entries are attributes; classes stand beside their passes (``tirx.transform.UnrollLoopConfig``).
"""

import enum

from .. import _core


class Entries(dict):
    """The entries of an option. Those that are not given have their defaults."""

    #: The option.
    key = ""

    def __init__(self, **given):
        known = {name: default for name, default, _ in _core.pass_option_entries(self.key)}
        for name in given:
            if name not in known:
                raise TypeError(f"the option {self.key} has no entry {name!r}; it has {', '.join(known)}")
        super().__init__({**known, **given})

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the option {self.key} has no entry {name!r}") from None

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.items())})"


def _option(name, key, module, what):
    rows = [f"{entry} : {type(default).__name__}, default {default}\n    {doc}" for entry, default, doc in _core.pass_option_entries(key)]
    doc = f"{what}\n\nParameters\n----------\n" + "\n".join(rows)
    made = type(name, (Entries,), {"key": key, "__doc__": doc, "__module__": f"relaxide.{module}"})
    CLASSES[key] = made
    return made


#: The classes, by the options that they hold.
CLASSES = {}
UnrollLoopConfig = _option("UnrollLoopConfig", "tirx.UnrollLoop", "tirx.transform", "Which loops ``UnrollLoop`` unrolls.")
HoistExpressionConfig = _option(
    "HoistExpressionConfig", "s_tir.HoistExpression", "tirx.transform", "What ``HoistExpression`` takes out of loops: sums of values of "
    ":class:`HoistedConditionals` and :class:`HoistedLetBindings`."
)
HoistIfThenElseConfig = _option(
    "HoistIfThenElseConfig", "s_tir.HoistIfThenElse", "tirx.transform", "Which loops ``HoistIfThenElse`` takes conditions out of."
)
LoopPartitionConfig = _option("LoopPartitionConfig", "s_tir.LoopPartition", "s_tir.transform", "Which loops ``LoopPartition`` parts.")


class HoistedConditionals(enum.Flag):
    """Which conditions ``HoistExpression`` takes out of loops."""

    Never = 0
    #: Those of statements.
    IfElseStmt = 1
    #: Those of ``if_then_else``.
    IfElseExpr = 2
    #: The sides of ``and`` and ``or``.
    BooleanExpression = 4
    #: Also where loops over threads are concerned.
    UsingBlockVar = 8
    All = IfElseStmt | IfElseExpr | BooleanExpression | UsingBlockVar


class HoistedLetBindings(enum.Flag):
    """Which names ``HoistExpression`` takes out of loops."""

    Never = 0
    #: Those that a condition needs which leaves.
    RequiredByConditional = 1
    #: Those of statements.
    Bind = 2
    #: Those within expressions.
    LetExpr = 4
    All = RequiredByConditional | Bind | LetExpr


def held(config):
    """A context's options, those of several entries as objects of their classes.

    Raises
    ------
    TypeError
        An option has no such entry.
    AttributeError
        An option of several entries is given something else.
    """
    made = {}
    for key, value in config.items():
        kind = CLASSES.get(key)
        if kind is not None and not isinstance(value, kind):
            if not isinstance(value, dict):
                raise AttributeError(f"the option {key} is a dict of {', '.join(kind())}, not {type(value).__name__}")
            value = kind(**value)
        made[key] = value
    return made
