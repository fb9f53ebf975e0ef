"""``relaxide.relay``: programs written in Python run in every executor, and are saved and loaded."""

import pathlib

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relax, relay
from relaxide.contrib import graph_executor


def _dense():
    x, w = relay.var("x", shape=(2, 8)), relay.var("w", shape=(4, 8))
    return relay.IRModule.from_expr(relay.Function([x, w], relay.nn.softmax(relay.nn.dense(x, w) + relay.const(1.0))))


def _values():
    random = np.random.default_rng(0)
    return random.standard_normal((2, 8)).astype("float32"), random.standard_normal((4, 8)).astype("float32")


def _expected(x, w):
    e = np.exp(x @ w.T)
    return e / e.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("kind", ["debug", "vm", "graph"])
def test_executors_agree(kind):
    x, w = _values()
    run = relay.create_executor(kind, _dense()).evaluate()
    np.testing.assert_allclose(run(x, w).numpy(), _expected(x, w), rtol=1e-5)
    np.testing.assert_allclose(run(x, w=w).numpy(), _expected(x, w), rtol=1e-5)


def test_a_graph_is_built_exported_and_loaded(tmp_path):
    x, w = _values()
    factory = relay.build(_dense(), "llvm", params={"w": w})
    json, lib, params = factory
    # Constants are folded: the weight lies as its kernel reads it.
    np.testing.assert_array_equal(np.sort(params["p0"].numpy().ravel()), np.sort(w.ravel()))
    created = graph_executor.create(json, lib, tvm.cpu())
    created.set_input(x=x, **params)
    created.run()
    np.testing.assert_allclose(created.get_output(0).numpy(), _expected(x, w), rtol=1e-5)
    factory.export_library(tmp_path / "model.so")
    loaded = graph_executor.GraphModule(tvm.runtime.load_module(str(tmp_path / "model.so"))["default"](tvm.cpu()))
    loaded.run(x=x)
    np.testing.assert_allclose(loaded.get_output(0).numpy(), _expected(x, w), rtol=1e-5)
    weights = relay.save_param_dict(params)
    loaded.load_params(weights)
    np.testing.assert_array_equal(relay.load_param_dict(weights)["p0"].numpy(), params["p0"].numpy())


def test_a_graph_of_another_time_runs_with_functions_that_are_named():
    json = """{"nodes": [
        {"op": "null", "name": "x", "inputs": []},
        {"op": "tvm_op", "name": "twice", "attrs": {"func_name": "twice", "flatten_data": "0", "num_inputs": "1",
         "num_outputs": "1"}, "inputs": [[0, 0, 0]]},
        {"op": "tvm_op", "name": "flat", "attrs": {"func_name": "__nop", "flatten_data": "0", "num_inputs": "1",
         "num_outputs": "1"}, "inputs": [[1, 0, 0]]}],
        "arg_nodes": [0], "heads": [[2, 0, 0]], "node_row_ptr": [0, 1, 2, 3],
        "attrs": {"dltype": ["list_str", ["float32", "float32", "float32"]], "storage_id": ["list_int", [0, 1, 1]],
                  "shape": ["list_shape", [[2, 2], [2, 2], [4]]]}}"""
    twice = lambda source, target: target.copyfrom(source.numpy() * 2)
    graph = graph_executor.create(json, {"twice": twice}, tvm.cpu())
    graph.run(x=np.array([[1, 2], [3, 4]], "float32"))
    np.testing.assert_array_equal(graph.get_output(0).numpy(), [2, 4, 6, 8])
    np.testing.assert_array_equal(graph.debug_get_output("twice").numpy(), [[2, 4], [6, 8]])
    with pytest.raises(ValueError, match="there is no input y"):
        graph.set_input("y", np.zeros((2, 2), "float32"))
    with pytest.raises(ValueError, match="shape"):
        graph.set_input("x", np.zeros((3, 2), "float32"))
    with pytest.raises(ValueError, match="no function twice"):
        graph_executor.create(json, None, tvm.cpu())


