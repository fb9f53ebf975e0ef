"""Databases of tuning: kernels, the traces of their schedules, and how long these took."""

import json
import os
from contextvars import ContextVar

from ...ffi import structural_equal, structural_hash
from ...ir.prim import FloatImm
from ...ir.utils import Outer
from ...target import Target
from ..schedule import Schedule, Trace
from .arg_info import ArgInfo
from ._workload_text import from_text, to_text

_OPEN = ContextVar("databases", default=())
#: How long a record counts that was not measured.
_NEVER = 1e10


class Workload:
    """A module that is tuned."""

    def __init__(self, mod):
        self.mod = mod

    def as_json(self):
        """``[hash, module]``."""
        return [str(structural_hash(self.mod) & ((1 << 64) - 1)), to_text(self.mod)]

    @staticmethod
    def from_json(json_obj):
        """What :meth:`as_json` wrote, or TVM did."""
        try:
            _, text = json_obj
        except (TypeError, ValueError):
            raise ValueError(f"a workload is written as [hash, module], got {str(json_obj)[:80]!r}") from None
        return Workload(from_text(text))


class TuningRecord:
    """A trace on a workload, with the seconds that its runs took, the target and the arguments."""

    def __init__(self, trace, workload, run_secs=None, target=None, args_info=None):
        self.trace, self.workload = trace, workload
        self.run_secs = None if run_secs is None else [FloatImm("float64", float(sec)) for sec in run_secs]
        self.target, self.args_info = target, args_info

    def as_measure_candidate(self):
        """The schedule, with its arguments, to be measured again."""
        from .search_strategy import MeasureCandidate

        sch = Schedule(self.workload.mod)
        self.trace.apply_to_schedule(sch, remove_postproc=False)
        return MeasureCandidate(sch, self.args_info or ArgInfo.from_entry_func(self.workload.mod))

    def is_valid(self):
        """Whether it was measured and a run ended."""
        return self.run_secs is not None and any(float(sec) < _NEVER for sec in self.run_secs)

    def as_json(self):
        """``[trace, seconds, target, arguments]``."""
        target = None if self.target is None else _plain(self.target.export() if hasattr(self.target, "export") else str(self.target))
        args = None if self.args_info is None else [info.as_json() for info in self.args_info]
        seconds = None if self.run_secs is None else [float(sec) for sec in self.run_secs]
        return [self.trace.as_json(False), seconds, target, args]

    @staticmethod
    def from_json(json_obj, workload):
        """What :meth:`as_json` wrote, or TVM did; a ValueError says what does not fit."""
        try:
            trace, seconds, target, args = json_obj
        except (TypeError, ValueError):
            raise ValueError(f"a record is written as [trace, seconds, target, arguments], got {str(json_obj)[:80]!r}") from None
        sch = Schedule(workload.mod)
        Trace.apply_json_to_schedule(trace, sch)
        infos = None if args is None else [ArgInfo.from_json(one) for one in args]
        return TuningRecord(sch.trace, workload, seconds, None if target is None else Target(_plain(target)), infos)

    def _mean(self):
        return sum(map(float, self.run_secs)) / len(self.run_secs) if self.run_secs else _NEVER


def _plain(value):
    if hasattr(value, "items"):
        # Numbers among the options of a target are text here.
        return {str(key): int(item) if isinstance(item, str) and item.isdigit() else _plain(item) for key, item in value.items()}
    if isinstance(value, str) or not hasattr(value, "__len__"):
        return value
    return [_plain(item) for item in value]


