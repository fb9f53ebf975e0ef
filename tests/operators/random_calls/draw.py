"""One random case: choices, and the parameters that they lead to."""

import random


FLOATS = ["float32", "float32", "float32", "float16", "float64"]
INTS = ["int32", "int64", "int8", "uint8"]
DIMS = [1, 2, 3, 4, 6, 8, "n", "n", "m"]


class Draw:
    """One case: random choices, and the parameters that they lead to."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.params = []
        self.symbols = set()

    def chance(self, share):
        return self.rng.random() < share

    def pick(self, *options):
        return self.rng.choice(options)

    def int(self, low, high):
        return self.rng.randint(low, high)

    def dim(self):
        dim = self.rng.choice(DIMS)
        if isinstance(dim, str):
            self.symbols.add(dim)
        return dim

    def shape(self, ndim=None):
        return [self.dim() for _ in range(self.int(0, 4) if ndim is None else ndim)]

    def dtype(self, kinds="f"):
        if kinds == "f":
            return self.rng.choice(FLOATS)
        if kinds == "i":
            return self.rng.choice(INTS)
        if kinds == "b":
            return "bool"
        return self.rng.choice(FLOATS + INTS + ["bool"])

    def text(self, shape):
        for dim in shape:
            for name in ("n", "m"):
                if isinstance(dim, str) and name in dim:
                    self.symbols.add(name)
        quoted = (f'"{d}", ' if isinstance(d, str) else f"{d}, " for d in shape)
        return "(" + "".join(quoted) + ")"

    def shape_arg(self, shape):
        self.text(shape)
        return "R.shape([" + ", ".join(str(d) for d in shape) + "])"

    def tensor(self, shape, dtype="float32", known=0.85):
        """A parameter of this type, about which sometimes less is said; its name."""
        name = f"x{len(self.params)}"
        if self.chance(known):
            ty = f'R.Tensor({self.text(shape)}, dtype="{dtype}")'
        else:
            ty = self.pick(
                f'R.Tensor(dtype="{dtype}", ndim={len(shape)})',
                f'R.Tensor(dtype="{dtype}", ndim={len(shape)})',
                f'R.Tensor(dtype="{dtype}")',
                f"R.Tensor(ndim={len(shape)})",
                "R.Tensor",
            )
        self.params.append((name, ty))
        return name

    def axis(self, ndim):
        if self.chance(0.08):
            return self.pick(ndim, ndim + 2, -ndim - 1)
        if ndim == 0:
            return 0
        return self.int(-ndim, ndim - 1)

    def axes(self, ndim):
        if ndim == 0 or self.chance(0.05):
            return [self.axis(ndim)]
        count = self.int(1, ndim)
        chosen = self.rng.sample(range(ndim), count)
        return [a - ndim if self.chance(0.3) else a for a in chosen]

    def like(self, shape):
        """A shape that can mostly be broadcast with another."""
        out = [1 if self.chance(0.3) else d for d in shape[self.int(0, len(shape)) :]]
        if self.chance(0.1) and out:
            out[self.int(0, len(out) - 1)] = self.dim()
        return out

    def signature(self):
        return ", ".join(f"{name}: {ty}" for name, ty in self.params)
