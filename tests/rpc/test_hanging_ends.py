"""Ends that hang or die in the middle of something: an error in time for whom it concerns, and nothing for anybody else."""

import contextlib
import os
import pathlib
import signal
import socket
import struct
import subprocess
import threading
import time

import numpy as np
import pytest
from ends import ENDED, command, free_port, ours, ours_behind, sessions, until

tvm = pytest.importorskip("relaxide")
from relaxide import rpc  # noqa: E402
from relaxide.rpc import client as clients  # noqa: E402

DEEP = bool(os.environ.get("RELAXIDE_DEEP"))


def states(pid):
    """What each thread of a process does, by the letter of `/proc`: the name before it may hold spaces and brackets."""
    found = []
    for task in pathlib.Path("/proc").glob(f"{pid}/task/*"):
        with contextlib.suppress(OSError):  # a thread that has ended meanwhile
            found.append((task / "stat").read_text().rpartition(")")[2].split()[0])
    return found


@contextlib.contextmanager
def stopped(*pids):
    """Processes that hang: they keep their connections and say nothing. One that ends meanwhile says nothing either."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    # The signal is only on its way when `kill` returns: a thread on another processor may still answer.
    until(lambda: all(state in "T" + ENDED for pid in pids for state in states(pid)))
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def error_within(seconds, kind, match, work):
    begin = time.monotonic()
    with pytest.raises(kind, match=match):
        work()
    assert time.monotonic() - begin < seconds


def test_a_server_that_hangs_ends_its_own_clients_calls_in_time():
    with ours("serve", "--silent") as server:
        other_make = rpc.connect("127.0.0.1", server.port).get_function("ffi.Shape")
        others = sessions(server)
        # The time of a session begins here: it has to hang before it is over.
        hung = rpc.connect("127.0.0.1", server.port, session_timeout=2)
        make = hung.get_function("ffi.Shape")
        with stopped(*set(sessions(server)) - set(others)):
            # Its server ends a session whose time is over, whatever that does.
            error_within(15, (TimeoutError, RuntimeError), "in time|closed the connection|connection is lost", lambda: make(1))
            assert other_make(1) is not None
        hung = rpc.connect("127.0.0.1", server.port, session_timeout=2)
        make = hung.get_function("ffi.Shape")
        with stopped(server.pid, *sessions(server)):
            # Where that hangs too, the time of a session is its calls'.
            error_within(15, TimeoutError, "did not answer in time", lambda: make(1))
        assert other_make(1) is not None
        assert rpc.connect("127.0.0.1", server.port).get_function("ffi.Shape")(1) is not None
        waits = rpc.connect("127.0.0.1", server.port)
        make = waits.get_function("ffi.Shape")
        assert make(1) is not None
        with stopped(*sessions(server)):
            # Not before: on a busy machine an answer may take as long.
            waits.set_timeout(0.3)
            error_within(10, TimeoutError, "did not answer in time", lambda: make(1))


@pytest.mark.parametrize("how", ["dies", "hangs"])
def test_a_proxy(how):
    with ours("serve", "--silent") as direct, ours("proxy", "--silent") as proxy, ours_behind(proxy.port, "x"):
        session = rpc.connect("127.0.0.1", proxy.port, key="x")
        make = session.get_function("ffi.Shape")
        aside = rpc.connect("127.0.0.1", direct.port).get_function("ffi.Shape")
        if how == "dies":
            proxy.kill()
            proxy.wait()
            error_within(10, RuntimeError, "over|lost|closed", lambda: make(1))
            words = [command(), "proxy", "--silent", "--port", str(proxy.port), "--port-end", str(proxy.port + 1)]
            again = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
            try:
                again.stdout.readline()
                # The server finds it again by itself.
                assert rpc.connect("127.0.0.1", proxy.port, key="x").get_function("ffi.Shape")(1) is not None
            finally:
                again.kill()
                again.wait()
                again.stdout.close()
        else:
            with stopped(proxy.pid):
                session.set_timeout(0.5)
                error_within(10, TimeoutError, "did not answer in time", lambda: make(1))
                assert aside(1) is not None
            assert rpc.connect("127.0.0.1", proxy.port, key="x").get_function("ffi.Shape")(1) is not None


def test_a_tracker_that_hangs_is_told_from_one_that_is_patient(monkeypatch):
    monkeypatch.setattr(clients, "PATIENCE", 0.3)
    with ours("track", "--silent") as tracker:
        link = rpc.connect_tracker("127.0.0.1", tracker.port)
        waiting, errors = rpc.connect_tracker("127.0.0.1", tracker.port), []

        def wait():
            try:
                waiting.request("board")
            except Exception as error:
                errors.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        until(lambda: link.summary()["queue_info"].get("board", {}).get("pending") == 1)
        time.sleep(1)
        assert not errors, "nobody is free, and that is no error"
        with stopped(tracker.pid):
            thread.join(10)
            assert isinstance(errors[0], TimeoutError) and "hangs" in str(errors[0])
            error_within(5, TimeoutError, "does not greet", lambda: rpc.connect_tracker("127.0.0.1", tracker.port))
        # Who gave up is not served when the tracker is back; who asks then is.
        with ours("serve", "--silent", "--key", "board", "--tracker", f"127.0.0.1:{tracker.port}"):
            late = rpc.connect_tracker("127.0.0.1", tracker.port)
            assert late.request("board").get_function("ffi.Shape")(1) is not None


def test_sessions_go_on_without_their_tracker_and_clients_that_wait_are_told():
    with ours("track", "--silent") as tracker:
        with ours("serve", "--silent", "--key", "board", "--tracker", f"127.0.0.1:{tracker.port}"):
            session = rpc.connect_tracker("127.0.0.1", tracker.port).request("board")
            make, errors = session.get_function("ffi.Shape"), []
            waiting = rpc.connect_tracker("127.0.0.1", tracker.port)

            def wait():
                try:
                    waiting.request("board", max_retry=1)
                except RuntimeError as error:
                    errors.append(error)

            thread = threading.Thread(target=wait)
            thread.start()
            link = rpc.connect_tracker("127.0.0.1", tracker.port)
            until(lambda: link.summary()["queue_info"]["board"]["pending"] == 1)
            tracker.kill()
            tracker.wait()
            thread.join(10)
            assert "Cannot request board" in str(errors[0])
            assert make(1) is not None


def test_a_lease_ends_with_its_client():
    holder = (
        "import sys\nfrom relaxide import rpc\n"
        "session = rpc.connect_tracker('127.0.0.1', int(sys.argv[1])).request('board')\n"
        "print(session.get_function('ffi.Shape') is not None, flush=True)\nsys.stdin.read()\n"
    )
    import sys

    with ours("track", "--silent") as tracker:
        with ours("serve", "--silent", "--key", "board", "--tracker", f"127.0.0.1:{tracker.port}"):
            words = [sys.executable, "-c", holder, str(tracker.port)]
            client = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            assert client.stdout.readline() == "True\n"
            link = rpc.connect_tracker("127.0.0.1", tracker.port)
            assert link.summary()["queue_info"]["board"]["free"] == 0
            client.kill()
            client.communicate()
            until(lambda: link.summary()["queue_info"]["board"]["free"] == 1)
            assert link.request("board").get_function("ffi.Shape")(1) is not None


@pytest.mark.skipif(not DEEP, reason="it takes as long as a server may be silent; `tracker/queue.rs` tests the same without waiting")
def test_a_server_that_hangs_is_not_handed_out():
    with ours("track", "--silent") as tracker:
        where = f"127.0.0.1:{tracker.port}"
        with ours("serve", "--silent", "--key", "board", "--tracker", where) as server:
            link = rpc.connect_tracker("127.0.0.1", tracker.port)
            free = lambda: link.summary()["queue_info"].get("board", {}).get("free", 0)  # noqa: E731
            until(lambda: free() == 1)
            time.sleep(3)
            with stopped(server.pid):
                until(lambda: free() == 0, seconds=30)
                with ours("serve", "--silent", "--key", "board", "--tracker", where):
                    assert link.request("board").get_function("ffi.Shape")(1) is not None
            until(lambda: free() >= 1, seconds=10)


def test_an_upload_that_is_half_sent_leaves_no_file():
    def packet(code, body=b""):
        return struct.pack("<Qi", 4 + len(body), code) + body

    def text(value):
        return struct.pack("<iQ", 8, len(value)) + value

    with ours("serve", "--silent") as server, socket.create_connection(("127.0.0.1", server.port)) as raw:
        raw.sendall(struct.pack("<ii", 0xFF271, 7) + b"client:")
        raw.recv(struct.unpack("<ii", raw.recv(8, socket.MSG_WAITALL))[1], socket.MSG_WAITALL)

        def ask(request):
            raw.sendall(request)
            length = struct.unpack("<Q", raw.recv(8, socket.MSG_WAITALL))[0]
            return raw.recv(length, socket.MSG_WAITALL)

        ask(packet(2, struct.pack("<Q", 5) + b"0.8.0" + struct.pack("<i", 0)))
        find = lambda name: struct.unpack("<Q", ask(packet(9, struct.pack("<i", 1) + text(name)))[-8:])[0]  # noqa: E731
        upload, where = find(b"tvm.rpc.server.upload"), find(b"tvm.rpc.server.workpath")
        reply = ask(packet(3, struct.pack("<Qi", where, 1) + text(b"")))
        folder = pathlib.Path(reply[reply.index(b"/") :].decode())
        call = packet(3, struct.pack("<Qi", upload, 2) + text(b"model.so") + struct.pack("<iIQ", 66, 66, 1 << 20) + bytes(1 << 20))
        # All but the last byte, and then the client is gone without a word.
        raw.sendall(call[:-1])
        time.sleep(0.3)
        assert list(folder.iterdir()) == []
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raw.close()
        until(lambda: not folder.exists())


def test_a_call_whose_server_dies_is_made_once(tmp_path):
    done = tmp_path / "done"

    def callback():
        import os
        import time

        import relaxide

        def once():
            with open(str(done), "a") as file:
                file.write("x")
            time.sleep(0.2)
            os._exit(1)

        relaxide.register_global_func("test.once", once, override=True)

    # The callback is sent by value, and so is the path.
    with ours("track", "--silent") as tracker:
        server = rpc.Server(
            "127.0.0.1", port=free_port(), port_end=65000, key="board", silent=True, server_init_callback=callback,
            tracker_addr=("127.0.0.1", tracker.port),
        )
        try:
            link = rpc.connect_tracker("127.0.0.1", tracker.port)
            with pytest.raises(RuntimeError, match="over|lost|kShutdown"):
                link.request("board").get_function("test.once")()
            assert done.read_text() == "x"
            # Run again it is by who asks for that, as often as asked.
            with pytest.raises(RuntimeError, match="after 3 retry"):
                link.request_and_run("board", lambda session: session.get_function("test.once")(), max_retry=3)
            assert done.read_text() == "xxxx"
        finally:
            server.terminate()


def test_copies_overlap_with_work():
    """What is sent ahead goes while the session computes, and what is asked behind it finds it there."""
    with ours("serve", "--silent") as server:
        remote = rpc.connect("127.0.0.1", server.port)
        arrays = [np.full(1 << 16, i, "float32") for i in range(8)]
        places = [tvm.runtime.empty((1 << 16,), "float32", remote.cpu()) for _ in arrays]
        arrived = [remote.copy_ahead(tvm.runtime.tensor(array), place) for array, place in zip(arrays, places)]
        assert remote.get_function("ffi.Shape")(1) is not None
        assert all(done() for done in arrived)
        assert all(np.array_equal(place.numpy(), array) for array, place in zip(arrays, places))
        late = remote.copy_ahead(tvm.runtime.tensor(arrays[1]), places[0])
        remote.settle()
        assert late() and places[0].numpy()[0] == 1
        with pytest.raises(ValueError, match="cannot be sent ahead"):
            remote.copy_ahead(tvm.runtime.tensor(np.zeros(3, "float32")), places[0])
        small = tvm.runtime.empty((8,), "float32", remote.cpu())
        pid = sessions(server)[0]
        with stopped(pid):
            lost = remote.copy_ahead(tvm.runtime.tensor(np.zeros(8, "float32")), small)
            assert not lost(), "nobody has answered yet"
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(RuntimeError):
            remote.settle()
        with pytest.raises(RuntimeError):
            lost()
