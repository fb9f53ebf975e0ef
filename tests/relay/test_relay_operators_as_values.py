"""Operators that stand as values: each gives the same in the interpreter, in the Relay VM and by way of Relax."""

import numpy as np
import pytest
from test_relay_corners import by_way_of_relax, on_interpreter, on_machine, plain, same

import relaxide as tvm
from relaxide import relay

I = np.int32
X = np.array([-1, 2, -3], "float32")

#: The program behind `#[version = "0.0.5"]`, the arguments of `main`, what it gives.
PROGRAMS = {
    "as an argument": (
        "def @main(%x: Tensor[(3), float32]) { @hd(@map(nn.relu, Cons(%x, Nil))) }",
        (X,),
        np.array([0, 2, 0], "float32"),
    ),
    "two places, two types": (
        "def @main(%x: Tensor[(3), float32], %n: int32) { (@hd(@map(negative, Cons(%x, Nil))), @hd(@map(negative, Cons(%n, Nil)))) }",
        (X, I(4)),
        (-X, -4),
    ),
    "of two arguments": (
        "def @main(%n: int32) { (@foldl(add, 0, Cons(%n, Cons(2, Nil))), @foldr(subtract, 1, Cons(%n, Cons(2, Nil)))) }",
        (I(5),),
        (7, 4),
    ),
    "under a name, for any type": (
        "def @main(%x: Tensor[(3), float32], %n: int32) { let %f = add; let %g = %f; (%f(%x, %x), %g(%n, %n), %f(%x, 1f)) }",
        (X, I(4)),
        (X + X, 8, X + 1),
    ),
    "under a name of one type": (
        "def @main(%n: int32) { let %f: fn (int32, int32) -> int32 = multiply; %f(%n, %n) }",
        (I(4),),
        16,
    ),
    "under a name whose type is written as the reference shows it": (
        "def @main(%n: int32, %y: float32) { let %f: fn [in0, in1, out](in0, in1) -> out = multiply; (%f(%n, %n), %f(%y, %y)) }",
        (I(4), np.float32(3)),
        (16, 9),
    ),
    "under a name that a function captures": (
        "def @main(%n: int32) { let %f = multiply; let %g = fn (%y: int32) { %f(%y, %n) }; @map(%g, Cons(1, Cons(2, Nil))) }",
        (I(4),),
        "list 4 8",
    ),
    "under a name that is an argument": (
        "def @main(%n: int32) { let %f = negative; @map(%f, @map(fn (%y: int32) { %f(%y) * %n }, Cons(1, Cons(2, Nil)))) }",
        (I(4),),
        "list 4 8",
    ),
    "in a tuple": (
        "def @main(%n: int32) { let %t = (add, multiply); let %f = %t.0; (%f(%n, 2), %t.1(%n, 3)) }",
        (I(4),),
        (6, 12),
    ),
    "in a list": (
        "def @main(%n: int32) { @foldl(fn (%a: int32, %f: fn (int32) -> int32) { %f(%a) }, %n, Cons(negative, Cons(fn (%y: int32) { %y + 1 }, Cons(negative, Nil)))) }",
        (I(4),),
        3,
    ),
    "in a reference": (
        "def @main(%n: int32) { let %r = ref(add); let %f = ref_read(%r); let %a = %f(%n, 3); ref_write(%r, multiply); let %g = ref_read(%r); (%a, %g(%n, 3)) }",
        (I(4),),
        (7, 12),
    ),
    "chosen": (
        "def @main(%c: bool, %n: int32) { (if (%c) { add } else { multiply })(%n, %n) }",
        (np.bool_(False), I(4)),
        16,
    ),
    "what a case gives": (
        "def @pick(%o: Option[int32]) -> fn (int32, int32) -> int32 { match (%o) { Some(_) => maximum, None => minimum } }"
        " def @main(%n: int32) { (@pick(Some(%n))(%n, 7), @pick(None)(%n, 7)) }",
        (I(4),),
        (7, 4),
    ),
    "with attributes that have defaults": (
        "def @main(%x: Tensor[(3), float32]) { let %f = nn.leaky_relu; let %g = sum; (@hd(@map(nn.leaky_relu, Cons(%x, Nil))), %f(%x), %f(%x, alpha=0.5f), %g(%x)) }",
        (np.array([-100, 2, 0], "float32"),),
        (np.array([-25, 2, 0], "float32"), np.array([-25, 2, 0], "float32"), np.array([-50, 2, 0], "float32"), np.float32(-98)),
    ),
    "of a tuple": (
        "def @apply[A, B](%f: fn (A) -> B, %x: A) -> B { %f(%x) }"
        " def @main(%x: Tensor[(3), float32]) { let %y: Tensor[(6), float32] = @apply(concatenate, (%x, %x)); %y }",
        (X,),
        np.concatenate([X, X]),
    ),
    "of lengths that the run shows": (
        "def @main(%x: Tensor[(?), float32]) { let %f = add; let %y = %f(%x, %x); @hd(@map(negative, Cons(%y, Nil))) }",
        (X,),
        -X - X,
    ),
    "shared as in a graph": (
        "def @main(%x: Tensor[(3), float32], %n: int32) { %0 = negative; %1 = @map(%0, Cons(%n, Nil)); (@hd(%1), %0(%x)) }",
        (X, I(4)),
        (-4, -X),
    ),
    "a comparison that a function takes": (
        "def @main(%n: int32) { @foldl(fn (%a: bool, %b: bool) { logical_and(%a, %b) }, True, @map(fn (%y: int32) { less(%y, %n) }, Cons(1, Cons(3, Nil)))) }",
        (I(4),),
        True,
    ),
}


