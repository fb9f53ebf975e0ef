"""Programs at the corners of the language: each gives the same in the interpreter, in the Relay VM and by way of Relax."""

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relax, relay

I = np.int32

#: The program behind `#[version = "0.0.5"]`, the arguments of `main`, what it gives.
PROGRAMS = {
    "a local function of any type": (
        "def @main(%n: int32) { let %id = fn [A](%x: A) -> A { %x }; (%id(%n), %id((%n, 2)).1, %id(fn (%y: int32) -> int32 { %y + 1 })(%n)) }",
        (I(3),),
        (3, 2, 4),
    ),
    "a local function of any type in data": (
        "def @main(%n: int32) { let %twice = fn [A](%f: fn (A) -> A, %x: A) -> A { %f(%f(%x)) };"
        " let %fs = Cons(fn (%x: int32) -> int32 { %twice(fn (%y: int32) -> int32 { %y * 3 }, %x) }, Nil); @hd(%fs)(%n) }",
        (I(2),),
        18,
    ),
    "closures in a list": (
        "def @apply(%fs: List[fn (int32) -> int32], %x: int32) -> int32 { match (%fs) { Nil => %x, Cons(%f, %r) => @apply(%r, %f(%x)) } }"
        " def @main(%n: int32) -> int32 { @apply(Cons(fn (%x: int32) -> int32 { %x + %n },"
        " Cons(fn (%x: int32) -> int32 { %x * %x }, Cons(fn (%x: int32) -> int32 { %x - 1 }, Nil))), 5) }",
        (I(2),),
        48,
    ),
    "a closure in a reference": (
        "def @main(%n: int32) -> int32 { let %r = ref(fn (%x: int32) -> int32 { %x + 1 });"
        " let %old = ref_read(%r); ref_write(%r, fn (%x: int32) -> int32 { %old(%x) * %n }); let %f = ref_read(%r); %f(4) }",
        (I(3),),
        15,
    ),
    "recursion through a reference": (
        "def @main(%n: int32) -> int32 { let %r = ref(fn (%x: int32) -> int32 { 0 });"
        " let %f = fn (%x: int32) -> int32 { if (%x == 0) { 0 } else { let %g = ref_read(%r); %x + %g(%x - 1) } }; ref_write(%r, %f); %f(%n) }",
        (I(10),),
        55,
    ),
    "a reference that two closures share": (
        "def @main(%n: int32) -> (int32, int32) { let %r = ref(%n);"
        " let %put = fn (%x: int32) -> () { ref_write(%r, ref_read(%r) + %x) }; let %get = fn () -> int32 { ref_read(%r) };"
        " let %a = %get(); %put(5); %put(6); (%a, %get()) }",
        (I(1),),
        (1, 12),
    ),
    "nested cases fall through": (
        "def @f(%p: (Option[int32], List[int32])) -> int32 { match (%p) {"
        " (Some(%a), Cons(%b, Cons(%c, Nil))) => %a + %b + %c, (Some(%a), Cons(%b, _)) => %a * %b,"
        " (None, Cons(_, Cons(%c, _))) => %c, (_, Nil) => -1, _ => -2 } }"
        " def @main(%n: int32) { (@f((Some(%n), Cons(2, Cons(3, Nil)))), @f((Some(%n), Cons(2, Cons(3, Cons(4, Nil))))),"
        " @f((None, Cons(1, Cons(%n, Nil)))), @f((Some(1), Nil)), @f((None, Cons(1, Nil)))) }",
        (I(7),),
        (12, 14, 7, -1, -2),
    ),
    "match? whose cases are not all there": (
        "def @main(%n: int32) -> int32 { let %x = if (%n > 0) { Some(%n) } else { None }; match? (%x) { Some(%y) => %y * 2 } }",
        (I(4),),
        8,
    ),
    "three functions that call each other": (
        "def @a(%n: int32, %s: int32) -> int32 { if (%n == 0) { %s } else { @b(%n - 1, %s + 1) } }"
        " def @b(%n: int32, %s: int32) -> int32 { if (%n == 0) { %s * 10 } else { @c(%n - 1, %s + 2) } }"
        " def @c(%n: int32, %s: int32) -> int32 { if (%n == 0) { %s * 100 } else { @a(%n - 1, %s + 3) } }"
        " def @main(%n: int32) { (@a(%n, 0), @a(%n + 1, 0), @a(%n + 2, 0)) }",
        (I(3000),),
        (6000, 60010, 600300),
    ),
    "three local functions, one inside the other": (
        "def @main(%n: int32) -> int32 { let %f = fn (%a: int32) -> int32 {"
        " let %g = fn (%b: int32) -> int32 { if (%b == 0) { %a } else { let %h = fn (%c: int32) -> int32 { %g(%c - 1) + %b }; %h(%b) } };"
        " %g(%a) }; %f(%n) }",
        (I(5),),
        20,
    ),
    "calls in the last place behind if, match and let": (
        "def @loop(%n: int32, %xs: List[int32], %s: int32) -> int32 { if (%n == 0) { %s } else {"
        " let %m = %n - 1; match (%xs) { Nil => { let %t = %s + 1; @loop(%m, Cons(%m, Nil), %t) },"
        " Cons(%x, _) => { if (%x > %n) { -1 } else { let %k = %s + 1; @loop(%m, Nil, %k) } } } } }"
        " def @main(%n: int32) -> int32 { @loop(%n, Nil, 0) }",
        (I(20001),),
        20001,
    ),
    "what a closure captured stays": (
        "def @make(%n: int32) -> List[fn (int32) -> int32] { if (%n == 0) { Nil } else {"
        " Cons(fn (%x: int32) -> int32 { %x * 10 + %n }, @make(%n - 1)) } }"
        " def @main(%n: int32) -> int32 { @foldl(fn (%a: int32, %f: fn (int32) -> int32) -> int32 { %f(%a) }, 0, @make(%n)) }",
        (I(5),),
        54321,
    ),
    "the empty tuple": (
        "def @unit(%x: ()) -> () { %x } def @main(%n: int32) { let %u = (); let %v = @unit(%u);"
        " let %some = Some(%v); (match (%some) { Some(_) => %n + 1, None => 0 }, %n) }",
        (I(1),),
        (2, 1),
    ),
    "the empty tuple that calls, writes and choices give": (
        "def @loop(%n: int32) -> () { if (%n == 0) { () } else { @loop(%n - 1) } }"
        " def @apply[A, B](%f: fn (A) -> B, %x: A) -> Option[B] { Some(%f(%x)) }"
        " def @main(%n: int32) { let %r = ref(%n); let %u = ref_write(%r, 3); let %w = ref(%u);"
        " let %c = if (%n > 1) { ref_write(%r, 4) } else { %u }; let %f = fn (%k: int32) -> () { ref_write(%r, %k) };"
        " (@loop(%n), match (Some(%u)) { Some(%v) => (%v, 1), None => ((), 2) }, ref_read(%w), %c,"
        " match (@apply(%f, %n)) { Some(%v) => (%v, 1), None => ((), 2) }) }",
        (I(300000),),
        ((), ((), 1), (), (), ((), 1)),
    ),
    "a function that ends with an effect": (
        "def @main(%n: int32) { let %r = ref(%n); ref_write(%r, 3) }",
        (I(1),),
        (),
    ),
    "tuples in tuples": (
        "def @swap[A, B](%p: (A, B)) -> (B, A) { (%p.1, %p.0) } def @main(%n: int32) {"
        " let %t = ((%n, (2, 3)), ()); let %s = @swap(%t); let %u = @swap(%s.1); ((%u.0).0, (%u.0).1, %u.1) }",
        (I(9),),
        (2, 3, 9),
    ),
    "a name that hides another": (
        "def @main(%x: int32) -> int32 { let %y = %x + 1; let %f = fn (%x: int32) -> int32 { let %y = %x * 2; %y + %x };"
        " let %x1 = %f(%y); match (Some(%x1)) { Some(%y) => { let %x2 = %y + %x; %x2 }, None => %y } }",
        (I(3),),
        15,
    ),
    "a type with one constructor and one with none of fields": (
        "type Pair[A, B] { Both(A, B), } type Color { Red, Green, Blue, }"
        " def @next(%c: Color) -> Color { match (%c) { Red => Green, Green => Blue, Blue => Red } }"
        " def @number(%c: Color) -> int32 { match (%c) { Blue => 3, Green => 2, Red => 1 } }"
        " def @main(%n: int32) -> int32 { match (Both(@next(Red), @next(@next(@next(Blue))))) {"
        " Both(%a, %b) => @number(%a) * 10 + @number(%b) + %n } }",
        (I(100),),
        123,
    ),
    "data of data, of two types that hold each other": (
        "type Tree[A] { Leaf(A), Node(Forest[A]), } type Forest[A] { Empty, Plant(Tree[A], Forest[A]), }"
        " def @tree(%t: Tree[int32]) -> int32 { match (%t) { Leaf(%x) => %x, Node(%f) => @forest(%f) } }"
        " def @forest(%f: Forest[int32]) -> int32 { match (%f) { Empty => 0, Plant(%t, %r) => @tree(%t) + 2 * @forest(%r) } }"
        " def @main(%n: int32) -> int32 { @tree(Node(Plant(Leaf(%n), Plant(Node(Plant(Leaf(2), Empty)), Plant(Leaf(3), Empty))))) }",
        (I(1),),
        17,
    ),
    "a function that gives a function that gives a function": (
        "def @main(%n: int32) -> int32 { let %f = fn (%a: int32) { fn (%b: int32) { fn (%c: int32) -> int32 { %a * 100 + %b * 10 + %c } } };"
        " %f(%n)(2)(3) }",
        (I(1),),
        123,
    ),
    "tensors of no elements": (
        "def @main(%x: Tensor[(?, 3), float32]) { let %y = concatenate((%x, %x), axis=0); (%y, sum(%y), shape_of(%y, dtype=\"int64\")) }",
        (np.zeros((0, 3), "float32"),),
        (np.zeros((0, 3), "float32"), np.float32(0), np.array([0, 3])),
    ),
    "a row that is broadcast before the run shows it": (
        "def @main(%x: Tensor[(?, 2), float32], %y: Tensor[(?, 2), float32]) { let %z = add(%x, %y); (multiply(%z, %x), subtract(%y, %z)) }",
        (np.ones((1, 2), "float32"), np.full((3, 2), 2, "float32")),
        (np.full((3, 2), 3, "float32"), np.full((3, 2), -1, "float32")),
    ),
    "a choice of two lengths": (
        "def @main(%x: Tensor[(?), float32], %c: bool) { let %y = if (%c) { concatenate((%x, %x)) } else { %x }; add(%y, 1f) }",
        (np.array([1, 2], "float32"), np.bool_(True)),
        np.array([2, 3, 2, 3], "float32"),
    ),
    "a list of tensors of many lengths": (
        "def @longest(%xs: List[Tensor[(?), float32]], %best: Tensor[(?), float32]) -> Tensor[(?), float32] {"
        " match (%xs) { Nil => %best, Cons(%x, %r) => {"
        " if (greater(sum(%x), sum(%best))) { @longest(%r, %x) } else { @longest(%r, %best) } } } }"
        " def @main(%x: Tensor[(?), float32]) { let %y = concatenate((%x, %x)); let %z = concatenate((%y, %x));"
        " @longest(Cons(%y, Cons(%z, Cons(%x, Nil))), %x) }",
        (np.array([1, 2], "float32"),),
        np.array([1, 2] * 3, "float32"),
    ),
    "a result that is an argument, twice": (
        "def @main(%x: Tensor[(2), float32]) { let %r = ref(%x); (%x, ref_read(%r), (%x, %x).1) }",
        (np.array([1, 2], "float32"),),
        (np.array([1, 2], "float32"),) * 3,
    ),
    "sharing as in a graph": (
        "def @main(%n: int32) -> int32 { %0 = %n + 1; %1 = %0 * %0; %2 = fn (%y: int32) -> int32 { %1 + %y }; %2(%0) + %2(%1) }",
        (I(2),),
        9 + 3 + 9 + 9,
    ),
    "a condition that is made of a condition": (
        "def @main(%n: int32) -> int32 { if (if (%n > 1) { %n < 5 } else { %n == 0 }) { 1 } else { 2 } }",
        (I(0),),
        1,
    ),
    "a type that holds itself with other arguments": (
        "type Nest[A] { Flat(A), Deep(Nest[(A, A)]), }"
        " def @depth[A](%t: Nest[A]) -> int32 { match (%t) { Flat(_) => 0, Deep(%r) => 1 + @depth(%r) } }"
        " def @main(%n: int32) { @depth(Deep(Deep(Flat(((%n, 1), (2, 3)))))) }",
        (I(3),),
        2,
    ),
    "references to references in a list": (
        "def @main(%n: int32) { let %a = ref(%n); let %b = ref(%a); let %l = Cons(%a, Cons(ref(5), Nil)); ref_write(ref_read(%b), 7);"
        " let %m = @map(fn (%r: ref(int32)) -> int32 { let %o = ref_read(%r); ref_write(%r, %o + 1); %o }, %l);"
        " (@sum(%m), ref_read(%a), @sum(@map(fn (%r: ref(int32)) -> int32 { ref_read(%r) }, %l))) }",
        (I(3),),
        (12, 8, 14),
    ),
    "cases of sums and products, nested": (
        "type E { N(int32), P(E, E), M(E, E), Z, } def @s(%e: E) -> E { match (%e) { P(Z, %x) => @s(%x), P(%x, Z) => @s(%x), M(Z, _) => Z,"
        " M(_, Z) => Z, M(N(%a), P(N(%b), N(%c))) => @s(P(M(N(%a), N(%b)), M(N(%a), N(%c)))), P(N(%a), N(%b)) => N(%a + %b),"
        " M(N(%a), N(%b)) => N(%a * %b), P(%x, %y) => match ((@s(%x), @s(%y))) { (N(%a), N(%b)) => N(%a + %b), (%u, %v) => P(%u, %v) },"
        " M(%x, %y) => match ((@s(%x), @s(%y))) { (N(%a), N(%b)) => N(%a * %b), (Z, _) => Z, (%u, %v) => M(%u, %v) }, %o => %o } }"
        " def @v(%e: E) -> int32 { match (%e) { N(%a) => %a, _ => -1 } }"
        " def @main(%n: int32) { @v(@s(P(M(N(%n), P(N(2), N(3))), P(Z, M(N(2), N(%n)))))) }",
        (I(4),),
        28,
    ),
    "a closure for what is to be done": (
        "def @main(%n: int32) -> int32 { let %f = fn (%i: int32, %k: fn (int32) -> int32) -> int32 {"
        " if (%i == 0) { %k(0) } else { %f(%i - 1, fn (%r: int32) -> int32 { %k(%r + 1) }) } }; %f(%n, fn (%r: int32) -> int32 { %r }) }",
        (I(3000),),
        3000,
    ),
    "a match on what a match gives": (
        "def @main(%n: int32) -> int32 { match (match (Cons(%n, Nil)) { Cons(%x, _) => Some((%x, Nil)), Nil => None }) {"
        " Some((%x, Cons(_, _))) => 0, Some((%x, Nil)) => %x + 1, None => -1 } }",
        (I(6),),
        7,
    ),
}


def plain(value):
    """Arrays of what a machine gives; of tuples, a tuple."""
    if hasattr(value, "numpy"):
        return value.numpy()
    fields = value.fields if hasattr(value, "fields") else value
    return tuple(plain(field) for field in fields)


def same(found, expected):
    if isinstance(expected, tuple):
        assert len(found) == len(expected)
        for pair in zip(found, expected):
            same(*pair)
        return
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


def on_interpreter(mod, args):
    return relay.create_executor("debug", mod).evaluate()(*args)


def on_machine(mod, args):
    return relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm"), tvm.cpu()).invoke("main", *args)


def by_way_of_relax(mod, args):
    program = tvm.compile(relay.to_relax(mod), "llvm")
    return relax.VirtualMachine(program, tvm.cpu())["main"](*[tvm.runtime.tensor(np.asarray(arg)) for arg in args])


@pytest.mark.parametrize("run", [on_interpreter, on_machine, by_way_of_relax])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_the_same_everywhere(name, run):
    text, args, expected = PROGRAMS[name]
    mod = relay.parse('#[version = "0.0.5"]\n' + text)
    same(plain(run(mod, args)), expected)
