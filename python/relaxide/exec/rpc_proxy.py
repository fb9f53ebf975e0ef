"""``python -m relaxide.exec.rpc_proxy``: a proxy, until it is interrupted."""

import argparse
import os

from ..rpc.proxy import Proxy
from .rpc_server import wait


def _arguments():
    parser = argparse.ArgumentParser(prog="rpc_proxy", description="Lead clients to servers that they cannot reach.")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen at")
    parser.add_argument("--port", type=int, default=9090, help="the first port to try")
    parser.add_argument("--port-end", type=int, default=9199, help="the port to end at")
    parser.add_argument("--web-port", type=int, default=8888, help="the port for browsers")
    parser.add_argument("--example-rpc", type=bool, default=False, help="serve TVM's example page (which is not here)")
    parser.add_argument("--resource-dir", help="serve the files of this folder, whose index.html is the page")
    parser.add_argument("--tracker", default="", help="HOST:PORT of the tracker to report servers to")
    parser.add_argument("--no-fork", dest="fork", action="store_false", help="no effect: nothing is forked")
    return parser.parse_args()


def find_example_resource():
    """The page and files of TVM's example for browsers, which TVM's source has and neither package."""
    raise RuntimeError("the example page for browsers is a part of TVM's source tree, not of the package: give --resource-dir")


def _resources(folder):
    files = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    page = os.path.join(folder, "index.html")
    return (page if page in files else None), [path for path in files if path != page and os.path.isfile(path)]


def main(args):
    """Run a proxy with the options of the command line."""
    page, files = find_example_resource() if args.example_rpc else (None, [])
    if args.resource_dir:
        page, files = _resources(args.resource_dir)
    tracker = None
    if args.tracker:
        host, _, port = args.tracker.rpartition(":")
        tracker = (host, int(port))
    wait(Proxy(args.host, args.port, args.port_end, args.web_port, tracker_addr=tracker, index_page=page, resource_files=files))


if __name__ == "__main__":
    main(_arguments())