def parsed(name):
    return relay.parse('#[version = "0.0.5"]\n' + PROGRAMS[name][0])


def fields(value):
    return list(value.fields if hasattr(value, "fields") else value)


def numbers(value):
    """The numbers of a list, whichever machine made it: its last field is the rest."""
    found, cell = [], fields(value)
    while len(cell) > 1:
        found.append(int(np.asarray(plain(cell[-2]))))
        cell = fields(cell[-1])
    return found


def check(found, expected):
    if isinstance(expected, str):
        assert numbers(found) == [int(word) for word in expected.split()[1:]]
    else:
        same(plain(found), expected)


@pytest.mark.parametrize("run", [on_interpreter, on_machine, by_way_of_relax])
@pytest.mark.parametrize("name", PROGRAMS)
def test_an_operator_as_a_value_gives_the_same_everywhere(name, run):
    _, args, expected = PROGRAMS[name]
    check(run(parsed(name), args), expected)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_printed_and_saved_is_read_as_the_same(name):
    mod = parsed(name)
    _, args, expected = PROGRAMS[name]
    for again in (relay.parse(mod.astext()), tvm.ir.load_json(tvm.ir.save_json(mod))):
        check(on_interpreter(again, args), expected)


PASSES = ["ToANormalForm", "ToGraphNormalForm", "ToBasicBlockNormalForm", "EtaExpand", "LambdaLift", "FuseOps", "SimplifyExpr"]
PASSES += ["EliminateCommonSubexpr", "DeadCodeElimination", "FoldConstant", "ManifestAlloc", "ToMixedPrecision"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_passes_keep_what_it_gives(name):
    _, args, expected = PROGRAMS[name]
    for made in PASSES:
        mod = getattr(relay.transform, made)()(parsed(name))
        check(on_interpreter(mod, args), expected)


@pytest.mark.parametrize(
    "operator, why",
    [("nn.pad", "pad_width` must be given"), ("on_device", "no function that computes it"), ("memory.kill", "no function that computes it")],
)
def test_an_operator_that_no_function_is_equal_to_is_refused(operator, why):
    with pytest.raises(Exception, match=f"{operator} cannot stand as a value: .*{why}") as refused:
        mod = relay.parse('#[version = "0.0.5"]\ndef @main(%x: Tensor[(3), float32]) {\n  @map(' + operator + ", Cons(%x, Nil))\n}")
        relay.transform.InferType()(mod)
    assert "3" in str(refused.value)
