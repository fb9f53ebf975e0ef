"""A small LLaMA-shaped decoder: rotary positions, grouped heads, gated layers, and a cache of keys and values.

One function serves the prompt and every later token: the tokens' number and the cache's length are symbolic. The weights are
random, so what it writes means nothing; what counts is that each step reads the cache instead of all tokens before.
"""

from dataclasses import dataclass

import numpy as np

import relaxide as tvm
from relaxide import relax
from relaxide.relax import op


@dataclass
class Config:
    """The sizes of the network."""

    vocabulary: int = 256
    width: int = 128
    hidden: int = 352
    layers: int = 4
    heads: int = 8
    kv_heads: int = 2
    longest: int = 512

    @property
    def head(self):
        return self.width // self.heads


def weights(config, seed=0):
    """Random weights by name."""
    rng = np.random.default_rng(seed)
    kv = config.kv_heads * config.head
    shapes = {"embedding": (config.vocabulary, config.width)}
    for i in range(config.layers):
        shapes |= {
            f"{i}.query": (config.width, config.width),
            f"{i}.key": (config.width, kv),
            f"{i}.value": (config.width, kv),
            f"{i}.out": (config.width, config.width),
            f"{i}.gate": (config.width, config.hidden),
            f"{i}.up": (config.width, config.hidden),
            f"{i}.down": (config.hidden, config.width),
        }
    made = {name: (rng.standard_normal(s) / np.sqrt(s[0])).astype("float32") for name, s in shapes.items()}
    return made | {"one": np.ones(config.width, "float32")}


class Decoder:
    """Builds the program, node by node."""

    def __init__(self, config, values):
        self.config, self.values = config, {name: relax.const(value) for name, value in values.items()}
        self.builder = relax.BlockBuilder()
        angles = np.outer(np.arange(config.longest), 10000.0 ** (-np.arange(0, config.head, 2) / config.head))
        angles = np.concatenate([angles, angles], axis=1).astype("float32")
        self.cos, self.sin = relax.const(np.cos(angles)), relax.const(np.sin(angles))

    def norm(self, x):
        return op.nn.rms_norm(x, self.values["one"], axes=[-1], epsilon=1e-5)

    def split(self, x, heads, count):
        """Tokens × (heads · size) to heads × tokens × size."""
        return op.permute_dims(op.reshape(x, (count, heads, self.config.head)), axes=[1, 0, 2])

    def rotate(self, x, cos, sin):
        first, second = op.split(x, 2, axis=-1)
        turned = op.concat([op.negative(second), first], axis=-1)
        return op.add(op.multiply(x, cos), op.multiply(turned, sin))

    def attend(self, x, name, past, mask, turn, sizes):
        """What the tokens take from all before them; and the keys and values of these and those."""
        config, (count, total) = self.config, sizes
        emit, value = self.builder.emit, self.values
        query = self.rotate(self.split(op.matmul(x, value[f"{name}.query"]), config.heads, count), *turn)
        key = self.rotate(self.split(op.matmul(x, value[f"{name}.key"]), config.kv_heads, count), *turn)
        new = self.split(op.matmul(x, value[f"{name}.value"]), config.kv_heads, count)
        keys, values = emit(op.concat([past[0], key], axis=1)), emit(op.concat([past[1], new], axis=1))
        shared = config.heads // config.kv_heads
        all_keys, all_values = op.repeat(keys, shared, axis=0), op.repeat(values, shared, axis=0)
        scores = op.matmul(query, op.permute_dims(all_keys, axes=[0, 2, 1]))
        scores = op.multiply(scores, relax.const(np.float32(config.head**-0.5)))
        shares = op.nn.softmax(op.where(mask, scores, relax.const(np.float32(-1e30))), axis=-1)
        context = op.permute_dims(op.matmul(shares, all_values), axes=[1, 0, 2])
        context = op.reshape(context, (count, config.width))
        return emit(op.matmul(context, value[f"{name}.out"])), keys, values

    def feed(self, x, name):
        gate, up = op.matmul(x, self.values[f"{name}.gate"]), op.matmul(x, self.values[f"{name}.up"])
        return op.matmul(op.multiply(op.nn.silu(gate), up), self.values[f"{name}.down"])

    def build(self):
        """`main(tokens, *caches)`: logits of the last token, and the caches with these tokens' keys and values."""
        config, builder = self.config, self.builder
        count, past = tvm.tirx.Var("count", "int64"), tvm.tirx.Var("past", "int64")
        total = past + count
        tokens = relax.Var("tokens", relax.TensorType((count,), "int64"))
        cache = relax.TensorType((config.kv_heads, past, config.head), "float32")
        caches = [relax.Var(f"{part}{i}", cache) for i in range(config.layers) for part in ("keys", "values")]
        with builder.function("main", [tokens, *caches]):
            with builder.dataflow():
                places = op.arange(past, total, 1, dtype="int64")
                places = builder.match_cast(builder.emit(places), relax.TensorType((count,), "int64"))
                turn = [builder.emit(op.take(table, places, axis=0)) for table in (self.cos, self.sin)]
                before = op.reshape(op.arange(0, total, 1, dtype="int64"), (1, total))
                mask = builder.emit(op.less_equal(before, op.reshape(places, (count, 1))))
                x = builder.emit(op.take(self.values["embedding"], tokens, axis=0))
                grown = []
                for i in range(config.layers):
                    pair = caches[2 * i], caches[2 * i + 1]
                    context, keys, values = self.attend(self.norm(x), str(i), pair, mask, turn, (count, total))
                    x = builder.emit(op.add(x, context))
                    x = builder.emit(op.add(x, self.feed(self.norm(x), str(i))))
                    grown += [keys, values]
                last = op.strided_slice(self.norm(x), axes=[0], begin=[count - 1], end=[count])
                logits = op.matmul(last, op.permute_dims(self.values["embedding"]))
                result = builder.emit_output(relax.Tuple([logits, *grown]))
            builder.emit_func_output(result)
        return builder.finalize()


def empty(config):
    """Caches without tokens."""
    shape = (config.kv_heads, 0, config.head)
    return [tvm.runtime.tensor(np.zeros(shape, "float32")) for _ in range(2 * config.layers)]


def generate(machine, config, prompt, count):
    """The likeliest tokens behind a prompt, one after the other."""
    caches, tokens, written = empty(config), list(prompt), []
    for _ in range(count):
        logits, *caches = machine["main"](tvm.runtime.tensor(np.array(tokens, "int64")), *caches)
        tokens = [int(logits.numpy().argmax())]
        written += tokens
    return written
