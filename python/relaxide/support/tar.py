"""Archives of files."""

import os
import shutil
import tarfile
import tempfile


def tar(output, files):
    """Write an archive of files, each under its own name without folders.

    Raises
    ------
    ValueError
        Where two files have one name.
    """
    with tempfile.TemporaryDirectory() as folder:
        names = set()
        for file in files:
            name = os.path.basename(file)
            if name in names:
                raise ValueError(f"two of the files are called {name}")
            names.add(name)
            shutil.copy(file, os.path.join(folder, name))
        with tarfile.open(output, "w") as archive:
            for name in sorted(names):
                archive.add(os.path.join(folder, name), arcname=name)


tar.output_format = "tar"


def untar(tar_file, directory):
    """Unpack an archive into a folder; members that lead out of it are refused."""
    with tarfile.open(tar_file) as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extractall(directory, filter="data")
            return
        for member in archive.getmembers():
            _check(member)
        archive.extractall(directory)


def _check(member):
    """What the standard library's ``data`` filter refuses, for the releases of Python 3.11 that lack it."""
    inside = not os.path.isabs(member.name) and ".." not in member.name.split("/")
    if not inside or not (member.isfile() or member.isdir()):
        raise tarfile.TarError(f"the member {member.name!r} of the archive is no file or folder within it")


def normalize_file_list_by_unpacking_tars(temp, file_list):
    """A list of files in which each archive is replaced by what is in it, unpacked below ``temp``."""
    out = []
    for at, path in enumerate(file_list):
        if not os.path.isfile(path):
            raise FileNotFoundError(f"there is no file {path}")
        if not path.endswith(".tar"):
            out.append(path)
            continue
        folder = temp.relpath(f"unpacked{at}")
        os.mkdir(folder)
        untar(path, folder)
        out.extend(os.path.join(where, name) for where, _, names in sorted(os.walk(folder)) for name in sorted(names))
    return out
