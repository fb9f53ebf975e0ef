"""Ends that die, hang and lose their cable: nobody else notices but by a clear error in time, and nothing is left."""

import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import pytest
from ends import Network, can_make_networks, command, ours, sessions, until
from tvm import rpc

DEEP = bool(os.environ.get("RELAXIDE_DEEP"))


def below(work):
    """The folders of sessions: each server has a folder with theirs, beside its lock."""
    return [path for own in pathlib.Path(work).iterdir() for path in own.iterdir() if path.name != "lock"]


def folders(server):
    """The folders of a server's sessions."""
    return below(server.scratch)


@pytest.fixture
def server(tmp_path):
    with ours("serve", "--silent", "--work-dir", tmp_path, "--lost-after", "4") as process:
        process.scratch = tmp_path
        yield process


CLIENT = """
import sys, time
import numpy as np
import tvm
from tvm import rpc
remote = rpc.connect("127.0.0.1", int(sys.argv[1]))
echo = remote.get_function("ffi.Array")
print("ready", flush=True)
i = 0
while True:
    i += 1
    tensor = tvm.runtime.tensor(np.full((i % 7 + 1, 1000), i), remote.cpu())
    assert tensor.numpy().max() == i
    remote.upload(bytearray(200_000), "file%d" % (i % 3))
    echo(i)
"""


def test_clients_that_die_at_random_points_leave_nothing(server):
    rng = random.Random(0)
    for _ in range(40 if DEEP else 6):
        client = subprocess.Popen([sys.executable, "-c", CLIENT, str(server.port)], stdout=subprocess.PIPE, text=True)
        assert client.stdout.readline() == "ready\n"
        time.sleep(rng.random() * 0.3)
        client.send_signal(rng.choice([signal.SIGKILL, signal.SIGTERM]))
        client.wait()
        client.stdout.close()
    until(lambda: not sessions(server) and not folders(server), seconds=15)
    assert rpc.connect("127.0.0.1", server.port).get_function("ffi.Shape") is not None


def test_a_session_that_dies_ends_its_client_alone(server):
    one, other = (rpc.connect("127.0.0.1", server.port) for _ in range(2))
    find = one.get_function("ffi.Shape")
    other_make = other.get_function("ffi.Shape")
    first = min(sessions(server))
    os.kill(first, signal.SIGKILL)
    with pytest.raises(Exception, match="kShutdown|reset|pipe|closed"):
        find(1)
        find(2)
    assert other_make(1) is not None
    assert rpc.connect("127.0.0.1", server.port).get_function("ffi.Shape") is not None


def test_a_stopped_client_delays_nobody(server):
    client = subprocess.Popen([sys.executable, "-c", CLIENT, str(server.port)], stdout=subprocess.PIPE, text=True)
    assert client.stdout.readline() == "ready\n"
    client.send_signal(signal.SIGSTOP)
    begin = time.monotonic()
    assert rpc.connect("127.0.0.1", server.port).get_function("ffi.Shape") is not None
    assert time.monotonic() - begin < 3
    client.kill()
    client.wait()
    client.stdout.close()


def test_a_tracker_that_comes_back_has_its_servers_again(tmp_path):
    state = tmp_path / "state"
    with ours("track", "--silent", "--state", state) as first:
        port = first.port
        with ours("serve", "--silent", "--key", "board", "--tracker", f"127.0.0.1:{port}"):
            link = rpc.connect_tracker("127.0.0.1", port)
            until(lambda: link.summary()["queue_info"].get("board", {}).get("free") == 1)
            link.request("board")
            first.kill()
            first.wait()
            again = subprocess.Popen(
                [command(), "track", "--silent", "--port", str(port), "--state", str(state)], stdout=subprocess.PIPE, text=True
            )
            try:
                again.stdout.readline()
                until(lambda: rpc.connect_tracker("127.0.0.1", port).summary()["queue_info"].get("board", {}).get("free") == 1)
                session = rpc.connect_tracker("127.0.0.1", port).request("board")
                assert session.get_function("ffi.Shape") is not None
            finally:
                again.kill()
                again.wait()
                again.stdout.close()


@pytest.mark.skipif(not can_make_networks(), reason="network namespaces need root")
def test_cables_that_lose_and_cables_that_are_cut(tmp_path):
    with Network(loss=0.02, delay=0.003) as network:
        server = network.run(
            0, command(), "serve", "--silent", "--protocol", "tvm", "--host", "10.77.0.1", "--port", "9090", "--lost-after", "4",
            "--work-dir", tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )
        client = None
        try:
            server.stdout.readline()
            program = CLIENT.replace("127.0.0.1", "10.77.0.1")
            client = network.run(1, sys.executable, "-c", program, "9090", stdout=subprocess.PIPE)
            assert client.stdout.readline() == "ready\n"
            time.sleep(1.5)
            assert client.poll() is None, "loss and delay are no errors"
            assert below(tmp_path)
            assert network.cable.lost > 0 and network.cable.moved > 20 * network.cable.lost
            network.cut(1)
            # Nobody says a word; the server finds out, ends the session and removes its folder.
            until(lambda: not below(tmp_path), seconds=30)
            network.mend(1)
            again = network.run(1, sys.executable, "-c", program, "9090", stdout=subprocess.PIPE)
            assert again.stdout.readline() == "ready\n"
            again.kill()
            again.wait()
            again.stdout.close()
        finally:
            for process in (client, server):
                if process is not None:
                    process.kill()
                    process.wait()
                    process.stdout.close()
