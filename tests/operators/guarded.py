"""Arrays of numpy that end, or begin, at a page that faults, and processes that may die of reading or writing beyond them."""

import ctypes
import mmap
import os

import numpy as np

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_LIBC.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_PAGE = mmap.PAGESIZE
_ALIGNMENT = 64


class Pages:
    """Memory between two pages that nobody may touch. It stays until the process ends, as arrays may live as long."""

    def __init__(self, size):
        self.size = size
        inner = max(_PAGE, -(-size // _PAGE) * _PAGE)
        private_anonymous = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        base = _LIBC.mmap(None, inner + 2 * _PAGE, mmap.PROT_READ | mmap.PROT_WRITE, private_anonymous, -1, 0)
        if base in (None, ctypes.c_void_p(-1).value):
            raise MemoryError(f"no {inner} bytes of memory")
        for guard in (base, base + _PAGE + inner):
            if _LIBC.mprotect(guard, _PAGE, 0) != 0:
                raise OSError(ctypes.get_errno(), "mprotect")
        self.begin, self.end = base + _PAGE, base + _PAGE + inner

    def array(self, shape, dtype, at_end):
        """An array of a shape at one of the ends."""
        dtype = np.dtype(dtype)
        count = int(np.prod(shape, dtype=np.int64))
        size = count * dtype.itemsize
        # Tensors begin at a multiple of 64, so up to 63 bytes lie between the end and the page; they hold no small number.
        start = (self.end - size) // _ALIGNMENT * _ALIGNMENT if at_end else self.begin
        ctypes.memset(start, 0xA5, self.end - start if at_end else min(size + _ALIGNMENT, self.end - start))
        buffer = (ctypes.c_char * max(size, 1)).from_address(start if size else self.begin)
        return np.frombuffer(buffer, dtype, count).reshape(shape)


class Guarded:
    """Copies of arrays at faulting pages, in memory that is used again for the next copies."""

    def __init__(self):
        self._pages = {}

    def copy(self, place, array, at_end):
        array = np.asarray(array)
        key = (place, max(1, -(-array.nbytes // _PAGE)))
        pages = self._pages.setdefault(key, None) or Pages(key[1] * _PAGE)
        self._pages[key] = pages
        own = pages.array(array.shape, array.dtype, at_end)
        own[...] = array
        return own


def in_child(work):
    """The text that `work` returns in a process of its own; its signal where it does not come to that."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read)
            os.write(write, (work() or "").encode()[:4000])
        except BaseException as error:  # noqa: BLE001 (the child says whatever happened)
            os.write(write, f"{type(error).__name__}: {error}".encode()[:4000])
        os._exit(0)
    os.close(write)
    said = b""
    while piece := os.read(read, 4096):
        said += piece
    os.close(read)
    status = os.waitpid(pid, 0)[1]
    return f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else said.decode()
