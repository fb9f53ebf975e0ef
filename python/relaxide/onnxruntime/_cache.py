"""Compiled models that outlive the process, so that a session that was made once starts in milliseconds.

An entry is a library, under a checksum of all that it follows from: the model's bytes, the files beside it, the options, the
processor and this package. A model in a file is known again by the file's place, size and
times; only where these are new is it read and its bytes compared.

The folder is ``relaxide/onnxruntime`` under ``XDG_CACHE_HOME`` or ``~/.cache``; ``RELAXIDE_CACHE=FOLDER`` puts it elsewhere, and
``RELAXIDE_CACHE=0`` turns it off. What is in it is loaded as code, so it belongs to its user alone: a folder that others own or
may write to is not used, which a warning says. It holds at most ``RELAXIDE_CACHE_LIMIT`` bytes (4 GiB where nothing is said); what
was not used for longest goes first.
"""

import hashlib
import json
import os
import platform
import secrets
import stat
import time
import warnings
from pathlib import Path

from .. import _core

#: A file that was written within so many seconds may be written again without its times telling.
_SETTLED = 2.0
_LIMIT = 4 << 30


class Entry:
    """A place in the cache."""

    def __init__(self, folder, key):
        self._library = folder / f"{key}.so"
        self._folder = folder

    def find(self):
        """The library's path, or ``None`` where it is missing."""
        try:
            os.utime(self._library)
        except OSError:
            return None
        return str(self._library)

    def keep(self, export):
        """Keep what ``export(path)`` writes. An entry that cannot be kept is a warning, not an error: the model runs without."""
        fresh = self._folder / f"{secrets.token_hex(8)}.new.so"
        try:
            export(str(fresh))
            os.replace(fresh, self._library)
            _make_room(self._folder)
        except (OSError, RuntimeError) as error:
            warnings.warn(f"the compiled model cannot be kept in {self._folder}: {error}", RuntimeWarning, stacklevel=5)
        finally:
            fresh.unlink(missing_ok=True)

    def drop(self):
        """Forget it: it does not load."""
        self._library.unlink(missing_ok=True)


def entry(source, options):
    """The place of a model, given by a path or its bytes, under options; ``None`` without a cache."""
    folder = _folder()
    if folder is None:
        return None
    try:
        content = _digest(source) if isinstance(source, bytes) else _digest_of_file(folder, source)
    except OSError:
        return None
    parts = [content, json.dumps(options, sort_keys=True), _package(), _processor()]
    return Entry(folder, hashlib.sha256("\0".join(parts).encode()).hexdigest())


def identity(path):
    """What tells whether a file is the same as before, as text."""
    path = os.path.realpath(path)
    status = os.stat(path)
    return f"{path} {status.st_dev} {status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"


def _folder():
    named = os.environ.get("RELAXIDE_CACHE", "1")
    if named in ("0", "") or os.name != "posix":
        return None
    if named == "1":
        home = os.environ.get("XDG_CACHE_HOME", "")
        base = Path(home if os.path.isabs(home) else os.path.join(os.path.expanduser("~"), ".cache"), "relaxide")
    else:
        base = Path(named)
    folder = base / "onnxruntime"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        status = os.stat(folder)
    except OSError as error:
        warnings.warn(f"compiled models cannot be kept in {folder}: {error}", RuntimeWarning, stacklevel=6)
        return None
    if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        warnings.warn(
            f"{folder} is not used as a cache: others may write to it, and what is in it is run. "
            "Take their permission away, or name another folder by RELAXIDE_CACHE",
            RuntimeWarning,
            stacklevel=6,
        )
        return None
    return folder


def _digest(data):
    return hashlib.sha256(data).hexdigest()


def _digest_of_file(folder, path):
    """The checksum of a file's bytes; that of a file that has not changed since is not computed again."""
    known_as = identity(path)
    memo = folder / f"{_digest(known_as.encode())}.file"
    try:
        return memo.read_text()
    except OSError:
        pass
    checksum = hashlib.sha256()
    with open(path, "rb") as file:
        while part := file.read(1 << 20):
            checksum.update(part)
    digest = checksum.hexdigest()
    if time.time() - os.stat(path).st_mtime > _SETTLED and identity(path) == known_as:
        try:
            _write_whole(memo, digest)
        except OSError:
            pass  # It is computed again next time.
    return digest


def _package():
    return f"{_core.__version__} {identity(_core.__file__)}"


def _processor():
    """The processor that code was made for, as far as code depends on it."""
    try:
        with open("/proc/cpuinfo") as file:
            lines = file.read(1 << 13).splitlines()
    except OSError:
        lines = [platform.processor()]
    kept = [line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))]
    return f"{platform.machine()} {_digest(chr(10).join(sorted(set(kept))).encode())}"


def _write_whole(path, text):
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(8)}.new")
    try:
        fresh.write_text(text)
        os.replace(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)


def _make_room(folder):
    limit = os.environ.get("RELAXIDE_CACHE_LIMIT", "")
    limit = int(limit) if limit.isdigit() else _LIMIT
    files = []
    for path in folder.glob("*.so"):
        try:
            status = path.stat()
        except OSError:
            continue  # Another process took it away.
        files.append((status.st_mtime, status.st_size, path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= limit:
            break
        path.unlink(missing_ok=True)
        total -= size
