"""Programs as TVM 0.6 to 0.13 saved them load and give what they gave: whole modules, networks, and attributes as they were."""

import json
import pathlib
import sys

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relay
from relaxide.relay import testing

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import test_relay_recorded as recorded  # noqa: E402
from older_graphs import as_release  # noqa: E402
from test_relay_networks import inputs_of  # noqa: E402

HERE = pathlib.Path(__file__).parent
RELEASES = [6, 7, 8, 9, 12]


def run(mod, *args, params=None, name="main"):
    return relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=params), tvm.cpu()).invoke(name, *args)


@pytest.mark.parametrize("minor", RELEASES)
@pytest.mark.parametrize("name", recorded.NAMES)
def test_a_saved_module_gives_what_it_gave(name, minor):
    mod = tvm.ir.load_json(as_release((HERE / f"{name}.mod.json").read_text(), minor))
    exe = relay.vm.compile(mod, "llvm")
    for inputs, expected in recorded.cases(name):
        recorded.check(relay.vm.VirtualMachine(exe, tvm.cpu()).invoke("main", *inputs), expected)


@pytest.mark.parametrize("minor", [6, 7, 9])
@pytest.mark.parametrize(
    "make",
    [
        lambda: testing.lstm.get_workload(2, 4),
        lambda: testing.bert.get_workload(1, 4, 1, 8, 2, 20),
        lambda: testing.lstm.over_list(num_hidden=2),
        lambda: testing.mobilenet.get_workload(1, 4, (3, 16, 16), multiplier=0.125),
    ],
    ids=["lstm", "bert", "list", "mobilenet"],
)
def test_a_saved_network_gives_what_it_gave(make, minor):
    mod, weights = make()
    if "list" in mod["main"].astext().lower():
        nil = min(ctor.tag for ctor in relay.Prelude().get_type("List")[1:] if ctor.name == "Nil")
        inputs = [relay.vm.ADT(nil, [])]
    else:
        inputs = [value % 20 if value.dtype == "int64" else value for value in inputs_of(mod, weights)]
    found = run(tvm.ir.load_json(as_release(tvm.ir.save_json(mod), minor)), *inputs, params=weights).numpy()
    np.testing.assert_array_equal(found, run(mod, *inputs, params=weights).numpy())


class Graph:
    """A function of operators, written node by node as releases before 0.7 did."""

    def __init__(self, version):
        self.version, self.nodes, self.params = version, [{"type_key": ""}], []

    def node(self, key, text=None, **attrs):
        made = {"type_key": key}
        if text is not None:
            made["global_key" if self.version == "0.6.0" else "repr_str"] = text
        if attrs:
            made["attrs"] = {name: str(value) for name, value in attrs.items()}
        self.nodes.append(made)
        return len(self.nodes) - 1

    def array(self, *items):
        self.nodes.append({"type_key": "Array", "data": list(items)} if items else {"type_key": "Array"})
        return len(self.nodes) - 1

    def ints(self, *values):
        return self.array(*(self.node("IntImm", dtype="int32", value=value) for value in values))

    def key(self, name):
        return f"relay.{name}" if self.version == "0.6.0" else name

    def text(self, value):
        return value if self.version == "0.6.0" else self.node("runtime.String", text=value)

    def var(self, name, shape, dtype="float32"):
        ty = self.node("relay.TensorType", dtype=dtype, shape=self.ints(*shape), span=0)
        var = self.node("relay.Var", vid=self.node("relay.Id", name_hint=self.text(name)), type_annotation=ty, span=0)
        self.params.append(var)
        return var

    def call(self, name, *args, attrs=0):
        op = self.node(self.key("Op"), text=name)
        return self.node("relay.Call", op=op, args=self.array(*args), attrs=attrs, type_args=self.array(), span=0)

    def module(self, body):
        """The function alone, as ``save_json(func)`` wrote it; 0.7 has attributes that are nothing."""
        # Older than names of attributes: null in the place of the whole.
        dictionary = {} if self.version == "0.6.0" else {"attrs": self.node("DictAttrs", __dict__=0)}
        root = self.node(
            "relay.Function", params=self.array(*self.params), body=body, ret_type=0, type_params=self.array(), span=0, **dictionary
        )
        graph = {"root": root, "nodes": self.nodes, "b64ndarrays": [], "attrs": {"tvm_version": self.version}}
        return tvm.ir.load_json(json.dumps(graph))


