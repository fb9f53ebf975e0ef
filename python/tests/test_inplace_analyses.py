"""What may be overwritten in a dataflow block."""

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relax
from relaxide.relax.testing.transform import dataflow_alias_analysis, dataflow_inplace_analysis, dataflow_liveness_analysis
from relaxide.relax.testing.transform import dataflow_single_inplace_call
from relaxide.script import ir as I
from relaxide.script import relax as R


@I.ir_module
class Chain:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        with R.dataflow():
            a = R.add(x, y)
            b = R.reshape(a, (2, 3))
            c = R.multiply(a, a)
            d = R.add(b, c)
            e = R.nn.relu(d)
            R.output(e)
        return e


def _block(mod=Chain):
    func = mod["main"]
    return func.body.blocks[0], list(func.params)


def _by_name(found):
    return {var.name: value for var, value in found.items()}


def test_values_live_from_their_binding_to_their_last_use():
    ranges = _by_name(dataflow_liveness_analysis(_block()[0]))
    assert ranges == {"x": (-1, 5), "y": (-1, 5), "a": (0, 2), "b": (1, 3), "c": (2, 3), "d": (3, 4), "e": (4, 5)}


def test_a_view_lies_in_the_memory_of_its_operand():
    memory, tuples = dataflow_alias_analysis(*_block())
    memory = _by_name(memory)
    assert memory["b"] == memory["a"] and not memory["c"] & memory["a"] and tuples == {}


def test_what_a_view_still_needs_is_not_overwritten():
    large, same = dataflow_inplace_analysis(*_block(), Chain)
    # `c` may not take the place of `a`, which `b` is a view of; `d` may take either place, and `e` that of `d`.
    assert same == [(3, {0, 1}), (4, {0})] == large


def test_tuples_of_unknown_functions_may_hold_their_arguments():
    @I.ir_module
    class Unknown:
        @R.function
        def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            with R.dataflow():
                a = R.nn.relu(x)
                t = R.call_pure_packed("f", a, ty_args=R.Tuple(R.Tensor((2,), "float32"), R.Tensor((2,), "float32")))
                b = t[1]
                R.output(b)
            return b

    memory, tuples = dataflow_alias_analysis(*_block(Unknown))
    memory = _by_name(memory)
    assert memory["a"] <= memory["b"] and len(memory["b"]) == 4
    assert list(tuples.values()) == [[memory["b"], memory["b"]]]


def test_one_call_is_made_to_write_over_an_operand():
    call = _block()[0].bindings[0].value
    written, mod = dataflow_single_inplace_call(Chain, call, [1])
    assert written.op.name == "relax.call_tir_inplace" and list(written.args[1].fields) == list(call.args)
    assert len(mod[written.args[0].name_hint].params) == 2
    with pytest.raises(ValueError, match="one operand is overwritten"):
        dataflow_single_inplace_call(Chain, call, [0, 1])


def test_tensors_share_memory_where_their_bytes_overlap():
    shared = tvm.get_global_func("runtime.TVMTensorIsStorageShared")
    array = np.zeros((4, 4), "float32")
    rows = [tvm.ffi.from_dlpack(array[at : at + 2]) for at in (0, 1, 2)]
    assert shared(rows[0], rows[1]) and not shared(rows[0], rows[2])
    assert not shared(rows[0], tvm.ffi.from_dlpack(array[:0]))


def test_parts_of_functions_lose_what_nothing_uses():
    body = Chain["main"].body
    unused = relax.DataflowVar("unused", relax.TensorType((2, 3), "float32"))
    block = body.blocks[0]
    longer = relax.DataflowBlock([*block.bindings, relax.VarBinding(unused, relax.op.nn.relu(Chain["main"].params[0]))])
    assert len(relax.analysis.remove_all_unused(longer).bindings) == len(block.bindings)
    assert len(relax.analysis.remove_all_unused(relax.SeqExpr([longer], body.body)).blocks[0].bindings) == len(block.bindings)