@pytest.mark.parametrize(
    "old, new, what",
    [
        ('"inputs": [[0, 0, 0]]', '"inputs": [[1, 0, 0]]', "not in front"),
        ('"heads": [[2, 0, 0]]', '"heads": [[9, 0, 0]]', "head"),
        ("[[2, 2], [2, 2], [4]]", "[[2, 2], [2, 2]]", "shape"),
        ("[0, 1, 1]", "[0, 1, 2]", "lies elsewhere"),
        ('"node_row_ptr": [0, 1, 2, 3]', '"node_row_ptr": [0, 1, 2, 4]', "node_row_ptr"),
        ("[4]]", "[4611686018427387904]]", "larger than memory"),
    ],
)
def test_graphs_that_contradict_themselves_are_refused(old, new, what):
    json = """{"nodes": [{"op": "null", "name": "x", "inputs": []},
        {"op": "tvm_op", "name": "a", "attrs": {"func_name": "twice", "num_inputs": "1", "num_outputs": "1"},
         "inputs": [[0, 0, 0]]},
        {"op": "tvm_op", "name": "b", "attrs": {"func_name": "__nop", "num_inputs": "1", "num_outputs": "1"},
         "inputs": [[1, 0, 0]]}],
        "arg_nodes": [0], "heads": [[2, 0, 0]], "node_row_ptr": [0, 1, 2, 3],
        "attrs": {"dltype": ["list_str", ["float32", "float32", "float32"]], "storage_id": ["list_int", [0, 1, 1]],
                  "shape": ["list_shape", [[2, 2], [2, 2], [4]]]}}"""
    assert old in json
    with pytest.raises(ValueError, match=what):
        graph_executor.create(json.replace(old, new), {"twice": lambda *_: None}, tvm.cpu())


def test_control_flow_has_no_form_in_a_graph():
    mod = relay.parse('#[version = "0.0.5"]\ndef @main(%c: bool, %x: float32) { if (%c) { %x } else { add(%x, 1f) } }')
    with pytest.raises(ValueError, match="a branch has no form in a graph"):
        relay.build(mod, "llvm")
    dynamic = relay.parse('#[version = "0.0.5"]\ndef @main(%x: Tensor[(?), float32]) { exp(%x) }')
    with pytest.raises(ValueError, match="tensors of known shapes"):
        relay.build(dynamic, "llvm")


def test_executables_are_saved_and_loaded(tmp_path):
    x, w = _values()
    exe = relay.vm.compile(_dense(), "llvm", params={"w": w})
    assert "invoke_packed" in exe.bytecode and exe.get_function_params("main") == ["x"]
    exe.export_library(tmp_path / "model.so")
    loaded = relay.vm.load(tmp_path / "model.so")
    machine = relay.vm.VirtualMachine(loaded, tvm.cpu())
    np.testing.assert_allclose(machine.run(x).numpy(), _expected(x, w), rtol=1e-5)
    code, lib = exe.save()
    again = relay.vm.VirtualMachine(relay.vm.Executable.load_exec(code, lib), tvm.cpu())
    np.testing.assert_allclose(again.run(x).numpy(), _expected(x, w), rtol=1e-5)
    machine.set_input("main", x)
    machine.invoke_stateful("main")
    np.testing.assert_allclose(machine.get_outputs()[0].numpy(), _expected(x, w), rtol=1e-5)


def test_machines_and_executables_have_the_methods_of_their_time():
    x, w = _values()
    compiler = relay.vm.VMCompiler()
    with pytest.raises(ValueError, match="call lower first"):
        compiler.get_exec()
    compiler.set_params({"w": w})
    compiler.lower(_dense(), "llvm")
    compiler.codegen()
    exe = compiler.get_exec()
    assert exe.globals == ["main"]
    taken = exe.get_late_bound_consts(1)
    with pytest.raises(ValueError, match="load late-bound"):
        relay.vm.VirtualMachine(exe, tvm.cpu())
    exe.load_late_bound_consts_from_map(taken)
    machine = relay.vm.VirtualMachine(exe, tvm.cpu())
    expected = _expected(x, w)
    output = tvm.runtime.empty(expected.shape, "float32")
    machine.invoke_with_outputs("main", {"x": x}, [output])
    np.testing.assert_allclose(output.numpy(), expected, rtol=1e-5)
    with pytest.raises(ValueError, match="1 results, and 2"):
        machine.invoke_with_outputs("main", {"x": x}, [output, output])
    timed = machine.benchmark(tvm.cpu(), x, repeat=2, number=1)
    assert len(timed.results) == 2


