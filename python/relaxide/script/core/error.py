"""The error of a reader."""


class ParserError(Exception):
    """Something at a node cannot be read."""

    def __init__(self, node, msg):
        super().__init__(msg)
        self.node = node


__all__ = ["ParserError"]
