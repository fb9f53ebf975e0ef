"""Families of programs about values: tuples, lengths, casts, kernels, scalars, functions."""

from program_text import family, module, ramp, shape, tensor


@family
def tuples():
    """Tuples in, out, nested, through branches and calls."""
    a, b = 'R.Tensor((2,), "float32")', 'R.Tensor((3,), "int32")'
    args = [ramp(2), ramp(3, dtype="int32", step=2, start=-1)]
    plain = {
        "pair": (f"x: {a}, y: {b}", "return (x, y)", args),
        "swap": (f"x: {a}, y: {b}", "t = (x, y)\n    return (t[1], t[0])", args),
        "nested": (f"x: {a}, y: {b}", "return ((x, (y, x)), (y,))", args),
        "empty": (f"x: {a}, y: {b}", "return ((), x)", args),
        "argument": (f"p: R.Tuple({a}, {b})", "return (R.add(p[0], p[0]), R.add(p[1], p[1]))", [{"tuple": args}]),
        "argument_nested": (
            f"p: R.Tuple({a}, R.Tuple({b}, {a}))",
            "q = p[1]\n    return (R.add(p[0], q[1]), q[0])",
            [{"tuple": [args[0], {"tuple": [args[1], ramp(2, start=5.0)]}]}],
        ),
        "unpacked": (
            f"p: R.Tuple({a}, R.Tuple({b}, {a}))",
            "inner = p[1]\n    z = inner[1]\n    return R.multiply(z, p[0])",
            [{"tuple": [args[0], {"tuple": [args[1], ramp(2, start=5.0)]}]}],
        ),
        "of_split": (
            'x: R.Tensor((6,), "float32")',
            "parts = R.split(x, 3, axis=0)\n    return (parts[2], R.add(parts[0], parts[1]))",
            [ramp(6)],
        ),
    }
    for name, (params, body, given) in plain.items():
        yield name, module(f"@R.function\ndef main({params}):\n    {body}\n"), [("main", given)]
    choose = f"""
@R.function
def main(x: {a}, y: {b}, c: R.Tensor((), "bool")):
    if c:
        t = (x, (y, R.add(x, x)))
    else:
        t = (R.negative(x), (R.add(y, y), x))
    s = t[1]
    return (s[0], t[0], s[1])
"""
    yield "branch", module(choose), [("main", args + [tensor(c, "bool")]) for c in (True, False)]
    through = f"""
@R.function
def swap(p: R.Tuple({a}, {a})) -> R.Tuple({a}, {a}):
    q = (p[1], R.add(p[0], R.const(1.0)))
    return q
"""
    call = f"""
@R.function
def main(x: {a}, y: {a}):
    p = (x, y)
    q = Module.swap(p)
    r = Module.swap(q)
    return (r, q[0])
"""
    yield "call", module(through, call), [("main", [ramp(2), ramp(2, start=3.0)])]
    loop = f"""
@R.function
def main(n: R.Tensor((), "int64"), p: R.Tuple({a}, {a})) -> R.Tuple({a}, {a}):
    stop = R.less(n, R.const(1, "int64"))
    if stop:
        r = (p[0], p[1])
    else:
        q = (p[1], R.add(p[0], p[1]))
        r = Module.main(R.subtract(n, R.const(1, "int64")), q)
    return r
"""
    calls = [("main", [tensor(n, "int64"), {"tuple": [tensor([0.0, 1.0]), tensor([1.0, 1.0])]}]) for n in (0, 1, 10)]
    yield "loop", module(loop), calls


