"""Instructions of processors as tensor intrinsics, and what tiles blocks for them."""

import numpy as np
import pytest

import relaxide as tvm
from relaxide import s_tir, te
from relaxide.s_tir import TensorIntrin
from relaxide.s_tir.schedule.transform import tile_with_tensor_intrin
from relaxide.s_tir.tensor_intrin import arm_cpu, cuda, dot_product_common, hexagon, x86

#: The intrinsics of processors by the element types of vector and rows, with how many rows they take and how many numbers of each.
CASES = [
    (x86.VNNI_DOT_16x4_INTRIN, "uint8", "int8", "int32", 16, 4),
    (x86.AVX512_DOT_16x4_INTRIN, "uint8", "int8", "int32", 16, 4),
    (arm_cpu.ARM_DOT_4x4_i8_NEON_INTRIN, "int8", "int8", "int32", 4, 4),
    (arm_cpu.ARM_DOT_4x4_i8_SDOT_INTRIN, "int8", "int8", "int32", 4, 4),
    (arm_cpu.ARM_DOT_4x4_u8_UDOT_INTRIN, "uint8", "uint8", "uint32", 4, 4),
    (arm_cpu.ARM_DOT_4x4_u8_HDOT_INTRIN, "uint8", "uint8", "int32", 4, 4),
    (hexagon.VRMPY_u8u8i32_INTRIN, "uint8", "uint8", "int32", 32, 4),
    (hexagon.VDMPY_i16i16i32_INTRIN, "int16", "int16", "int32", 32, 2),
]


def product(a, b, c, rows, terms, blocks=2):
    """A product whose right side is packed as an intrinsic wants it."""
    m, n, k = 5, rows * blocks, terms * 3
    A = te.placeholder((m, k), a, name="A")
    B = te.placeholder((n // rows, k // terms, rows, terms), b, name="B")
    r = te.reduce_axis((0, k), name="r")

    def element(i, j):
        return te.sum(A[i, r].astype(c) * B[j // rows, r // terms, j % rows, r % terms].astype(c), axis=r)

    return te.create_prim_func([A, B, te.compute((m, n), element, name="C")])


def tensorized(func, intrin):
    schedule = s_tir.Schedule(func)
    block = schedule.get_sblock("C")
    tiled = tile_with_tensor_intrin(schedule, block, intrin)
    assert tiled is not None and len(schedule.get_loops(block)) == 5
    outer = schedule.get_loops(block)[2]
    schedule.decompose_reduction(block, outer)
    schedule.tensorize(tiled, intrin)
    return schedule.mod


@pytest.mark.parametrize("intrin, a, b, c, rows, terms", CASES)
def test_a_product_is_made_of_an_intrinsic(intrin, a, b, c, rows, terms):
    assert "llvm." in tensorized(product(a, b, c, rows, terms), intrin).script()


def has(feature):
    with open("/proc/cpuinfo") as file:
        return feature in file.read()


@pytest.mark.parametrize(
    "intrin, feature", [(x86.VNNI_DOT_16x4_INTRIN, "avx512_vnni"), (x86.AVX512_DOT_16x4_INTRIN, "avx512bw")]
)
def test_the_instructions_compute_the_product(intrin, feature):
    if not has(feature):
        pytest.skip(f"this processor has no {feature}")
    func = product("uint8", "int8", "int32", 16, 4)
    rng = np.random.default_rng(3)
    # Pairs of products that fit 16 bits, so that neither instruction saturates.
    a, b = rng.integers(0, 128, (5, 12), "uint8"), rng.integers(-127, 128, (2, 3, 16, 4), "int8")
    target = {"kind": "llvm", "mcpu": "cascadelake"}
    made = [tvm.runtime.tensor(np.zeros((5, 32), "int32")) for _ in range(2)]
    tvm.compile(func, target=target)["main"](tvm.runtime.tensor(a), tvm.runtime.tensor(b), made[0])
    tvm.compile(tensorized(func, intrin), target=target)["main"](tvm.runtime.tensor(a), tvm.runtime.tensor(b), made[1])
    np.testing.assert_array_equal(made[1].numpy(), made[0].numpy())


def test_what_does_not_fit_is_not_tiled():
    func = product("uint8", "int8", "int32", 12, 4)
    schedule = s_tir.Schedule(func)
    assert tile_with_tensor_intrin(schedule, schedule.get_sblock("C"), x86.VNNI_DOT_16x4_INTRIN) is None
    tvm.ir.assert_structural_equal(schedule.mod["main"], s_tir.Schedule(func).mod["main"])


def test_four_bytes_are_one_product():
    for name, byte in ((dot_product_common.DP4A_S8S8S32_INTRIN, "int8"), (dot_product_common.DP4A_U8U8U32_INTRIN, "uint8")):
        intrin = TensorIntrin.get(name)
        assert f'"{byte}"' in intrin.desc.script() and "__dp4a" in intrin.impl.script()


def test_tensor_cores_are_names_alone():
    with pytest.raises(ValueError, match="is not registered"):
        TensorIntrin.get(cuda.MMA_f16f16f32_INTRIN)
    places = {cuda.shared_16x16_to_ldmatrix_32x8_layout(i, j): (i, j) for i in range(16) for j in range(16)}
    assert len(places) == 256
    for (thread, place), element in places.items():
        assert cuda.ldmatrix_32x8_to_shared_16x16_layout(thread, place) == element
