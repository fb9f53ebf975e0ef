"""Kernels in every form that TVM's documents of TensorIR write one, and the changes that they make of one.

A kernel is a function of a package, TVM or Relaxide, that gives a module; a change is a generator over a schedule that
stops wherever the documents look at the program.
"""

KERNELS = {}
CHANGES = []


def kernel(*shapes):
    """Enters a kernel with the shapes of its buffers; the last is its result."""

    def enter(function):
        KERNELS[function.__name__] = (function, shapes)
        return function

    return enter


def change(of):
    """Enters a change of a kernel."""

    def enter(function):
        CHANGES.append((of.__name__, function))
        return function

    return enter


PRODUCT = ((24, 20), (20, 32), (24, 32))


@kernel((96,), (96,), (96,))
def sum_of_vectors(tvm):
    I, T = tvm.script.ir, tvm.script.tirx

    @I.ir_module
    class Module:
        @T.prim_func(s_tir=True)
        def main(X: T.Buffer((96,), "float32"), Y: T.Buffer((96,), "float32"), Z: T.Buffer((96,), "float32")) -> None:
            for i in range(96):
                with T.sblock("Z"):
                    vi = T.axis.spatial(96, i)
                    Z[vi] = X[vi] + Y[vi]

    return Module


@kernel(*PRODUCT)
def in_full(tvm):
    I, T = tvm.script.ir, tvm.script.tirx

    @I.ir_module
    class Module:
        @T.prim_func(s_tir=True)
        def main(
            X: T.Buffer((24, 20), "float32"),
            W: T.Buffer((20, 32), "float32"),
            R: T.Buffer((24, 32), "float32"),
        ):
            P = T.alloc_buffer((24, 32), dtype="float32")
            for i in range(24):
                for j in range(32):
                    for k in range(20):
                        with T.sblock("P"):
                            vi = T.axis.spatial(24, i)
                            vj = T.axis.spatial(32, j)
                            vk = T.axis.reduce(20, k)
                            T.reads(X[vi, vk], W[vk, vj])
                            T.writes(P[vi, vj])
                            with T.init():
                                P[vi, vj] = T.float32(0)
                            P[vi, vj] = P[vi, vj] + X[vi, vk] * W[vk, vj]
            for i in range(24):
                for j in range(32):
                    with T.sblock("R"):
                        vi = T.axis.spatial(24, i)
                        vj = T.axis.spatial(32, j)
                        T.reads(P[vi, vj])
                        T.writes(R[vi, vj])
                        R[vi, vj] = T.max(P[vi, vj], T.float32(0))

    return Module


