"""Functions by word: what reads a node in a dialect, and what an operator does to operands of a type."""

_READERS = {}
_OPERATORS = {}


def register(token, type_name):
    """A decorator for the function ``(parser, node)`` that reads nodes named ``type_name`` in the dialect ``token``."""

    def put(func):
        _READERS[token, type_name] = func
        return func

    return put


def get(token, type_name, default=None):
    """The function that reads such nodes, or the default."""
    return _READERS.get((token, type_name), default)


def register_op(operand_type, op_node_type, operand_index):
    """A decorator for what an operator does where its operand of that number is of a type."""

    def put(func):
        _OPERATORS[operand_type, op_node_type, operand_index] = func
        return func

    return put


def get_op(operand_type, op_node_type, operand_index, default=None):
    """What an operator does, or the default."""
    return _OPERATORS.get((operand_type, op_node_type, operand_index), default)


__all__ = ["get", "get_op", "register", "register_op"]
