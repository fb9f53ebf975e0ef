"""Texts in loops, scans, sequences, branches and optional values: what ONNX Runtime gives, with fixed and with named lengths."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto as T
from onnx import helper as h
from onnx import parser

from relaxide import compiler
from relaxide.onnx_backend import RelaxideBackend
from relaxide.relax.frontend.onnx import from_onnx

LOOP_STATE = """g (string[n] x, int64 k) => (string[n] y, string[a, n] rows) {
  y, rows = Loop (k, "", x) <body = b (int64 i, bool c, string[n] s) => (bool c2, string[n] s2, string[n] row) {
     c2 = Identity(c)
     s2 = StringConcat(s, x)
     row = StringConcat(s, s)
  }>
}"""

LOOP_COUNTS = """g (string[n] x, int64 k) => (string[n] y, int64[a] found) {
  y, found = Loop (k, "", x) <body = b (int64 i, bool c, string[n] s) => (bool c2, string[n] s2, int64 f) {
     c2 = Identity(c)
     s2 = Gather(s, order)
     e = Equal(s2, x)
     w = Cast<to=7>(e)
     f = ReduceSum<keepdims=0>(w)
  }>
}"""

LOOP_SEQUENCE = """g (string[n] x, int64 k) => (string[m] y) {
  first = SequenceConstruct(x)
  all = Loop (k, "", first) <body = b (int64 i, bool c, seq(string[n]) s) => (bool c2, seq(string[n]) s2) {
     c2 = Identity(c)
     last = SequenceAt(s, i)
     longer = StringConcat(last, x)
     s2 = SequenceInsert(s, longer)
  }>
  y = ConcatFromSequence<axis=0>(all)
}"""

SCAN = """g (string[n] s0, string[t, n] x) => (string[n] s, string[t, n] y) {
  s, y = Scan <num_scan_inputs=1, body = b (string[n] s1, string[n] row) => (string[n] s2, string[n] out) {
     s2 = StringConcat(s1, row)
     out = StringConcat(row, s1)
  }> (s0, x)
}"""

SCAN_BACKWARD = """g (string[n] s0, string[n, t] x) => (string[n] s, string[n, t] y) {
  s, y = Scan <num_scan_inputs=1, scan_input_axes=[1], scan_output_axes=[1], scan_input_directions=[1], scan_output_directions=[1],
     body = b (string[n] s1, string[n] row) => (string[n] s2, string[n] out) {
     s2 = StringConcat(s1, row)
     out = Identity(s2)
  }> (s0, x)
}"""

SEQUENCE = """g (string[n] x, string[m] y, int64 k) => (string[a] z, string[b] w, int64 count) {
  s = SequenceConstruct(x, y, x)
  t = SequenceErase(s, k)
  z = SequenceAt(t, k)
  u = SequenceInsert(t, y, k)
  w = ConcatFromSequence<axis=-1>(u)
  count = SequenceLength(u)
}"""

STACKED = """g (string[n] x, int64 k) => (string[a, b] y, string[n] z) {
  s = SequenceConstruct(x, x)
  y = ConcatFromSequence<axis=1, new_axis=1>(s)
  two = SequenceInsert(s, x, k)
  z = SequenceAt(two, k)
}"""

SPLIT = """g (string[n, 3] x, int64[two] sizes) => (string[a, 3] y, string[3] z) {
  parts = SplitToSequence<axis=0>(x, sizes)
  one = Constant<value = int64 {1}>()
  y = SequenceAt(parts, one)
  rows = SplitToSequence<axis=0, keepdims=0>(x)
  z = SequenceAt(rows, one)
}"""

BRANCH = """g (string[n] x, bool c) => (string[m] y) {
  s = If (c) <then_branch = t () => (seq(string[n]) a) { a = SequenceConstruct(x, x) },
              else_branch = e () => (seq(string[n]) b) { b = SequenceConstruct(x) }>
  y = ConcatFromSequence<axis=0>(s)
}"""


def words(*shape):
    rng = np.random.default_rng(sum(shape))
    made = ["".join(rng.choice(list("abcé😀 "), rng.integers(0, 4))) for _ in range(int(np.prod(shape)))]
    return np.array(made, object).reshape(shape)


def number(value):
    return np.array(value, "int64")


CASES = {
    "a state of texts, and rows": (LOOP_STATE, [{"x": words(3), "k": number(4)}, {"x": words(5), "k": number(1)}]),
    "no turn": (LOOP_STATE, [{"x": words(3), "k": number(0)}]),
    "texts that are moved and compared": (LOOP_COUNTS, [{"x": words(4), "k": number(5)}]),
    "a sequence of texts that grows": (LOOP_SEQUENCE, [{"x": words(2), "k": number(3)}, {"x": words(2), "k": number(0)}]),
    "a scan": (SCAN, [{"s0": words(2), "x": words(3, 2)}, {"s0": words(4), "x": words(1, 4)}]),
    "a scan backwards along another axis": (SCAN_BACKWARD, [{"s0": words(2), "x": words(2, 3)}]),
    "sequences": (SEQUENCE, [{"x": words(2), "y": words(3), "k": number(k)} for k in (0, 1, -1)]),
    "sequences along a new axis": (STACKED, [{"x": words(3), "k": number(k)} for k in (0, 2, -2)]),
    "parts": (SPLIT, [{"x": words(5, 3), "sizes": np.array([2, 3])}, {"x": words(4, 3), "sizes": np.array([4, 0])}]),
    "a branch": (BRANCH, [{"x": words(3), "c": np.array(c)} for c in (True, False)]),
}


def model_of(text):
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]>\n{text}')
    if "order" in text:
        model.graph.initializer.append(h.make_tensor("order", T.INT64, [4], [3, 1, 0, 2]))
    return model


@pytest.mark.parametrize("name", CASES)
def test_texts_go_through_control_flow(name):
    text, feeds = CASES[name]
    model = model_of(text)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    ours = RelaxideBackend.prepare(model)
    for feed in feeds:
        wanted = session.run(None, feed)
        got = ours.run([feed[i.name] for i in session.get_inputs()])
        for a, b in zip(got, wanted, strict=True):
            a, b = np.asarray(a), np.asarray(b)
            assert a.shape == b.shape and a.tolist() == b.tolist(), f"{a.tolist()} instead of {b.tolist()} for {feed}"


def test_rows_of_texts_that_differ_in_shape_are_refused():
    text = """g (string[n] x, int64 k) => (string[a, b] rows) {
      y, rows = Loop (k, "", x) <body = b (int64 i, bool c, string[p] s) => (bool c2, string[q] s2, string[q] row) {
         c2 = Identity(c)
         s2 = Concat<axis=0>(s, x)
         row = Identity(s2)
      }>
    }"""
    ours = RelaxideBackend.prepare(model_of(text))
    with pytest.raises(Exception, match="row 1 has shape"):
        ours.run([words(2), number(3)])


def test_a_state_that_stops_being_texts_is_refused():
    text = """g (string[n] x, int64 k) => (string[n] y) {
      y = Loop (k, "", x) <body = b (int64 i, bool c, string[n] s) => (bool c2, string[n] s2) {
         c2 = Identity(c)
         s2 = Shape(s)
      }>
    }"""
    with pytest.raises(Exception, match="texts before an iteration and numbers behind it"):
        compiler.compile(from_onnx(model_of(text)), target="llvm")
