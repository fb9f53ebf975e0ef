"""Programs that a generator makes, each from a seed of its own: tensors of one row length, in branches, calls and loops."""

import random

#: How many there are.
COUNT = 90


class _Writer:
    """One function's text in the making."""

    def __init__(self, rng, dims):
        self.rng, self.dims, self.lines, self.count = rng, dims, [], 0

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def emit(self, indent, text):
        name = self.name()
        self.lines.append("    " * indent + f"{name} = {text}")
        return name

    def value(self, known, callees, self_call):
        """An expression over what is known; all values have the same shape."""
        rng = self.rng
        pick = lambda: rng.choice(known)  # noqa: E731
        kind = rng.randrange(10)
        if kind < 3:
            return f"R.{rng.choice(['add', 'subtract', 'multiply', 'maximum', 'minimum'])}({pick()}, {pick()})"
        if kind < 5:
            return f"R.{rng.choice(['nn.relu', 'tanh', 'abs', 'sigmoid', 'negative', 'sin'])}({pick()})"
        if kind == 5:
            return f"R.add({pick()}, R.const({rng.randrange(-8, 8) / 4}))"
        if kind == 6:
            axis = rng.randrange(len(self.dims))
            return f"R.subtract({pick()}, R.{rng.choice(['max', 'mean', 'sum'])}({pick()}, axis={axis}, keepdims=True))"
        if kind == 7:
            return f"R.where(R.greater({pick()}, {pick()}), {pick()}, {pick()})"
        if kind == 8 and callees:
            return f"Module.{rng.choice(callees)}({pick()}, {pick()})"
        if kind == 9 and len(self.dims) == 2:
            return f"R.permute_dims(R.permute_dims({pick()}))"
        return f"R.clip({pick()}, -2, 2)"

    def block(self, indent, known, callees, depth):
        known = list(known)
        for _ in range(self.rng.randrange(2, 5)):
            if depth and self.rng.random() < 0.3:
                known.append(self.branch(indent, known, callees, depth - 1))
            elif self.rng.random() < 0.15:
                known.append(self.through_tuple(indent, known))
            else:
                known.append(self.emit(indent, self.value(known, callees, False)))
        return known

    def through_tuple(self, indent, known):
        pair = self.emit(indent, f"({self.rng.choice(known)}, {self.rng.choice(known)})")
        return self.emit(indent, f"{pair}[{self.rng.randrange(2)}]")

    def branch(self, indent, known, callees, depth):
        total = self.emit(indent, f"R.sum({self.rng.choice(known)})")
        condition = self.emit(indent, f"R.greater({total}, R.const({self.rng.randrange(-4, 4) / 2}))")
        result = self.name()
        for head in (f"if {condition}:", "else:"):
            self.lines.append("    " * indent + head)
            inside = self.block(indent + 1, known, callees, depth)
            self.lines.append("    " * (indent + 1) + f"{result} = R.add({inside[-1]}, {self.rng.choice(inside)})")
        return result


def _function(rng, name, kind, dims, callees, private):
    writer = _Writer(rng, dims)
    known = writer.block(1, ["x", "y"], callees, depth=2)
    head = "@R.function(private=True)\n" if private else "@R.function\n"
    head += f"def {name}(x: {kind}, y: {kind}) -> {kind}:\n"
    symbols = "".join(f"    {dim} = T.int64()\n" for dim in dict.fromkeys(d for d in dims if isinstance(d, str)))
    return head + symbols + "\n".join(writer.lines) + f"\n    return {known[-1]}\n"


def _loop(rng, kind, dims, callee):
    symbols = "".join(f"    {dim} = T.int64()\n" for dim in dict.fromkeys(d for d in dims if isinstance(d, str)))
    return f"""@R.function
def loop(times: R.Tensor((), "int64"), x: {kind}, y: {kind}) -> {kind}:
{symbols}    more = R.greater(times, R.const(0, "int64"))
    if more:
        z = Module.{callee}(x, y)
        r = Module.loop(R.subtract(times, R.const(1, "int64")), y, z)
    else:
        r = R.subtract(y, x)
    return r
"""


def programs():
    """``(name, functions, calls)`` of each."""
    for seed in range(COUNT):
        rng = random.Random(seed)
        dims = rng.choice([(4,), ("n",), (2, 3), ("n", 4), ("n", "m"), (3, "m")])
        kind = f'R.Tensor({dims!r}, "float32")'.replace("'", '"')
        names = [f"f{i}" for i in range(rng.randrange(0, 3))]
        functions = []
        for i, name in enumerate(names):
            functions.append(_function(rng, name, kind, dims, names[:i], private=rng.random() < 0.5))
        functions.append(_function(rng, "main", kind, dims, names, private=False))
        calls = []
        for _ in range(3):
            sizes = {"n": rng.randrange(1, 6), "m": rng.randrange(1, 6)}
            shape = [sizes.get(dim, dim) for dim in dims]
            calls.append(("main", [_argument(rng, shape), _argument(rng, shape)]))
        if rng.random() < 0.4:
            functions.append(_loop(rng, kind, dims, "main"))
            shape = [{"n": 3, "m": 2}.get(dim, dim) for dim in dims]
            times = {"tensor": rng.randrange(0, 5), "dtype": "int64"}
            calls.append(("loop", [times, _argument(rng, shape), _argument(rng, shape)]))
        yield f"generated_{seed:02}", functions, calls


def _argument(rng, shape):
    return {"ramp": shape, "dtype": "float32", "step": rng.randrange(1, 9) / 8, "start": rng.randrange(-8, 8) / 4}
