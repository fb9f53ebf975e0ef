"""Remote calls beside TVM's, on this machine, in one run.

usage: python bench/rpc.py [--quick]

Each figure is the best of several rounds, beside it the median over the rounds of the ratio to the bare socket in the same round, which
other work on the machine disturbs less; rounds of the three take turns: a bare socket that answers what it is sent, Relaxide's client
and server, TVM's client and server (and each client on the other's server, for calls). All servers are processes; all on loopback.
Copies that would take TVM longer than some seconds each are left out, which the output says.
"""

import argparse
import contextlib
import gc
import pathlib
import socket
import statistics
import subprocess
import sys
import threading
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests" / "rpc"))
from ends import ours  # noqa: E402

ECHO = """
import socket, sys
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    peer, _ = listener.accept()
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    place = bytearray(1 << 20)
    while True:
        head = peer.recv(12, socket.MSG_WAITALL)
        if len(head) < 12:
            break
        kind, count = head[:1], int.from_bytes(head[4:], "little")
        if kind == b"e":
            peer.sendall(peer.recv(count, socket.MSG_WAITALL))
        elif kind == b"t":
            left = count
            while left:
                left -= peer.recv_into(place, min(left, len(place)))
            peer.sendall(b"k")
"""


#: Seconds that one copy of TVM's may take.
PATIENCE = 4.0


def best(rounds, work):
    return min(work() for _ in range(rounds))


def ratio(values, bare):
    """How values compare with the bare socket's of the same rounds."""
    return f"{statistics.median(value / other for value, other in zip(values, bare)):.0%} in the median"


def copies(ends, data, rounds, expected):
    """The rates of copies there and back, in bytes a second, the best of rounds in which all take turns; who would take too long by what
    was seen before is left out."""
    there, back = {name: [] for name in ends}, {name: [] for name in ends if name != "bare socket"}
    for _ in range(rounds):
        for name, end in ends.items():
            if name in expected and data.nbytes / expected[name] > PATIENCE:
                continue
            there[name].append(end.copy(data) if name == "bare socket" else end.copy_to(data))
            if name in back:
                back[name].append(end.copy_from(data))
    print(f"copies of {data.nbytes >> 20} MiB")
    rate = max(there["bare socket"])
    for name, rates in there.items():
        if not rates:
            print(f"  {name:<28} left out: one would take {data.nbytes / expected[name]:.0f} s")
            continue
        bare = there["bare socket"]
        line = f"  {name:<28} {max(rates) / 1e9:8.2f} GB/s there ({max(rates) / rate:.0%}, {ratio(rates, bare)})"
        if name in back:
            line += f"  {max(back[name]) / 1e9:6.2f} GB/s back ({max(back[name]) / rate:.0%}, {ratio(back[name], bare)})"
        print(line)
    return {name: max(rates) for name, rates in there.items() if rates}


