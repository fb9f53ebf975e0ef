"""TVM's clients and servers at our proxy, and our servers behind TVM's."""

import contextlib
import socket
import struct
import time

import numpy as np
import pytest
import tvm
from ends import free_port, ours, ours_behind, until
from tvm import rpc
from tvm.rpc.proxy import Proxy
from tvm.rpc.server import Server

pytest.importorskip("tornado", reason="TVM's proxy needs tornado")


@contextlib.contextmanager
def tvm_proxy(tracker=None):
    address = ("127.0.0.1", tracker) if tracker else None
    proxy = Proxy("127.0.0.1", port=free_port(), port_end=65000, tracker_addr=address)
    try:
        yield proxy.port
    finally:
        proxy.terminate()


@contextlib.contextmanager
def our_proxy(tracker=None, *options):
    where = ["--tracker", f"127.0.0.1:{tracker}"] if tracker else []
    with ours("proxy", "--silent", *where, *options) as process:
        yield process.port


@contextlib.contextmanager
def tvm_server(port, key):
    server = Server("127.0.0.1", port=port, key=key, is_proxy=True, silent=True)
    try:
        yield
    finally:
        server.terminate()


PAIRS = [(our_proxy, ours_behind), (our_proxy, tvm_server), (tvm_proxy, ours_behind)]


def check(session):
    x = np.arange(10, dtype="float32")
    assert np.array_equal(tvm.runtime.tensor(x, session.cpu()).numpy(), x)


@pytest.mark.parametrize("make_proxy, make_server", PAIRS)
def test_clients_meet_servers(make_proxy, make_server):
    with make_proxy() as port, make_server(port, "x1"):
        for _ in range(3):
            check(rpc.connect("127.0.0.1", port, key="x1", session_timeout=20))


@pytest.mark.parametrize("make_proxy, make_server", PAIRS)
def test_they_meet_through_a_tracker(make_proxy, make_server):
    with ours("track", "--silent") as tracker, make_proxy(tracker.port) as port, make_server(port, "x1"):
        link = rpc.connect_tracker("127.0.0.1", tracker.port)
        until(lambda: link.summary()["queue_info"].get("x1", {}).get("free") == 1)
        # The proxy says what it has and who it is in two messages.
        until(lambda: [server["key"] for server in link.summary()["server_info"]] == ["server:proxy[x1]"])
        for _ in range(2):
            check(link.request("x1", session_timeout=20))
            until(lambda: link.summary()["queue_info"]["x1"]["free"] == 1)


def test_a_second_of_a_side_and_one_without_partner_are_told():
    with our_proxy(None, "--timeout", "1") as port:
        first = socket.create_connection(("127.0.0.1", port))
        first.sendall(struct.pack("<ii", 0xFF271, 8) + b"server:y")
        time.sleep(0.1)
        second = socket.create_connection(("127.0.0.1", port))
        second.sendall(struct.pack("<ii", 0xFF271, 8) + b"server:y")
        assert second.recv(4) == struct.pack("<i", 0xFF272)
        assert first.recv(4) == struct.pack("<i", 0xFF273)
        assert first.recv(4) == b""


def test_a_side_that_leaves_or_talks_before_its_time_is_forgotten():
    with our_proxy() as port, ours_behind(port, "z"):
        for hostile in (b"", b"too early"):
            with socket.create_connection(("127.0.0.1", port)) as one:
                one.sendall(struct.pack("<ii", 0xFF271, 10) + b"client:zzz"[:10] + hostile)
                time.sleep(0.3)
        check(rpc.connect("127.0.0.1", port, key="z"))


def test_the_session_time_reaches_the_server():
    with our_proxy() as port, ours_behind(port, "t"):
        session = rpc.connect("127.0.0.1", port, key="t", session_timeout=1)
        make = session.get_function("ffi.Shape")
        time.sleep(1.4)
        with pytest.raises(Exception, match="session has expired"):
            make(1)
        check(rpc.connect("127.0.0.1", port, key="t"))


def test_a_server_behind_a_websocket(tmp_path):
    web = free_port()
    page = tmp_path / "index.html"
    page.write_text("<p>here</p>")
    with our_proxy(None, "--web-port", web, "--index-page", page) as port:
        import urllib.request

        assert urllib.request.urlopen(f"http://127.0.0.1:{web}/").read() == b"<p>here</p>"
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{web}/../../etc/passwd")
        with ours_behind_web(web, "w"):
            check(rpc.connect("127.0.0.1", port, key="w"))


@contextlib.contextmanager
def ours_behind_web(web, key):
    import subprocess

    from ends import command

    where = f"ws://127.0.0.1:{web}/ws"
    process = subprocess.Popen([command(), "serve", "--through-proxy", where, "--key", key], stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()
