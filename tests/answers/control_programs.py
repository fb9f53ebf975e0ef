"""Families of programs about control flow: branches, recursion, closures."""

import textwrap

from program_text import family, module, ramp, tensor


@family
def branches():
    """Conditions in conditions; each path is taken."""
    ops = ["R.add(x, x)", "R.multiply(x, x)", "R.subtract(x, R.const(1.5))", "R.nn.relu(x)", "R.negative(x)", "R.exp(x)"]
    for depth in range(1, 5):
        for form in ("deep", "both"):
            names = [f"c{i}" for i in range(depth)]
            lines, at = [], [0]

            def leaf():
                at[0] += 1
                return ops[at[0] % len(ops)]

            def body(level, indent):
                pad = "    " * indent
                if level == depth:
                    lines.append(f"{pad}y = {leaf()}")
                    return
                lines.append(f"{pad}if c{level}:")
                body(level + 1, indent + 1)
                lines.append(f"{pad}else:")
                if form == "both":
                    body(level + 1, indent + 1)
                else:
                    lines.append(f"{pad}    y = {leaf()}")

            body(0, 0)
            params = ", ".join(f'{c}: R.Tensor((), "bool")' for c in names)
            text = f'@R.function\ndef main(x: R.Tensor((3,), "float32"), {params}):\n' + textwrap.indent(
                "\n".join(lines) + "\nreturn y", "    "
            )
            calls = [
                ("main", [tensor([-1.0, 0.5, 2.0])] + [tensor(bool(n >> i & 1), "bool") for i in range(depth)])
                for n in range(2**depth)
            ]
            yield f"{form}{depth}", module(text), calls


@family
def recursion():
    """Functions that call themselves, on scalars and on tensors that grow with the depth."""
    scalar = 'R.Tensor((), "int64")'
    one, two = 'R.const(1, "int64")', 'R.const(2, "int64")'
    bodies = {
        "sum": ("n", f"R.less(n, {one})", 'r = R.const(0, "int64")', f"r = R.add(n, Module.main(R.subtract(n, {one})))"),
        "factorial": ("n", f"R.less(n, {two})", f"r = {one}", f"r = R.multiply(n, Module.main(R.subtract(n, {one})))"),
        "fibonacci": (
            "n",
            f"R.less(n, {two})",
            "r = R.add(n, R.const(0, \"int64\"))",
            f"a = Module.main(R.subtract(n, {one}))\nb = Module.main(R.subtract(n, {two}))\nr = R.add(a, b)",
        ),
        "halve": ("n", f"R.less(n, {one})", 'r = R.const(0, "int64")', f"r = R.add({one}, Module.main(R.floor_divide(n, {two})))"),
        "digits": (
            "n",
            'R.less(n, R.const(10, "int64"))',
            "r = R.multiply(n, R.const(1, \"int64\"))",
            'ten = R.const(10, "int64")\nr = R.add(R.floor_mod(n, ten), Module.main(R.floor_divide(n, ten)))',
        ),
    }
    for name, (param, stop, base, step) in bodies.items():
        step = textwrap.indent(step, " " * 8).lstrip()
        text = f"""
@R.function
def main({param}: {scalar}) -> {scalar}:
    stop = {stop}
    if stop:
        {base}
    else:
        {step}
    return r
"""
        yield name, module(text), [("main", [tensor(n, "int64")]) for n in (0, 1, 2, 7, 12)]
    for name, step in {"double": "R.add(x, x)", "decay": "R.multiply(x, R.const(0.5))", "roll": "R.concat([x[1], x[0]])"}.items():
        if name == "roll":
            step = "R.concat([R.strided_slice(x, [0], [1], [4]), R.strided_slice(x, [0], [0], [1])], axis=0)"
        text = f"""
@R.function
def main(n: R.Tensor((), "int32"), x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
    more = R.greater(n, R.const(0, "int32"))
    if more:
        y = {step}
        r = Module.main(R.subtract(n, R.const(1, "int32")), y)
    else:
        r = R.add(x, R.const(1.0))
    return r
"""
        yield name, module(text), [("main", [tensor(n, "int32"), ramp(4)]) for n in (0, 1, 5, 40)]
    gcd = f"""
@R.function
def main(a: {scalar}, b: {scalar}) -> {scalar}:
    done = R.equal(b, R.const(0, "int64"))
    if done:
        r = R.add(a, R.const(0, "int64"))
    else:
        rest = R.floor_mod(a, b)
        r = Module.main(b, rest)
    return r
"""
    pairs = [(12, 18), (17, 5), (0, 9), (1024, 96)]
    yield "gcd", module(gcd), [("main", [tensor(a, "int64"), tensor(b, "int64")]) for a, b in pairs]
    power = f"""
@R.function
def main(base: R.Tensor((2, 2), "float32"), n: {scalar}) -> R.Tensor((2, 2), "float32"):
    none = R.equal(n, R.const(0, "int64"))
    if none:
        r = R.const([[1.0, 0.0], [0.0, 1.0]], "float32")
    else:
        half = Module.main(base, R.floor_divide(n, R.const(2, "int64")))
        square = R.matmul(half, half)
        odd = R.equal(R.floor_mod(n, R.const(2, "int64")), R.const(1, "int64"))
        if odd:
            r = R.matmul(square, base)
        else:
            r = R.add(square, R.const(0.0))
    return r
"""
    yield "power", module(power), [("main", [tensor([[1.0, 1.0], [1.0, 0.0]]), tensor(n, "int64")]) for n in (0, 1, 6, 13)]


