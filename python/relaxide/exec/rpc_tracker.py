"""``python -m relaxide.exec.rpc_tracker``: a tracker, until it is interrupted."""

import argparse

from ..rpc.tracker import Tracker
from .rpc_server import wait


def _arguments():
    parser = argparse.ArgumentParser(prog="rpc_tracker", description="Lend servers of remote calls to clients by their keys.")
    parser.add_argument("--host", default="0.0.0.0", help="the address to listen at")
    parser.add_argument("--port", type=int, default=9190, help="the first port to try")
    parser.add_argument("--port-end", type=int, default=9199, help="the port to end at")
    parser.add_argument("--no-fork", dest="fork", action="store_false", help="no effect: nothing is forked")
    parser.add_argument("--silent", action="store_true", help="say nothing")
    return parser.parse_args()


def main(args):
    """Run a tracker with the options of the command line."""
    wait(Tracker(args.host, port=args.port, port_end=args.port_end, silent=args.silent))


if __name__ == "__main__":
    main(_arguments())
