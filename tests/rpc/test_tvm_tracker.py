"""TVM's clients and servers at our tracker, and our servers at TVM's."""

import contextlib
import select
import socket
import struct
import threading
import time

import pytest
from ends import command, free_port, ours, until
from tvm import rpc
from tvm.rpc.server import Server
from tvm.rpc.tracker import Tracker


@contextlib.contextmanager
def tvm_tracker():
    tracker = Tracker("127.0.0.1", port=free_port(), port_end=65000, silent=True)
    try:
        yield tracker.port
    finally:
        tracker.terminate()


@contextlib.contextmanager
def our_tracker():
    with ours("track", "--silent") as process:
        yield process.port


@contextlib.contextmanager
def tvm_server(key, tracker, **options):
    server = Server("127.0.0.1", port=free_port(), port_end=65000, key=key, tracker_addr=("127.0.0.1", tracker), silent=True, **options)
    try:
        yield server
    finally:
        server.terminate()


@contextlib.contextmanager
def our_server(key, tracker, *options):
    with ours("serve", "--silent", "--key", key, "--tracker", f"127.0.0.1:{tracker}", *options) as process:
        yield process


def use(tracker, key, **options):
    session = rpc.connect_tracker("127.0.0.1", tracker).request(key, **options)
    # Whichever server it is.
    assert session.get_function("rpc.testing.GetShapeSize")(session.get_function("ffi.Shape")(1, 2)) == 2
    return session


PAIRS = [(our_tracker, our_server), (our_tracker, tvm_server), (tvm_tracker, our_server)]


@pytest.mark.parametrize("key", ["board", "127.0.0.1:5555"])
@pytest.mark.parametrize("make_tracker, make_server", PAIRS)
def test_servers_come_are_used_and_go(make_tracker, make_server, key):
    with make_tracker() as tracker:
        link = rpc.connect_tracker("127.0.0.1", tracker)

        def counts():
            return link.summary()["queue_info"].get(key, {}).get("free", 0)

        with make_server(key, tracker):
            until(lambda: counts() == 1)
            assert [info["key"] for info in link.summary()["server_info"]] == [f"server:{key}"]
            assert key.split(":")[0] in link.text_summary()
            session = use(tracker, key)
            assert counts() == 0
            del session
            until(lambda: counts() == 1)
            use(tracker, key)
        until(lambda: counts() == 0)
        assert link.summary()["server_info"] == []


def test_requests_wait_by_priority():
    with our_tracker() as tracker:
        order = []

        def wait(name, priority):
            link = rpc.connect_tracker("127.0.0.1", tracker)
            link.request("board", priority=priority)
            order.append(name)

        threads = []
        for name, priority in (("first", 1), ("second", 1), ("urgent", 9)):
            threads.append(threading.Thread(target=wait, args=(name, priority)))
            threads[-1].start()
            time.sleep(0.2)
        assert rpc.connect_tracker("127.0.0.1", tracker).summary()["queue_info"]["board"]["pending"] == 3
        with our_server("board", tracker):
            for thread in threads:
                thread.join()
        assert order == ["urgent", "first", "second"]


def test_a_requester_that_dies_is_passed_over():
    with our_tracker() as tracker:
        dead = socket.create_connection(("127.0.0.1", tracker))
        dead.sendall(struct.pack("<i", 0x2F271))
        assert dead.recv(4) == struct.pack("<i", 0x2F271)
        text = b'[4, "board", "", 1]'
        dead.sendall(struct.pack("<i", len(text)) + text)
        link = rpc.connect_tracker("127.0.0.1", tracker)
        until(lambda: link.summary()["queue_info"].get("board", {}).get("pending") == 1)
        dead.close()
        until(lambda: link.summary()["queue_info"]["board"]["pending"] == 0)
        with our_server("board", tracker):
            use(tracker, "board")


