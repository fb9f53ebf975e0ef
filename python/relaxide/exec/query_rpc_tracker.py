"""``python -m relaxide.exec.query_rpc_tracker``: print what a tracker lends out, and who waits."""

import argparse
import os

from .. import rpc


def main():
    """Ask the tracker of the command line, or of ``TVM_TRACKER_HOST`` and ``TVM_TRACKER_PORT``."""
    parser = argparse.ArgumentParser(prog="query_rpc_tracker", description=main.__doc__)
    parser.add_argument("--host", default=os.environ.get("TVM_TRACKER_HOST") or "127.0.0.1", help="the tracker's host")
    parser.add_argument("--port", type=int, default=int(os.environ.get("TVM_TRACKER_PORT") or 9190), help="its port")
    args = parser.parse_args()
    print(f"Tracker address {args.host}:{args.port}\n")
    print(rpc.connect_tracker(args.host, args.port).text_summary())


if __name__ == "__main__":
    main()
