"""The process of a :class:`relaxide.support.popen_pool.PopenWorker`: runs what it is sent, until its pipe is closed."""

import sys
from multiprocessing.connection import Connection

from ..support.popen_pool import StatusKind, _pickler


class TimeoutStatus:
    """How far a function has come that is watched: ``status``, a :class:`~relaxide.support.popen_pool.StatusKind`."""

    def __init__(self):
        self.status = StatusKind.RUNNING


def _answer(message):
    try:
        fn, args, kwargs = _pickler.loads(message)
        return _pickler.dumps((StatusKind.COMPLETE, fn(*args, **kwargs)))
    except Exception as error:  # noqa: BLE001
        try:
            return _pickler.dumps((StatusKind.EXCEPTION, error))
        except Exception:  # noqa: BLE001  (an exception that holds what cannot be pickled)
            return _pickler.dumps((StatusKind.EXCEPTION, RuntimeError(f"{type(error).__name__}: {error}")))


def main():
    """Read functions from the first pipe of the command line, write results to the second."""
    if len(sys.argv) != 3:
        sys.exit("usage: popen_worker READ WRITE, two file descriptors")
    tasks = Connection(int(sys.argv[1]), writable=False)
    results = Connection(int(sys.argv[2]), readable=False)
    while True:
        try:
            message = tasks.recv_bytes()
        except EOFError:
            return
        results.send_bytes(_answer(message))


if __name__ == "__main__":
    main()
