"""A call is cancelled while its session lives: on servers of Relaxide's own protocol, from other threads and by Ctrl-C."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from ends import command, ours, sessions, until

tvm = pytest.importorskip("relaxide")
from relaxide import relax, rpc  # noqa: E402

#: Library functions: one that computes and asks nobody, and one that asks between two steps whether it is to stop.
STUBBORN = r"""
#include <stdint.h>
#include <unistd.h>

typedef struct { int32_t type_index; uint32_t zero; int64_t value; } Any;
extern int TVMFFIEnvCheckSignals(void);

int __tvm_ffi_stubborn(void *self, const Any *args, int32_t count, Any *out) {
    (void)self, (void)args, (void)count, (void)out;
    for (;;) usleep(1000);
}

int __tvm_ffi_polite(void *self, const Any *args, int32_t count, Any *out) {
    (void)self, (void)args, (void)count, (void)out;
    while (TVMFFIEnvCheckSignals() == 0) usleep(1000);
    return -1;
}
"""

LOOP = """<ir_version: 8, opset_import: ["": 17]>
g (float[4] x, int64 k) => (float[4] y) {
  cond = Constant <value: tensor = bool {1}> ()
  y = Loop (k, cond, x) <body = b (int64 i, bool c, float[4] s) => (bool c2, float[4] s2) {
     c2 = Identity(c)
     s2 = Add(s, x)
  }>
}"""


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    from onnx import parser

    folder = tmp_path_factory.mktemp("libraries")
    model = relax.frontend.onnx.from_onnx(parser.parse_model(LOOP))
    tvm.compile(model, target="llvm").export_library(str(folder / "loop.so"))
    if shutil.which("cc"):
        (folder / "stubborn.c").write_text(STUBBORN)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "stubborn.so", folder / "stubborn.c"], check=True)
    return folder


@contextlib.contextmanager
def secure(folder, *options):
    """A server of our own protocol, and what a client of it gives."""
    def keygen(*words):
        return subprocess.run([command(), "keygen", *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()

    host, me = keygen("--out", "host"), keygen("--out", "me")
    keygen("--authorize", "keys", "--client", me, "--name", "me", "--allow", "files load call=*")
    with ours("serve", "--silent", "--identity", f"{folder}/host", "--keys", f"{folder}/keys", *options) as server:
        yield server, {"identity": f"{folder}/me", "server": host}


def loaded(remote, library):
    remote.upload(str(library))
    return remote.load_module(library.name)


def loop(remote, libraries):
    machine = relax.VirtualMachine(loaded(remote, libraries / "loop.so"), remote.cpu())
    x = tvm.runtime.tensor(np.ones(4, "float32"), remote.cpu())
    return machine, lambda count: (x, tvm.runtime.tensor(np.array(count, "int64"), remote.cpu()))


ENDS = ["secure", "pipe", "local"]


@contextlib.contextmanager
def session(kind, folder):
    if kind == "secure":
        with secure(folder) as (server, me):
            yield rpc.connect_secure("127.0.0.1", server.port, **me)
    elif kind == "pipe":
        yield rpc.connect_command(command(), "pipe", "--own")
    else:
        yield rpc.LocalSession()


@pytest.mark.parametrize("kind", ENDS)
def test_a_virtual_machine_stops_and_the_session_goes_on(kind, libraries, tmp_path):
    with session(kind, tmp_path) as remote:
        machine, args = loop(remote, libraries)
        assert machine["main"](*args(3)).numpy()[0] == 4
        for end in (lambda call: call.cancel(grace=60), lambda call: remote.cancel(grace=60)):
            call = rpc.start_call(machine["main"], *args(1 << 60))
            time.sleep(0.3)
            assert not call.done()
            with pytest.raises(TimeoutError, match="not over after"):
                call.result(timeout=0.01)
            end(call)
            with pytest.raises(tvm.error.CancelledError):
                call.result(timeout=60)
            assert call.done()
            # Nothing was lost: the same machine, with tensors that lie there.
            assert machine["main"](*args(5)).numpy()[0] == 6
        finished = rpc.start_call(machine["main"], *args(2))
        assert finished.result(timeout=60).numpy()[0] == 3
        finished.cancel()
        assert finished.result().numpy()[0] == 3


def test_a_time_evaluator_is_cancelled(libraries, tmp_path):
    with session("secure", tmp_path) as remote:
        machine, args = loop(remote, libraries)
        evaluator = machine.time_evaluator("main", remote.cpu(), number=1 << 30)
        call = rpc.start_call(lambda: evaluator(*args(1)))
        time.sleep(0.3)
        call.cancel(grace=60)
        with pytest.raises(tvm.error.CancelledError):
            call.result(timeout=60)
        assert machine["main"](*args(5)).numpy()[0] == 6


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")
@pytest.mark.parametrize("kind", ["secure", "pipe"])
def test_code_that_asks_stops_and_code_that_does_not_ends_with_its_process(kind, libraries, tmp_path):
    with session(kind, tmp_path) as remote:
        module = loaded(remote, libraries / "stubborn.so")
        polite = rpc.start_call(module["polite"])
        time.sleep(0.2)
        polite.cancel(grace=60)
        with pytest.raises(tvm.error.CancelledError):
            polite.result(timeout=60)
        folder = remote.get_function("tvm.rpc.server.workpath")("")
        stubborn = rpc.start_call(module["stubborn"])
        time.sleep(0.2)
        stubborn.cancel(grace=0.3)
        with pytest.raises(tvm.error.CancelledError, match="did not end|not end it in time"):
            stubborn.result(timeout=60)
        with pytest.raises(RuntimeError):
            remote.get_function("ffi.Shape")(1)
        until(lambda: not pathlib.Path(folder).exists())
        again = remote.reconnect()
        assert again.get_function("ffi.Shape")(1) is not None


#: Prints that a call runs, and after the interrupt whether the session still answers.
INTERRUPTED = """
import sys, json
import numpy as np
import relaxide as tvm
from relaxide import relax, rpc
how = json.loads(sys.argv[1])
remote = rpc.connect(*how["tvm"]) if "tvm" in how else rpc.connect_secure("127.0.0.1", how["port"], **how["me"])
remote.upload(how["library"])
machine = relax.VirtualMachine(remote.load_module("loop.so"), remote.cpu())
x = tvm.runtime.tensor(np.ones(4, "float32"), remote.cpu())
count = lambda n: tvm.runtime.tensor(np.array(n, "int64"), remote.cpu())
function, many = machine["main"], count(1 << 60)
print("ready", flush=True)
try:
    function(x, many)