@family
def mutual():
    """Functions that call each other."""
    flag, number = 'R.Tensor((), "bool")', 'R.Tensor((), "int64")'

    def half(name, other, answer):
        return f"""
@R.function
def {name}(n: {number}) -> {flag}:
    stop = R.equal(n, R.const(0, "int64"))
    if stop:
        r = R.const({answer}, "bool")
    else:
        r = Module.{other}(R.subtract(n, R.const(1, "int64")))
    return r
"""

    parity = [half("even", "odd", True), half("odd", "even", False)]
    calls = [(name, [tensor(n, "int64")]) for name in ("even", "odd") for n in (0, 1, 2, 9, 30)]
    yield "parity", module(*parity), calls
    for modulus in (3, 4):
        names = [f"state{i}" for i in range(modulus)]
        functions = [
            f"""
@R.function
def {name}(n: {number}) -> {number}:
    stop = R.equal(n, R.const(0, "int64"))
    if stop:
        r = R.const({i}, "int64")
    else:
        r = Module.{names[(i + 1) % modulus]}(R.subtract(n, R.const(1, "int64")))
    return r
"""
            for i, name in enumerate(names)
        ]
        yield f"modulo{modulus}", module(*functions), [("state0", [tensor(n, "int64")]) for n in (0, 1, 2, 7, 23)]
    collatz = f"""
@R.function
def main(n: {number}) -> {number}:
    stop = R.less_equal(n, R.const(1, "int64"))
    if stop:
        r = R.const(0, "int64")
    else:
        even = R.equal(R.floor_mod(n, R.const(2, "int64")), R.const(0, "int64"))
        if even:
            r = Module.down(n)
        else:
            r = Module.up(n)
    return r
"""
    down = f"""
@R.function
def down(n: {number}) -> {number}:
    r = R.add(R.const(1, "int64"), Module.main(R.floor_divide(n, R.const(2, "int64"))))
    return r
"""
    up = f"""
@R.function
def up(n: {number}) -> {number}:
    next = R.add(R.multiply(n, R.const(3, "int64")), R.const(1, "int64"))
    r = R.add(R.const(1, "int64"), Module.main(next))
    return r
"""
    yield "collatz", module(collatz, down, up), [("main", [tensor(n, "int64")]) for n in (1, 2, 3, 6, 7, 19)]
    bounce = [
        f"""
@R.function
def {name}(n: {number}, x: R.Tensor(("k",), "float32")) -> R.Tensor(("k",), "float32"):
    k = T.int64()
    stop = R.less(n, R.const(1, "int64"))
    if stop:
        r = R.nn.relu(x)
    else:
        y = {step}
        r = Module.{other}(R.subtract(n, R.const(1, "int64")), y)
    return r
"""
        for name, other, step in (("ping", "pong", "R.add(x, R.const(0.75))"), ("pong", "ping", "R.negative(x)"))
    ]
    yield "bounce", module(*bounce), [("ping", [tensor(n, "int64"), ramp(k)]) for n, k in ((0, 3), (1, 4), (5, 2), (8, 1))]


