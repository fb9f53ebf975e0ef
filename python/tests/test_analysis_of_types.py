"""Which values a type has, asked from Python."""

import pytest
import relaxide as tvm
from relaxide import relax, tirx
from relaxide.relax.analysis import BaseCheckResult, type_base_check

n = tirx.Var("n", "int64")
m = tirx.Var("m", "int64")
ANY = relax.AnyType()
INTS = relax.TensorType([n, m], "int32")


def rows(count):
    """A function of a tensor of `count` rows, with dimensions of its own."""
    width = tirx.Var("width", "int64")
    return relax.FuncType([relax.TensorType([count, width], "float32")], relax.TensorType([width, count], "float32"))


CASES = [
    (ANY, INTS, BaseCheckResult.PASS),
    (INTS, ANY, BaseCheckResult.FAIL_L1),
    (tvm.ir.PrimType("int32"), tvm.ir.PrimType("int32"), BaseCheckResult.PASS),
    (tvm.ir.PrimType("int32"), tvm.ir.PrimType("float32"), BaseCheckResult.FAIL_L0),
    (INTS, tvm.ir.PrimType("int32"), BaseCheckResult.FAIL_L0),
    (relax.TensorType(None, "int32", ndim=2), INTS, BaseCheckResult.PASS),
    (INTS, relax.TensorType(None, "int32", ndim=2), BaseCheckResult.FAIL_L2),
    (relax.TensorType(None, "int32", ndim=2), relax.TensorType(None, "int32"), BaseCheckResult.FAIL_L1),
    (INTS, relax.TensorType([n, m], "float32"), BaseCheckResult.FAIL_L0),
    (INTS, relax.TensorType([n, n + 1], "int32"), BaseCheckResult.FAIL_L2),
    (relax.ShapeType([n, 1]), relax.ShapeType([n, 2]), BaseCheckResult.FAIL_L0),
    (relax.TupleType([ANY, INTS]), relax.TupleType([INTS, ANY]), BaseCheckResult.FAIL_L1),
    (relax.TupleType([ANY]), relax.TupleType([ANY, ANY]), BaseCheckResult.FAIL_L0),
    (rows(2), rows(2), BaseCheckResult.PASS),
    (relax.FuncType.opaque_func(), rows(2), BaseCheckResult.PASS),
]


@pytest.mark.parametrize("base, derived, expected", CASES, ids=[str(i) for i in range(len(CASES))])
def test_how_far_a_type_fits(base, derived, expected):
    assert type_base_check(base, derived) == expected
    assert base.is_base_of(derived) is (expected == BaseCheckResult.PASS)


def test_functions_have_in_common_what_their_signatures_have():
    erased = relax.FuncType([relax.TensorType(None, "float32", ndim=2)], relax.TensorType(None, "float32", ndim=2))
    tvm.ir.assert_structural_equal(relax.analysis.type_lca(rows(2), rows(3)), erased)
    same = rows(2)
    tvm.ir.assert_structural_equal(relax.analysis.type_lca(same, same), same)
    opaque = relax.FuncType.opaque_func()
    tvm.ir.assert_structural_equal(relax.analysis.type_lca(rows(2), opaque), opaque)
