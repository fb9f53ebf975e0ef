"""``python -m relaxide.exec.rpc_server``: a server of TVM's protocol, until it is interrupted."""

import argparse
import time

from .. import rpc


def _arguments():
    parser = argparse.ArgumentParser(prog="rpc_server", description="Serve remote calls. Whoever reaches the port runs code here.")
    parser.add_argument("--host", default="0.0.0.0", help="the address to listen at; of the proxy, with --through-proxy")
    parser.add_argument("--port", type=int, default=9090, help="the first port to try")
    parser.add_argument("--port-end", type=int, default=9199, help="the port to end at")
    parser.add_argument("--through-proxy", action="store_true", help="serve behind the proxy at that address")
    parser.add_argument("--tracker", help="HOST:PORT of the tracker that lends the server out")
    parser.add_argument("--key", default="", help="what clients ask the tracker for")
    parser.add_argument("--silent", action="store_true", help="say nothing")
    parser.add_argument("--load-library", help="libraries to load, with colons between them")
    parser.add_argument("--no-fork", dest="fork", action="store_false", help="no effect: sessions are never forked")
    parser.add_argument("--custom-addr", help="the address that the tracker tells clients")
    return parser.parse_args()


def main(args):
    """Serve with the options of the command line."""
    address = None
    if args.tracker:
        if not args.key:
            raise RuntimeError("a server that a tracker lends out needs --key")
        host, _, port = args.tracker.rpartition(":")
        address = (host, int(port))
    server = rpc.Server(
        args.host,
        args.port,
        args.port_end,
        is_proxy=args.through_proxy,
        key=args.key,
        tracker_addr=address,
        load_library=args.load_library,
        custom_addr=args.custom_addr,
        silent=args.silent,
    )
    wait(server)


def wait(server):
    """Sleep until the process is interrupted, then end a server."""
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        server.terminate()


if __name__ == "__main__":
    main(_arguments())
