"""Functions beside the compiler: products and random numbers in kernels, weights for browsers, processes that run tasks."""

import time

import numpy as np
import pytest
import relaxide as tvm
from relaxide import te, topi
from relaxide.contrib import cblas, dlpack, dnnl, download, random, tvmjs
from relaxide.support import popen_pool
from relaxide.topi.testing import conv2d_nchw_python


def run(tensors, *arrays):
    """The last of the tensors, computed by a kernel of the others."""
    func = te.create_prim_func(tensors).with_attr("global_symbol", "f")
    result = tvm.runtime.empty([int(dim) for dim in tensors[-1].shape], str(tensors[-1].dtype))
    tvm.compile(tvm.IRModule.from_expr(func), target="llvm")["f"](*map(tvm.runtime.tensor, arrays), result)
    return result.numpy()


@pytest.mark.parametrize(("transa", "transb"), [(False, False), (True, False), (False, True), (True, True)])
def test_products_of_the_blas_are_those_of_numpy(transa, transb):
    a, b = np.random.rand(4, 5).astype("float32"), np.random.rand(5, 3).astype("float32")
    a, b = (np.ascontiguousarray(a.T) if transa else a), (np.ascontiguousarray(b.T) if transb else b)
    left, right = te.placeholder(a.shape, "float32"), te.placeholder(b.shape, "float32")
    made = run([left, right, cblas.matmul(left, right, transa, transb)], a, b)
    np.testing.assert_allclose(made, (a.T if transa else a) @ (b.T if transb else b), rtol=1e-6)


@pytest.mark.parametrize("channel_last", [False, True])
def test_convolutions_are_called_from_kernels(channel_last):
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 4, 7, 8)).astype("float32"), rng.standard_normal((6, 2, 3, 2)).astype("float32")
    wanted = conv2d_nchw_python(np.pad(x, [(0, 0), (0, 0), (1, 0), (2, 1)]), w, (2, 1), 0, 2)
    if channel_last:
        x, w, wanted = x.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0), wanted.transpose(0, 2, 3, 1)
    x, w = np.ascontiguousarray(x), np.ascontiguousarray(w)
    image, kernel = te.placeholder(x.shape, "float32"), te.placeholder(w.shape, "float32")
    made = run([image, kernel, dnnl.dnnl_conv2d(image, kernel, (2, 1), (1, 2, 0, 1), 1, 2, channel_last)], x, w)
    np.testing.assert_allclose(made, wanted, rtol=1e-4, atol=1e-5)
    a, b = x.reshape(8, -1), w.reshape(8, -1)
    left, right = te.placeholder(a.shape, "float32"), te.placeholder(b.shape, "float32")
    np.testing.assert_allclose(run([left, right, dnnl.matmul(left, right, transa=True)], a, b), a.T @ b, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="takes no dilation"):
        dnnl.dnnl_conv2d(image, kernel, 1, 0, 2, 2, channel_last)


def test_products_in_batches():
    a, b = np.random.rand(2, 4, 5).astype("float32"), np.random.rand(2, 3, 5).astype("float32")
    left, right = te.placeholder(a.shape, "float32"), te.placeholder(b.shape, "float32")
    made = run([left, right, cblas.batch_matmul(left, right, transb=True)], a, b)
    np.testing.assert_allclose(made, a @ b.swapaxes(1, 2), rtol=1e-6)


def test_random_numbers_have_the_distribution_that_is_asked_for():
    assert abs(run([random.uniform(2, 4, (4000,))]).mean() - 3) < 0.1
    normal = run([random.normal(3, 4, (4000,))])
    assert abs(normal.mean() - 3) < 0.5
    assert abs(normal.std() - 4) < 0.5
    whole = run([random.randint(-3, 3, (4000,))])
    assert (whole.min(), whole.max(), whole.dtype) == (-3, 2, "int32")


def test_a_seed_gives_the_same_numbers_again():
    seed = tvm.get_global_func("tvm.contrib.random.seed")
    drawn = []
    for _ in range(2):
        seed(7)
        drawn.append(run([random.uniform(0, 1, (16,))]))
    np.testing.assert_array_equal(*drawn)


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float16", "float64", "bool"])
def test_weights_for_browsers_come_back(tmp_path, dtype):
    array = np.arange(12).reshape(3, 4).astype(dtype)
    tvmjs.dump_tensor_cache({"a": array}, str(tmp_path), meta_data={"kind": "test"}, show_progress=False)
    tensors, metadata = tvmjs.load_tensor_cache(str(tmp_path), tvm.cpu())
    np.testing.assert_array_equal(tensors["a"].numpy(), array)
    assert metadata == {"kind": "test"}


