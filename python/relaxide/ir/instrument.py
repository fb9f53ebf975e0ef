"""Instruments: what is called around every pass of a context."""

import time
from pathlib import Path


class PassInstrument:
    """The base of instruments. Its methods do nothing; a class defines those that it needs::

        class CallCounter(PassInstrument):
            def run_before_pass(self, mod, info):
                self.calls = getattr(self, "calls", 0) + 1
    """

    def enter_pass_ctx(self):
        """Called when a context is entered."""

    def exit_pass_ctx(self):
        """Called when a context is left."""

    def should_run(self, mod, info):
        """Whether a pass runs on a module."""
        return True

    def run_before_pass(self, mod, info):
        """Called in front of a pass."""

    def run_after_pass(self, mod, info):
        """Called behind a pass."""


def pass_instrument(pi_cls=None):
    """Make a class an instrument."""

    def make(cls):
        if not isinstance(cls, type):
            raise TypeError(f"pi_cls must be a class, got {type(cls).__name__}")
        if issubclass(cls, PassInstrument):
            return cls
        wrapped = type(cls.__name__, (cls, PassInstrument), {"__doc__": cls.__doc__, "__module__": cls.__module__})
        return wrapped

    return make if pi_cls is None else make(pi_cls)


class PassTimingInstrument(PassInstrument):
    """Measures how long each pass takes; :meth:`render` is the table."""

    def __init__(self):
        self._rows, self._open = [], []

    def enter_pass_ctx(self):
        """Forget what was measured."""
        self._rows, self._open = [], []

    def run_before_pass(self, mod, info):
        """Note when a pass begins."""
        self._rows.append([len(self._open), info.name, 0.0])
        self._open.append((len(self._rows) - 1, time.perf_counter()))

    def run_after_pass(self, mod, info):
        """Note when a pass ends."""
        row, start = self._open.pop()
        self._rows[row][2] = time.perf_counter() - start

    def render(self):
        """One line a pass: its time and name, indented below the pass that ran it."""
        total = sum(took for depth, _, took in self._rows if depth == 0)
        lines = [f"{took * 1e3:10.3f} ms  {'  ' * depth}{name}" for depth, name, took in self._rows]
        return "\n".join([*lines, f"{total * 1e3:10.3f} ms  total"])


class PassPrintingInstrument(PassInstrument):
    """Prints the module before or after passes of some names."""

    def __init__(self, print_before_pass_names, print_after_pass_names):
        self.before, self.after = set(print_before_pass_names), set(print_after_pass_names)

    def run_before_pass(self, mod, info):
        """Print the module if the pass is one of those."""
        if info.name in self.before:
            _print("Before", info, mod)

    def run_after_pass(self, mod, info):
        """Print the module if the pass is one of those."""
        if info.name in self.after:
            _print("After", info, mod)


class PrintBeforeAll(PassInstrument):
    """Prints the module before every pass."""

    def run_before_pass(self, mod, info):
        """Print the module."""
        _print("Before", info, mod)


class PrintAfterAll(PassInstrument):
    """Prints the module after every pass."""

    def run_after_pass(self, mod, info):
        """Print the module."""
        _print("After", info, mod)


def _print(when, info, mod):
    print(f"{when} Running Pass: {info.name}\n{mod.script()}")


class DumpIR(PassInstrument):
    """Writes the module after every pass to a file of a folder: ``000_FuseOps.py`` …"""

    def __init__(self, dump_dir, refresh=False):
        self.folder, self.count = Path(dump_dir), 0
        self.folder.mkdir(parents=True, exist_ok=True)
        if refresh:
            for path in self.folder.glob("[0-9][0-9][0-9]_*.py"):
                path.unlink()

    def run_after_pass(self, mod, info):
        """Write the module."""
        name = "".join(letter if letter.isalnum() else "_" for letter in info.name)
        (self.folder / f"{self.count:03d}_{name}.py").write_text(mod.script() + "\n")
        self.count += 1


__all__ = ["DumpIR", "PassInstrument", "PassPrintingInstrument", "PassTimingInstrument", "PrintAfterAll"]
__all__ += ["PrintBeforeAll", "pass_instrument"]