@family
def closures():
    """Functions as values: made, captured in, returned, passed, called."""
    vector = 'R.Tensor((3,), "float32")'
    arguments = [("main", [ramp(3), ramp(3, start=2.0)])]
    bodies = {
        "inner": """
            @R.function
            def inner(a: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
                b = R.multiply(a, a)
                return b
            r = R.add(inner(x), inner(y))
        """,
        "capture": """
            @R.function
            def inner(a: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
                b = R.add(a, y)
                return b
            r = inner(inner(x))
        """,
        "capture_computed": """
            k = R.multiply(x, y)
            @R.function
            def inner(a: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
                b = R.subtract(a, k)
                return b
            r = inner(x)
        """,
        "two": """
            @R.function
            def plus(a: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
                b = R.add(a, y)
                return b
            @R.function
            def times(a: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
                b = R.multiply(a, x)
                return b
            r = plus(times(plus(x)))
        """,
        "nested": """
            @R.function
            def outer(a: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
                @R.function
                def inner(b: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
                    c = R.maximum(b, y)
                    return c
                d = inner(a)
                return d
            r = outer(x)
        """,
        "branch": """
            @R.function
            def grow(a: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
                b = R.exp(a)
                return b
            total = R.sum(x)
            positive = R.greater(total, R.const(0.0))
            if positive:
                r = grow(x)
            else:
                r = grow(y)
        """,
    }
    for name, body in bodies.items():
        body = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
        text = f"@R.function\ndef main(x: {vector}, y: {vector}) -> {vector}:\n{body}\n    return r\n"
        yield name, module(text), arguments
    kind = f"R.Callable(({vector},), {vector}, True)"
    adder = f"""
@R.function
def adder(k: {vector}) -> {kind}:
    @R.function
    def inner(a: {vector}) -> {vector}:
        b = R.add(a, k)
        return b
    return inner
"""
    twice = f"""
@R.function
def twice(f: {kind}, a: {vector}) -> {vector}:
    b = f(a)
    c = f(b)
    return c
"""
    uses = {
        "returned": ("f = Module.adder(y)\n    r = f(x)", [adder]),
        "returned_twice": ("f = Module.adder(y)\n    g = Module.adder(x)\n    r = R.multiply(f(x), g(y))", [adder]),
        "passed": ("f = Module.adder(y)\n    r = Module.twice(f, x)", [adder, twice]),
        "passed_again": ("f = Module.adder(x)\n    s = Module.twice(f, y)\n    r = Module.twice(f, s)", [adder, twice]),
    }
    for name, (body, others) in uses.items():
        text = f"@R.function\ndef main(x: {vector}, y: {vector}) -> {vector}:\n    {body}\n    return r\n"
        yield name, module(text, *others), arguments
    loop = f"""
@R.function
def loop(n: R.Tensor((), "int64"), f: {kind}, a: {vector}) -> {vector}:
    stop = R.less(n, R.const(1, "int64"))
    if stop:
        r = R.add(a, R.const(0.0))
    else:
        b = f(a)
        r = Module.loop(R.subtract(n, R.const(1, "int64")), f, b)
    return r
"""
    text = f"""
@R.function
def main(x: {vector}, y: {vector}, n: R.Tensor((), "int64")) -> {vector}:
    f = Module.adder(y)
    r = Module.loop(n, f, x)
    return r
"""
    calls = [("main", [ramp(3), ramp(3, start=2.0), tensor(n, "int64")]) for n in (0, 1, 10)]
    yield "folded", module(text, adder, loop), calls