except KeyboardInterrupt:
    print("interrupted", flush=True)
try:
    print(function(x, count(5)).numpy()[0], flush=True)
except RuntimeError as error:
    print(type(error).__name__, error, flush=True)
"""


def interrupted(how):
    import json

    client = subprocess.Popen([sys.executable, "-c", INTERRUPTED, json.dumps(how)], stdout=subprocess.PIPE, text=True)
    try:
        assert client.stdout.readline() == "ready\n"
        time.sleep(0.5)
        client.send_signal(signal.SIGINT)
        return client.communicate(timeout=60)[0].splitlines()
    finally:
        client.kill()
        client.communicate()


def test_an_interrupt_cancels_what_the_client_waits_for(libraries, tmp_path):
    with secure(tmp_path) as (server, me):
        said = interrupted({"port": server.port, "me": me, "library": str(libraries / "loop.so")})
    assert said == ["interrupted", "6.0"]


def test_an_interrupt_ends_a_session_that_cannot_cancel(libraries):
    with ours("serve", "--silent") as server:
        said = interrupted({"tvm": ["127.0.0.1", server.port], "library": str(libraries / "loop.so")})
        assert said[0] == "interrupted"
        assert said[1].startswith("CancelledError a call was interrupted, and the session ended with it: TVM's protocol"), said
        # Its process does not compute on.
        until(lambda: not sessions(server))


def test_tvms_protocol_says_that_it_cannot_cancel(libraries):
    with ours("serve", "--silent") as server:
        remote = rpc.connect("127.0.0.1", server.port)
        machine, args = loop(remote, libraries)
        call = rpc.start_call(machine["main"], *args(1 << 60))
        time.sleep(0.2)
        with pytest.raises(NotImplementedError, match="TVM's protocol.*closing the session"):
            call.cancel()
        with pytest.raises(NotImplementedError, match="cannot cancel a call"):
            remote.cancel()
        remote.close()
        with pytest.raises(tvm.error.CancelledError, match="was closed while the call ran"):
            call.result(timeout=60)


def test_a_client_that_is_killed_takes_its_call_along(libraries):
    """Through a pipe too, where no connection says that the client is gone."""
    code = (
        "import sys\nfrom relaxide import rpc\n"
        "remote = rpc.connect_command(sys.argv[1], 'pipe', '--own')\n"
        "remote.upload(sys.argv[2])\n"
        "module = remote.load_module('stubborn.so')\n"
        "print(remote.get_function('tvm.rpc.server.workpath')(''), flush=True)\n"
        "module['stubborn']()\n"
    )
    if not (libraries / "stubborn.so").exists():
        pytest.skip("there is no C compiler")
    words = [sys.executable, "-c", code, command(), libraries / "stubborn.so"]
    client = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    folder = pathlib.Path(client.stdout.readline().strip())
    time.sleep(0.3)
    assert folder.exists()
    os.kill(client.pid, signal.SIGKILL)
    client.communicate()
    until(lambda: not folder.exists())
