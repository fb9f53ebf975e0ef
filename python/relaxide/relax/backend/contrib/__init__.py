"""Backends of other makers: what of a program each of them takes."""