@family
def dynamic():
    """Symbolic dimensions, in arguments, computed, in results."""
    bodies = {
        "add": (['("n",)', '("n",)'], "R.add(x, y)", [[(3,), (3,)], [(1,), (1,)], [(7,), (7,)]]),
        "outer": (['("n", 1)', '(1, "m")'], "R.multiply(x, y)", [[(3, 1), (1, 2)], [(1, 1), (1, 5)]]),
        "concat": (['("n",)', '("m",)'], "R.concat([x, y], axis=0)", [[(2,), (3,)], [(1,), (4,)]]),
        "matmul": (['("n", "k")', '("k", "m")'], "R.matmul(x, y)", [[(2, 3), (3, 4)], [(5, 1), (1, 2)]]),
        "batched": (['("b", "n", 3)', '("b", 3, "m")'], "R.matmul(x, y)", [[(2, 2, 3), (2, 3, 1)], [(1, 4, 3), (1, 3, 2)]]),
        "bias": (['("n", 4)', "(4,)"], "R.nn.relu(R.add(x, y))", [[(3, 4), (4,)], [(1, 4), (4,)]]),
        "softmax": (['("n", "m")', '("m",)'], "R.add(R.nn.softmax(x, axis=-1), y)", [[(2, 5), (5,)], [(3, 1), (1,)]]),
        "reduce": (['("n", "m")', '("n",)'], "R.subtract(R.mean(x, axis=1), y)", [[(2, 5), (2,)], [(4, 1), (4,)]]),
        "transpose": (['("n", "m")', '("m", "n")'], "R.add(R.permute_dims(x), y)", [[(2, 5), (5, 2)], [(1, 3), (3, 1)]]),
        "flatten": (['("n", "m")', '("k",)'], "(R.flatten(x), R.expand_dims(y, 0))", [[(2, 5), (3,)], [(1, 1), (2,)]]),
        "squares": (['("n", "n")', '("n",)'], "R.matmul(x, y)", [[(2, 2), (2,)], [(4, 4), (4,)]]),
        "mismatch": (['("n",)', '("n",)'], "R.add(x, y)", [[(3,), (4,)]]),
    }
    for name, (shapes, body, given) in bodies.items():
        params = ", ".join(f'{p}: R.Tensor({s}, "float32")' for p, s in zip("xy", shapes))
        text = f"@R.function\ndef main({params}):\n    r = {body}\n    return r\n"
        yield name, module(text), [("main", [ramp(*dims) for dims in dims_of]) for dims_of in given]
    computed = {
        "twice": ("R.reshape(R.concat([x, x], axis=0), R.shape([2, n]))", [3, 1]),
        "square": ("R.broadcast_to(x, R.shape([n, n]))", [2, 4]),
        "pad": ("R.nn.pad(x, (1, 2))", [3, 1]),
        "half": ("R.reshape(R.concat([x, x], axis=0), R.shape([n * 2 // 2, 2]))", [4, 5]),
        "zeros": ("R.add(R.zeros(R.shape([n]), \"float32\"), x)", [3, 6]),
        "full": ("R.concat([x, R.full(R.shape([n + 2]), R.const(2.5), \"float32\")], axis=0)", [3, 1]),
        "tail": ("R.strided_slice(x, [0], [1], [n])", [3, 2]),
        "tile": ("R.tile(x, (3,))", [2, 3]),
        "repeat": ("R.repeat(x, 2, axis=0)", [1, 4]),
        "cumsum": ("R.cumsum(x, axis=0)", [1, 5]),
    }
    for name, (body, sizes) in computed.items():
        text = f'@R.function\ndef main(x: R.Tensor(("n",), "float32")):\n    n = T.int64()\n    r = {body}\n    return r\n'
        yield name, module(text), [("main", [ramp(n)]) for n in sizes]


