"""A server of models for tests and measurements."""

import contextlib
import pathlib
import subprocess
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = ROOT / "build/relaxide"


def _wait(address):
    """Waits until the server has loaded its models: it answers before, and lets requests wait."""
    for _ in range(600):
        with contextlib.suppress(urllib.error.HTTPError), urllib.request.urlopen(address, timeout=60):
            return
        time.sleep(0.1)
    raise TimeoutError(f"{address} does not say that the server is ready")


@contextlib.contextmanager
def served(models, *options, http="127.0.0.1:0", grpc="127.0.0.1:0"):
    """Serves files; gives the addresses of HTTP and gRPC."""
    words = [COMMAND, "serve", *models, "--http", http, "--grpc", grpc, *options]
    process = subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, text=True)
    try:
        found = {}
        while len(found) < 2:
            line = process.stdout.readline()
            assert line, process.poll()
            name, on, address = line.partition(" on ")
            if on:
                found[name] = address.strip()
        _wait(f"http://{found['http']}/v2/health/ready")
        yield found["http"], found["grpc"]
    finally:
        process.terminate()
        assert process.wait(60) == 0
        process.stdout.close()
