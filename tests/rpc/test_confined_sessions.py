"""What a session may use: memory, time, and files beneath one folder, also where it loads code that cares for none of it."""

import json
import os
import pathlib
import shutil
import subprocess
import time

import numpy as np
import pytest
from ends import command, ours, sessions, until

tvm = pytest.importorskip("relaxide")
from relaxide import rpc  # noqa: E402

#: A library whose functions do what a session is not to do. They return 0 where it worked, else the system's number of the error.
ESCAPES = r"""
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct { int32_t type_index; uint32_t zero; union { int64_t v_int64; const char *v_c_str; void *v_obj; }; } Any;

static int give(Any *out, int64_t value) {
    out->type_index = 1;
    out->zero = 0;
    out->v_int64 = value;
    return 0;
}

static int writes(const char *path) {
    int file = open(path, O_CREAT | O_WRONLY, 0600);
    if (file < 0) return errno;
    close(file);
    return 0;
}

int __tvm_ffi_outside(void *self, const Any *args, int32_t count, Any *out) {
    (void)self, (void)args, (void)count;
    return give(out, writes("OUTSIDE"));
}

int __tvm_ffi_inside(void *self, const Any *args, int32_t count, Any *out) {
    (void)self, (void)args, (void)count;
    return give(out, writes("inside"));
}

int __tvm_ffi_connects(void *self, const Any *args, int32_t count, Any *out) {
    (void)self, (void)count;
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons((uint16_t)args[0].v_int64)};
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int stream = socket(AF_INET, SOCK_STREAM, 0);
    int failed = connect(stream, (struct sockaddr *)&there, sizeof there) == 0 ? 0 : errno;
    close(stream);
    return give(out, failed);
}

int __tvm_ffi_signals(void *self, const Any *args, int32_t count, Any *out) {
    (void)self, (void)args, (void)count;
    return give(out, kill(getppid(), 0) == 0 ? 0 : errno);
}
"""
EACCES, EPERM = 13, 1


def has_landlock():
    import ctypes
    import platform

    if platform.machine() not in ("x86_64", "aarch64"):
        return False
    # Asks which version of the interface there is.
    return ctypes.CDLL(None).syscall(444, None, 0, 1) >= 6


@pytest.fixture
def escapes(tmp_path):
    if not shutil.which("cc"):
        pytest.skip("needs a C compiler")
    source, library = tmp_path / "escapes.c", tmp_path / "escapes.so"
    source.write_text(ESCAPES.replace("OUTSIDE", str(tmp_path / "outside")))
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