class Database:
    """The base of databases. ``with database:`` makes it the one that passes ask (:meth:`current`)."""

    def has_workload(self, mod):
        """Whether a module is in it."""
        raise NotImplementedError(f"{type(self).__name__}.has_workload")

    def commit_workload(self, mod):
        """The :class:`Workload` of a module, which is put in where it is new."""
        raise NotImplementedError(f"{type(self).__name__}.commit_workload")

    def commit_tuning_record(self, record):
        """Put a record in."""
        raise NotImplementedError(f"{type(self).__name__}.commit_tuning_record")

    def get_top_k(self, workload, top_k):
        """The fastest records of a workload, at most ``top_k``."""
        raise NotImplementedError(f"{type(self).__name__}.get_top_k")

    def get_all_tuning_records(self):
        """All records."""
        raise NotImplementedError(f"{type(self).__name__}.get_all_tuning_records")

    def __len__(self):
        """How many records it has."""
        raise NotImplementedError(f"{type(self).__name__}.__len__")

    def __bool__(self):
        return True

    def query_tuning_record(self, mod, target, workload_name=None):
        """The fastest record of a module, or ``None``."""
        if not self.has_workload(mod):
            return None
        return next(iter(self.get_top_k(self.commit_workload(mod), 1)), None)

    def query_schedule(self, mod, target, workload_name=None):
        """The schedule of the fastest record, or ``None``."""
        record = self.query_tuning_record(mod, target, workload_name)
        if record is None:
            return None
        sch = Schedule(record.workload.mod)
        record.trace.apply_to_schedule(sch, remove_postproc=False)
        return sch

    def query_ir_module(self, mod, target, workload_name=None):
        """The module as the fastest record schedules it, or ``None``."""
        sch = self.query_schedule(mod, target, workload_name)
        return None if sch is None else sch.mod

    def query(self, mod, target, *, workload_name="main", kind="schedule"):
        """The best for a module, as a ``"schedule"``, a ``"record"`` or an ``"ir_module"``; ``None`` where nothing is known."""
        asks = {"schedule": self.query_schedule, "record": self.query_tuning_record, "ir_module": self.query_ir_module}
        if kind not in asks:
            raise ValueError(f'there is no kind {kind!r} of answer; there are schedule, record, ir_module')
        return asks[kind](mod, target, workload_name)

    def dump_pruned(self, destination):
        """Write the fastest record of each workload to another database."""
        best = {}
        for record in self.get_all_tuning_records():
            known = best.get(id(record.workload))
            if record.is_valid() and (known is None or record._mean() < known._mean()):
                best[id(record.workload)] = record
        for record in best.values():
            workload = destination.commit_workload(record.workload.mod)
            destination.commit_tuning_record(TuningRecord(record.trace, workload, record.run_secs, record.target, record.args_info))

    def __enter__(self):
        _OPEN.set((*_OPEN.get(), self))
        return self

    def __exit__(self, kind, value, traceback):
        _OPEN.set(_OPEN.get()[:-1])

    @staticmethod
    def current():
        """The innermost that is open, or ``None``."""
        return (_OPEN.get() or (None,))[-1]

    @staticmethod
    def create(kind="json", *args, **kwargs):
        """A database by name: ``"json"``, ``"memory"``, ``"union"``, ``"ordered_union"``; or of a function that schedules."""
        if callable(kind):
            return ScheduleFnDatabase(kind, *args, **kwargs)
        kinds = {"json": JSONDatabase, "memory": MemoryDatabase, "union": UnionDatabase, "ordered_union": OrderedUnionDatabase}
        if kind not in kinds:
            raise ValueError(f"Unknown Database: {kind}; there are {', '.join(kinds)}")
        return kinds[kind](*args, **kwargs)


class PyDatabase(Outer, Database):
    """The base of databases of one's own."""


create = Database.create
#: What may be given for a database.
Database.DatabaseType = Database


def _equality(name):
    if name not in ("structural", "ignore-tensor", "anchor-block"):
        raise ValueError(f"module_equality is structural, ignore-tensor or anchor-block, got {name!r}")
    if name == "structural":
        return structural_equal
    if name == "ignore-tensor":
        return lambda a, b: structural_equal(a, b, skip_tensor_content=True)
    from ._anchor import equal_by_anchor

    return equal_by_anchor


class MemoryDatabase(Database):
    """Keeps records while the process lives.

    ``module_equality`` is when modules are the same: ``"structural"``, ``"ignore-tensor"`` (whatever constants are), ``"anchor-block"``
    (their heaviest blocks are equal).
    """

    def __init__(self, module_equality="structural"):
        self._equal = _equality(module_equality)
        self.records, self.workloads = [], []

    def _find(self, mod):
        return next((workload for workload in self.workloads if workload.mod is mod or self._equal(workload.mod, mod)), None)

    def has_workload(self, mod):
        """Whether a module is in it."""
        return self._find(mod) is not None

    def commit_workload(self, mod):
        """The workload of a module, which is put in where it is new."""
        found = self._find(mod)
        if found is None:
            found = Workload(mod)
            self.workloads.append(found)
        return found

    def commit_tuning_record(self, record):
        """Put a record in."""
        self.records.append(record)

    def get_top_k(self, workload, top_k):
        """The fastest records of a workload that were measured."""
        if top_k < 0:
            raise ValueError(f"top_k is a number of records, got {top_k}")
        found = [one for one in self.records if one.is_valid() and (one.workload is workload or self._equal(one.workload.mod, workload.mod))]
        return sorted(found, key=TuningRecord._mean)[:top_k]

    def get_all_tuning_records(self):
        """All records."""
        return list(self.records)

    def __len__(self):
        return len(self.records)


