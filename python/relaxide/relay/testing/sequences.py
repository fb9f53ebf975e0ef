"""Networks over sequences: an LSTM that is unrolled or runs over a list, and an encoder of the BERT kind."""

import math

from .. import adt, expr, op
from ..expr import GlobalVar
from ..module import IRModule
from ..prelude import Prelude
from ..ty import Any, TensorType, TupleType
from .builder import Builder

nn = op.nn


def _cell(net_gates, cell):
    i, f, g, o = (net_gates[k] for k in range(4))
    cell = op.sigmoid(f) * cell + op.sigmoid(i) * op.tanh(g)
    return op.sigmoid(o) * op.tanh(cell), cell


def lstm(iterations=5, num_hidden=16, batch_size=1, dtype="float32"):
    """An LSTM whose steps are unrolled, over one input for each."""
    net = Builder(dtype)
    inputs = [net.input(f"data{at}", (batch_size, num_hidden)) for at in range(iterations)]
    weight_i, bias = net.weight("i2h_weight", (4 * num_hidden, num_hidden)), net.weight("i2h_bias", (4 * num_hidden,))
    weight_h = net.weight("h2h_weight", (4 * num_hidden, num_hidden))
    # A batch of any size is that of the inputs.
    known = not isinstance(batch_size, Any)
    hidden = cell = op.zeros((batch_size, num_hidden), dtype) if known else op.zeros_like(inputs[0])
    for x in inputs:
        gates = nn.bias_add(nn.dense(x, weight_i, units=4 * num_hidden), bias) + nn.dense(hidden, weight_h, units=4 * num_hidden)
        hidden, cell = _cell(op.split(gates, 4, axis=1), cell)
    return net.workload(hidden, [f"data{at}" for at in range(iterations)])


def lstm_over_list(num_hidden=16, batch_size=1, dtype="float32"):
    """An LSTM as a recursive function over a list of any length, of the prelude's ``List``."""
    state = TensorType((batch_size, num_hidden), dtype)
    prelude = Prelude(IRModule())
    listed = prelude.mod.get_global_type_var("List")(state)
    net = Builder(dtype)
    weight_i = net.weight("i2h_weight", (4 * num_hidden, num_hidden))
    weight_h = net.weight("h2h_weight", (4 * num_hidden, num_hidden))
    step = GlobalVar("lstm")
    xs, pair, x, rest = expr.var("xs", listed), expr.var("state", TupleType([state, state])), expr.Var("x"), expr.Var("rest")
    gates = nn.dense(x, weight_i, units=4 * num_hidden) + nn.dense(expr.TupleGetItem(pair, 0), weight_h, units=4 * num_hidden)
    hidden, cell = _cell(op.split(gates, 4, axis=1), expr.TupleGetItem(pair, 1))
    more = expr.Call(step, [rest, expr.Tuple([hidden, cell]), weight_i, weight_h])
    cons = adt.PatternConstructor(prelude.cons, [adt.PatternVar(x), adt.PatternVar(rest)])
    done = adt.Clause(adt.PatternConstructor(prelude.nil), expr.TupleGetItem(pair, 0))
    body = adt.Match(xs, [done, adt.Clause(cons, more)])
    prelude.mod[step] = expr.Function([xs, pair, weight_i, weight_h], body, state)
    start = [op.zeros((batch_size, num_hidden), dtype) for _ in range(2)]
    given = expr.var("xs", listed)
    wi, wh = (expr.Var(v.name_hint, v.type_annotation) for v in (weight_i, weight_h))
    prelude.mod["main"] = expr.Function([given, wi, wh], expr.Call(step, [given, expr.Tuple(start), wi, wh]))
    _, weights = net.workload(expr.Tuple([]), ())
    return prelude.mod, weights


def bert(batch_size=1, length=16, layers=2, hidden=32, heads=4, vocabulary=100, dtype="float32"):
    """An encoder: embeddings, attention, feed-forward layers with GELU. ``length`` may be ``relay.Any()``."""
    net = Builder(dtype)
    tokens = expr.var("tokens", shape=(batch_size, length), dtype="int64")
    net.params.append((tokens, ()))
    size, known = hidden // heads, not isinstance(length, Any)
    whole = (batch_size, length if known else -1)

    def linear(x, name, cin, cout):
        y = nn.dense(op.reshape(x, (-1, cin)), net.weight(f"{name}_weight", (cout, cin)), units=cout)
        return nn.bias_add(y, net.weight(f"{name}_bias", (cout,)), axis=-1)

    def norm(x, name):
        return nn.layer_norm(x, net.weight(f"{name}_gamma", (hidden,)), net.weight(f"{name}_beta", (hidden,)), epsilon=1e-12)

    def heads_of(x):
        x = op.transpose(op.reshape(x, (*whole, heads, size)), (0, 2, 1, 3))
        return op.reshape(x, (batch_size * heads, whole[1], size))

    x = norm(op.take(net.weight("embedding_weight", (vocabulary, hidden)), tokens, axis=0), "embedding")
    for at in range(layers):
        name = f"layer{at}"
        q, k, v = (heads_of(linear(x, f"{name}_{part}", hidden, hidden)) for part in "qkv")
        scores = nn.softmax(nn.batch_matmul(q, k) * expr.const(1 / math.sqrt(size), dtype))
        mixed = nn.batch_matmul(scores, v, transpose_b=False)
        mixed = op.transpose(op.reshape(mixed, (batch_size, heads, whole[1], size)), (0, 2, 1, 3))
        y = op.reshape(linear(op.reshape(mixed, (*whole, hidden)), f"{name}_out", hidden, hidden), (*whole, hidden))
        x = norm(x + y, f"{name}_norm1")
        y = linear(x, f"{name}_up", hidden, 4 * hidden)
        y = y * (expr.const(0.5, dtype) + expr.const(0.5, dtype) * op.erf(y * expr.const(math.sqrt(0.5), dtype)))
        y = op.reshape(linear(y, f"{name}_down", 4 * hidden, hidden), (*whole, hidden))
        x = norm(x + y, f"{name}_norm2")
    return net.workload(x, ["tokens"])
