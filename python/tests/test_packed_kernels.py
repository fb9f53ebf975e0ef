"""Kernels in the convention of packed calls, and programs as kernels over lists of values: what the compiler does, as passes."""

import pytest

import relaxide as tvm
from relaxide import relax, tirx
from relaxide.script import ir as I
from relaxide.script import relax as R
from relaxide.script import tirx as T

LLVM = tvm.target.Target("llvm", host="llvm")


@I.ir_module
class Kernels:
    @T.prim_func
    def fill(A: T.Buffer(("n + 1",), "float32"), B: T.Buffer(("n",), "float32", strides=("s",)), scale: T.float32, on: T.bool):
        for i in range(n):
            if on:
                B[i] = A[i + 1] * scale

    @T.prim_func
    def number(address: T.handle, n: T.int64) -> T.int32:
        if n > T.int64(3):
            return 4
        return 5

    @T.prim_func(private=True)
    def inner(n: T.int32):
        T.evaluate(n)


def packed(mod):
    return tirx.transform.MakePackedAPI()(tirx.transform.BindTarget(LLVM)(mod))


def test_kernels_that_are_exported_take_packed_arguments():
    made = packed(Kernels)
    fill, number = made["fill"], made["number"]
    assert [len(made[name].params) for name in ("fill", "number", "inner")] == [4, 4, 1]
    assert fill.attrs["calling_conv"] == 1 and fill.attrs["global_symbol"] == "__tvm_ffi_fill" and fill.attrs["target"].host is None
    text = fill.script()
    # What is taken out of the arguments stands in front of what is checked of it, though the first buffer needs the second.
    assert text.index("n: T.let[T.int64] = T.tvm_struct_get(fill_B_shape") < text.index("Invalid A.shape[0]")
    assert text.count("T.decl_buffer") == 2 and "expected boolean" in text
    assert "T.Select(scale_type_index == 3" in text and 'with T.attr({"compute_scope": "fill_compute_"})' in text
    returns = number.script()
    assert returns.count("return 0") == 3 and returns.count("T.tvm_struct_set(result, 0, 13, 1)") == 2
    again = tvm.script.from_source(made.script(show_meta=True))
    tvm.ir.assert_structural_equal(again, made)


def test_no_kernel_returns_from_a_parallel_loop_or_is_for_no_machine():
    at = tirx.Var("i", "int32")
    body = tirx.For(at, 0, 8, tirx.ForKind.PARALLEL, tirx.Return(at))
    func = tirx.PrimFunc([], body, tvm.ir.PrimType("int32")).with_attr({"global_symbol": "main", "target": LLVM})
    with pytest.raises(tvm.error.InternalError, match="parallel scope"):
        tirx.transform.MakePackedAPI()(tvm.IRModule({"main": func}))
    with pytest.raises(ValueError, match="run BindTarget first"):
        tirx.transform.MakePackedAPI()(Kernels)


@I.ir_module
class Calls:
    @T.prim_func
    def main(A: T.Buffer((4, 8), "float32"), n: T.int32):
        T.func_attr({"target": T.target("llvm")})
        T.call_packed("use", A, n, T.float32(1), "text")


def test_a_packed_call_has_its_arguments_on_the_stack():
    text = tirx.transform.LowerTVMBuiltin()(Calls)["main"].script()
    assert 'T.tvm_stack_alloca("tvm_ffi_any", 5)' in text and 'T.tvm_stack_alloca("array", 1)' in text
    assert "stack_shape[0] = T.int64(4)" in text and "T.tvm_struct_set(stack_array, 0, 6, T.uint8(32))" in text
    # A tensor, an integer, a float and a text, and the result, which is nothing yet.
    kinds = [7, 1, 3, 8, 0]
    assert all(f"T.tvm_struct_set(stack_ffi_any, {place}, 13, {kind})" in text for place, kind in enumerate(kinds))
    assert 'call_packed_lowered("use", stack_ffi_any, 0, 4)' in text
    tvm.ir.assert_structural_equal(tvm.script.from_source(text), tirx.transform.LowerTVMBuiltin()(Calls)["main"])


