"""The file of a session that was asked for a profile: events as ONNX Runtime writes them, for ``chrome://tracing`` and its own tools.

Kernels are those of the compiled program, several operators of the model in one; what the virtual machine does between them is no event.
"""

import json
import os
import threading
import time
from datetime import datetime


class Profile:
    """Events of a session, from when it was begun."""

    def __init__(self, prefix):
        self.start_ns = time.time_ns()
        self._begin = time.perf_counter_ns()
        self._prefix = prefix
        self._events = []
        self._lock = threading.Lock()

    def now(self):
        """Nanoseconds since it began."""
        return time.perf_counter_ns() - self._begin

    def session(self, name, since):
        """The session did something, which ends now."""
        self._add([self._event("Session", name, since / 1e3, (self.now() - since) / 1e3)])

    def kernels(self, trace, since):
        """The kernels of a run, from its trace as ``runtime.profiling.Report`` writes it."""
        calls = [call for call in json.loads(trace)["traceEvents"] if call["ph"] == "X"]
        kernels = [call for call in calls if call["name"] != "main" and not call["name"].startswith("vm.")]
        first = min((call["ts"] for call in calls), default=0)
        events = []
        for index, call in enumerate(kernels):
            args = {"op_name": call["name"], "provider": "CPUExecutionProvider", "node_index": str(index)}
            name = f"{call['name']}_kernel_time"
            events.append(self._event("Node", name, since / 1e3 + call["ts"] - first, call["dur"], args))
        self._add(events)

    def write(self):
        """Write the file and say where it is."""
        path = f"{self._prefix}_{datetime.now():%Y-%m-%d_%H-%M-%S_%f}"[:-3] + ".json"
        with self._lock, open(path, "w") as file:
            file.write("[\n" + ",\n".join(map(json.dumps, self._events)) + "\n]\n")
        return path

    def _event(self, cat, name, ts, dur, args=None):
        ids = {"pid": os.getpid(), "tid": threading.get_native_id()}
        return {"cat": cat, **ids, "dur": round(dur), "ts": round(ts), "ph": "X", "name": name, "args": args or {}}

    def _add(self, events):
        with self._lock:
            self._events.extend(events)


__all__ = ["Profile"]
