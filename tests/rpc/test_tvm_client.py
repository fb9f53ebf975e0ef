"""TVM's client on our server: the cases of TVM's own tests, and what its own server gets wrong."""

import gc
import socket
import struct
import threading
import time

import numpy as np
import pytest
import tvm
from ends import command, ours
from tvm import rpc


@pytest.fixture(scope="module")
def server():
    with ours("serve", "--key", "k", "--silent") as process:
        yield process


@pytest.fixture
def remote(server):
    return rpc.connect("127.0.0.1", server.port, key="k")


def test_a_wrong_key_is_refused_and_the_server_goes_on(server):
    with pytest.raises(Exception, match="cannot find server that matches key=client:wrong"):
        rpc.connect("127.0.0.1", server.port, key="wrong")
    assert rpc.connect("127.0.0.1", server.port, key="k").get_function("ffi.Shape")(1, 2) is not None


def test_values(remote):
    size = remote.get_function("rpc.testing.GetShapeSize")
    element = remote.get_function("rpc.testing.GetShapeElem")
    shape = remote.get_function("ffi.Shape")(4, 5, 6)
    assert size(shape) == 3
    assert [element(shape, i) for i in range(3)] == [4, 5, 6]
    with pytest.raises(AttributeError, match="no function"):
        remote.get_function("no.such.function")
    array = remote.get_function("ffi.Array")("text", 2.5, True, None, b"bytes", b"longer bytes", tvm.DataType("float32"))
    item = remote.get_function("ffi.ArrayGetItem")
    assert [item(array, i) for i in range(6)] == ["text", 2.5, True, None, b"bytes", b"longer bytes"]
    assert str(item(array, 6)) == "float32"


def test_tensors(remote):
    dev = remote.cpu()
    assert str(dev).startswith("remote")
    x = np.random.default_rng(0).random((30, 41))
    a = tvm.runtime.tensor(x, dev)
    assert a.dtype == "float64" and np.array_equal(a.numpy(), x)
    b = tvm.runtime.empty((30, 41), "float64", dev)
    a.copyto(b)
    assert np.array_equal(b.numpy(), x)
    big = np.random.default_rng(1).random((256, 3, 64, 64)).astype("float32")
    assert np.array_equal(tvm.runtime.tensor(big, dev).numpy(), big)
    for empty in (np.zeros((0, 4), "float32"), np.array(3.0)):
        assert np.array_equal(tvm.runtime.tensor(empty, dev).numpy(), empty)
    dev.sync()
    assert dev.exist and not remote.metal(0).exist
    with pytest.raises(Exception, match="metal is not enabled"):
        tvm.runtime.empty((4,), "float32", remote.metal(0))


def test_a_function_may_return_its_argument(remote):
    """TVM's server wedges its client there."""
    array = remote.get_function("ffi.Array")
    item = remote.get_function("ffi.ArrayGetItem")
    a = tvm.runtime.tensor(np.arange(6, dtype="float32"), remote.cpu())
    held = array(a)
    same = item(held, 0)
    assert np.array_equal(same.numpy(), np.arange(6))
    del a, held
    gc.collect()
    assert np.array_equal(same.numpy(), np.arange(6))


def test_files(remote):
    blob = bytearray(np.random.default_rng(2).integers(0, 256, 100000, "uint8"))
    remote.upload(blob, "dat.bin")
    assert remote.download("dat.bin") == blob
    assert "dat.bin" in "".join(remote.listdir("."))
    remote.remove("dat.bin")
    with pytest.raises(Exception, match="Cannot open"):
        remote.download("dat.bin")
    for name in ("../escape", "/tmp/relaxide-escape", "a/../../escape"):
        with pytest.raises(Exception, match="session"):
            remote.upload(blob, name)


def test_errors_keep_the_session(remote):
    element = remote.get_function("rpc.testing.GetShapeElem")
    shape = remote.get_function("ffi.Shape")(1)
    for _ in range(3):
        with pytest.raises(tvm.error.RPCError, match="index 9 of a shape of 1"):
            element(shape, 9)
    assert element(shape, 0) == 1
    with pytest.raises(Exception, match="no module|junk"):
        remote.upload(bytearray(b"junk"), "junk.so")
        remote.load_module("junk.so")