class Bare:
    """A socket whose other end answers what it is sent."""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, "-c", ECHO], stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())
        self.socket = socket.create_connection(("127.0.0.1", self.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def call(self, count):
        # As large as a call of two integers: 48 bytes, and 28 back would do.
        request = b"e\0\0\0" + (48).to_bytes(8, "little") + bytes(48)
        begin = time.perf_counter()
        for _ in range(count):
            self.socket.sendall(request)
            self.socket.recv(48, socket.MSG_WAITALL)
        return (time.perf_counter() - begin) / count

    def copy(self, data):
        begin = time.perf_counter()
        self.socket.sendall(b"t\0\0\0" + data.nbytes.to_bytes(8, "little"))
        self.socket.sendall(data)
        self.socket.recv(1)
        return data.nbytes / (time.perf_counter() - begin)

    def close(self):
        self.process.kill()
        self.process.wait()


class Remote:
    """A client of one package on a session."""

    def __init__(self, package, session):
        self.package, self.session = package, session
        self.function = session.get_function("rpc.testing.GetShapeElem")
        self.shape = session.get_function("ffi.Shape")(5, 6)

    def call(self, count):
        function, shape = self.function, self.shape
        begin = time.perf_counter()
        for _ in range(count):
            function(shape, 1)
        return (time.perf_counter() - begin) / count

    def copy_to(self, data):
        tensor = self.package.runtime.empty(data.shape, str(data.dtype), self.session.cpu())
        local = self.package.runtime.tensor(data)
        begin = time.perf_counter()
        local.copyto(tensor)
        return data.nbytes / (time.perf_counter() - begin)

    def copy_from(self, data):
        tensor = self.package.runtime.tensor(data, self.session.cpu())
        local = self.package.runtime.empty(data.shape, str(data.dtype))
        begin = time.perf_counter()
        tensor.copyto(local)
        return data.nbytes / (time.perf_counter() - begin)


def tvm_server():
    code = (
        "import sys\nfrom tvm import rpc\n"
        "server = rpc.Server('127.0.0.1', port=9091, port_end=65000, silent=True)\n"
        "print(server.port, flush=True)\nsys.stdin.read()\nserver.terminate()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return process, int(process.stdout.readline())


def memory(pid):
    """The memory of a process and its children, in MiB, each page by its share. One that ends meanwhile has none."""
    try:
        tasks = list(pathlib.Path(f"/proc/{pid}/task").iterdir())
        rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    total = int(next(line for line in rollup.splitlines() if line.startswith("Pss:")).split()[1]) / 1024
    for task in tasks:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            total += sum(memory(int(child)) for child in (task / "children").read_text().split())
    return total


def sessions(package, server, count):
    """So many sessions at once, each with tensors of its own: seconds to begin one, and memory before, with them, and after."""
    before = memory(server.pid)
    begin = time.perf_counter()
    # A process has devices for 32 sessions; the others are held by raw greetings of other processes.
    held = []

    def hold(number):
        held.append(subprocess.Popen([sys.executable, "-c", HOLD, str(server.port), str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))

    per_process = 25
    threads = [threading.Thread(target=hold, args=(min(per_process, count - at),)) for at in range(0, count, per_process)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for process in held:
        assert process.stdout.readline().strip() == "held"
    seconds = time.perf_counter() - begin
    during = memory(server.pid)
    for process in held:
        process.communicate("")
    deadline = time.monotonic() + 20
    while (after := memory(server.pid)) > before * 1.5 + 4 and time.monotonic() < deadline:
        time.sleep(0.1)
    return seconds, before, during, after


def waiting(package, count):
    """So many clients that wait at a tracker: seconds until all do, what a question takes meanwhile, and the tracker's memory."""
    import resource
    import struct

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    text, magic, clients = b'[4, "board", "", 1]', struct.pack("<i", 0x2F271), []
    with ours("track", "--silent") as tracker:
        before = memory(tracker.pid)
        begin = time.perf_counter()
        for _ in range(count):
            client = socket.create_connection(("127.0.0.1", tracker.port), timeout=20)
            clients.append(client)
            client.sendall(magic)
        for client in clients:
            assert client.recv(4) == magic
            client.sendall(struct.pack("<i", len(text)) + text)
        link = package.rpc.connect_tracker("127.0.0.1", tracker.port)
        while link.summary()["queue_info"].get("board", {}).get("pending") != count:
            time.sleep(0.01)
        seconds = time.perf_counter() - begin

        def ask():
            begin = time.perf_counter()
            link.summary()
            return time.perf_counter() - begin

        answer, during = best(20, ask), memory(tracker.pid)
        for client in clients:
            client.close()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return seconds, answer, before, during


HOLD = """
import sys
import numpy as np
import relaxide as package
from relaxide import rpc
held = []
for i in range(int(sys.argv[2])):
    session = rpc.connect("127.0.0.1", int(sys.argv[1]))
    held.append((session, package.runtime.tensor(np.full(1000, i, "float32"), session.cpu())))
for i, (_, tensor) in enumerate(held):
    assert (tensor.numpy() == i).all()
print("held", flush=True)
sys.stdin.read()
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller copies, 50 sessions")
    quick = parser.parse_args().quick
    import relaxide
    import tvm
    from relaxide import rpc

    rounds, calls, sizes = (5, 500, [1 << 22, 1 << 24]) if quick else (15, 2000, [1 << 22, 1 << 24, 1 << 27])
    data = np.random.default_rng(0).random(sizes[-1] // 8)
    bare, (process, tvm_port) = Bare(), tvm_server()
    with ours("serve", "--silent") as server:
        mine = Remote(relaxide, rpc.connect("127.0.0.1", server.port))
        theirs = Remote(tvm, tvm.rpc.connect("127.0.0.1", tvm_port))
        mixed = Remote(tvm, tvm.rpc.connect("127.0.0.1", server.port))
        figures = {"bare socket": [], "relaxide": [], "TVM": [], "TVM's client on our server": []}
        ends = dict(zip(figures, (bare, mine, theirs, mixed)))
        for _ in range(rounds):
            for name, end in ends.items():
                figures[name].append(end.call(calls))
        socket_time = min(figures["bare socket"])
        print("a call with an object and an integer")
        for name, times in figures.items():
            line = f"  {name:<28} {min(times) * 1e6:8.1f} us   {min(times) / socket_time:5.2f} of the bare socket"
            print(f"{line}, {ratio(times, figures['bare socket'])}")
        with secured(relaxide, rpc) as within:
            took = best(rounds, lambda: within.call(calls))
            print(f"  {'relaxide under TLS':<28} {took * 1e6:8.1f} us   {took / socket_time:5.2f} of the bare socket")
            copying = {"bare socket": bare, "relaxide": mine, "relaxide under TLS": within, "TVM": theirs}
            seen = {}
            for count in sizes:
                seen |= copies(copying, data[: count // 8], rounds, seen)
        del ends, copying, within, mine, theirs, mixed
        gc.collect()
        count = 50 if quick else 200
        seconds, before, during, after = sessions(relaxide, server, count)
        print(f"{count} sessions at once: {seconds:.1f} s to begin, {before:.1f} MiB before, {during:.1f} with them, {after:.1f} after")
    count = 200 if quick else 2000
    seconds, answer, before, during = waiting(relaxide, count)
    print(
        f"{count} clients wait at a tracker: {seconds:.2f} s until all do, {answer * 1e3:.2f} ms for its table, "
        f"{before:.1f} MiB before, {during:.1f} with them"
    )
    bare.close()
    process.stdin.close()
    process.wait()


@contextlib.contextmanager
def secured(package, rpc):
    """A client of ours within TLS."""
    import tempfile

    from ends import command

    with tempfile.TemporaryDirectory() as folder:
        def keygen(*words):
            return subprocess.run([command(), "keygen", *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()

        host, me = keygen("--out", "host"), keygen("--out", "me")
        keygen("--authorize", "keys", "--client", me, "--name", "me", "--allow", "files load call=*")
        with ours("serve", "--silent", "--identity", f"{folder}/host", "--keys", f"{folder}/keys") as server:
            yield Remote(package, rpc.connect_secure("127.0.0.1", server.port, identity=f"{folder}/me", server=host))


if __name__ == "__main__":
    main()