@family
def casts():
    """What is not known until it is there: match_cast of tensors and shapes, checks that hold and that do not."""
    unknown = 'R.Tensor("float32", ndim=2)'
    bodies = {
        "rows": ('R.Tensor((n, 4), "float32")', "R.sum(y, axis=0)", [(3, 4), (1, 4), (2, 3)]),
        "square": ('R.Tensor((n, n), "float32")', "R.matmul(y, y)", [(2, 2), (3, 3), (2, 3)]),
        "both": ('R.Tensor((n, m), "float32")', "R.reshape(y, R.shape([n * m]))", [(2, 3), (1, 1)]),
        "even": ('R.Tensor((n, 2), "float32")', "R.add(y, y)", [(4, 2), (2, 4)]),
        "exact": ('R.Tensor((2, 3), "float32")', "R.negative(y)", [(2, 3), (3, 2)]),
    }
    for name, (kind, body, given) in bodies.items():
        text = f"""
@R.function
def main(x: {unknown}):
    n = T.int64()
    m = T.int64()
    y = R.match_cast(x, {kind})
    z = {body}
    return z
"""
        for used in ("n", "m"):
            if f"{used}," not in kind and f"{used})" not in kind:
                text = text.replace(f"    {used} = T.int64()\n", "")
        yield name, module(text), [("main", [ramp(*dims)]) for dims in given]
    ranks = """
@R.function
def main(x: R.Tensor("float32")):
    n = T.int64()
    y = R.match_cast(x, R.Tensor((n,), "float32"))
    z = R.multiply(y, y)
    return z
"""
    yield "rank", module(ranks), [("main", [ramp(3)]), ("main", [ramp(1)]), ("main", [ramp(2, 2)])]
    types = """
@R.function
def main(x: R.Tensor):
    y = R.match_cast(x, R.Tensor((2,), "int32"))
    z = R.add(y, y)
    return z
"""
    yield "type", module(types), [("main", [ramp(2, dtype="int32", step=1)]), ("main", [ramp(2)])]
    shapes = """
@R.function
def main(s: R.Shape(ndim=2)):
    a = T.int64()
    b = T.int64()
    t = R.match_cast(s, R.Shape([a, b]))
    z = R.shape([b, a + b, a * b])
    return z
"""
    yield "shape", module(shapes), [("main", [shape(2, 3)]), ("main", [shape(7, 1)])]
    back = """
@R.function
def main(x: R.Tensor(("n",), "float32"), s: R.Tensor((2,), "int64")):
    a = T.int64()
    b = T.int64()
    t = R.tensor_to_shape(s)
    u = R.match_cast(t, R.Shape([a, b]))
    z = R.reshape(x, R.shape([a, b]))
    return z
"""
    yield "from_data", module(back), [
        ("main", [ramp(6), tensor([2, 3], "int64")]),
        ("main", [ramp(4), tensor([4, 1], "int64")]),
    ]
    across = """
@R.function
def helper(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
    n = T.int64()
    y = R.add(x, R.const(1.0))
    return y
"""
    main = """
@R.function
def main(x: R.Tensor(("m",), "float32")):
    m = T.int64()
    y = Module.helper(R.concat([x, x], axis=0))
    z = R.match_cast(y, R.Tensor((m * 2,), "float32"))
    w = R.reshape(z, R.shape([2, m]))
    return w
"""
    yield "across", module(across, main), [("main", [ramp(3)]), ("main", [ramp(1)])]


@family
def shapes():
    """Shapes as values."""
    bodies = {
        "of": ('x: R.Tensor(("n", "m"), "float32")', "R.shape_of(x)", [[ramp(2, 3)], [ramp(4, 1)]]),
        "to_tensor": ('x: R.Tensor(("n", "m"), "float32")', "R.shape_to_tensor(R.shape_of(x))", [[ramp(2, 3)]]),
    }
    for name, (params, body, given) in bodies.items():
        yield name, module(f"@R.function\ndef main({params}):\n    r = {body}\n    return r\n"), [("main", g) for g in given]
    arithmetic = ["n + m", "n * m", "n - m", "n // 2", "n % 3", "n * 2 + m * 3", "T.max(n, m)", "T.min(n, m + 1)"]
    for at, e in enumerate(arithmetic):
        text = f"""
@R.function
def main(s: R.Shape(["n", "m"])):
    n = T.int64()
    m = T.int64()
    r = R.shape([{e}, n, m])
    return r
"""
        yield f"arithmetic{at}", module(text), [("main", [shape(5, 3)]), ("main", [shape(8, 8)]), ("main", [shape(9, 2)])]


@family
def data_dependent():
    """Results whose shape depends on the data."""
    bodies = {
        "unique": ('x: R.Tensor((6,), "int64")', "R.unique(x, sorted=True)", [[tensor([3, 1, 3, 2, 1, 1], "int64")]]),
        "nonzero": ('x: R.Tensor((2, 3), "int64")', "R.nonzero(x)", [[tensor([[0, 1, 0], [2, 0, 3]], "int64")]]),
        "slice": (
            'x: R.Tensor((8,), "float32"), b: R.Tensor((1,), "int64"), e: R.Tensor((1,), "int64")',
            'R.dynamic_strided_slice(x, b, e, R.const([1], "int64"))',
            [[ramp(8), tensor([2], "int64"), tensor([5], "int64")], [ramp(8), tensor([0], "int64"), tensor([8], "int64")]],
        ),
    }
    for name, (params, body, given) in bodies.items():
        yield name, module(f"@R.function\ndef main({params}):\n    r = {body}\n    return r\n"), [("main", g) for g in given]
    compact = """
@R.function
def main(x: R.Tensor((6,), "int64")):
    k = T.int64()
    u = R.unique(x, sorted=True)
    v = R.match_cast(u, R.Tensor((k,), "int64"))
    w = R.add(v, v)
    return w
"""
    yield "unique_then", module(compact), [("main", [tensor(v, "int64")]) for v in ([1, 1, 1, 1, 1, 1], [6, 5, 4, 3, 2, 1])]


