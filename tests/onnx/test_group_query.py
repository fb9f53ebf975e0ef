"""Attention with shared and with packed keys and values gives what ONNX Runtime gives where it is executed there, and else
what the same model gives unpacked."""

import numpy as np
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from relaxide.onnx_backend import RelaxideBackend

RNG = np.random.default_rng(5)


def reals(*shape, size=1.0):
    return (RNG.standard_normal(shape) * size).astype("float32")


def build(op, feed, outputs, fixed=(), symbolic=True, **attributes):
    """A model of one node; inputs by name in order, `None` where one is left out. Dimensions above 1 have names."""
    names = [name if value is not None else "" for name, value in feed.items()]
    given = {n: v for n, v in feed.items() if v is not None}
    weights = [numpy_helper.from_array(given[n], n) for n in fixed if n in given]
    shape = lambda v: [f"n{d}" if symbolic and d in (2, 3, 7, 9, 16) else d for d in v.shape]  # noqa: E731
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), shape(v))
        for n, v in given.items()
        if n not in fixed
    ]
    results = [helper.make_empty_tensor_value_info(f"y{i}") for i in range(outputs)]
    node = helper.make_node(op, names, [f"y{i}" for i in range(outputs)], domain="com.microsoft", **attributes)
    sets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(helper.make_graph([node], "g", infos, results, weights), opset_imports=sets, ir_version=10)
    return model, {n: v for n, v in given.items() if n not in fixed}


def runtime(model, feed):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, feed)


def run(model, feed):
    return RelaxideBackend.prepare(model).run(feed)


def query_feed(heads, kv_heads, size, length, kept, totals, packed=False, rotary=None, total=None):
    batch = len(totals)
    wide, narrow = heads * size, kv_heads * size
    feed = {
        "query": reals(batch, length, wide + 2 * narrow if packed else wide),
        "key": None if packed else reals(batch, length, narrow),
        "value": None if packed else reals(batch, length, narrow),
        "past_key": reals(batch, kv_heads, kept, size) if kept else None,
        "past_value": reals(batch, kv_heads, kept, size) if kept else None,
        "seqlens_k": np.array(totals, "int32") - 1,
        "total_sequence_length": np.array(total or max(totals), "int32"),
    }
    if rotary:
        feed |= {"cos_cache": reals(64, rotary), "sin_cache": reals(64, rotary)}
    return feed


# heads, heads of keys, size of a head, new keys, keys that are kept, keys in all of each row
SHAPES = {
    "first": (4, 2, 16, 7, 0, [7, 7]),
    "first into a buffer": (4, 2, 16, 7, 9, [7, 7]),
    "first of several lengths": (4, 4, 16, 7, 0, [7, 3]),
    "one more": (6, 2, 16, 1, 9, [10, 10]),
    "one more into a buffer": (6, 3, 16, 1, 9, [6, 6]),
    "one more of several lengths": (4, 1, 16, 1, 9, [9, 4, 7]),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"do_rotary": 1},
        {"do_rotary": 1, "rotary_interleaved": 1, "scale": 0.1},
        {"softcap": 2.0},
        {"local_window_size": 3},
        {"packed": True, "do_rotary": 1},
    ],
    ids=str,
)
@pytest.mark.parametrize("fixed", [False, True], ids=["computed", "fixed"])
def test_shared_keys_and_values(shape, attributes, fixed):
    heads, kv_heads, size, length, kept, totals = shape
    attributes = dict(attributes)
    packed = attributes.pop("packed", False)
    feed = query_feed(*shape, packed=packed, rotary=size // 2 if "do_rotary" in attributes else None)
    constants = ("total_sequence_length", "cos_cache", "sin_cache") if fixed else ()
    model, given = build("GroupQueryAttention", feed, 3, constants, not fixed, num_heads=heads, kv_num_heads=kv_heads, **attributes)
    expected, got = runtime(model, given), run(model, given)
    for one, other in zip(expected, got, strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
    # What lies behind the last key of a row is no matter, nor what a padded query finds.
    for row, total in enumerate(totals):
        seen = min(length, total)
        np.testing.assert_allclose(got[0][row, :seen], expected[0][row, :seen], rtol=2e-5, atol=2e-5)
        for i in (1, 2):
            np.testing.assert_allclose(got[i][row, :, :total], expected[i][row, :, :total], rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("wrong", [[900, 900], [-70, 3], [2**31 - 1, -(2**31)]])
def test_numbers_of_keys_that_do_not_fit_read_no_other_memory(wrong):
    feed = query_feed(4, 2, 16, 1, 9, [9, 9], rotary=8)
    feed["seqlens_k"] = np.array(wrong, "int32")
    model, given = build("GroupQueryAttention", feed, 3, num_heads=4, kv_num_heads=2, do_rotary=1)
    assert all(np.isfinite(y).all() for y in run(model, given))


@pytest.mark.parametrize("attributes, match", [({"smooth_softmax": 1}, "smooth_softmax"), ({"kv_num_heads": 3}, "no multiple")])
def test_what_is_not_supported_is_refused(attributes, match):
    model, _ = build("GroupQueryAttention", query_feed(4, 2, 16, 1, 9, [9, 9]), 3, **({"num_heads": 4, "kv_num_heads": 2} | attributes))
    with pytest.raises(Exception, match=match):
        RelaxideBackend.prepare(model)


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("batch, length, others", [(1, 3, 3), (2, 7, 5)])
def test_packed_keys_and_values(batch, length, others, biased):
    heads, size = 4, 8
    bias = reals(3 * heads * size) if biased else None
    flat = lambda x: np.ascontiguousarray(x.reshape(*x.shape[:2], -1))  # noqa: E731
    q, k, v = (reals(batch, n, heads, size) for n in (length, others, others))
    apart, feed = build("MultiHeadAttention", {"q": flat(q), "k": flat(k), "v": flat(v), "b": bias}, 1, num_heads=heads)
    (expected,) = runtime(apart, feed)
    inputs = {"q": flat(q), "kv": np.stack([k, v], axis=3), "v": None, "b": bias}
    packed, feed = build("MultiHeadAttention", inputs, 1, symbolic=False, num_heads=heads)
    np.testing.assert_allclose(run(packed, feed)[0], expected, rtol=2e-5, atol=2e-5)
    if length == others:
        inputs = {"qkv": np.stack([q, k, v], axis=3), "k": None, "v": None, "b": bias}
        packed, feed = build("MultiHeadAttention", inputs, 1, symbolic=False, num_heads=heads)
        np.testing.assert_allclose(run(packed, feed)[0], expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("biased", [False, True])
def test_convolution_with_channels_last(group, biased):
    x, w = reals(2, 9, 7, 4), reals(6, 3, 3, 4 // group)
    bias = reals(6) if biased else None
    attributes = {"group": group, "pads": [1, 0, 1, 2], "strides": [2, 1]}
    model, feed = build("NhwcConv", {"x": x, "w": w, "b": bias}, 1, ("w", "b"), **attributes)
    inputs = {"x": x.transpose(0, 3, 1, 2).copy(), "w": w.transpose(0, 3, 1, 2).copy(), "b": bias}
    plain, given = build("FusedConv", inputs, 1, **attributes)
    plain.graph.node[0].op_type, plain.graph.node[0].domain = "Conv", ""
    (expected,) = runtime(plain, given)
    np.testing.assert_allclose(run(model, feed)[0], expected.transpose(0, 2, 3, 1), rtol=2e-5, atol=2e-5)