VERSIONS = ["0.6.0", "0.7.0"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_convolution_has_its_layouts_as_texts_and_two_paddings(version):
    graph = Graph(version)
    x, w = graph.var("x", (1, 2, 5, 5)), graph.var("w", (3, 2, 3, 3))
    attrs = graph.node(
        "relay.attrs.Conv2DAttrs",
        strides=graph.ints(1, 1),
        padding=graph.ints(1, 1),
        dilation=graph.ints(1, 1),
        groups=1,
        channels=graph.node("IntImm", dtype="int32", value=3),
        kernel_size=graph.ints(3, 3),
        data_layout="NCHW",
        kernel_layout="OIHW",
        out_layout="",
        out_dtype="",
    )
    pool = graph.node(
        "relay.attrs.MaxPool2DAttrs",
        pool_size=graph.ints(2, 2),
        strides=graph.ints(1, 1),
        padding=graph.ints(0, 0),
        layout="NCHW",
        ceil_mode=0,
    )
    mod = graph.module(graph.call("nn.max_pool2d", graph.call("nn.conv2d", x, w, attrs=attrs), attrs=pool))
    random = np.random.default_rng(0)
    a, b = random.standard_normal((1, 2, 5, 5)).astype("f4"), random.standard_normal((3, 2, 3, 3)).astype("f4")
    padded = np.pad(a, ((0, 0), (0, 0), (1, 1), (1, 1)))
    window = np.lib.stride_tricks.sliding_window_view
    sums = np.einsum("nchwij,ocij->nohw", window(padded, (3, 3), axis=(2, 3)), b)
    np.testing.assert_allclose(run(mod, a, b).numpy(), window(sums, (2, 2), axis=(2, 3)).max((-1, -2)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_place_of_the_largest_has_the_attributes_of_a_reduction(version):
    graph = Graph(version)
    x = graph.var("x", (3, 4, 5))
    attrs = graph.node("relay.attrs.ReduceAttrs", axis=graph.ints(0, 2), keepdims=0, exclude=0)
    values = np.random.default_rng(1).standard_normal((3, 4, 5)).astype("f4")
    found = run(graph.module(graph.call("argmax", x, attrs=attrs)), values).numpy()
    np.testing.assert_array_equal(found, values.transpose(1, 0, 2).reshape(4, 15).argmax(1))


@pytest.mark.parametrize("version", VERSIONS)
def test_shapes_slices_and_sorts_have_fewer_attributes(version):
    graph = Graph(version)
    x = graph.var("x", (4, 6))
    slices = graph.node("relay.attrs.StridedSliceAttrs", begin=graph.ints(1, 0), end=graph.ints(4, 6), strides=graph.ints(1, 2))
    shape = graph.node("relay.attrs.ReshapeAttrs", newshape=graph.ints(0, -1), reverse=0)
    sort = graph.node("relay.attrs.ArgsortAttrs", axis=-1, is_ascend=0, dtype="int32")
    sliced = graph.call("reshape", graph.call("strided_slice", x, attrs=slices), attrs=shape)
    values = np.random.default_rng(2).permutation(24).reshape(4, 6).astype("f4")
    found = run(graph.module(graph.call("argsort", sliced, attrs=sort)), values).numpy()
    np.testing.assert_array_equal(found, np.argsort(-values[1:4, ::2], axis=1))


def test_an_image_is_resized_by_the_operator_of_0_6():
    graph = Graph("0.6.0")
    x = graph.var("x", (1, 1, 2, 2))
    attrs = graph.node(
        "relay.attrs.ResizeAttrs", size=graph.ints(3, 3), layout="NCHW", method="bilinear", align_corners=1, out_dtype=""
    )
    found = run(graph.module(graph.call("image.resize", x, attrs=attrs)), np.arange(4, dtype="f4").reshape(1, 1, 2, 2))
    np.testing.assert_allclose(found.numpy()[0, 0], [[0, 0.5, 1], [1, 1.5, 2], [2, 2.5, 3]], atol=1e-6)


def _requantized(values):
    return np.clip(np.floor((values - 2) / 4 + 0.5) - 3, -128, 127).astype("int8")


WIDE = np.array([-1000, -300, -8, -1, 0, 5, 299, 4000], "int32")


def test_quantized_sums_of_0_7_have_scales_and_zeros_as_operands():
    graph = Graph("0.7.0")
    x, s, z, t, u = graph.var("x", (8,), "int32"), *(graph.var(n, (), d) for n, d in zip("sztu", ["float32", "int32"] * 2))
    attrs = graph.node("relay.attrs.RequantizeAttrs", axis=-1, rounding="UPWARD", out_dtype="int8")
    mod = graph.module(graph.call("qnn.requantize", x, s, z, t, u, attrs=attrs))
    # None lies in the middle between two results: scales that are no constants are divided as floats.
    values = 2 * WIDE + 1
    found = run(mod, values, np.float32(0.5), np.int32(2), np.float32(2.0), np.int32(-3)).numpy()
    np.testing.assert_array_equal(found, _requantized(values))


def test_quantized_sums_of_0_6_have_them_as_attributes():
    graph = Graph("0.6.0")
    attrs = graph.node(
        "relay.attrs.RequantizeAttrs",
        input_scale=0.5,
        input_zero_point=2,
        output_scale="2",
        output_zero_point=-3,
        rounding="UPWARD",
        out_dtype="int8",
    )
    found = run(graph.module(graph.call("qnn.requantize", graph.var("x", (8,), "int32"), attrs=attrs)), WIDE).numpy()
    np.testing.assert_array_equal(found, _requantized(WIDE))


def test_a_quantized_layer_of_0_6_runs():
    graph = Graph("0.6.0")
    product = graph.node(
        "relay.attrs.QnnDenseAttrs",
        units=graph.node("IntImm", dtype="int32", value=3),
        out_dtype="int32",
        input_zero_point=5,
        kernel_zero_point=-2,
    )
    both = graph.node(
        "relay.attrs.QnnConcatenateAttrs",
        input_scales=graph.array(*(graph.node("FloatImm", dtype="float64", value=v) for v in (0.5, 0.25))),
        input_zero_points=graph.ints(0, 1),
        output_scale=0.5,
        output_zero_point=0,
        axis=1,
    )
    x, w = graph.var("x", (2, 4), "uint8"), graph.var("w", (3, 4), "int8")
    a, b = graph.var("a", (2, 2), "int8"), graph.var("b", (2, 2), "int8")
    layer = graph.call("qnn.dense", x, w, attrs=product)
    joined = graph.call("qnn.concatenate", graph.node("relay.Tuple", fields=graph.array(a, b), span=0), attrs=both)
    pair = graph.node("relay.Tuple", fields=graph.array(layer, joined), span=0)
    random = np.random.default_rng(4)
    values = random.integers(0, 255, (2, 4)).astype("uint8"), random.integers(-128, 127, (3, 4)).astype("int8")
    parts = random.integers(-100, 100, (2, 2)).astype("int8"), random.integers(-100, 100, (2, 2)).astype("int8")
    sums, whole = run(graph.module(pair), *values, *parts)
    np.testing.assert_array_equal(sums.numpy(), (values[0].astype(int) - 5) @ (values[1].astype(int) + 2).T)
    moved = np.floor((parts[1].astype(int) - 1) / 2 + 0.5)
    np.testing.assert_array_equal(whole.numpy(), np.concatenate([parts[0], moved], axis=1).astype("int8"))


OLD_TEXTS = {
    "a function": """v0.0.4
fn (%x: Tensor[(2, 3), float32], %w: Tensor[(4, 3), float32]) -> Tensor[(2, 4), float32] {
  %0 = nn.dense(%x, %w, units=4) /* ty=Tensor[(2, 4), float32] */;
  nn.relu(%0) /* ty=Tensor[(2, 4), float32] */
}
// meta data omitted. you can use show_meta_data=True to include meta data""",
    "an expression": """v0.0.4
free_var %x: Tensor[(2, 3), float32]
free_var %w: Tensor[(4, 3), float32]
%0 = nn.dense(%x, %w, units=4)
;
nn.relu(%0)""",
    "a module": """v0.0.4
def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(4, 3), float32]) -> Tensor[(2, 4), float32] {
  @id(nn.relu(nn.dense(%x, %w, units=4)))
}

def @id[A](%x: A) -> A { %x }
""",
}


def test_a_quantized_text_of_0_6_runs():
    text = """v0.0.4
fn (%x: Tensor[(8), int32]) {
  qnn.requantize(%x, input_scale=0.5f, input_zero_point=2, output_scale=2f, output_zero_point=-3, out_dtype="int8")
}
"""
    np.testing.assert_array_equal(run(relay.fromtext(text), WIDE).numpy(), _requantized(WIDE))


@pytest.mark.parametrize("name", OLD_TEXTS)
def test_texts_of_0_6_run(name):
    mod = relay.fromtext(OLD_TEXTS[name])
    random = np.random.default_rng(3)
    x, w = random.standard_normal((2, 3)).astype("f4"), random.standard_normal((4, 3)).astype("f4")
    np.testing.assert_allclose(run(mod, x, w).numpy(), np.maximum(x @ w.T, 0), rtol=1e-5, atol=1e-6)
