"""Objects and archives that are linked into the library of a program that imports them."""

import shutil
import subprocess

import numpy as np
import pytest

import relaxide
from relaxide import relax, te
from relaxide.relax.frontend import nn

#: A function of C in the packed convention: it adds a number to a tensor of eight floats, in place of the second argument.
SOURCE = """
#include <stdint.h>
typedef struct { int32_t type_index; int32_t zero; union { int64_t number; void* pointer; } value; } Any;
typedef struct { void* data; int32_t device[2]; int32_t rank; uint8_t dtype[4]; int64_t* shape; int64_t* strides; uint64_t offset; } Tensor;
static Tensor* tensor(const Any* any) {
    return any->type_index == 7 ? (Tensor*)any->value.pointer : (Tensor*)((char*)any->value.pointer + 24);
}
int __tvm_ffi_NAME(void* self, const Any* args, int32_t count, Any* result) {
    const float* from = (const float*)tensor(&args[0])->data;
    float* to = (float*)tensor(&args[1])->data;
    for (int i = 0; i < 8; ++i) to[i] = from[i] + NUMBER;
    return 0;
}
"""

needs_cc = pytest.mark.skipif(shutil.which("cc") is None or shutil.which("ar") is None, reason="needs a compiler of C")


def kernel(name, number):
    """A kernel that adds a number."""
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + float(number), name="B")
    return relaxide.IRModule.from_expr(te.create_prim_func([a, b]).with_attr("global_symbol", name))


def in_c(folder, name, number):
    """The object of a function in C that adds a number."""
    source, made = folder / f"{name}.c", folder / f"{name}.o"
    source.write_text(SOURCE.replace("NAME", name).replace("NUMBER", str(number)))
    subprocess.run(["cc", "-c", "-fPIC", "-O2", str(source), "-o", str(made)], check=True, timeout=60)
    return made


def added(function):
    """What a function adds to numbers."""
    x = relaxide.runtime.tensor(np.arange(8, dtype="float32"))
    y = relaxide.runtime.tensor(np.zeros(8, "float32"))
    function(x, y)
    difference = set((y.numpy() - x.numpy()).tolist())
    assert len(difference) == 1, difference
    return difference.pop()


def static(folder, name, number):
    """A kernel as a static library."""
    path = folder / f"{name}_.o"
    relaxide.tirx.build(kernel(name, number), target="llvm").write_to_file(str(path))
    return relaxide.runtime.load_static_library(path, [name])


def test_a_static_library_declares_its_functions_and_is_linked_before_they_run(tmp_path):
    one = static(tmp_path, "one", 1)
    assert one.kind == "static_library" and one.implements_function("one") and not one.implements_function("two")
    assert one.is_compilation_exportable() and not one.is_runnable()
    with pytest.raises(AttributeError, match="one"):
        one.get_function("one")
    one.write_to_file(str(tmp_path / "copy.o"))
    assert (tmp_path / "copy.o").read_bytes() == (tmp_path / "one_.o").read_bytes()


def test_kernels_of_several_objects_are_one_library(tmp_path):
    built = relaxide.tirx.build(kernel("zero", 0), target="llvm")
    assert built.jit().get_function("zero", query_imports=True)
    built.import_module(static(tmp_path, "one", 1))
    built.import_module(static(tmp_path, "two", 2))
    relaxide.runtime.Executable(built).export_library(str(tmp_path / "all.so"))
    loaded = relaxide.runtime.load_module(str(tmp_path / "all.so"))
    for functions in (built, loaded):
        found = [added(functions.get_function(name, query_imports=True)) for name in ("zero", "one", "two")]
        assert found == [0.0, 1.0, 2.0]


def test_a_library_of_kernels_alone_is_read_as_code(tmp_path):
    built = relaxide.tirx.build(kernel("zero", 0), target="llvm")
    built.import_module(static(tmp_path, "one", 1))
    built.export_library(str(tmp_path / "all.so"))
    loaded = relaxide.runtime.load_module(str(tmp_path / "all.so"))
    assert loaded.kind == "library" and len(loaded.imports) == 0 and not loaded.is_compilation_exportable()
    assert [added(loaded["zero"]), added(loaded["one"])] == [0.0, 1.0]


