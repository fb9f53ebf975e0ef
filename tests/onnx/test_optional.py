"""Optional values give the element or none, whether they are known at import or only when the program runs."""

import numpy as np
import pytest
from onnx import parser

from relaxide.onnx_backend import RelaxideBackend

HEAD = '<ir_version: 10, opset_import: ["": 18]>\n'


def prepared(text):
    return RelaxideBackend.prepare(parser.parse_model(HEAD + text))


def numbers(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32")


OR_ZERO = """g (optional(float[4]) o, float[4] d) => (float[4] y) {
  has = OptionalHasElement (o)
  y = If (has) <then_branch = t () => (float[4] a) { e = OptionalGetElement (o)
     a = Add (e, d) }, else_branch = f () => (float[4] b) { b = Neg (d) }>
}"""


def test_a_parameter_of_the_model_may_be_there_or_not():
    program = prepared(OR_ZERO)
    x, d = numbers(4), numbers(4) + 1
    assert np.allclose(program.run([x, d])[0], x + d)
    assert np.allclose(program.run([None, d])[0], -d)


def test_the_element_of_an_empty_value_is_an_error_that_says_so():
    program = prepared("g (optional(float[4]) o) => (float[4] y) { y = OptionalGetElement (o) }")
    assert np.allclose(program.run([numbers(4)])[0], numbers(4))
    with pytest.raises(Exception, match="the element of an optional value is taken, but the value is empty"):
        program.run([None])


def test_a_tensor_of_another_shape_than_the_declared_one_is_refused():
    program = prepared("g (optional(float[4]) o) => (float[4] y) { e = OptionalGetElement (o)\n y = Neg (e) }")
    with pytest.raises(Exception):
        program.run([numbers(5)])


def test_the_element_of_what_is_known_to_be_empty_is_refused_at_import():
    text = "g (float[4] x) => (float[4] y) { o = Optional<type = float[4]> ()\n y = OptionalGetElement (o) }"
    with pytest.raises(Exception, match="the optional value is empty"):
        prepared(text)


def test_what_is_known_at_import_is_folded():
    text = """g (float[4] x) => (float[4] y) {
      o = Optional (x)
      has = OptionalHasElement (o)
      y = If (has) <then_branch = t () => (float[4] a) { e = OptionalGetElement (o)
         a = Exp (e) }, else_branch = f () => (float[4] b) { b = Neg (x) }>
    }"""
    import relaxide as tvm

    module = tvm.relax.frontend.onnx.from_onnx(parser.parse_model(HEAD + text))
    assert "if" not in str(module) and "optional_has" not in str(module)
    assert np.allclose(prepared(text).run([numbers(4)])[0], np.exp(numbers(4)))


BRANCHES = """g (bool c, float[n] x, float[n] z) => (float[n] y, bool has) {
  o = If (c) <then_branch = t () => (optional(float[n]) a) { s = Add (x, z)
     a = Optional (s) }, else_branch = f () => (optional(float[n]) b) { b = Optional<type = float[n]> () }>
  has = OptionalHasElement (o)
  y = If (has) <then_branch = t2 () => (float[n] d) { d = OptionalGetElement (o) },
     else_branch = f2 () => (float[n] e) { e = Neg (x) }>
}"""


@pytest.mark.parametrize("n", [1, 5])
def test_branches_of_which_one_gives_nothing(n):
    program = prepared(BRANCHES)
    x, z = numbers(n), numbers(n) * 3
    for truth in (True, False):
        y, has = program.run([np.array(truth), x, z])
        assert has == truth
        assert np.allclose(y, x + z if truth else -x)


LOOP = """g (int64 k, optional(float[n]) o, float[n] x) => (optional(float[n]) y) {
  y = Loop (k, "", o) <body = b (int64 i, bool c, optional(float[n]) s) => (bool c2, optional(float[n]) s2) {
     c2 = Identity (c)
     has = OptionalHasElement (s)
     v = If (has) <then_branch = t () => (float[n] a) { e = OptionalGetElement (s)
        a = Add (e, x) }, else_branch = f () => (float[n] d) { d = Neg (x) }>
     s2 = Optional (v)
  }>
}"""


def test_state_of_a_loop_may_be_there_or_not():
    program = prepared(LOOP)
    x = numbers(3)
    assert program.run([np.array(0), None, x]) == (None,)
    assert np.allclose(program.run([np.array(3), None, x])[0], x)
    assert np.allclose(program.run([np.array(2), 2 * x, x])[0], 4 * x)
    assert np.allclose(program.run([np.array(0), 2 * x, x])[0], 2 * x)


SEQUENCE = """g (optional(seq(float[n])) o) => (int64 l, optional(seq(float[n])) p) {
  p = Identity (o)
  s = OptionalGetElement (p)
  l = SequenceLength (s)
}"""


def test_an_optional_sequence():
    program = prepared(SEQUENCE)
    length, same = program.run([[numbers(2), numbers(3)]])
    assert length == 2 and np.allclose(same[1], numbers(3))
    with pytest.raises(Exception, match="is empty"):
        program.run([None])


def test_an_optional_value_of_an_optional_value_is_refused():
    with pytest.raises(Exception, match="optional value already"):
        prepared("g (optional(float[4]) o) => (optional(float[4]) p) { p = Optional (o) }")