def test_programs_with_data_and_functions_are_written():
    prelude = relay.Prelude()
    xs = relay.var("xs", prelude.mod.get_global_type_var("List")(relay.scalar_type("int32")))
    x, rest = relay.Var("x"), relay.Var("rest")
    total = relay.GlobalVar("total")
    done = relay.Clause(relay.PatternConstructor(prelude.nil), relay.const(0))
    more = relay.PatternConstructor(prelude.cons, [relay.PatternVar(x), relay.PatternVar(rest)])
    body = relay.Match(xs, [done, relay.Clause(more, x + relay.Call(total, [rest]))])
    mod = prelude.mod
    mod[total] = relay.Function([xs], body, relay.scalar_type("int32"))
    n = relay.var("n", "int32")
    listed = prelude.cons(n, prelude.cons(relay.const(2), prelude.nil()))
    mod["main"] = relay.Function([n], relay.Call(total, [listed]))
    for kind in ("debug", "vm"):
        assert int(relay.create_executor(kind, mod).evaluate()(40).numpy()) == 42


def test_references_scopes_and_tuples_are_written():
    n = relay.var("n", "int32")
    builder = relay.ScopeBuilder()
    ref = builder.let("r", relay.RefCreate(n))
    builder.let("done", relay.RefWrite(ref, relay.RefRead(ref) * relay.const(3)))
    with builder.if_scope(n > relay.const(10)):
        builder.ret(relay.RefRead(ref))
    with builder.else_scope():
        builder.ret(relay.const(-1))
    mod = relay.IRModule.from_expr(relay.Function([n], relay.Tuple([builder.get(), n])))
    for kind in ("debug", "vm"):
        run = relay.create_executor(kind, mod).evaluate()
        assert [int(v.numpy()) for v in run(14)] == [42, 14]
        assert [int(v.numpy()) for v in run(4)] == [-1, 4]


def test_modules_are_saved_as_text_and_json():
    mod = _dense()
    assert relay.parse(mod.astext()) == mod
    assert tvm.ir.load_json(tvm.ir.save_json(mod)) == mod
    assert isinstance(tvm.IRModule.from_expr(mod["main"]), relay.IRModule)


def test_types_are_inferred_and_errors_show_the_line():
    x = relay.var("x", shape=(relay.Any(), 8))
    y = relay.nn.dense(x, relay.const(np.zeros((4, 8), "float32")), units=4)
    assert y.checked_type == relay.TensorType((relay.Any(), 4), "float32")
    with pytest.raises(Exception, match="3 columns") as error:
        relay.parse('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2, 3), float32], %w: Tensor[(4, 5), float32]) {\n  nn.dense(%x, %w, units=4)\n}', "bad.relay")
    assert "bad.relay:3" in str(error.value)
    with pytest.raises(TypeError, match="with `const` first"):
        x + 1.0


def test_what_is_bound_must_fit():
    with pytest.raises(ValueError, match="did you mean `w`"):
        relay.vm.compile(_dense(), "llvm", params={"ww": np.zeros((4, 8), "float32")})
    with pytest.raises(ValueError, match="is of type"):
        relay.vm.compile(_dense(), "llvm", params={"w": np.zeros((4, 9), "float32")})


def test_onnx_models_become_relay():
    onnx = pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    helper, random = onnx.helper, np.random.default_rng(5)
    tensors = {
        "w": random.standard_normal((4, 3, 3, 3)).astype("float32"),
        "b": random.standard_normal(4).astype("float32"),
        "m": random.standard_normal((64, 5)).astype("float32"),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[1, 1], pads=[0, 0, 1, 1]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("MatMul", ["f", "m"], ["g"]),
        helper.make_node("Softmax", ["g"], ["y"], axis=-1),
    ]
    value = lambda name, shape: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
    initial = [onnx.numpy_helper.from_array(array, name) for name, array in tensors.items()]
    graph = helper.make_graph(nodes, "net", [value("x", [1, 3, 8, 8])], [value("y", [1, 5])], initial)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    mod, weights = relay.frontend.from_onnx(model, freeze_params=False)
    x = random.standard_normal((1, 3, 8, 8)).astype("float32")
    expected = runtime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    found = relay.create_executor("vm", mod, params=weights).evaluate()(x)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-5)


