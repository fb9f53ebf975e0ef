"""Graphs that are run for each value of a sequence whose length nobody knows, and for each item of a batch."""

import numpy as np
import pytest
from onnx import parser

from relaxide.onnx_backend import RelaxideBackend

HEAD = '<ir_version: 10, opset_import: ["": 18]>\n'


def prepared(text):
    return RelaxideBackend.prepare(parser.parse_model(HEAD + text))


def numbers(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32")


MAP = """g (seq(float[n]) xs, float k) => (seq(float[n]) ys, seq(int64[1]) ls) {
  ys, ls = SequenceMap (xs, k) <body = b (float[n] x, float q) => (float[n] y, int64[1] l) {
     t = Mul (x, q)
     y = Add (t, k)
     l = Shape (x)
  }>
}"""


@pytest.mark.parametrize("sizes", [(), (3,), (1, 4, 2)])
def test_a_graph_for_each_value_of_a_sequence_of_unknown_length(sizes):
    program = prepared(MAP)
    values = [numbers(n) for n in sizes]
    ys, ls = program.run([values, np.float32(2)])
    assert [list(l) for l in ls] == [[n] for n in sizes]
    assert len(ys) == len(values) and all(np.allclose(y, 2 * x + 2) for x, y in zip(values, ys))


TWO = """g (seq(float[n]) a, seq(float[m]) b) => (seq(float[k]) c) {
  c = SequenceMap (a, b) <body = f (float[n] x, float[m] y) => (float[k] z) { z = Concat<axis=0> (x, y) }>
}"""


def test_sequences_of_one_length_together_and_others_refused():
    program = prepared(TWO)
    (c,) = program.run([[numbers(2), numbers(3)], [numbers(1), numbers(4)]])
    assert [x.shape for x in c] == [(3,), (7,)]
    with pytest.raises(Exception):
        program.run([[numbers(2)], [numbers(1), numbers(4)]])


SCAN8 = """<ir_version: 3, opset_import: ["": 8]>
g (float[b,2] s0, float[b,t,2] x) => (float[b,2] s, float[b,t,2] y) {
  s, y = Scan <num_scan_inputs = 1, directions = [1], body = f (float[2] a, float[2] r) => (float[2] c, float[2] d) {
     c = Add (a, r)
     d = Mul (c, r)
  }> ("", s0, x)
}"""


@pytest.mark.parametrize("b, t", [(1, 3), (3, 2)])
def test_scans_of_a_batch(b, t):
    model = parser.parse_model(SCAN8)
    program = RelaxideBackend.prepare(model)
    s0, x = numbers(b, 2), numbers(b, t, 2)
    s, y = program.run([s0, x])
    back = x[:, ::-1]
    sums = s0[:, None] + np.cumsum(back, axis=1)
    assert np.allclose(s, sums[:, -1], atol=1e-5)
    assert np.allclose(y, sums * back, atol=1e-5)
