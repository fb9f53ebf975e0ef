"""Programs for several devices that share tensors out, which are not here: importing this says so."""

raise ImportError("programs whose tensors are shared out to several devices (relax.distributed) are not supported: a program runs in one process")
