"""``python -m relaxide.rpc``: the commands of ``relaxide rpc``, and what servers of this package start for each session."""

import pickle
import sys

from .. import _core


def main():
    words, itself = sys.argv[1:], [sys.executable, "-m", "relaxide.rpc"]
    if words[:1] == ["--init"]:
        with open(words[1], "rb") as file:
            callback = pickle.load(file)
        itself, words = itself + words[:2], words[2:]
        # Where a server is started for a proxy, its sessions have the callback run.
        if words[:1] == ["session"]:
            callback()
    if words[:1] in (["session"], ["pipe"]):
        from . import testing  # noqa: F401  (functions that tests of remote calls call)
    sys.exit(_core.rpc_command(itself, words))


main()
