"""Every operator that the reference could carry out gives what it gave, in the machine and in the interpreter.

``operators.tsv`` holds a call of each, ``operators.npz`` what it was given and what TVM 0.16 made of it.
"""

import pathlib

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relay

HERE = pathlib.Path(__file__).parent
HEADER = '#[version = "0.0.5"]\n'


def _cases():
    for line in (HERE / "operators.tsv").read_text().splitlines():
        yield line.split("\t")


CASES = list(_cases())


@pytest.fixture(scope="module")
def arrays():
    return np.load(HERE / "operators.npz")


def _given(arrays, kind, index):
    found = []
    while f"{index}.{kind}{len(found)}" in arrays:
        found.append(arrays[f"{index}.{kind}{len(found)}"])
    return found


def _program(name, text, inputs):
    params = (f"%{'abcdefgh'[i]}: Tensor[({', '.join(map(str, v.shape))}), {v.dtype}]" for i, v in enumerate(inputs))
    return f"def @{name}({', '.join(params)}) {{ {text} }}"


def _flat(value):
    if hasattr(value, "fields"):
        return [tensor for field in value.fields for tensor in _flat(field)]
    return [value.numpy()]


def _differences(found, expected):
    if [(a.shape, a.dtype) for a in found] != [(a.shape, a.dtype) for a in expected]:
        return f"{[(a.shape, str(a.dtype)) for a in found]} is not {[(a.shape, str(a.dtype)) for a in expected]}"
    for a, b in zip(found, expected):
        # Integers are equal to the last one; kernels of floats add in orders of their own.
        exact = a.dtype.kind in "iub"
        same = np.array_equal(a, b) if exact else np.allclose(a, b, rtol=1e-4, atol=2e-5, equal_nan=True)
        if not same:
            return f"{a.ravel()[:8]} is not {b.ravel()[:8]}"
    return None


def test_the_machine_gives_what_the_reference_gave(arrays):
    programs = [_program(f"c{i}", text, _given(arrays, "in", i)) for i, (_, text) in enumerate(CASES)]
    machine = relay.vm.VirtualMachine(relay.vm.compile(relay.parse(HEADER + "\n".join(programs)), "llvm"), tvm.cpu())
    wrong = {}
    for i, (name, _) in enumerate(CASES):
        found = _flat(machine.invoke(f"c{i}", *_given(arrays, "in", i)))
        difference = _differences(found, _given(arrays, "out", i))
        if difference:
            wrong[name] = difference
    assert not wrong


def test_the_interpreter_gives_what_the_reference_gave(arrays):
    wrong = {}
    for i, (name, text) in enumerate(CASES):
        inputs = _given(arrays, "in", i)
        mod = relay.parse(HEADER + _program("main", text, inputs))
        found = _flat(relay.create_executor("debug", mod).evaluate()(*inputs))
        difference = _differences(found, _given(arrays, "out", i))
        if difference:
            wrong[name] = difference
    assert not wrong


def test_texts_of_all_calls_are_printed_and_read_to_the_same(arrays):
    for i, (name, text) in enumerate(CASES):
        mod = relay.parse(HEADER + _program("main", text, _given(arrays, "in", i)))
        assert relay.parse(mod.astext()) == mod, name
        assert relay.load_json(relay.save_json(mod)) == mod, name


def test_unknown_operators_and_attributes_are_refused():
    with pytest.raises(AttributeError, match="no operator"):
        relay.op.get("nn.convolution")
    with pytest.raises(ValueError, match="did you mean `padding`"):
        relay.Call(relay.op.get("nn.conv2d"), [relay.var("x"), relay.var("w")], {"paddding": [1, 1]})


def _scattered(apply):
    def run(data, indices, updates):
        out = data.copy()
        for (i, j), value in np.ndenumerate(updates):
            out[i, indices[i, j]] = apply(out[i, indices[i, j]], value)
        return out

    return run


def _quantized(function):
    def run(x):
        real = (x.astype("float64") + 10) * 0.05
        with np.errstate(all="ignore"):
            return np.clip(np.floor(function(real) / 0.02 + 0.5) + 4, -128, 127).astype("int8")

    return run


