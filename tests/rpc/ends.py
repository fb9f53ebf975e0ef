"""Both kinds of ends for the tests: ours as processes of `relaxide-rpc`, TVM's as its own package starts them."""

import contextlib
import fcntl
import heapq
import os
import pathlib
import random
import re
import select
import shutil
import socket
import struct
import subprocess
import threading
import time

import pytest

ROOT = pathlib.Path(__file__).parents[2]


def command():
    """The small command that serves: `RELAXIDE_RPC`, else what was built last."""
    named = os.environ.get("RELAXIDE_RPC")
    if named:
        return named
    built = [ROOT / "target" / kind / "relaxide-rpc" for kind in ("release", "debug")]
    built = [path for path in built if path.exists()]
    if not built:
        subprocess.run(["cargo", "build", "--quiet", "-p", "relaxide-rpc"], cwd=ROOT, check=True)
        return str(ROOT / "target/debug/relaxide-rpc")
    return str(max(built, key=lambda path: path.stat().st_mtime))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def ours(kind, *options):
    """A process of ours; gives its port."""
    port = free_port()
    process = subprocess.Popen(
        [command(), kind, "--port", str(port), "--port-end", str(port + 1), *map(str, options)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        found = None
        while not found:
            line = process.stdout.readline()
            assert line, process.poll()
            found = re.search(r"listening on .*:(\d+)", line)
        process.port = int(found[1])
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@contextlib.contextmanager
def ours_behind(proxy_port, key):
    """A server of ours behind a proxy."""
    process = subprocess.Popen(
        [command(), "serve", "--through-proxy", f"127.0.0.1:{proxy_port}", "--key", key],
        stdout=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def until(true, seconds=20):
    """Waits for something to become true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come true in time")


#: The states of a process that has ended, whether or not its parent has asked for it.
ENDED = "ZX"


def sessions(server):
    """The processes that a server has started and that have not ended, whichever of its threads did."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        # What ends while it is looked at is gone.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            # The name in brackets may hold spaces and brackets itself; behind it are the state and the parent.
            state, parent = (process / "stat").read_text().rpartition(")")[2].split()[:2]
            found += [int(process.name)] if int(parent) == server.pid and state not in ENDED else []
    return sorted(found)


def can_make_networks():
    if os.geteuid() != 0 or not shutil.which("ip"):
        return False
    made = subprocess.run(["ip", "netns", "add", "relaxide-probe"], capture_output=True).returncode == 0
    if made:
        subprocess.run(["ip", "netns", "del", "relaxide-probe"], check=True)
    return made


class Cable:
    """A cable that loses packets and delays them: both ends are devices of this process, which moves the packets.

    The kernel's own way to such cables (``tc qdisc … netem``) is not in every kernel; these devices are.
    """

    def __init__(self, names, loss, delay, seed=0):
        self.ends = []
        for name in names:
            end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            # A device of packets (1) without a head of its own (0x1000).
            fcntl.ioctl(end, 0x400454CA, struct.pack("16sH22x", name.encode(), 0x1001))
            self.ends.append(end)
        self.loss, self.delay, self.rng = loss, delay, random.Random(seed)
        self.lost = self.moved = 0
        self.is_cut, self.is_over = False, False
        self.thread = threading.Thread(target=self._move)
        self.thread.start()

    def _move(self):
        on_the_way, number = [], 0
        while not self.is_over:
            wait = min(0.05, max(0.0, on_the_way[0][0] - time.monotonic())) if on_the_way else 0.05
            for end in select.select(self.ends, [], [], wait)[0]:
                with contextlib.suppress(OSError):
                    packet = os.read(end, 1 << 16)
                    if self.is_cut or self.rng.random() < self.loss:
                        self.lost += 1
                        continue
                    number += 1
                    due = time.monotonic() + self.delay * self.rng.uniform(0.7, 1.3)
                    heapq.heappush(on_the_way, (due, number, self.ends[end == self.ends[0]], packet))
            while on_the_way and on_the_way[0][0] <= time.monotonic():
                _, _, end, packet = heapq.heappop(on_the_way)
                self.moved += 1
                # A device that is down takes none, as a cable without its other end.
                with contextlib.suppress(OSError):
                    os.write(end, packet)

    def close(self):
        self.is_over = True
        self.thread.join()
        for end in self.ends:
            os.close(end)


class Network:
    """Two network namespaces with a cable between, which may lose packets and delay them (in seconds)."""

    def __init__(self, loss=0.0, delay=0.0):
        self.names = [f"relaxide-{os.getpid()}-{end}" for end in "ab"]
        self.loss, self.delay, self.cable = loss, delay, None

    def run(self, end, *words, **options):
        return subprocess.Popen(["ip", "netns", "exec", self.names[end], *map(str, words)], text=True, **options)

    def do(self, end, text):
        subprocess.run(["ip", "netns", "exec", self.names[end], *text.split()], check=True)

    def __enter__(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "add", name], check=True)
        why = self._lay()
        if why:
            self.__exit__()
            pytest.skip(f"no cable between network namespaces can be made here: {why}")
        for end, name in enumerate("ab"):
            self.do(end, f"ip addr add 10.77.0.{end + 1}/24 dev rlx{name}")
            self.do(end, f"ip link set rlx{name} up")
            self.do(end, "ip link set lo up")
        return self

    def _lay(self):
        """Lays the cable; what is in the way of it."""
        if not self.loss and not self.delay:
            cable = ["ip", "link", "add", "rlxa", "netns", self.names[0], "type", "veth", "peer", "name", "rlxb", "netns", self.names[1]]
            return subprocess.run(cable, capture_output=True, text=True).stderr.strip()
        names = [f"rlx{os.getpid()}{end}" for end in "ab"]
        try:
            self.cable = Cable(names, self.loss, self.delay)
        except OSError as error:
            return str(error)
        for name, end, where in zip(names, "ab", self.names):
            subprocess.run(["ip", "link", "set", name, "netns", where, "name", f"rlx{end}"], check=True)
        return None

    def cut(self, end):
        """Unplugs an end: nobody says a word any more."""
        self.do(end, f"ip link set rlx{'ab'[end]} down")

    def mend(self, end):
        """Plugs it in again."""
        self.do(end, f"ip link set rlx{'ab'[end]} up")

    def __exit__(self, *_):
        if self.cable is not None:
            self.cable.close()
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name])