class JSONDatabase(MemoryDatabase):
    """Keeps records in two files of lines, one of workloads and one of records, which are read when it is opened.

    Parameters
    ----------
    path_workload, path_tuning_record : str, optional
        The files; by default those of ``work_dir``.
    work_dir : str, optional
        The folder of ``database_workload.json`` and ``database_tuning_record.json``.
    allow_missing : bool
        Whether files that are not there are begun; else they are an error.
    module_equality : str
        As :class:`MemoryDatabase` takes it.
    """

    def __init__(self, path_workload=None, path_tuning_record=None, *, work_dir=None, allow_missing=True, module_equality="structural"):
        super().__init__(module_equality)
        if work_dir is not None:
            path_workload = path_workload or os.path.join(work_dir, "database_workload.json")
            path_tuning_record = path_tuning_record or os.path.join(work_dir, "database_tuning_record.json")
        if path_workload is None or path_tuning_record is None:
            raise ValueError("a JSONDatabase needs path_workload and path_tuning_record, or work_dir")
        self.path_workload, self.path_tuning_record = str(path_workload), str(path_tuning_record)
        for number, line in self._lines(self.path_workload, allow_missing):
            self.workloads.append(_read(Workload.from_json, self.path_workload, number, line))
        for number, line in self._lines(self.path_tuning_record, allow_missing):
            self.records.append(_read(self._record_of, self.path_tuning_record, number, line))

    def _record_of(self, row):
        index, record = row
        if not isinstance(index, int) or not 0 <= index < len(self.workloads):
            raise ValueError(f"there is no workload {index}")
        return TuningRecord.from_json(record, self.workloads[index])

    @staticmethod
    def _lines(path, allow_missing):
        if not os.path.exists(path):
            if not allow_missing:
                raise ValueError(f"there is no file {path}: give allow_missing=True to begin one")
            open(path, "w").close()
        with open(path) as file:
            return [(number, line) for number, line in enumerate(file, 1) if line.strip()]

    def commit_workload(self, mod):
        """The workload of a module; a new one is written."""
        found = self._find(mod)
        if found is None:
            found = super().commit_workload(mod)
            _append(self.path_workload, found.as_json())
        return found

    def commit_tuning_record(self, record):
        """Put a record in, and write it."""
        index = next((i for i, one in enumerate(self.workloads) if one is record.workload), None)
        if index is None:
            index = self.workloads.index(self.commit_workload(record.workload.mod))
        self.records.append(record)
        _append(self.path_tuning_record, [index, record.as_json()])


def _append(path, row):
    with open(path, "a") as file:
        file.write(json.dumps(_plain(row), separators=(",", ":")) + "\n")


def _read(make, path, number, line):
    try:
        return make(json.loads(line))
    except (ValueError, TypeError, RuntimeError, KeyError) as error:
        raise ValueError(f"{path}:{number}: the line cannot be read: {error}") from error


class UnionDatabase(Database):
    """Several databases, of which the fastest record counts. Nothing is written to it."""

    def __init__(self, *databases):
        self.databases = list(databases)

    def query_tuning_record(self, mod, target, workload_name=None):
        """The fastest record of all."""
        found = [database.query_tuning_record(mod, target, workload_name) for database in self.databases]
        return min((record for record in found if record is not None), key=TuningRecord._mean, default=None)


class OrderedUnionDatabase(UnionDatabase):
    """Several databases, of which the first that knows a module counts."""

    def query_tuning_record(self, mod, target, workload_name=None):
        """The record of the first that has one."""
        for database in self.databases:
            record = database.query_tuning_record(mod, target, workload_name)
            if record is not None:
                return record
        return None


class ScheduleFnDatabase(Database):
    """Gives what a function makes of a schedule: ``schedule_fn(sch)`` says whether it schedules such a module."""

    def __init__(self, schedule_fn, module_equality="structural"):
        _equality(module_equality)
        self.schedule_fn = schedule_fn

    def query_tuning_record(self, mod, target, workload_name=None):
        """A record of what the function did, with no time."""
        sch = Schedule(mod)
        if not self.schedule_fn(sch):
            return None
        return TuningRecord(sch.trace, Workload(mod), None, target, None)


__all__ = ["Database", "JSONDatabase", "MemoryDatabase", "OrderedUnionDatabase", "PyDatabase", "ScheduleFnDatabase", "TuningRecord"]
__all__ += ["UnionDatabase", "Workload", "create"]