_erf = np.vectorize(__import__("math").erf)
RANDOM = np.random.default_rng(11)
PLACES = np.array([[0, 3], [1, 1], [4, 0]], "int64")
#: Calls that the reference could not carry out, with NumPy's answers.
BY_HAND = {
    "scatter_elements(%a, %b, %c, axis=1, reduction=\"add\")": (
        [RANDOM.standard_normal((3, 5)).astype("float32"), PLACES, RANDOM.standard_normal((3, 2)).astype("float32")],
        _scattered(lambda a, b: a + b),
    ),
    "scatter_elements(%a, %b, %c, axis=1, reduction=\"max\")": (
        [RANDOM.standard_normal((3, 5)).astype("float32"), PLACES, RANDOM.standard_normal((3, 2)).astype("float32")],
        _scattered(max),
    ),
    "trilu(%a, 0)": ([RANDOM.standard_normal((4, 5)).astype("float32")], np.triu),
    "trilu(%a, 1, upper=False)": ([RANDOM.standard_normal((4, 5)).astype("float32")], lambda a: np.tril(a, 1)),
    "cumsum(%a)": ([RANDOM.integers(0, 9, (3, 4)).astype("int32")], lambda a: np.cumsum(a, dtype="int32")),
    "invert_permutation(%a)": ([np.array([2, 0, 3, 1], "int64")], np.argsort),
    "slice_like(%a, %b, axes=[])": (
        [RANDOM.standard_normal((4, 5)).astype("float32"), np.zeros((2, 3), "float32")],
        lambda a, b: a[:2, :3],
    ),
    "nn.dense(%a, %b, units=4)": (
        [RANDOM.standard_normal((2, 3, 5)).astype("float32"), RANDOM.standard_normal((4, 5)).astype("float32")],
        lambda a, b: a @ b.T,
    ),
    "dft(%a, %b)": (
        [RANDOM.standard_normal((2, 8)).astype("float32"), RANDOM.standard_normal((2, 8)).astype("float32")],
        lambda a, b: (np.fft.fft(a + 1j * b).real.astype("float32"), np.fft.fft(a + 1j * b).imag.astype("float32")),
    ),
    "dft(%a, %b, inverse=True)": (
        [RANDOM.standard_normal((2, 6)).astype("float32"), RANDOM.standard_normal((2, 6)).astype("float32")],
        lambda a, b: (np.fft.ifft(a + 1j * b).real.astype("float32"), np.fft.ifft(a + 1j * b).imag.astype("float32")),
    ),
    'nn.contrib_dense_pack(%a, %b, units=None, weight_layout="NC4n")': (
        [RANDOM.standard_normal((3, 5)).astype("float32"), RANDOM.standard_normal((2, 5, 4)).astype("float32")],
        lambda a, b: a @ b.transpose(1, 0, 2).reshape(5, 8),
    ),
    'qnn.batch_matmul(%a, %b, 3, -2, 0.5f, 0.25f, out_dtype="int32")': (
        [RANDOM.integers(-128, 127, (2, 4, 8)).astype("int8"), RANDOM.integers(-128, 127, (2, 5, 8)).astype("int8")],
        lambda a, b: (a.astype("int32") - 3) @ (b.astype("int32") + 2).transpose(0, 2, 1),
    ),
}
def _halfway(rows):
    """Rows, and between each two their mean."""
    return np.stack([(rows[i // 2] + rows[(i + 1) // 2]) / 2 for i in range(2 * len(rows) - 1)]).astype("float32")


def _unique(text):
    def run(data):
        values, index, inverse, counts = np.unique(data, return_index=True, return_inverse=True, return_counts=True)
        if "sorted=False" in text:
            order = np.argsort(index)
            inverse = np.argsort(order)[inverse]
            values, index, counts = values[order], index[order], counts[order]
        rest = len(data) - len(values)
        found = [np.pad(values, (0, rest)), np.pad(index, (0, rest), constant_values=len(data)), inverse]
        found += [np.array([len(values)])] + ([np.pad(counts, (0, rest))] if "counts=True" in text else [])
        return tuple([found[0], *(part.astype("int32") for part in found[1:])])

    return run


_PLAIN = RANDOM.standard_normal((1, 2, 3, 4)).astype("float32")
BY_HAND["image.resize(%a, size=[6, 8], method=\"nearest_neighbor\", coordinate_transformation_mode=\"asymmetric\")"] = (
    [_PLAIN],
    lambda a: a.repeat(2, axis=2).repeat(2, axis=3),
)
BY_HAND["image.resize(%a, size=[5, 7], align_corners=True)"] = (
    [_PLAIN],
    lambda a: np.stack([_halfway(_halfway(p).T).T for p in a[0]])[None],
)
# TVM leaves undefined what stands behind the different elements.
for _text in ("unique(%a)", "unique(%a, return_counts=True)", "unique(%a, sorted=False)", "unique(%a, sorted=False, return_counts=True)"):
    BY_HAND[_text] = ([RANDOM.integers(0, 9, 17).astype("int32")], _unique(_text))
_CODES = RANDOM.integers(0, 127, (3, 8)).astype("int8")
for _name, _function in {"tanh": np.tanh, "sigmoid": lambda v: 1 / (1 + np.exp(-v)), "sqrt": np.sqrt, "erf": _erf}.items():
    BY_HAND[f"qnn.{_name}(%a, 0.05f, -10, 0.02f, 4)"] = ([_CODES], _quantized(_function))


@pytest.mark.parametrize("text", BY_HAND)
def test_what_the_reference_could_not_carry_out_is_as_numpy_has_it(text):
    inputs, expected = BY_HAND[text]
    expected = expected(*inputs)
    expected = list(expected) if isinstance(expected, tuple) else [expected]
    mod = relay.parse(HEADER + _program("main", text, inputs))
    for kind in ("debug", "vm"):
        found = _flat(relay.create_executor(kind, mod).evaluate()(*inputs))
        assert _differences(found, expected) is None, kind


def test_what_has_no_kernel_is_refused_with_its_name():
    mod = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(3), float32]) { nn.sparse_conv2d(%x, %x, %x, %x) }'
    with pytest.raises(Exception, match="nn.sparse_conv2d is known but cannot be compiled yet"):
        relay.parse(mod)
