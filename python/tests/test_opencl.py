"""Programs on a device of OpenCL: equal to the processor's, with dynamic shapes, from the exported file, and beside the processor."""

import subprocess
import sys

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relax
from relaxide.script import from_source

pytestmark = pytest.mark.skipif(
    not tvm.opencl(0).exist, reason="there is no driver of OpenCL; `scripts/setup test-tools` installs one"
)

NETWORK = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 8), "float32"), at: R.Tensor(("m",), "int64")):
        with R.dataflow():
            w = R.matmul(x, R.ones((8, 4), "float32"))
            s = R.nn.softmax(w, axis=-1)
            t = R.take(s, at, axis=0)
            m = R.mean(t, axis=[0], keepdims=True)
            y = R.nn.relu(R.subtract(t, m))
            R.output(y)
        return y
"""


def inputs(n, m, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 8)).astype("float32"), rng.integers(0, n, m)


def run(executable, device, *arrays):
    machine = relax.VirtualMachine(executable, device)
    return machine["main"](*(tvm.runtime.tensor(array, device) for array in arrays))


def test_a_network_computes_what_the_processor_does():
    module = from_source(NETWORK)
    here, there = (tvm.compile(module, target=target) for target in ("llvm", "opencl"))
    for n, m in [(5, 3), (64, 1), (130, 200)]:
        x, at = inputs(n, m)
        found = run(there, tvm.opencl(0), x, at)
        assert found.device == tvm.opencl(0)
        np.testing.assert_allclose(found.numpy(), run(here, tvm.cpu(), x, at).numpy(), rtol=1e-4, atol=1e-5)


SUPPRESSION = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("b", "m", 6), "float32"), n: R.Tensor(("b",), "int32"), i: R.Tensor(("b", "m"), "int32")):
        y = R.vision.non_max_suppression(x, n, i, iou_threshold=0.5)
        return y

    @R.function
    def weakened(x: R.Tensor(("b", "m", 6), "float32"), n: R.Tensor(("b",), "int32"), i: R.Tensor(("b", "m"), "int32")):
        y = R.vision.non_max_suppression(x, n, i, iou_threshold=0.6, soft_nms_sigma=0.5, score_threshold=0.1)
        return y

    @R.function
    def of_classes(x: R.Tensor(("b", "m", 4), "float32"), s: R.Tensor(("b", 5, "m"), "float32"), k: R.Tensor((1,), "int64"),
                   o: R.Tensor((1,), "float32"), t: R.Tensor((1,), "float32")):
        y = R.vision.all_class_non_max_suppression(x, s, k, o, t, output_format="onnx")
        return y
"""


