"""Locks between processes."""

import os
import tempfile

from ..support.utils import FileLock


def run_with_gpu_lock(func, /, *args, **kwargs):
    """Call a function while no other process of this machine is inside of such a call; gives what it gives."""
    path = os.path.join(tempfile.gettempdir(), f"relaxide-gpu-{os.getuid()}.lock")
    lock = FileLock(path)
    try:
        return func(*args, **kwargs)
    finally:
        lock.release()


__all__ = ["FileLock", "run_with_gpu_lock"]
