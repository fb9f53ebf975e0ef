"""Both kinds of ends for the tests: ours as processes of `relaxide-rpc`, TVM's as its own package starts them."""

import contextlib
import os
import pathlib
import re
import shutil
import socket
import subprocess
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


def can_make_networks():
    if os.geteuid() != 0 or not shutil.which("ip"):
        return False
    made = subprocess.run(["ip", "netns", "add", "relaxide-probe"], capture_output=True).returncode == 0
    if made:
        subprocess.run(["ip", "netns", "del", "relaxide-probe"], check=True)
    return made


class Network:
    """Two network namespaces with a cable between."""

    def __init__(self):
        self.names = [f"relaxide-{os.getpid()}-{end}" for end in "ab"]

    def run(self, end, *words, **options):
        return subprocess.Popen(["ip", "netns", "exec", self.names[end], *map(str, words)], text=True, **options)

    def do(self, end, text):
        subprocess.run(["ip", "netns", "exec", self.names[end], *text.split()], check=True)

    def __enter__(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "add", name], check=True)
        cable = ["ip", "link", "add", "rlxa", "netns", self.names[0], "type", "veth", "peer", "name", "rlxb", "netns", self.names[1]]
        made = subprocess.run(cable, capture_output=True, text=True)
        if made.returncode:
            self.__exit__()
            pytest.skip(f"no cable between network namespaces can be made here: {made.stderr.strip()}")
        for end, name in enumerate("ab"):
            self.do(end, f"ip addr add 10.77.0.{end + 1}/24 dev rlx{name}")
            self.do(end, f"ip link set rlx{name} up")
            self.do(end, "ip link set lo up")
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name])