@kernel(*PRODUCT)
def in_short(tvm):
    I, T = tvm.script.ir, tvm.script.tirx

    @I.ir_module
    class Module:
        @T.prim_func(s_tir=True)
        def main(
            X: T.Buffer((24, 20), "float32"),
            W: T.Buffer((20, 32), "float32"),
            R: T.Buffer((24, 32), "float32"),
        ):
            P = T.alloc_buffer((24, 32), dtype="float32")
            for i, j, k in T.grid(24, 32, 20):
                with T.sblock("P"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    with T.init():
                        P[vi, vj] = T.float32(0)
                    P[vi, vj] = P[vi, vj] + X[vi, vk] * W[vk, vj]
            for i, j in T.grid(24, 32):
                with T.sblock("R"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    R[vi, vj] = T.max(P[vi, vj], T.float32(0))

    return Module


@kernel(*PRODUCT)
def with_axes_in_a_row(tvm):
    I, T = tvm.script.ir, tvm.script.tirx

    @I.ir_module
    class Module:
        @T.prim_func(s_tir=True)
        def main(
            X: T.Buffer((24, 20), "float32"),
            W: T.Buffer((20, 32), "float32"),
            R: T.Buffer((24, 32), "float32"),
        ):
            P = T.alloc_buffer((24, 32), dtype="float32")
            for i, j, k in T.grid(24, 32, 20):
                with T.sblock("P"):
                    vi = T.axis.spatial(24, i)
                    vj = T.axis.spatial(32, j)
                    vk = T.axis.reduce(20, k)
                    with T.init():
                        P[vi, vj] = T.float32(0)
                    P[vi, vj] = P[vi, vj] + X[vi, vk] * W[vk, vj]
            for i, j in T.grid(24, 32):
                with T.sblock("R"):
                    vi = T.axis.spatial(24, i)
                    vj = T.axis.spatial(32, j)
                    R[vi, vj] = T.max(P[vi, vj], T.float32(0))

    return Module


@kernel(*PRODUCT)
def with_values_of_python(tvm):
    I, T = tvm.script.ir, tvm.script.tirx
    rows, columns, depth = 24, 32, 20
    dtype = "float32"

    @I.ir_module
    class Module:
        @T.prim_func(s_tir=True)
        def main(
            X: T.Buffer((rows, depth), dtype),
            W: T.Buffer((depth, columns), dtype),
            R: T.Buffer((rows, columns), dtype),
        ):
            P = T.alloc_buffer((rows, columns), dtype)
            for i, j, k in T.grid(rows, columns, depth):
                with T.sblock("P"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    with T.init():
                        P[vi, vj] = T.cast(T.float32(0), dtype)
                    P[vi, vj] = P[vi, vj] + X[vi, vk] * W[vk, vj]
            for i, j in T.grid(rows, columns):
                with T.sblock("R"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    R[vi, vj] = T.max(P[vi, vj], T.cast(T.float32(0), dtype))

    return Module


@kernel(*PRODUCT)
def of_any_shape(tvm):
    I, T = tvm.script.ir, tvm.script.tirx
    dtype = "float32"

    @I.ir_module
    class Module:
        @T.prim_func(s_tir=True)
        def main(x: T.handle, w: T.handle, r: T.handle):
            rows = T.int32()
            columns = T.int32()
            depth = T.int32()
            X = T.match_buffer(x, [rows, depth], dtype)
            W = T.match_buffer(w, [depth, columns], dtype)
            R = T.match_buffer(r, [rows, columns], dtype)
            P = T.alloc_buffer((rows, columns), dtype)
            for i, j, k in T.grid(rows, columns, depth):
                with T.sblock("P"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    with T.init():
                        P[vi, vj] = T.cast(T.float32(0), dtype)
                    P[vi, vj] = P[vi, vj] + X[vi, vk] * W[vk, vj]
            for i, j in T.grid(rows, columns):
                with T.sblock("R"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    R[vi, vj] = T.max(P[vi, vj], T.cast(T.float32(0), dtype))

    return Module


def _of_tensors(tvm, rows, columns, depth):
    te = tvm.te
    X = te.placeholder((rows, depth), "float32", name="X")
    W = te.placeholder((depth, columns), "float32", name="W")
    k = te.reduce_axis((0, depth), "k")
    P = te.compute((rows, columns), lambda i, j: te.sum(X[i, k] * W[k, j], axis=k), name="P")
    R = te.compute((rows, columns), lambda i, j: te.max(P[i, j], 0), name="R")
    return tvm.IRModule({"main": te.create_prim_func([X, W, R]).with_attr({"global_symbol": "main"})})


@kernel(*PRODUCT)
def of_tensors(tvm):
    return _of_tensors(tvm, 24, 32, 20)


@kernel(*PRODUCT)
def of_tensors_of_any_shape(tvm):
    return _of_tensors(tvm, tvm.te.var("rows"), tvm.te.var("columns"), tvm.te.var("depth"))


@kernel(*PRODUCT)
def with_its_root(tvm):
    I, T = tvm.script.ir, tvm.script.tirx

    @I.ir_module
    class Module:
        @T.prim_func(s_tir=True)
        def main(
            X: T.Buffer((24, 20), "float32"),
            W: T.Buffer((20, 32), "float32"),
            R: T.Buffer((24, 32), "float32"),
        ):
            T.func_attr({"tirx.noalias": True})
            with T.sblock("root"):
                T.reads()
                T.writes()
                P = T.sblock_alloc_buffer((24, 32))
                for i, j, k in T.grid(24, 32, 20):
                    with T.sblock("P"):
                        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                        with T.init():
                            P[vi, vj] = T.float32(0)
                        P[vi, vj] = P[vi, vj] + X[vi, vk] * W[vk, vj]
                for i, j in T.grid(24, 32):
                    with T.sblock("R"):
                        vi, vj = T.axis.remap("SS", [i, j])
                        R[vi, vj] = T.max(P[vi, vj], T.float32(0))

    return Module


@change(with_its_root)
def tiles_then_moves_the_end_inside(sch):
    block = sch.get_sblock("P")
    i, j, k = sch.get_loops(block)
    outer, inner = sch.split(j, factors=[None, 8])
    yield
    sch.reorder(outer, k, inner)
    yield
    sch.reverse_compute_at(sch.get_sblock("R"), outer)
    yield
    sch.decompose_reduction(block, k)
    yield


@change(of_tensors)
def tiles_what_tensors_gave(sch):
    block = sch.get_sblock("P")
    i, j, k = sch.get_loops(block)
    outer, inner = sch.split(j, factors=[None, 8])
    sch.reorder(outer, k, inner)
    yield
    sch.reverse_compute_at(sch.get_sblock("R"), outer)
    sch.decompose_reduction(block, k)
    yield


@change(of_any_shape)
def tiles_any_shape(sch):
    block = sch.get_sblock("P")
    i, j, k = sch.get_loops(block)
    outer, inner = sch.split(j, factors=[None, 8])
    sch.reorder(outer, k, inner)
    yield
    sch.decompose_reduction(block, k)
    yield


@change(with_its_root)
def spreads_over_threads_and_vectors(sch):
    block = sch.get_sblock("P")
    i, j, k = sch.get_loops(block)
    outer, inner = sch.split(j, factors=[None, 8])
    sch.reorder(i, outer, k, inner)
    yield
    sch.vectorize(inner)
    sch.parallel(i)
    yield
    sch.decompose_reduction(block, k)
    sch.parallel(sch.fuse(*sch.get_loops(sch.get_sblock("R"))))
    yield


@change(with_its_root)
def keeps_tiles_near(sch):
    block = sch.get_sblock("P")
    copied = sch.cache_write(block, 0, "local")
    i, j, k = sch.get_loops(block)
    (io, ii), (jo, ji), (ko, ki) = (sch.split(loop, [None, 4]) for loop in (i, j, k))
    sch.reorder(io, jo, ko, ki, ii, ji)
    yield
    sch.reverse_compute_at(copied, jo)
    read = sch.cache_read(block, 1, "local")
    sch.compute_at(read, ko)
    yield
    sch.unroll(ki)
    sch.annotate(io, "pragma_auto_unroll_max_step", 16)
    sch.reverse_compute_inline(sch.get_sblock("R"))
    yield


@change(sum_of_vectors)
def in_vectors(sch):
    (i,) = sch.get_loops(sch.get_sblock("Z"))
    outer, inner = sch.split(i, factors=[None, 16])
    yield
    sch.vectorize(inner)
    sch.parallel(outer)
    yield


@change(sum_of_vectors)
def in_vectors_that_do_not_divide(sch):
    (i,) = sch.get_loops(sch.get_sblock("Z"))
    outer, inner = sch.split(i, factors=[7, None])
    yield
    sch.unroll(inner)
    yield