def test_boxes_are_suppressed_by_the_threads_of_a_block():
    module = from_source(SUPPRESSION)
    devices = {"llvm": tvm.cpu(), "opencl": tvm.opencl(0)}
    machines = {to: relax.VirtualMachine(tvm.compile(module, target=to), device) for to, device in devices.items()}

    def check(function, *arrays):
        here, there = (
            [part.numpy() for part in machine[function](*(tvm.runtime.tensor(array, devices[to]) for array in arrays))]
            for to, machine in machines.items()
        )
        for ours, theirs in zip(there, here, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)

    rng = np.random.default_rng(0)
    for batch, count, most in [(1, 1, 5), (2, 300, 1000), (3, 512, 20), (1, 64, 0)]:
        boxes = rng.random((batch, count, 6), dtype="float32")
        boxes[..., 0] = np.floor(4 * boxes[..., 0])
        boxes[..., 4:] = boxes[..., 2:4] + 0.3 * boxes[..., 4:]
        valid = np.minimum(np.arange(batch) * count + count // 2, count).astype("int32")
        places = np.tile(np.arange(count, dtype="int32"), (batch, 1))
        check("main", boxes, valid, places)
        check("weakened", boxes, valid, places)
        scores = rng.random((batch, 5, count), dtype="float32")
        numbers = np.array([most]), np.float32([0.4]), np.float32([0.2])
        check("of_classes", np.ascontiguousarray(boxes[..., 2:]), scores, *numbers)


def test_an_index_that_is_data_is_checked_on_the_device():
    executable = tvm.compile(from_source(NETWORK), target="opencl")
    x, _ = inputs(5, 3)
    with pytest.raises(IndexError, match="index 9 of .* is outside of the extent 5"):
        run(executable, tvm.opencl(0), x, np.array([1, 9, 2]))
    # The device goes on.
    assert np.isfinite(run(executable, tvm.opencl(0), x, np.array([1, 4, 2])).numpy()).all()
    with pytest.raises(ValueError, match="device_type"):
        relax.VirtualMachine(executable, tvm.opencl(0))["main"](tvm.runtime.tensor(x), tvm.runtime.tensor(np.array([1])))


def test_an_exported_file_runs_in_a_fresh_process(tmp_path):
    path = tmp_path / "model.so"
    executable = tvm.compile(from_source(NETWORK), target="opencl")
    executable.export_library(str(path))
    x, at = inputs(7, 4)
    np.savez(tmp_path / "in.npz", x=x, at=at)
    code = f"""
import numpy as np, relaxide as tvm
from relaxide import relax
given = np.load({str(tmp_path / "in.npz")!r})
machine = relax.VirtualMachine(tvm.runtime.load_module({str(path)!r}), tvm.opencl(0))
np.save({str(tmp_path / "out.npy")!r}, machine["main"](*(tvm.runtime.tensor(given[k], tvm.opencl(0)) for k in ("x", "at"))).numpy())
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    expected = run(executable, tvm.opencl(0), x, at).numpy()
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), expected)


def test_a_program_is_split_between_the_device_and_the_processor():
    module = from_source(
        """
@I.ir_module
class Module:
    I.module_global_infos({"vdevice": [I.vdevice("opencl"), I.vdevice("llvm")]})

    @R.function
    def main(x: R.Tensor(("n", 4), "float32", "opencl:0")):
        with R.dataflow():
            a = R.exp(x)
            b = R.to_vdevice(a, "llvm:0")
            c = R.add(b, b)
            d = R.to_vdevice(c, "opencl:0")
            y = R.sqrt(d)
            R.output(y)
        return y
"""
    )
    executable = tvm.compile(module, target="opencl")
    machine = relax.VirtualMachine(executable, [tvm.opencl(0), tvm.cpu(0)])
    x = np.random.default_rng(1).standard_normal((6, 4)).astype("float32")
    found = machine["main"](tvm.runtime.tensor(x, tvm.opencl(0)))
    assert found.device == tvm.opencl(0)
    np.testing.assert_allclose(found.numpy(), np.sqrt(2 * np.exp(x)), rtol=1e-5)


def test_tensors_come_and_go():
    x = np.arange(12, dtype="float32").reshape(3, 4)
    there = tvm.runtime.tensor(x, tvm.opencl(0))
    np.testing.assert_array_equal(there.numpy(), x)
    there.copyfrom(2 * x)
    np.testing.assert_array_equal(there.copyto(tvm.cpu()).numpy(), 2 * x)
    half = tvm.runtime.tensor(x.astype("float16"), tvm.opencl(0))
    np.testing.assert_array_equal(half.numpy(), x.astype("float16"))


TEXTS = """<ir_version: 10, opset_import: ["": 20, "ai.onnx.ml": 4]>
g (string[n] x) => (bool[n] matched, int64[n] code, float[n] number) {
  matched = RegexFullMatch <pattern = "[0-9]+"> (x)
  code = ai.onnx.ml.LabelEncoder <keys_strings = ["1", "23"], values_int64s = [7, 9], default_int64 = -1> (x)
  number = Cast <to = 1> (x)
}"""


def test_what_is_made_of_texts_goes_to_the_device():
    import onnx.parser

    from relaxide.onnx_backend import RelaxideBackend

    model = onnx.parser.parse_model(TEXTS)
    matched, code, number = RelaxideBackend.prepare(model, "OPENCL").run([np.array(["23", "4.5", "1"], dtype=object)])
    assert (matched.tolist(), code.tolist(), number.tolist()) == ([True, False, True], [9, -1, 7], [23.0, 4.5, 1.0])


def test_short_rows_whose_results_another_kernel_reads():
    import onnx.parser

    from relaxide.onnx_backend import RelaxideBackend

    text = "<ir_version: 8, opset_import: [\"\": 13]>\ng (float[3, 4, 5] x) => (float[3, 4, 5] y) { y = Hardmax <axis = 2> (x) }"
    x = np.random.default_rng(0).standard_normal((3, 4, 5)).astype("float32")
    (y,) = RelaxideBackend.prepare(onnx.parser.parse_model(text), "OPENCL").run([x])
    np.testing.assert_array_equal(y, (x == x.max(axis=2, keepdims=True)).astype("float32"))


OPTIONAL = """
@I.ir_module
class Module:
    @R.function(pure=False)
    def main(x: R.Any) -> R.Tensor((), "bool"):
        there = R.call_packed("vm.builtin.optional_has", x, ty_args=(R.Tensor((), "bool"),))
        missing = R.logical_not(there)
        return missing
"""


def test_whether_an_optional_value_is_there_can_be_computed_with():
    machine = relax.VirtualMachine(tvm.compile(from_source(OPTIONAL), target="opencl"), tvm.opencl(0))
    assert machine["main"](None).numpy()
    assert not machine["main"](tvm.runtime.tensor(np.ones(2, "float32"), tvm.opencl(0))).numpy()
