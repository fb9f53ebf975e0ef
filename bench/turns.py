"""Contenders in processes of their own that take turns, so that a busy moment of the machine hits all of them alike."""

import json
import os
import statistics
import subprocess
import sys
import time


def serve(prepare, threads):
    """A contender's process: prepares, pinned to some processors, then times one call for each line that it reads.

    What ``prepare`` returns is called with the line; a number that it returns counts instead of the time that it took.
    """
    os.environ["OMP_NUM_THREADS"] = str(threads)
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:threads]))
    replies, sys.stdout = sys.stdout, sys.stderr
    try:
        run = prepare()
    except Exception as error:  # noqa: BLE001 - whatever keeps a contender from running is the result
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        print(json.dumps({"refused": f"{type(error).__name__}: {lines[-1] if lines else ''}"}), file=replies, flush=True)
        return
    print(json.dumps({"ready": True}), file=replies, flush=True)
    for line in sys.stdin:
        start = time.perf_counter()
        own = run(line.strip())
        seconds = time.perf_counter() - start
        print(json.dumps({"seconds": own if isinstance(own, float) else seconds}), file=replies, flush=True)


class Contender:
    """One contender's process, from the outside."""

    def __init__(self, name, command):
        self.name = name
        self.times = {}
        self.process = subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.refused = self._read().get("refused")

    def _read(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"refused": f"the process ended with status {self.process.wait()}"}

    def run(self, what="run"):
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        reply = self._read()
        if "refused" in reply:
            self.refused = reply["refused"]
        else:
            self.times.setdefault(what, []).append(reply["seconds"] * 1e3)

    def close(self):
        self.process.stdin.close()
        self.process.wait()

    def median(self, what="run"):
        """In milliseconds."""
        return statistics.median(self.times[what]) if self.times.get(what) else None
