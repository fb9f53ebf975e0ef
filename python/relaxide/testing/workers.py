"""Functions that tests of worker processes call."""

import os
import time


def identity_after(x, sleep):
    """What it is given, after so many seconds."""
    if sleep:
        time.sleep(sleep)
    return x


def terminate_self():
    """End the process, as a crash would."""
    os._exit(-1)