def test_a_child_process_of_ours(server, tmp_path):
    """TVM tells its children two descriptors by their numbers, which are not those of standard input and output."""
    script = tmp_path / "server"
    script.write_text(f'#!/bin/sh\nexec "{command()}" pipe "$@"\n')
    script.chmod(0o755)
    for binary in (str(script), script.read_bytes()):
        remote = rpc.PopenSession(binary)
        shape = remote.get_function("ffi.Shape")(3, 4)
        assert remote.get_function("rpc.testing.GetShapeElem")(shape, 1) == 4
        x = np.arange(100_000, dtype="float64")
        assert np.array_equal(tvm.runtime.tensor(x, remote.cpu()).numpy(), x)
        with pytest.raises(tvm.error.RPCError, match="index 9"):
            remote.get_function("rpc.testing.GetShapeElem")(shape, 9)
        del shape, remote
        gc.collect()
    for constructor in (["rpc.PopenSession", script.read_bytes()], ["rpc.LocalSession"]):
        remote = rpc.connect("127.0.0.1", server.port, key="k", session_constructor_args=constructor)
        shape = remote.get_function("ffi.Shape")(5, 6)
        assert remote.get_function("rpc.testing.GetShapeElem")(shape, 1) == 6
        del shape, remote
        gc.collect()
    with pytest.raises(Exception, match="kReturn|closed|shutdown"):
        broken = tmp_path / "broken"
        broken.write_text(f'#!/bin/sh\nexec "{command()}" pipe 77 78 2>/dev/null\n')
        broken.chmod(0o755)
        rpc.PopenSession(str(broken))


def test_sessions_run_side_by_side(server):
    """TVM's server takes one after the other."""
    sessions = [rpc.connect("127.0.0.1", server.port, key="k") for _ in range(8)]
    tensors = [tvm.runtime.tensor(np.full(4, i), session.cpu()) for i, session in enumerate(sessions)]
    for i, tensor in enumerate(tensors):
        assert tensor.numpy().tolist() == [i] * 4
    del tensors
    gc.collect()


def test_a_session_ends_when_its_time_is_over(server):
    remote = rpc.connect("127.0.0.1", server.port, key="k", session_timeout=1)
    make = remote.get_function("ffi.Shape")
    time.sleep(1.3)
    with pytest.raises(Exception, match=r"RPCSessionTimeoutError: Your 1.0s session has expired"):
        make(1)
    assert rpc.connect("127.0.0.1", server.port, key="k").get_function("ffi.Shape") is not None


def test_sessions_lead_on_through_sessions(server):
    through = rpc.connect(
        "127.0.0.1", server.port, key="k", session_constructor_args=["rpc.Connect", "127.0.0.1", server.port, "k", False]
    )
    shape = through.get_function("ffi.Shape")(7, 8)
    assert through.get_function("rpc.testing.GetShapeElem")(shape, 1) == 8
    x = np.arange(5, dtype="int16")
    assert np.array_equal(tvm.runtime.tensor(x, through.cpu()).numpy(), x)
    with pytest.raises(tvm.error.RPCError, match="RPCError: Error caught from RPC call"):
        through.get_function("rpc.testing.GetShapeElem")(shape, 9)
    with pytest.raises(Exception, match="Cannot find session constructor no.such"):
        rpc.connect("127.0.0.1", server.port, key="k", session_constructor_args=["no.such"])
    with pytest.raises(Exception, match="need to return an RPCModule"):
        rpc.connect("127.0.0.1", server.port, key="k", session_constructor_args=["ffi.Shape"])
    with pytest.raises(Exception, match="cannot find server that matches key=client:wrong"):
        args = ["rpc.Connect", "127.0.0.1", server.port, "wrong", False]
        rpc.connect("127.0.0.1", server.port, key="k", session_constructor_args=args)


def packet(code, body=b""):
    return struct.pack("<Qi", 4 + len(body), code) + body