def test_what_the_reference_has_run_is_what_is_written():
    """TVM 0.16 loads these bytes, its version text in the place of this one's, and gives the same lists, closure and match.

    Whoever changes what the compiler makes of the program has the reference run it anew.
    """
    here = pathlib.Path(__file__).parent
    exe = relay.vm.compile(relay.parse((here / "run_by_reference.relay").read_text()), "llvm")
    code, _ = exe.save()
    # Behind the program stands its signature, which the reference reads over.
    program, mark, signature = code.partition(b"RLXSIGN1")
    assert program == bytes.fromhex((here / "run_by_reference.ro.hex").read_text())
    assert mark and b'"constructors"' in signature
    found = relay.vm.VirtualMachine(exe, tvm.cpu()).invoke("main", np.int32(3), np.zeros(2, "float32"))
    shown = lambda v: (v.tag, [shown(f) for f in v]) if hasattr(v, "fields") else v.numpy().tolist()
    cons, nil = -2013265920, -2013265919
    assert shown(found) == (0, [(cons, [7, (cons, [3, (nil, [])])]), (0, [3, [0.0, 0.0]]), 7])


def test_programs_are_well_formed_or_told_what_is_not():
    x = relay.var("x", shape=(2,))
    assert relay.analysis.well_formed(relay.Function([x], relay.exp(x)))
    loose = relay.IRModule({"main": relay.Function([], relay.exp(x))})
    with pytest.raises(ValueError, match="%x is used in @main where it is not bound"):
        relay.analysis.check_well_formed(loose)


def test_data_types_run_by_way_of_relax():
    mod = relay.parse('#[version = "0.0.5"]\ndef @main(%n: int32) { (@sum(Cons(%n, Cons(2, Nil))), Cons(%n, Nil)) }')
    machine = relax.VirtualMachine(tvm.compile(relay.to_relax(mod), "llvm"), tvm.cpu())
    total, (number, head, (nothing,)) = machine["main"](tvm.runtime.tensor(np.int32(5)))
    assert (total.numpy(), number, head.numpy(), nothing) == (7, 0, 5, 1)


def test_what_has_no_form_in_relax_is_told_at_the_program():
    x = relay.var("x", shape=(2,))
    there = relay.exp(relay.on_device(relay.exp(x), "cuda", constrain_result=False))
    mod = relay.IRModule.from_expr(relay.Function([x], there))
    with pytest.raises(Exception, match="values on several devices") as error:
        relay.to_relax(mod)
    assert "it runs in the Relay VM: `--machine relay`" in str(error.value)


def test_references_run_by_way_of_relax():
    text = '''#[version = "0.0.5"]
def @count(%r: ref(int32), %n: int32) -> () {
  if (%n == 0) { () } else { let %u = ref_write(%r, ref_read(%r) + %n); @count(%r, %n - 1) }
}
def @main(%n: int32) -> (int32, int32) {
  let %r = ref(0);
  let %before = ref_read(%r);
  let %u = @count(%r, %n);
  (%before, ref_read(%r))
}'''
    machine = relax.VirtualMachine(tvm.compile(relay.to_relax(relay.parse(text)), "llvm"), tvm.cpu())
    assert [value.numpy() for value in machine["main"](tvm.runtime.tensor(np.int32(100)))] == [0, 5050]


def test_devices_and_random_numbers_have_functions():
    x = relay.var("x", shape=(2,))
    there = relay.on_device(relay.exp(x), "cuda:1")
    assert relay.parse(relay.IRModule.from_expr(relay.Function([x], there)).astext()).astext().count("VirtualDevice") > 0
    copied = relay.device_copy(x, tvm.cpu(), tvm.cuda(0))
    assert "device_copy" in relay.Function([x], copied).astext()
    key, numbers = relay.random.uniform(relay.random.threefry_key(7), (100,), low=2.0, high=3.0)
    mod = relay.IRModule.from_expr(relay.Function([], relay.Tuple([key, numbers])))
    found = relay.create_executor("vm", mod).evaluate()()[1].numpy()
    assert found.shape == (100,) and 2 <= found.min() and found.max() < 3 and found.std() > 0.2