def keygen(folder, *words):
    return subprocess.run([command(), "keygen", *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def secure(folder, allow):
    """The options of a server that knows one key, and how that key comes in."""
    folder.mkdir(exist_ok=True)
    host, me = keygen(folder, "--out", "host"), keygen(folder, "--out", "me")
    keygen(folder, "--authorize", "keys", "--client", me, "--name", "me", "--allow", allow)
    return ["--identity", f"{folder}/host", "--keys", f"{folder}/keys"], {"identity": f"{folder}/me", "server": host}


def escaped(remote, escapes, port):
    remote.upload(str(escapes))
    module = remote.load_module("escapes.so")
    return [module["inside"](), module["outside"](), module["connects"](port), module["signals"]()]


@pytest.mark.skipif(not has_landlock(), reason="the system keeps no process to a folder")
def test_code_that_a_session_loads_keeps_to_its_folder(tmp_path, escapes):
    options, me = secure(tmp_path, "files load")
    with ours("serve", "--silent", *options) as server:
        remote = rpc.connect_secure("127.0.0.1", server.port, **me)
        assert escaped(remote, escapes, server.port) == [0, EACCES, EACCES, EPERM]
        assert not (tmp_path / "outside").exists() and "inside" in remote.listdir(".")
        # What it may do goes on: files, tensors and temporary files of its own.
        x = np.arange(5, dtype="float32")
        assert np.array_equal(tvm.runtime.tensor(x, remote.cpu()).numpy(), x)
    with ours("serve", "--silent", "--confined") as server:
        remote = rpc.connect("127.0.0.1", server.port)
        assert escaped(remote, escapes, server.port)[:2] == [0, EACCES]
    # A key that may do everything may do this too, and so may TVM's sessions unless they are confined.
    options, me = secure(tmp_path / "b", "everything")
    with ours("serve", "--silent", *options) as server:
        assert escaped(rpc.connect_secure("127.0.0.1", server.port, **me), escapes, server.port) == [0, 0, 0, 0]
    assert (tmp_path / "outside").exists()


def test_a_session_has_so_much_memory_and_time(tmp_path):
    with ours("serve", "--silent", "--memory", "1G", "--cpu-seconds", "1") as server:
        other = rpc.connect("127.0.0.1", server.port)
        make = other.get_function("ffi.Shape")
        greedy = rpc.connect("127.0.0.1", server.port)
        with pytest.raises((RuntimeError, MemoryError), match="memory|bytes|over|kShutdown"):
            tvm.runtime.empty((1 << 31,), "int8", greedy.cpu())
        busy = rpc.connect("127.0.0.1", server.port)
        begin = time.monotonic()
        work = busy.get_function("cache_flush_cpu_non_first_arg")
        with pytest.raises(RuntimeError, match="over|kShutdown|lost"):
            while time.monotonic() - begin < 120:
                work(0)
        assert make(1) is not None, "another session goes on"
        assert rpc.connect("127.0.0.1", server.port).get_function("ffi.Shape") is not None


def test_what_is_refused_is_in_the_log_wherever_the_server_was_started(tmp_path):
    options, me = secure(tmp_path, "files")
    process = subprocess.Popen(
        [command(), "serve", "--port", "0", "--port-end", "1", "--log", "audit.log", *options],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )
    try:
        line = ""
        while "listening" not in line:
            line = process.stdout.readline()
            assert line
        remote = rpc.connect_secure("127.0.0.1", int(line.rsplit(":", 1)[1]), **me)
        with pytest.raises(PermissionError, match="lacks the capability `load`"):
            remote.load_module("model.so")
        remote.upload(b"x", "file")
        lines = [json.loads(text) for text in (tmp_path / "audit.log").read_text().splitlines()]
        said = {(entry["user"], entry["what"], entry["name"]) for entry in lines}
        assert ("me", "refused", "tvm.rpc.server.load_module") in said
        assert ("me", "function", "tvm.rpc.server.upload") in said
        assert any(entry["what"] == "let in" for entry in lines)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


OPENCL = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 8), "float32")) -> R.Tensor(("n", 8), "float32"):
        with R.dataflow():
            y = R.nn.relu(R.add(x, x))
            R.output(y)
        return y
"""


def test_a_model_runs_on_a_device_of_the_far_side(tmp_path):
    if not tvm.opencl(0).exist:
        pytest.skip("there is no OpenCL device")
    from relaxide import relax

    path = tmp_path / "model.so"
    tvm.compile(tvm.script.from_source(OPENCL), target="opencl").export_library(str(path))
    options, me = secure(tmp_path, "files load devices=cpu:0,opencl:0")
    with ours("serve", "--silent", *options) as server:
        remote = rpc.connect_secure("127.0.0.1", server.port, **me)
        dev = remote.opencl(0)
        assert dev.exist and str(dev).startswith("remote")
        remote.upload(str(path))
        vm = relax.VirtualMachine(remote.load_module("model.so"), dev)
        x = np.arange(-8, 16, dtype="float32").reshape(3, 8)
        y = vm["main"](tvm.runtime.tensor(x, dev))
        assert y.device == dev and np.array_equal(y.numpy(), np.maximum(2 * x, 0))
    options, me = secure(tmp_path / "b", "files load")
    with ours("serve", "--silent", *options) as server:
        remote = rpc.connect_secure("127.0.0.1", server.port, **me)
        assert not remote.opencl(0).exist
        with pytest.raises(PermissionError, match="devices=opencl:0"):
            tvm.runtime.empty((4,), "float32", remote.opencl(0))


def test_the_folder_of_a_session_goes_with_what_it_left_there(tmp_path):
    with ours("serve", "--silent", "--work-dir", tmp_path) as server:
        remote = rpc.connect("127.0.0.1", server.port)
        folder = pathlib.Path(remote.get_function("tvm.rpc.server.workpath")(""))
        assert folder.is_dir() and folder.is_relative_to(tmp_path)
        session = sessions(server)[0]
        environment = pathlib.Path(f"/proc/{session}/environ").read_bytes().split(b"\0")
        assert b"TMPDIR=" + os.fsencode(folder) in environment
        remote.upload(b"x", "file")
        remote.close()
        until(lambda: not folder.exists())