INIT = packet(2, struct.pack("<Q", 5) + b"0.8.0" + struct.pack("<i", 0))
HOSTILE = {
    "nothing": None,
    "wrong magic": b"\x01\x02\x03\x04",
    "half a magic": b"\x71",
    "an empty key": struct.pack("<ii", 0xFF271, 0),
    "a negative key length": struct.pack("<ii", 0xFF271, -1),
    "a huge key length": struct.pack("<ii", 0xFF271, 0x7FFFFFFF),
    "a key that is not UTF-8": struct.pack("<ii", 0xFF271, 4) + b"\xff\xfe\xfd\xfc",
    "a time-out that is no number": struct.pack("<ii", 0xFF271, 21) + b"client:k -timeout=abc",
}
HOSTILE_SESSION = {
    "an unknown code": packet(99),
    "a code below zero": packet(-1),
    "a system call without arguments": packet(12),
    "a system call before the first": packet(9, struct.pack("<iiQ", 1, 8, 1) + b"x"),
    "a huge packet": struct.pack("<Q", 1 << 62),
    "a packet of two bytes": struct.pack("<Q", 2) + b"xx",
    "half a packet": struct.pack("<Q", 100) + b"\x03\0\0\0",
    "values that are not there": INIT + packet(3, struct.pack("<Qi", 1, 0x7FFFFFFF)),
    "an unknown type": INIT + packet(3, struct.pack("<Qii", 1, 1, 13)),
    "surplus bytes": INIT + packet(9, struct.pack("<iiQ", 1, 8, 1) + b"xyz"),
    "an address that nobody gave": INIT + packet(3, struct.pack("<Qi", 0xDEADBEEF, 0)),
    "a handle that nobody gave": INIT + packet(10, struct.pack("<iiQ", 1, 4, 0xDEADBEEF)),
    "memory that nobody gave": INIT + packet(6, struct.pack("<QiiiBBHqQQ", 0x1000, 1, 0, 1, 2, 32, 1, 4, 0, 16)),
    "a tensor with too many dimensions": INIT + packet(6, struct.pack("<QiiiBBH", 1, 1, 0, 0x7FFFFFFF, 2, 32, 1)),
    "a tensor larger than memory": INIT + packet(17, struct.pack("<iiQiiiBBHqqQi", 2, 7, 0, 1, 0, 2, 2, 32, 1, 1 << 62, 8, 0, 0)),
    "a reply": INIT + packet(4, struct.pack("<ii", 1, 0)),
    "an exception": INIT + packet(5, struct.pack("<iiQ", 1, 8, 1) + b"x"),
    "a call from another depth": INIT + packet(3 | 1 << 16, struct.pack("<Qi", 1, 0)),
}


@pytest.mark.parametrize("name", [*HOSTILE, *HOSTILE_SESSION])
def test_nothing_that_a_client_sends_ends_the_server(server, name):
    with socket.create_connection(("127.0.0.1", server.port)) as hostile:
        if name in HOSTILE_SESSION:
            hostile.sendall(struct.pack("<ii", 0xFF271, 8) + b"client:k")
            assert hostile.recv(4) == struct.pack("<i", 0xFF271)
            hostile.sendall(HOSTILE_SESSION[name])
        elif HOSTILE[name]:
            hostile.sendall(HOSTILE[name])
        # Served while the other is still there, and after.
        assert rpc.connect("127.0.0.1", server.port, key="k").get_function("ffi.Shape") is not None
        hostile.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert rpc.connect("127.0.0.1", server.port, key="k").get_function("ffi.Shape") is not None


def test_wrong_requests_are_answered_with_what_is_wrong(server):
    with socket.create_connection(("127.0.0.1", server.port)) as raw:
        raw.sendall(struct.pack("<ii", 0xFF271, 8) + b"client:k" + INIT[:0])
        head = raw.recv(8)
        raw.recv(struct.unpack("<ii", head)[1])

        def ask(request):
            raw.sendall(request)
            length = struct.unpack("<Q", raw.recv(8, socket.MSG_WAITALL))[0]
            return raw.recv(length, socket.MSG_WAITALL)

        def said(reply):
            assert reply[:4] == struct.pack("<i", 5), reply
            return reply[20:].decode()

        assert "Need to call InitRemoteSession first" in said(ask(packet(9, struct.pack("<iiQ", 1, 8, 1) + b"x")))
        version = packet(2, struct.pack("<Q", 5) + b"9.9.9" + struct.pack("<i", 0))
        assert "version mismatch" in said(ask(version))
        assert ask(INIT)[:4] == struct.pack("<i", 4)
        assert "already been initialized" in said(ask(INIT))
        assert "never given out" in said(ask(packet(10, struct.pack("<iiQ", 1, 4, 77))))
        assert "missing" in said(ask(packet(12, struct.pack("<i", 0))))
        # Requests that are sent ahead are answered in order; an empty packet says nothing.
        names = [b"ffi.Shape", b"no.such", b"ffi.Array"]
        find = [packet(9, struct.pack("<iiQ", 1, 8, len(name)) + name) for name in names]
        handles = [struct.unpack("<Q", ask(struct.pack("<Q", 0) + request)[-8:])[0] for request in find]
        assert handles[0] and handles[2] and handles[1] == 0


def test_a_client_that_vanishes_leaves_nothing(server, tmp_path):
    remote = rpc.connect("127.0.0.1", server.port, key="k")
    folder = remote.get_function("tvm.rpc.server.workpath")("")
    remote.upload(bytearray(b"x"), "file")
    import pathlib

    assert (pathlib.Path(folder) / "file").exists()
    del remote
    gc.collect()
    deadline = time.monotonic() + 10
    while pathlib.Path(folder).exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_threads_of_one_client(server):
    wrong = []

    def work(i):
        session = rpc.connect("127.0.0.1", server.port, key="k")
        make, size = session.get_function("ffi.Shape"), session.get_function("rpc.testing.GetShapeSize")
        if size(make(*range(i))) != i:
            wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
