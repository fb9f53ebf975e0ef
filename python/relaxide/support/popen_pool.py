"""Functions that run in other processes, which can be ended: pools whose tasks may take too long, or crash.

Functions and values are pickled by ``cloudpickle`` where it is installed, by ``pickle`` otherwise, which takes no lambdas.
"""

import concurrent.futures
import os
import subprocess
import sys
import threading
from collections import namedtuple
from enum import IntEnum
from multiprocessing.connection import Connection

try:
    import cloudpickle as _pickler
except ImportError:
    import pickle as _pickler


class StatusKind(IntEnum):
    """How a task stands."""

    RUNNING = 0
    COMPLETE = 1
    EXCEPTION = 2
    TIMEOUT = 3


class MapResult(namedtuple("MapResult", ["status", "value"])):
    """What became of one of several tasks: a :class:`StatusKind`, and the result or the exception."""

    __slots__ = ()


def kill_child_processes(pid):
    """End all processes that a process has started, and those that they have."""
    try:
        import psutil
    except ImportError:
        return
    try:
        children = psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return
    for child in children:
        try:
            child.kill()
        except psutil.NoSuchProcess:
            continue


class PopenWorker:
    """A process that runs one function after the other. It starts with the first, and anew after it was ended.

    Parameters
    ----------
    initializer : callable, optional
        What each new process runs first, with ``initargs``.
    maximum_uses : int, optional
        After so many functions the process is ended, and the next starts a new one.
    stdout, stderr
        Where the process writes, as of ``subprocess.Popen``.
    """

    def __init__(self, initializer=None, initargs=(), maximum_uses=None, stdout=None, stderr=None):
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be callable for PopenWorker")
        self._initializer, self._initargs, self._maximum_uses = initializer, initargs, maximum_uses
        self._stdout, self._stderr = stdout, stderr
        self._process = self._channel = self._limit = None
        self._uses = 0

    def __del__(self):
        try:
            self.kill()
        except (AttributeError, ImportError, OSError, TypeError):
            pass

    def _start(self):
        here, there = os.pipe(), os.pipe()
        command = [sys.executable, "-m", "relaxide.exec.popen_worker", str(there[0]), str(here[1])]
        paths = [path for path in sys.path if path]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        try:
            self._process = subprocess.Popen(
                command, pass_fds=(there[0], here[1]), stdout=self._stdout, stderr=self._stderr, env=environment
            )
        finally:
            os.close(there[0])
            os.close(here[1])
        self._channel = Connection(here[0], writable=False), Connection(there[1], readable=False)
        self._uses = 0
        if self._initializer is not None:
            self._give(self._initializer, self._initargs, {}, None)
            self.recv()

    def _give(self, fn, args, kwargs, timeout):
        self._limit = timeout
        try:
            self._channel[1].send_bytes(_pickler.dumps((fn, args, kwargs)))
        except OSError:
            pass  # The process is gone, which `recv` says.

    def send(self, fn, args=(), kwargs=None, timeout=None):
        """Have ``fn(*args, **kwargs)`` run, for at most ``timeout`` seconds. Each ``send`` is followed by a ``recv``."""
        if self._process is not None and self._maximum_uses and self._uses >= self._maximum_uses:
            self.kill()
        if self._process is None:
            self._start()
        self._uses += 1
        self._give(fn, args, kwargs or {}, timeout)

    def recv(self):
        """The result of what was sent last.

        Raises
        ------
        TimeoutError
            It took too long; the process was ended.
        ChildProcessError
            The process ended by itself.
        Exception
            Whatever the function raised.
        """
        if self._channel is None:
            raise ChildProcessError("no function was sent to the process")
        try:
            if not self._channel[0].poll(self._limit):
                self.kill()
                raise TimeoutError(f"the function took longer than {self._limit} seconds")
            status, value = _pickler.loads(self._channel[0].recv_bytes())
        except (EOFError, ConnectionError):
            self.kill()
            raise ChildProcessError("the process ended before it gave a result") from None
        if status == StatusKind.EXCEPTION:
            raise value
        return value

    def join(self, timeout=None):
        """Wait until the process has ended, for at most ``timeout`` seconds."""
        if self._process is not None:
            try:
                self._process.wait(timeout)
            except subprocess.TimeoutExpired:
                pass

    def is_alive(self):
        """Whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def kill(self):
        """End the process and those that it has started."""
        process, self._process = self._process, None
        channel, self._channel = self._channel, None
        for end in channel or ():
            end.close()
        if process is not None:
            kill_child_processes(process.pid)
            process.kill()
            process.wait()


class PopenPoolExecutor:
    """Several :class:`PopenWorker`, as an executor of ``concurrent.futures``.

    ``timeout`` is for each function. There are as many processes as processors where ``max_workers`` is not given. The rest is as of
    the workers. A pool ends its processes in ``shutdown``, or when nothing refers to it any more.
    """

    def __init__(
        self,
        max_workers=None,
        timeout=None,
        initializer=None,
        initargs=(),
        maximum_process_uses=None,
        stdout=None,
        stderr=None,
    ):
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be callable for PopenPoolExecutor")
        self._timeout = timeout
        self._make = lambda: PopenWorker(initializer, initargs, maximum_process_uses, stdout, stderr)
        self._own, self._workers = threading.local(), []
        self._threads = concurrent.futures.ThreadPoolExecutor(max_workers=max_workers or os.cpu_count())

    def __del__(self):
        try:
            self.shutdown(wait=False)
        except (AttributeError, ImportError, TypeError):
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shutdown()

    def shutdown(self, wait=True):
        """End all processes; what still runs fails."""
        for worker in self._workers:
            worker.kill()
        self._threads.shutdown(wait=wait)

    def _run(self, fn, args, kwargs):
        worker = getattr(self._own, "worker", None)
        if worker is None:
            worker = self._own.worker = self._make()
            self._workers.append(worker)
        worker.send(fn, args, kwargs, self._timeout)
        return worker.recv()

    def _outcome(self, fn, value):
        try:
            return MapResult(StatusKind.COMPLETE, self._run(fn, (value,), {}))
        except TimeoutError as error:
            return MapResult(StatusKind.TIMEOUT, error)
        except Exception as error:  # noqa: BLE001
            return MapResult(StatusKind.EXCEPTION, error)

    def submit(self, fn, *args, **kwargs):
        """Have a function run; gives a ``Future``."""
        return self._threads.submit(self._run, fn, args, kwargs)

    def map_with_error_catching(self, fn, iterator):
        """A :class:`MapResult` for the function of each value, in order, whatever became of the others."""
        futures = [self._threads.submit(self._outcome, fn, value) for value in iterator]
        return (future.result() for future in futures)


__all__ = ["MapResult", "PopenPoolExecutor", "PopenWorker", "StatusKind", "kill_child_processes"]
