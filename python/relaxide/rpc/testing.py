"""Functions that tests of remote calls call."""

import numpy as np

from ..ffi import register_global_func
from ..runtime import tensor


@register_global_func("rpc.test.addone", override=True)
def _addone(x):
    return x + 1


@register_global_func("rpc.test.strcat", override=True)
def _strcat(name, x):
    return f"{name}:{x}"


@register_global_func("rpc.test.except", override=True)
def _remotethrow(name):
    raise ValueError(f"{name}")


@register_global_func("rpc.test.runtime_str_concat", override=True)
def _strcat_runtime(x, y):
    return x + y


@register_global_func("rpc.test.remote_tensor_func", override=True)
def _remote_tensor_func(y):
    assert (y.numpy() == np.ones((3, 4))).all()


@register_global_func("rpc.test.add_to_lhs", override=True)
def _add_to_lhs(x):
    return lambda y: x + y


@register_global_func("rpc.test.remote_return_nd", override=True)
def _my_module(name):
    nd = tensor(np.zeros(10).astype("float32"))
    if name == "get_arr":
        return lambda: nd
    if name == "get_elem":
        return lambda idx: nd.numpy()[idx]
    if name == "get_arr_elem":
        return lambda arr, idx: arr.numpy()[idx]
    raise RuntimeError("unknown name")


@register_global_func("testing.echo", override=True)
def _echo(x, *_rest):
    return x


@register_global_func("testing.nop", override=True)
def _nop(*_args):
    return None
