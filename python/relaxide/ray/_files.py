"""Files that every machine of a cluster has once."""

import hashlib
import os
import pathlib
import tempfile

_PIECE = 64 << 20


def _ray():
    try:
        import ray
    except ImportError as error:
        raise ImportError("relaxide.ray needs Ray: pip install 'ray[data]'") from error
    return ray


class Shared:
    """A compiled model in Ray's object store, which each machine writes to a file of its own where it is first asked for.

    Processes of one machine map that file, so that the machine holds weights once.
    """

    def __init__(self, files):
        #: Name, digest and pieces of the library, and of the weights beside it if there are any.
        self._files = files

    def local(self):
        """The path of the library on this machine."""
        digest = hashlib.sha256("".join(digest for _, digest, _ in self._files).encode()).hexdigest()
        folder = _own_folder() / digest
        folder.mkdir(mode=0o700, exist_ok=True)
        for name, digest, pieces in reversed(self._files):
            _write(folder / name, digest, pieces)
        return str(folder / self._files[0][0])


def put(path, weights=None):
    """Put a compiled model into the object store.

    Parameters
    ----------
    path : str or path
        The library.
    weights : str or path, optional
        Its weights, where they are in a file that is not the one of its name beside it.

    Returns
    -------
    Shared
        What :func:`predict`, :class:`Predictor` and :func:`deployment` take in the place of a path.
    """
    library = pathlib.Path(path)
    beside = library.with_suffix(".safetensors") if weights is None else pathlib.Path(weights)
    files = [_stored(library, library.name)]
    if weights is not None or beside.exists():
        files.append(_stored(beside, library.with_suffix(".safetensors").name))
    return Shared(files)


def _stored(path, name):
    ray, digest, pieces = _ray(), hashlib.sha256(), []
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
            pieces.append(ray.put(piece))
    return name, digest.hexdigest(), pieces


def _own_folder():
    """A folder of this user, which nobody else writes to: what lies in it is executed."""
    folder = pathlib.Path(tempfile.gettempdir()) / f"relaxide-ray-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.getuid() or found.st_mode & 0o077 or folder.is_symlink():
        raise PermissionError(f"{folder} is not a folder that only this user can write to: remove it, or set TMPDIR")
    return folder


def _write(path, digest, pieces):
    """A file of these pieces, whole or not at all, whoever else writes it at the same time."""
    if path.exists():
        return
    ray = _ray()
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=".partial-")
    try:
        found = hashlib.sha256()
        with os.fdopen(handle, "wb") as file:
            for piece in pieces:
                data = ray.get(piece)
                found.update(data)
                file.write(data)
        if found.hexdigest() != digest:
            raise OSError(f"{path.name} came over other than it was put")
        os.replace(partial, path)
    except BaseException:
        os.unlink(partial)
        raise
