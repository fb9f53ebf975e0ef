"""Files from the network, kept in a folder."""

import os
import shutil
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

#: Where test data is kept.
TEST_DATA_ROOT_PATH = Path(os.environ.get("TEST_DATA_ROOT_PATH") or Path.home() / ".tvm_test_data")


def _size_of(url):
    request = urllib.request.Request(url, method="HEAD")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return int(answer.headers.get("Content-Length") or -1)


def download(url, path, overwrite=False, size_compare=False, retries=3):
    """Write what an address gives to a file, whole or not at all.

    Parameters
    ----------
    url : str
        The address.
    path : str or Path
        The file; the folders above it are made.
    overwrite : bool
        Whether a file that is there is downloaded again.
    size_compare : bool
        Whether a file that is there is downloaded again if its size is not the one that the server tells.
    retries : int
        How often it is tried.
    """
    path = Path(path).absolute()
    if path.is_file() and not overwrite and (not size_compare or path.stat().st_size == _size_of(url)):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in reversed(range(max(retries, 1))):
        handle, part = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file, urllib.request.urlopen(url, timeout=60) as answer:
                shutil.copyfileobj(answer, file)
            os.replace(part, path)
            return
        except (urllib.error.URLError, OSError):
            os.unlink(part)
            if left == 0:
                raise


def download_testdata(url, relpath, module=None, overwrite=False):
    """The path of test data, which is downloaded where it is not there yet, below the folder ``module``."""
    if module is not None and not isinstance(module, (str, list, tuple)):
        raise ValueError(f"module is the name of a folder or a list of names, not {module!r}")
    folders = [module] if isinstance(module, str) else list(module or ())
    path = Path(TEST_DATA_ROOT_PATH, *folders, relpath)
    download(url, path, overwrite=overwrite)
    return str(path)


__all__ = ["download", "download_testdata"]
