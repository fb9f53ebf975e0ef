"""Values across the border between Python and Rust."""

import subprocess
import sys
import threading

import numpy as np
import pytest

import relaxide as tvm


def global_function(name, function):
    tvm.register_global_func(f"test.values.{name}", function, override=True)
    return tvm.get_global_func(f"test.values.{name}")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int32", "int64", "uint8", "bool", "float16"])
@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (2, 3, 4)])
def test_arrays_come_back_as_they_went(dtype, shape):
    array = (np.random.default_rng(0).random(shape) * 100).astype(dtype)
    tensor = tvm.runtime.tensor(array)
    assert tensor.shape == shape and tensor.dtype == dtype
    np.testing.assert_array_equal(tensor.numpy(), array)


def test_dlpack_shares_memory():
    array = np.arange(6, dtype="float32").reshape(2, 3)
    tensor = tvm.ffi.from_dlpack(array)
    array[1, 2] = 42
    assert tensor.numpy()[1, 2] == 42
    assert np.from_dlpack(tensor)[1, 2] == 42


def test_memory_that_compiled_code_cannot_take_is_refused():
    memory = np.zeros(64 + 64, dtype="uint8")
    start = -memory.ctypes.data % 64
    aligned, odd = memory[start : start + 8], memory[start + 1 : start + 9]
    assert tvm.runtime.from_dlpack(aligned).data_ptr() == aligned.ctypes.data
    with pytest.raises(ValueError, match="64"):
        tvm.runtime.from_dlpack(odd)
    with pytest.raises(ValueError, match="contiguous|compact"):
        tvm.runtime.from_dlpack(np.zeros((4, 4), "float32").T)


def test_python_functions_are_global_functions():
    join = global_function("join", lambda *args: "-".join(str(arg) for arg in args))
    assert join(1, 2.5, "x", None, True) == "1-2.5-x-None-True"


def test_functions_are_arguments_and_results():
    twice = global_function("twice", lambda f: lambda x: f(f(x)))
    assert twice(lambda x: x + 3)(10) == 16


def test_an_exception_passes_through_unchanged():
    class Odd(Exception):
        pass

    def fail():
        raise Odd("this very exception")

    with pytest.raises(Odd, match="this very exception"):
        global_function("fail", fail)()


def test_containers_nest():
    echo = global_function("echo", lambda x: x)
    assert echo([1, ["a", 2.0], None]) == (1, ("a", 2.0), None)
    assert echo({"a": 1, "b": [2]}) == {"a": 1, "b": (2,)}


def test_a_container_that_holds_itself_is_refused():
    around, table = [], {}
    around.append([around])
    table["self"] = [table]
    for value in (around, table):
        with pytest.raises(RecursionError, match="more than 1000 levels deep; does it hold itself"):
            tvm.runtime.convert(value)
    assert len(tvm.runtime.convert([[1]])) == 1


def test_an_object_with_every_attribute_is_no_program():
    with pytest.raises(TypeError):
        tvm.relax.build(tvm.script.ir.IRModule({}), "llvm")


def test_a_missing_function_is_named():
    with pytest.raises(ValueError, match="no.such.function"):
        tvm.get_global_func("no.such.function")


def test_integers_beyond_64_bits_are_refused():
    with pytest.raises(OverflowError, match="64 bits"):
        global_function("identity", lambda x: x)(2**70)


def test_a_start_without_arrays_leaves_numpy_alone():
    script = "import sys, relaxide; relaxide.runtime.empty((2, 3)); sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def test_functions_take_any_number_of_arguments_and_no_names():
    gather = tvm.ffi.convert_func(lambda *args: len(args))
    assert gather() == 0 and gather(*range(8)) == 8 and gather(*range(9)) == 9 and gather("a", 1) == 2
    with pytest.raises(TypeError, match="named"):
        gather(a=1)


def test_calls_nest_through_both_languages():
    down = tvm.ffi.convert_func(lambda n: 0 if n == 0 else down(n - 1) + 1)
    through_text = tvm.ffi.convert_func(lambda n, tag: 0 if n == 0 else down(1) + through_text(n - 1, tag))
    assert down(100) == 100 and through_text(50, "tag") == 50


def test_other_threads_run_during_a_call():
    started, done = threading.Event(), threading.Event()

    def wait():
        started.set()
        assert done.wait(timeout=60)

    thread = threading.Thread(target=tvm.ffi.convert_func(wait))
    thread.start()
    assert started.wait(timeout=60)
    done.set()
    thread.join()
