"""Libraries that a compiler of the machine makes: of programs that are C, and where ``fcompile`` asks for one."""

import tarfile
import tempfile
from pathlib import Path

from ..support import cc
from ..support.tar import untar

#: What a file of C that is loaded as a library is compiled with.
_AS_LIBRARY = ["-DRELAXIDE_SHARED_LIBRARY", "-O2"]


def make_library(written, file_name, *, is_c, fcompile=None, addons=None, workspace_dir=None, **options):
    """Have ``written(path)`` write a program, and link that to ``file_name``.

    Parameters
    ----------
    written : callable
        Writes the program to the path that it is given: C, or an object.
    file_name : str
        The library.
    is_c : bool
        Whether the program is C.
    fcompile : callable, optional
        Called with ``file_name``, the files and ``options``; the machine's compiler where nothing is said.
    addons : list of str, optional
        More files to link.
    workspace_dir : str, optional
        Where files on the way are written; a folder that is removed afterwards, where nothing is said.
    """
    with tempfile.TemporaryDirectory() as folder:
        source = Path(workspace_dir or folder) / ("lib0.c" if is_c else "lib0.o")
        written(str(source))
        files = [str(source), *map(str, addons or ())]
        if is_c:
            options["options"] = [*_AS_LIBRARY, *_listed(options.get("options"))]
        return (fcompile or cc.create_shared)(file_name, files, **options)


def _listed(options):
    return [options] if isinstance(options, str) else list(options or ())


def is_tar(path):
    """Whether a file's name says that it is an archive of tar."""
    return str(path).endswith(".tar")


def write_tar(file_name, written):
    """An archive that holds a library: ``written(path)`` writes that."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "lib0.so"
        written(str(library))
        with tarfile.open(file_name, "w") as archive:
            archive.add(library, library.name)


def library_of_tar(path, folder):
    """The library in an archive, in ``folder``: the one that is there, or what the objects and files of C that are there are linked to.

    Raises
    ------
    ValueError
        The archive holds none of these.
    """
    untar(path, folder)
    files = sorted(str(file) for file in Path(folder).rglob("*") if file.is_file())
    libraries = [file for file in files if file.endswith(".so")]
    parts = [file for file in files if file.endswith((".o", ".c", ".cc"))]
    if len(libraries) == 1 and not parts:
        return libraries[0]
    if not parts:
        raise ValueError(f"{path} holds no library: one file that ends in .so, or objects to link, are expected")
    linked = str(Path(folder) / "linked.so")
    cc.create_shared(linked, parts, _AS_LIBRARY)
    return linked
