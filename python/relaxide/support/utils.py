"""Temporary folders, locks, and names of files."""

import atexit
import contextlib
import os
import shutil
import tempfile
import time


class DirectoryCreatedPastAtExit(Exception):
    """A temporary folder is asked for while the interpreter ends."""


class TempDirectory:
    """A folder that is removed with the object.

    Parameters
    ----------
    custom_path : str, optional
        Where it is; a new place where none is given.
    keep_for_debug : bool, optional
        Whether it stays. Folders that stay are numbered, and lie in one folder of the process.
    """

    #: Folders that are to be removed; None once they have been, at the end of the process.
    TEMPDIRS = set()
    _KEEP_FOR_DEBUG = False
    #: The folder of those that stay, and how many there were.
    _debug_parent, _debug_count = None, 0

    @classmethod
    @contextlib.contextmanager
    def set_keep_for_debug(cls, set_to=True):
        """While in the context, folders that are made stay."""
        before, cls._KEEP_FOR_DEBUG = cls._KEEP_FOR_DEBUG, set_to
        try:
            yield
        finally:
            cls._KEEP_FOR_DEBUG = before

    @classmethod
    def remove_tempdirs(cls):
        """Remove all folders that do not stay. None can be made afterwards."""
        for path in cls.TEMPDIRS or ():
            shutil.rmtree(path, ignore_errors=True)
        cls.TEMPDIRS = None

    @classmethod
    def _numbered(cls):
        """A folder that stays."""
        if cls._debug_parent is None:
            cls._debug_parent = tempfile.mkdtemp(prefix=f"{time.strftime('%Y-%m-%dT%H-%M-%S')}___")
        path = os.path.join(cls._debug_parent, f"{cls._debug_count:05d}")
        cls._debug_count += 1
        os.mkdir(path)
        return path

    def __init__(self, custom_path=None, keep_for_debug=None):
        self.temp_dir = None
        if self.TEMPDIRS is None:
            raise DirectoryCreatedPastAtExit("the interpreter is ending; make the folder before")
        self._kept = self._KEEP_FOR_DEBUG if keep_for_debug is None else keep_for_debug
        if custom_path:
            os.mkdir(custom_path)
            self.temp_dir = custom_path
        else:
            self.temp_dir = self._numbered() if self._kept else tempfile.mkdtemp(prefix="relaxide-")
        if not self._kept:
            self.TEMPDIRS.add(self.temp_dir)

    def remove(self):
        """Remove the folder with what is in it."""
        if self.temp_dir and not self._kept:
            shutil.rmtree(self.temp_dir, ignore_errors=True)
            if self.TEMPDIRS is not None:
                self.TEMPDIRS.discard(self.temp_dir)
            self.temp_dir = None

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


atexit.register(TempDirectory.remove_tempdirs)


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
