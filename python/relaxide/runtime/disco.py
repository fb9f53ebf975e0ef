"""Sessions of several workers, which are not here: importing this says so."""

raise ImportError("programs that several workers run together (disco) are not supported: a program runs in one process, on one machine")
