"""Temporary folders, locks, and names of files."""

import atexit
import contextlib
import os
import shutil
import tempfile

_EXITED = False


class DirectoryCreatedPastAtExit(Exception):
    """A temporary folder is asked for while the interpreter ends."""


@atexit.register
def _end():
    global _EXITED
    _EXITED = True


class TempDirectory:
    """A folder that is removed with the object.

    Parameters
    ----------
    custom_path : str, optional
        Where it is; a new place where none is given.
    keep_for_debug : bool, optional
        Whether it stays.
    """

    _keep_all = False

    @classmethod
    @contextlib.contextmanager
    def set_keep_for_debug(cls, set_to=True):
        """While in the context, folders that are made stay."""
        before, cls._keep_all = cls._keep_all, set_to
        try:
            yield
        finally:
            cls._keep_all = before

    def __init__(self, custom_path=None, keep_for_debug=None):
        if _EXITED:
            raise DirectoryCreatedPastAtExit("the interpreter is ending; make the folder before")
        self._kept = self._keep_all if keep_for_debug is None else keep_for_debug
        if custom_path:
            os.mkdir(custom_path)
            self.temp_dir = custom_path
        else:
            self.temp_dir = tempfile.mkdtemp(prefix="relaxide-")
        if not self._kept:
            atexit.register(self.remove)

    def remove(self):
        """Remove the folder with what is in it."""
        if self.temp_dir and not self._kept:
            shutil.rmtree(self.temp_dir, ignore_errors=True)
            self.temp_dir = None
            atexit.unregister(self.remove)

    @property
    def path(self):
        """The folder."""
        return self.temp_dir

    def __del__(self):
        with contextlib.suppress(AttributeError, TypeError):
            self.remove()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()

    def __truediv__(self, other):
        return os.path.join(self.temp_dir, other)

    def relpath(self, name):
        """The path of a name in the folder."""
        return os.path.join(self.temp_dir, name)

    def listdir(self):
        """The names in the folder."""
        return os.listdir(self.temp_dir)


def tempdir(custom_path=None, keep_for_debug=None):
    """A folder that is removed with the object; see :class:`TempDirectory`."""
    return TempDirectory(custom_path, keep_for_debug)


class FileLock:
    """A lock on a file, held from when the object is made until it is released."""

    def __init__(self, path):
        import fcntl

        self.lock_file = open(path, "w", encoding="ascii")  # noqa: SIM115
        fcntl.lockf(self.lock_file, fcntl.LOCK_EX)

    def release(self):
        """Give the lock back."""
        import fcntl

        if self.lock_file:
            fcntl.lockf(self.lock_file, fcntl.LOCK_UN)
            self.lock_file.close()
            self.lock_file = None


def filelock(path):
    """A lock on a file; see :class:`FileLock`."""
    return FileLock(path)


def is_source_path(path):
    """Whether a text names a file of source code, rather than being such code."""
    endings = (".cc", ".c", ".cpp", ".cu", ".cl", ".ll", ".s")
    return isinstance(path, str) and path.endswith(endings)


def which(exec_name):
    """The path of a program, or None."""
    return shutil.which(exec_name)