@pytest.mark.parametrize(
    "sent",
    [b"", b"\x71", b"\x00" * 4, struct.pack("<ii", 0x2F271, 0x7FFFFFFF), struct.pack("<ii", 0x2F271, -1)]
    + [struct.pack("<ii", 0x2F271, len(text)) + text for text in (b"{}", b"[99]", b"[", b"[3]", b"\xff" * 9)],
)
def test_nothing_that_is_sent_ends_the_tracker(sent):
    with our_tracker() as tracker:
        with socket.create_connection(("127.0.0.1", tracker)) as hostile:
            hostile.sendall(sent)
            assert rpc.connect_tracker("127.0.0.1", tracker).summary() == {"queue_info": {}, "server_info": []}


def test_a_waiting_key_that_nobody_used_is_replaced():
    with our_tracker() as tracker, our_server("board", tracker):
        link = rpc.connect_tracker("127.0.0.1", tracker)
        until(lambda: link.summary()["queue_info"].get("board", {}).get("free") == 1)
        raw = socket.create_connection(("127.0.0.1", tracker))
        raw.sendall(struct.pack("<i", 0x2F271))
        raw.recv(4)
        text = b'[4, "board", "", 1]'
        raw.sendall(struct.pack("<i", len(text)) + text)
        length = struct.unpack("<i", raw.recv(4))[0]
        assert b"board:0." in raw.recv(length)
        # Whoever got it never came.
        until(lambda: link.summary()["queue_info"]["board"]["free"] == 1, seconds=30)


def answered(clients, count):
    """The clients that have an answer to read, once they are so many."""
    by_descriptor = {client.fileno(): client for client in clients}
    poll = select.poll()
    for descriptor in by_descriptor:
        poll.register(descriptor, select.POLLIN)
    found = []
    end = time.monotonic() + 20
    while len(found) < count and time.monotonic() < end:
        found = poll.poll(100)
    assert len(found) == count
    return [by_descriptor[descriptor] for descriptor, _ in found]


def test_two_thousand_clients_wait():
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = 2000
    if hard < count + 100:
        pytest.skip(f"only {hard} descriptors are allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    clients = []
    try:
        with ours("track", "--silent") as tracker:
            text = b'[4, "board", "", 1]'
            for _ in range(count):
                client = socket.create_connection(("127.0.0.1", tracker.port), timeout=20)
                clients.append(client)
                client.sendall(struct.pack("<i", 0x2F271))
            for client in clients:
                assert client.recv(4) == struct.pack("<i", 0x2F271)
                client.sendall(struct.pack("<i", len(text)) + text)
            link = rpc.connect_tracker("127.0.0.1", tracker.port)
            until(lambda: link.summary()["queue_info"].get("board", {}).get("pending") == count)
            begin = time.monotonic()
            link.summary()
            assert time.monotonic() - begin < 1
            with our_server("board", tracker.port, "--sessions", "100"):
                until(lambda: link.summary()["queue_info"]["board"]["pending"] == count - 100)
            # A hundred have one, and the others wait on. Who was served is the tracker's to say: sockets that are opened one
            # after the other may be heard in another order.
            served = answered(clients, 100)
            for client in served:
                client.settimeout(10)
                length = struct.unpack("<i", client.recv(4))[0]
                assert b"board:0." in client.recv(length)
    finally:
        for client in clients:
            client.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_table_and_the_state(tmp_path):
    import subprocess

    state, metrics = tmp_path / "state.sqlite", tmp_path / "metrics"
    help_text = subprocess.run([command(), "track", "--help"], capture_output=True, text=True).stdout
    assert "--state" in help_text
    with ours("track", "--silent", "--metrics", metrics) as tracker, our_server("board", tracker.port):
        until(lambda: metrics.exists() and 'relaxide_tracker_free{key="board"} 1' in metrics.read_text())
        shown = subprocess.run([command(), "query", "--port", str(tracker.port)], capture_output=True, text=True, check=True)
        assert "server:board" in shown.stdout and "pending" in shown.stdout
        use(tracker.port, "board")
        until(lambda: 'relaxide_tracker_handed_total{key="board"} 1' in metrics.read_text())
        assert metrics.read_text().endswith("# EOF\n")