@needs_cc
def test_an_archive_is_all_its_objects(tmp_path):
    objects = [in_c(tmp_path, name, number) for name, number in (("three", 3), ("four", 4))]
    archive = tmp_path / "both.a"
    subprocess.run(["ar", "rcs", str(archive), *map(str, objects)], check=True, timeout=60)
    both = relaxide.runtime.load_static_library(str(archive), ["four", "three"])
    built = relaxide.tirx.build(kernel("zero", 0), target="llvm")
    built.import_module(both)
    assert [added(built[name]) for name in ("zero", "three", "four")] == [0.0, 3.0, 4.0]


class Adder(nn.Module):
    """A model that calls a function of an object."""

    def __init__(self, extern):
        self.extern = extern

    def forward(self, x: nn.Tensor):
        return self.extern["five"](x)


@needs_cc
def test_a_model_calls_the_functions_of_its_external_modules(tmp_path):
    like = {"five": lambda x: nn.Tensor.placeholder(x.shape, x.dtype)}
    extern = nn.ObjectModule(like, in_c(tmp_path, "five", 5))
    mod, _, externs = Adder(extern).export_tvm({"forward": {"x": nn.spec.Tensor([8], "float32")}}, allow_extern=True)
    mod = relax.transform.AttachExternModules(externs)(mod)
    executable = relaxide.compile(mod, "llvm")
    executable.export_library(str(tmp_path / "model.so"))
    x = np.arange(8, dtype="float32")
    for module in (executable, relaxide.runtime.load_module(str(tmp_path / "model.so"))):
        machine = relax.VirtualMachine(module, relaxide.cpu())
        np.testing.assert_array_equal(machine["forward"](relaxide.runtime.tensor(x)).numpy(), x + 5)


def test_what_tvm_compiled_is_linked_here_and_the_other_way_round(tmp_path):
    tvm = pytest.importorskip("tvm")

    def theirs(name, number):
        a = tvm.te.placeholder((8,), name="A")
        b = tvm.te.compute((8,), lambda i: a[i] + tvm.tirx.const(number, "float32"), name="B")
        func = tvm.te.create_prim_func([a, b]).with_attr("global_symbol", name)
        return tvm.tirx.build(tvm.IRModule.from_expr(func), target="llvm")

    theirs("six", 6).write_to_file(str(tmp_path / "six.o"))
    built = relaxide.tirx.build(kernel("zero", 0), target="llvm")
    built.import_module(relaxide.runtime.load_static_library(tmp_path / "six.o", ["six"]))
    assert [added(built[name]) for name in ("zero", "six")] == [0.0, 6.0]

    static(tmp_path, "one", 1)
    root = theirs("seven", 7)
    root.import_module(tvm.runtime.load_static_library(str(tmp_path / "one_.o"), ["one"]))
    root.export_library(str(tmp_path / "theirs.so"))
    loaded = relaxide.runtime.load_module(str(tmp_path / "theirs.so"))
    assert [added(loaded[name]) for name in ("seven", "one")] == [7.0, 1.0]


def test_what_is_no_library_of_the_functions_is_refused(tmp_path):
    static(tmp_path, "one", 1)
    load = relaxide.runtime.load_static_library
    with pytest.raises(FileNotFoundError, match="none.o"):
        load(tmp_path / "none.o", ["one"])
    with pytest.raises(ValueError, match="does not define the function 'two'|does not define the function \"two\""):
        load(tmp_path / "one_.o", ["one", "two"])
    for content in (b"", b"text of a file that is no object", (tmp_path / "one_.o").read_bytes()[:70], b"!<arch>\nnonsense"):
        (tmp_path / "bad.o").write_bytes(content)
        with pytest.raises(ValueError, match="bad.o"):
            load(tmp_path / "bad.o", ["one"])


def test_a_function_that_is_there_twice_is_refused(tmp_path):
    built = relaxide.tirx.build(kernel("one", 0), target="llvm")
    built.import_module(static(tmp_path, "one", 1))
    with pytest.raises(Exception, match="__tvm_ffi_one.*defined in .* and again in `one_.o`"):
        built.export_library(str(tmp_path / "all.so"))


def test_programs_in_c_take_no_static_library(tmp_path):
    built = relaxide.tirx.build(kernel("zero", 0), target="c")
    built.import_module(static(tmp_path, "one", 1))
    with pytest.raises(ValueError, match="imports a static library"):
        built.export_library(str(tmp_path / "all.c"))
