"""Results of functions that are kept between runs of a program."""

import atexit
import functools
import os
import pickle
import sys


def _folder():
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "relaxide", f"py{sys.version_info[0]}")


class Cache:
    """What is kept under a key: a dictionary, written to its file when the program ends.

    Parameters
    ----------
    key : str
        The name of the file.
    save_at_exit : bool
        Whether it is written when the program ends.
    """

    cache_by_key = {}

    def __init__(self, key, save_at_exit):
        self._path = os.path.join(_folder(), f"{key}.pickle")
        self._dirty = False
        self._cache = {}
        self.save_at_exit = save_at_exit
        if os.path.exists(self._path):
            try:
                with open(self._path, "rb") as file:
                    self._cache = pickle.load(file)
            except (EOFError, pickle.UnpicklingError, AttributeError, ImportError):
                # A file of another version, or one that was cut off: begin anew.
                self._cache = {}
        Cache.cache_by_key[key] = self

    @property
    def cache(self):
        """What is kept, by arguments."""
        return self._cache

    def save(self):
        """Write what has changed."""
        if not self._dirty:
            return
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        new = f"{self._path}.{os.getpid()}"
        with open(new, "wb") as file:
            pickle.dump(self._cache, file, pickle.HIGHEST_PROTOCOL)
        os.replace(new, self._path)
        self._dirty = False


@atexit.register
def _save():
    for cache in Cache.cache_by_key.values():
        if cache.save_at_exit:
            cache.save()


def memoize(key, save_at_exit=False):
    """Keep the results of a function by its arguments and what it closes over.

    Parameters
    ----------
    key : str
        The name of what is kept.
    save_at_exit : bool
        Whether it is kept for other runs.
    """

    def wrap(function):
        closed = tuple(cell.cell_contents for cell in function.__closure__ or ())
        code = function.__code__
        name = f"{key}.{code.co_name}.{code.co_firstlineno}"
        cache = Cache.cache_by_key.get(name) or Cache(name, save_at_exit)

        @functools.wraps(function)
        def memoized(*args, **kwargs):
            if kwargs:
                raise TypeError("a function whose results are kept takes arguments by position")
            entry = (*closed, *args)
            if entry in cache.cache:
                return cache.cache[entry]
            result = function(*args)
            cache.cache[entry] = result
            cache._dirty = True
            return result

        return memoized

    return wrap