@family
def packed():
    """Functions from outside; see ``functions.py``."""
    vector = 'R.Tensor((3,), "float32")'
    out = f"ty_args={vector}"
    bodies = {
        "pure": f'R.call_pure_packed("test.answers.scale", x, R.prim_value(2.5), {out})',
        "twice": f'R.call_pure_packed("test.answers.scale", R.call_pure_packed("test.answers.scale", x, R.prim_value(2.0), {out}), R.prim_value(-1.0), {out})',
        "text": f'R.call_pure_packed("test.answers.named", x, R.str("add"), {out})',
        "other_text": f'R.call_pure_packed("test.answers.named", x, R.str("multiply"), {out})',
        "dtype": f'R.call_pure_packed("test.answers.as_type", x, R.dtype("int32"), ty_args=R.Tensor((3,), "int32"))',
        "integer": f'R.call_pure_packed("test.answers.scale", x, R.prim_value(3), {out})',
        "shape": 'R.call_pure_packed("test.answers.fill", R.shape([2, 2]), ty_args=R.Tensor((2, 2), "float32"))',
        "tuple": f'R.call_pure_packed("test.answers.first", (x, x), {out})',
        "destination": f'R.call_dps_packed("test.answers.scale_into", (x,), out_ty={vector})',
    }
    for name, body in bodies.items():
        yield name, module(f"@R.function\ndef main(x: {vector}):\n    r = {body}\n    return r\n"), [("main", [ramp(3)])]
    impure = f"""
@R.function(pure=False)
def main(x: {vector}):
    a = R.call_packed("test.answers.scale", x, R.prim_value(0.5), {out})
    b = R.call_packed("test.answers.count", ty_args=R.Prim("int64"))
    c = R.add(a, x)
    return c
"""
    yield "impure", module(impure), [("main", [ramp(3)])]
    symbolic = """
@R.function
def main(x: R.Tensor(("n",), "float32")):
    n = T.int64()
    r = R.call_pure_packed("test.answers.scale", x, R.prim_value(n * 2), ty_args=R.Tensor((n,), "float32"))
    return r
"""
    yield "symbolic", module(symbolic), [("main", [ramp(3)]), ("main", [ramp(5)])]


@family
def kernels():
    """Kernels that the program brings along: one result, several, in place, with symbolic sizes."""
    scale = """
@T.prim_func(private=True, s_tir=True)
def scale(X: T.Buffer((T.int64(4),), "float32"), Y: T.Buffer((T.int64(4),), "float32")):
    for i in range(T.int64(4)):
        with T.sblock("scale"):
            v = T.axis.spatial(T.int64(4), i)
            Y[v] = X[v] * T.float32(3.0) + T.float32(1.0)
"""
    vector = 'R.Tensor((4,), "float32")'
    main = f"""
@R.function
def main(x: {vector}):
    cls = Module
    a = R.call_tir(cls.scale, (x,), out_ty={vector})
    b = R.call_tir(cls.scale, (a,), out_ty={vector})
    return b
"""
    yield "call", module(scale, main), [("main", [ramp(4)])]
    dynamic_scale = """
@T.prim_func(private=True, s_tir=True)
def scale(x: T.handle, y: T.handle):
    n = T.int64()
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n,), "float32")
    for i in range(n):
        with T.sblock("scale"):
            v = T.axis.spatial(n, i)
            Y[v] = X[v] * X[v] - T.float32(0.25)
"""
    dynamic_main = """
@R.function
def main(x: R.Tensor(("n",), "float32")):
    n = T.int64()
    cls = Module
    a = R.call_tir(cls.scale, (x,), out_ty=R.Tensor((n,), "float32"))
    return a
"""
    yield "symbolic", module(dynamic_scale, dynamic_main), [("main", [ramp(n)]) for n in (1, 5, 8)]
    two = """
@T.prim_func(private=True, s_tir=True)
def split(X: T.Buffer((T.int64(4),), "float32"), A: T.Buffer((T.int64(4),), "float32"), B: T.Buffer((T.int64(4),), "float32")):
    for i in range(T.int64(4)):
        with T.sblock("split"):
            v = T.axis.spatial(T.int64(4), i)
            A[v] = T.max(X[v], T.float32(0.0))
            B[v] = T.min(X[v], T.float32(0.0))
"""
    two_main = f"""
@R.function
def main(x: {vector}):
    cls = Module
    t = R.call_tir(cls.split, (x,), out_ty=[{vector}, {vector}])
    a = t[0]
    r = R.subtract(a, t[1])
    return (r, t)
"""
    yield "two_results", module(two, two_main), [("main", [ramp(4)])]
    inplace = """
@T.prim_func(private=True, s_tir=True)
def bump(X: T.Buffer((T.int64(4),), "float32")):
    for i in range(T.int64(4)):
        with T.sblock("bump"):
            v = T.axis.spatial(T.int64(4), i)
            X[v] = X[v] + T.float32(10.0)
"""
    inplace_main = f"""
@R.function
def main(x: {vector}):
    cls = Module
    y = R.multiply(x, x)
    z = R.call_tir_inplace(cls.bump, (y,), out_ty={vector}, inplace_indices=[0])
    return z
"""
    yield "in_place", module(inplace, inplace_main), [("main", [ramp(4)])]


