"""Cases of values of the language."""

import numpy as np

from .case import Case


def shape_of(r):
    x = r.data(r.shape(1, 4))
    return Case("R.shape_to_tensor(R.shape_of({0}))", [x], np.array(x.shape, "int64"))


def size(r):
    x = r.data(r.shape())
    return Case("R.size({0})", [x], np.array(x.size, "int64"))


def same(name):
    def case(r):
        x = r.data(r.shape())
        return Case(f"R.{name}({{0}})", [x], x)

    return case


def wrap_param(r):
    x = r.data(r.shape())
    return Case('R.wrap_param({0}, dtype="float64")', [x], x.astype("float64"))


def layout_transform(r):
    x = r.data((r.int(1, 4), r.int(1, 9)))
    if r.chance(0.3):
        return Case("R.layout_transform({0}, index_map=T.index_map(lambda i, j: (j, i)), pad_value=None)", [x], x.T)
    rows = -(-x.shape[1] // 4)
    expect = np.full((x.shape[0], rows * 4), 1.5, "float32")
    expect[:, : x.shape[1]] = x
    call = "R.layout_transform({0}, index_map=T.index_map(lambda i, j: (i, j // 4, j % 4)), pad_value=T.float32(1.5))"
    return Case(call, [x], expect.reshape(-1, rows, 4))


def view(r):
    x = r.data((8, 4))
    if r.chance(0.5):
        return Case("R.memory.view({0}, R.shape([4, 4]), R.tuple(), R.prim_value(64))", [x], x.reshape(8, 4)[4:8].reshape(4, 4), symbolic=False)
    return Case('R.memory.view({0}, R.tuple(), R.dtype("int32"), R.tuple())', [x], x.view("int32"), symbolic=False)


CASES = {
    "shape_of": shape_of, "shape_to_tensor": shape_of, "size": size, "grad.no_grad": same("grad.no_grad"),
    "grad.start_checkpoint": same("grad.start_checkpoint"), "grad.end_checkpoint": same("grad.end_checkpoint"), "wrap_param": wrap_param,
    "memory.view": view, "layout_transform": layout_transform,
}
