"""Functions, branches and loops give what ONNX Runtime gives, with shapes that the compiler does not know."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import parser

import relaxide as tvm


def numbers(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32")


def scalar(value, dtype="int64"):
    return np.array(value, dtype)


def compiled(text):
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17, "local": 1]>\n{text}')
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    executable = tvm.compile(tvm.relax.frontend.onnx.from_onnx(model), target="llvm")
    return session, tvm.relax.VirtualMachine(executable, tvm.cpu())


def run(machine, session, feed):
    result = machine["main"](*[tvm.runtime.tensor(feed[i.name]) for i in session.get_inputs()])
    return [x.numpy() for x in (result if len(session.get_outputs()) > 1 else [result])]


LIMIT = """g (float[n,3] x, int64 k) => (float[n,3] y, float[a,n,3] rows) {
  cond = Constant <value: tensor = bool {1}> ()
  y, rows = Loop (k, cond, x) <body = b (int64 i, bool c, float[n,3] s) => (bool c2, float[n,3] s2, float[n,3] row) {
     c2 = Identity(c)
     fi = Cast<to=1>(i)
     t = Add(s, x)
     s2 = Add(t, fi)
     row = Neg(s2)
  }>
}"""

CONDITION = """g (float[n] x) => (float[n] y, float[a,n] rows) {
  cond = Constant <value: tensor = bool {1}> ()
  y, rows = Loop ("", cond, x) <body = b (int64 i, bool c, float[n] s) => (bool c2, float[n] s2, float[n] row) {
     one = Constant<value_float=1.0>()
     s2 = Add(s, one)
     row = Mul(s2,s2)
     hi = ReduceMax<keepdims=0>(s2)
     lim = Constant<value_float=20.0>()
     c2 = Less(hi, lim)
  }>
}"""

GROWING = """g (float[n,2] x, int64 k) => (float[m,2] y) {
  y = Loop (k, "", x) <body = b (int64 i, bool c, float[p,2] s) => (bool c2, float[q,2] s2) {
     c2 = Identity(c)
     s2 = Concat<axis=0>(s, x)
  }>
}"""

NESTED = """g (float[n] x, int64 k) => (float[n] y, float[a,b,n] rows) {
  y, rows = Loop (k, "", x) <body = b (int64 i, bool c, float[n] s) => (bool c2, float[n] s2, float[r,n] row) {
     c2 = Identity(c)
     s2, row = Loop (k, "", s) <body = b2 (int64 j, bool d, float[n] u) => (bool d2, float[n] u2, float[n] row2) {
        d2 = Identity(d)
        fi = Cast<to=1>(i)
        fj = Cast<to=1>(j)
        v = Mul(fi, fj)
        u1 = Add(u, v)
        u2 = Add(u1, x)
        row2 = Identity(u2)
     }>
  }>
}"""

MANY = """g (float[n] x, int64 k) => (float[n] y, float[a,n] rows) {
  y, rows = Loop (k, "", x) <body = b (int64 i, bool c, float[n] s) => (bool c2, float[n] s2, float[n] row) {
     c2 = Identity(c)
     s2 = Add(s, x)
     row = Identity(s2)
  }>
}"""

SCAN = """g (float[n] h, float[t,n] x, float[n,t] z) => (float[n] hn, float[n,t] ys, float[t,n] zs) {
  hn, ys, zs = Scan <num_scan_inputs=2, scan_input_axes=[0,1], scan_input_directions=[0,1], scan_output_axes=[1,0],
                     scan_output_directions=[0,1],
                     body = b (float[n] s, float[n] a, float[n] c) => (float[n] s2, float[n] y, float[n] w) {
     s1 = Add(s, a)
     s2 = Mul(s1, c)
     y = Neg(s2)
     w = Add(c, h)
  }> (h, x, z)
}"""

RANKS = """g (float[n,m] x) => (float y) {
  sh = Shape(x)
  i1 = Constant<value_ints=[1]>()
  d = Gather<axis=0>(sh, i1)
  q = Equal(d, i1)
  s = If (q) <then_branch = t () => (float[n] a) { a = Squeeze(x, i1) },
              else_branch = e () => (float[n,m] b) { b = Identity(x) }>
  sz = Size(s)
  e = Exp(s)
  y = ReduceSum<keepdims=0>(e)
}"""

VALUE = """g (float[n,m] x, float k) => (float[a,b] y, int64 z) {
  zero = Constant<value_float=0.0>()
  q = Greater(k, zero)
  y, z = If (q) <then_branch = t () => (float[n,m] a, int64 za) { a = Neg(x)  za = Constant<value_int=3>() },
                 else_branch = e () => (float[p,m] b, int64 zb) { b = Concat<axis=0>(x, x)  zb = Size(x) }>
}"""

FUNCTION = """g (float[n,m] x) => (float[n,m] y, float[n,m] z) {
  y = local.outer <slope=0.5> (x)
  z = local.outer (x)
}
<domain: "local", opset_import: ["": 17, "local": 1]>
inner <alpha> (a) => (b) {
  t = LeakyRelu <alpha: float = @alpha> (a)
  b = Add(t, a)
}
<domain: "local", opset_import: ["": 17, "local": 1]>
outer <slope: float = 0.25> (a) => (t) {
  b = local.inner <alpha: float = @slope> (a)
  t = Mul(b, a)
}"""

X = numbers(2, 3)
CASES = {
    "limit": (LIMIT, [{"x": X, "k": scalar(k)} for k in (5, 1)]),
    "condition": (CONDITION, [{"x": numbers(4)}]),
    "growing_state": (GROWING, [{"x": numbers(2, 2), "k": scalar(k)} for k in (4, 0)]),
    "nested": (NESTED, [{"x": numbers(3), "k": scalar(3)}]),
    "many_turns": (MANY, [{"x": numbers(3) * 0, "k": scalar(100_000)}]),
    "scan": (SCAN, [{"h": numbers(3), "x": numbers(5, 3), "z": numbers(3, 5)}]),
    "branches_of_different_rank": (RANKS, [{"x": numbers(3, 1)}, {"x": numbers(3, 4)}]),
    "branches_of_different_shape": (VALUE, [{"x": X, "k": scalar(k, "float32")} for k in (1, -1)]),
    "functions": (FUNCTION, [{"x": X}]),
}


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_onnx_runtime(name):
    text, feeds = CASES[name]
    session, machine = compiled(text)
    for feed in feeds:
        for got, wanted in zip(run(machine, session, feed), session.run(None, feed), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


def test_a_loop_without_turns_gives_the_state_and_no_rows():
    session, machine = compiled(LIMIT)
    y, rows = run(machine, session, {"x": X, "k": scalar(0)})
    np.testing.assert_array_equal(y, X)
    assert rows.shape == (0, 2, 3)


def test_a_function_that_calls_itself_is_refused():
    text = """g (float[n] x) => (float[n] y) { y = local.f (x) }
<domain: "local", opset_import: ["": 17, "local": 1]>
f (a) => (b) { b = local.f (a) }"""
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17, "local": 1]>\n{text}')
    with pytest.raises(Exception, match="the function `f` calls itself"):
        tvm.relax.frontend.onnx.from_onnx(model)