def test_weights_are_shortened_to_the_nearest(tmp_path):
    array = np.float32([1 + 2**-9, 1 + 3 * 2**-9, -1.0, np.inf, 3.3e38])
    tvmjs.dump_tensor_cache({"a": array}, str(tmp_path), show_progress=False)
    short = tvmjs.load_tensor_cache(str(tmp_path), tvm.cpu())[0]["a"].numpy()
    np.testing.assert_allclose(short, array, rtol=2**-8)
    raw = {"encode_format": {"a": "raw"}, "show_progress": False}
    tvmjs.dump_tensor_cache({"a": array}, str(tmp_path), **raw)
    np.testing.assert_array_equal(tvmjs.load_tensor_cache(str(tmp_path), tvm.cpu())[0]["a"].numpy(), array)


def test_weights_fill_several_files_and_can_be_replaced(tmp_path):
    arrays = {f"p{i}": np.full(300_000, i, "float32") for i in range(3)}
    tvmjs.dump_tensor_cache(arrays, str(tmp_path), "raw", shard_cap_mb=1, show_progress=False)
    assert len(list(tmp_path.glob("params_shard_*.bin"))) == 3
    new = np.full(300_000, 9, "float32")
    tvmjs.dump_tensor_cache({"p1": new}, str(tmp_path), "raw", update_if_exists=True, show_progress=False)
    tensors, _ = tvmjs.load_tensor_cache(str(tmp_path), tvm.cpu())
    assert [float(tensors[f"p{i}"].numpy()[-1]) for i in range(3)] == [0, 9, 2]
    with pytest.raises(ValueError, match="cannot be replaced"):
        tvmjs.dump_tensor_cache({"p1": new[:5]}, str(tmp_path), "raw", update_if_exists=True, show_progress=False)


def test_a_damaged_cache_is_named(tmp_path):
    tvmjs.dump_tensor_cache({"a": np.zeros(8)}, str(tmp_path), show_progress=False)
    (tmp_path / "params_shard_0.bin").write_bytes(b"short")
    with pytest.raises(ValueError, match="params_shard_0.bin has 5 bytes, not the 64"):
        tvmjs.load_tensor_cache(str(tmp_path), tvm.cpu())


def test_tasks_give_results_exceptions_and_end_in_time():
    pool = popen_pool.PopenPoolExecutor(max_workers=1, timeout=20)
    assert pool.submit(divmod, 7, 2).result() == (3, 1)
    kinds = [result.status.name for result in pool.map_with_error_catching(int, ["3", "x"])]
    assert kinds == ["COMPLETE", "EXCEPTION"]
    pool.shutdown()
    worker = popen_pool.PopenWorker()
    worker.send(time.sleep, (60,), timeout=0.2)
    with pytest.raises(TimeoutError):
        worker.recv()
    assert not worker.is_alive()
    worker.send(__import__("os")._exit, (1,))
    with pytest.raises(ChildProcessError):
        worker.recv()
    worker.kill()


def test_functions_take_tensors_of_other_packages():
    double = dlpack.convert_func(lambda tensor: tensor.numpy().sum(), np.ndarray, tvm.runtime.tensor)
    assert double(np.arange(4)) == 6


def test_files_that_are_there_are_not_downloaded(tmp_path):
    source = tmp_path / "source.txt"
    source.write_text("one")
    target = tmp_path / "folder" / "target.txt"
    download.download(source.as_uri(), target)
    source.write_text("other")
    download.download(source.as_uri(), target)
    assert target.read_text() == "one"
    download.download(source.as_uri(), target, overwrite=True)
    assert target.read_text() == "other"
    assert sorted(path.name for path in target.parent.iterdir()) == ["target.txt"]


def test_logarithms_of_other_bases():
    x = np.random.rand(8).astype("float32") + 1
    tensor = te.placeholder((8,), "float32")
    np.testing.assert_allclose(run([tensor, topi.log2(tensor)], x), np.log2(x), rtol=1e-5)
    np.testing.assert_allclose(run([tensor, topi.log10(tensor)], x), np.log10(x), rtol=1e-4)
    whole = te.placeholder((8,), "int32")
    numbers = np.arange(1, 9, dtype="int32")
    np.testing.assert_array_equal(run([whole, topi.ceil_log2(whole)], numbers), np.ceil(np.log2(numbers)))


def test_paddings_are_split():
    from relaxide.topi.nn.utils import get_pad_tuple, get_pad_tuple1d, get_pad_tuple3d, get_pad_tuple_generic

    assert get_pad_tuple("SAME", (3, 4)) == (1, 2, 1, 1)
    assert get_pad_tuple((1, 2, 3, 4), (3, 3)) == (1, 2, 3, 4)
    assert get_pad_tuple1d("VALID", 3) == (0, 0)
    assert get_pad_tuple3d(1, (3, 3, 3)) == (1,) * 6
    with pytest.raises(ValueError, match="3 numbers; 2 or 4 are expected"):
        get_pad_tuple_generic((1, 1, 1), (3, 3))