def test_memory_of_devices_is_asked_for():
    def kernel(attrs, length):
        return tvm.script.from_source(f"""
@T.prim_func
def main():
    {attrs}
    A = T.alloc_buffer(({length},), "float32")
    A[0] = T.float32(0)
""")

    def lowered(attrs, length=16):
        return tirx.transform.LowerTVMBuiltin()(tvm.IRModule({"main": kernel(attrs, length)}))["main"].script()

    llvm, device = 'T.func_attr({"target": "llvm"})', 'T.attr("", "device_type", 2)'
    assert "TVMBackend" not in lowered(llvm)
    text = lowered(f'{llvm}\n    {device}\n    T.attr("", "device_id", 1)')
    assert 'T.call_extern("handle", "TVMBackendAllocWorkspace", 2, 1, ' in text and "TVMBackendFreeWorkspace" in text
    with pytest.raises(RuntimeError, match="device_id"):
        lowered(f"{llvm}\n    {device}")
    with pytest.raises(RuntimeError, match="device_id"):
        lowered(llvm, 4096)
    with pytest.raises(RuntimeError, match="needs a target"):
        lowered('T.func_attr({"tirx.is_host_func": True})')


def test_a_lowered_program_is_kernels_over_lists():
    @I.ir_module
    class Program:
        @R.function(pure=False)
        def main(c: R.Tensor((), "bool"), x: R.Tensor):
            if c:
                y = R.call_packed("one", x, R.const([1, 2]), ty_args=(R.Tensor))
            else:
                y = x
            z = (x, y)
            return z

    made = relax.vm_build._vmcodegen(relax.ExecBuilder(), Program, exec_mode="compiled")
    text = made["__vmtir__main"].script()
    # The parameters are the first registers and the result the next; what a choice gives has one in front of its branches.
    assert 'T.anylist_setitem_call_packed(r, 4, "one", T.anylist_getitem(r, 1), T.anylist_getitem(c, 0))' in text
    assert text.count('T.anylist_setitem_call_packed(r, 3, "vm.builtin.copy"') == 2 and "read_if_cond" in text
    assert text.rstrip().endswith('T.anylist_setitem_call_packed(r, 2, "vm.builtin.copy", T.anylist_getitem(r, 5))')
    tvm.ir.assert_structural_equal(relax.vm_build._vmcodegen(relax.ExecBuilder(), Program, exec_mode="bytecode"), Program)


@I.ir_module
class Shared:
    @R.function(pure=False)
    def main(s: R.Shape(["n"])):
        n = T.int64()
        a = R.builtin.alloc_tensor(R.shape([n, 2]), R.dtype("float16"), R.prim_value(0), R.str("global"))
        flat = R.reshape(a, R.shape([n * 2]))
        out = R.builtin.alloc_tensor(R.shape([n * 2]), R.dtype("float16"), R.prim_value(0), R.str("global"))
        _ = R.call_packed("runtime.disco.allreduce", flat, R.shape([0]), R.prim_value(False), out)
        _ = R.call_packed("runtime.disco.allreduce", out, R.shape([1]), R.prim_value(False), out)
        return out


def test_sums_over_shared_memory_need_a_runtime_that_has_them():
    fast = "runtime.disco.cuda_ipc.custom_allreduce"
    rewrite = relax.transform.IPCAllReduceRewrite(1)
    tvm.ir.assert_structural_equal(rewrite(Shared), Shared)
    tvm.register_global_func(fast, lambda *args: None)
    try:
        text = rewrite(Shared)["main"].script()
    finally:
        tvm.ffi.registry.remove_global_func(fast)
    # The first sum reads what is shared; the second is none, and what it writes stays where it is.
    assert text.count("ipc_memory") == 1 and text.count(fast) == 1 and text.count('"runtime.disco.allreduce"') == 1


def test_shared_memory_is_asked_for():
    @I.ir_module
    class Program:
        @R.function(pure=False)
        def main(s: R.Shape(["n"])):
            n = T.int64()
            storage: R.Any = R.memory.alloc_storage(R.shape([n]), R.prim_value(0), R.str("ipc_memory"), R.dtype("uint8"))
            a = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([n]), R.dtype("uint8"))
            b = R.builtin.alloc_tensor(R.shape([n]), R.dtype("uint8"), R.prim_value(0), R.str("ipc_memory"))
            c = R.builtin.alloc_tensor(R.shape([n]), R.dtype("uint8"), R.prim_value(0), R.str("global"))
            return (a, b, c)

    text = relax.transform.LowerGPUIPCAllocStorage()(Program)["main"].script()
    assert text.count("runtime.disco.cuda_ipc.alloc_storage") == 2 and "ipc_memory" not in text
    assert text.count("R.memory.alloc_tensor") == 2 and text.count("R.builtin.alloc_tensor") == 1