@family
def scalars():
    """Prim values and strings as arguments and results."""
    for name, body in {"same": "k", "sum": "R.prim_value(k + 3)", "product": "R.prim_value(k * k)"}.items():
        text = f'@R.function\ndef main(k: R.Prim("int64")):\n    r = {body}\n    return r\n'
        if name != "same":
            text = f'@R.function\ndef main(s: R.Shape(["k"])):\n    k = T.int64()\n    r = {body}\n    return r\n'
        calls = [("main", [5 if name == "same" else shape(5)]), ("main", [0 if name == "same" else shape(1)])]
        yield name, module(text), calls
    yield "constant", module("@R.function\ndef main():\n    r = R.prim_value(42)\n    return r\n"), [("main", [])]
    yield "text", module('@R.function\ndef main():\n    r = R.str("relax")\n    return r\n'), [("main", [])]
    yield "mixed", module(
        '@R.function\ndef main(x: R.Tensor((2,), "float32")):\n    r = (x, R.prim_value(7), R.str("seven"), R.shape([7]))\n    return r\n'
    ), [("main", [ramp(2)])]
    branch = """
@R.function
def main(c: R.Prim("bool"), x: R.Tensor((2,), "float32")):
    if c:
        r = R.add(x, x)
    else:
        r = R.negative(x)
    return r
"""
    yield "condition", module(branch), [("main", [True, ramp(2)]), ("main", [False, ramp(2)])]


@family
def functions():
    """Several functions, private ones among them, in chains and diamonds."""
    vector = 'R.Tensor((3,), "float32")'
    steps = ["R.add(x, R.const(1.0))", "R.multiply(x, R.const(2.0))", "R.nn.relu(x)", "R.negative(x)", "R.exp(x)"]
    for length in (2, 3, 5):
        links = []
        for i in range(length):
            call = f"Module.f{i + 1}(y)" if i + 1 < length else "R.add(y, y)"
            private = "(private=True)" if i else ""
            links.append(
                f"@R.function{private}\ndef f{i}(x: {vector}) -> {vector}:\n    y = {steps[i % len(steps)]}\n    z = {call}\n    return z\n"
            )
        yield f"chain{length}", module(*links), [("f0", [ramp(3)])]
    diamond = f"""
@R.function(private=True)
def base(x: {vector}) -> {vector}:
    y = R.multiply(x, x)
    return y
"""
    left = f"@R.function(private=True)\ndef left(x: {vector}) -> {vector}:\n    y = Module.base(R.add(x, R.const(1.0)))\n    return y\n"
    right = f"@R.function(private=True)\ndef right(x: {vector}) -> {vector}:\n    y = Module.base(R.negative(x))\n    return y\n"
    top = f"@R.function\ndef main(x: {vector}) -> {vector}:\n    y = R.subtract(Module.left(x), Module.right(x))\n    return y\n"
    yield "diamond", module(diamond, left, right, top), [("main", [ramp(3)])]
    entry = [f"@R.function\ndef entry{i}(x: {vector}):\n    y = {step}\n    return y\n" for i, step in enumerate(steps)]
    yield "entries", module(*entry), [(f"entry{i}", [ramp(3)]) for i in range(len(steps))]
    flow = f"""
@R.function
def main(x: {vector}, y: {vector}):
    with R.dataflow():
        a = R.add(x, y)
        b = R.multiply(a, x)
        c = R.subtract(a, b)
        R.output(b, c)
    d = R.maximum(b, c)
    with R.dataflow():
        e = R.sum(d)
        f = R.divide(d, R.add(e, R.const(1.0)))
        R.output(f)
    return (f, c)
"""
    yield "dataflow", module(flow), [("main", [ramp(3), ramp(3, start=1.0)])]
