"""Each pass and TVM's pass of the same name, on the same programs: the results are structurally equal.

The programs are the inputs of the file tests (``tests/filetests/passes``) that TVM reads. Text is the exchange: ours comes
from ``relaxide opt``, which TVM parses. Where both say the same in another order or with other names for the same value,
both are brought to one form first (``modulo``). What differs otherwise is listed with the reason."""

import functools
import os

import pytest
from against_tvm import REREAD, ROOT, TIDY, T, ours, parse, tvm, unequal
from tvm.relax import dpl

#: Programs that a pass is compared on: all of them in a deep run.
SAMPLE = None if os.environ.get("RELAXIDE_DEEP") else 10


def programs():
    for path in sorted((ROOT / "tests/filetests/passes").glob("*.relax")):
        text = path.read_text().split("# ----\n")[0]
        if "@R.function" in text and "# test: refuse" not in text and "bytecode" not in path.name:
            yield path.stem, text


@functools.cache
def readable():
    """The programs that TVM reads. Ours reads what TVM prints of them, so that both passes begin with one program.

    Not when this file is imported, which each process does that runs any tests.
    """
    found = {}
    for name, text in programs():
        try:
            found[name] = parse(text)
        except Exception:  # what TVM refuses to read is no subject of these tests
            continue
    return found


def matmul_relu():
    return dpl.is_op("relax.nn.relu")(dpl.is_op("relax.matmul")(dpl.wildcard(), dpl.wildcard()))


def alter_add(module):
    """The kernel `packed` in place of additions: the file tests' programs have one."""
    if not any(var.name_hint == "packed" for var in module.functions):
        raise ValueError("there is no kernel of this name")
    blocks = tvm.tirx.IndexMap.from_func(lambda i: (i // 4, i % 4))
    return T.AlterOpImpl({"relax.add": module["packed"]}, {"relax.add": [blocks] * 3})(module)


ALTER = "AlterOpImpl({relax.add: packed}, {relax.add: ['C -> C4c', 'C -> C4c', 'C -> C4c']})"

#: What TVM does not read back, it prints and ours reads, and the prints are compared.
PRINT = ["ToNonDataflow", "print"]
#: Our spelling, TVM's pass, and passes of TVM that bring both results to one form.
PASSES = {
    "CanonicalizeBindings": (T.CanonicalizeBindings, []),
    "EliminateCommonSubexpr": (T.EliminateCommonSubexpr, []),
    "DeadCodeElimination": (T.DeadCodeElimination, []),
    "ConvertToDataflow": (T.ConvertToDataflow, []),
    "ExpandTupleArguments": (T.ExpandTupleArguments, TIDY),
    "RemoveUnusedParameters": (T.RemoveUnusedParameters, TIDY),
    "RemoveUnusedOutputs": (T.RemoveUnusedOutputs, TIDY),
    "InlinePrivateFunctions": (T.InlinePrivateFunctions, TIDY),
    "Normalize": (T.Normalize, []),
    "NormalizeGlobalVar": (T.NormalizeGlobalVar, []),
    "TopologicalSort(depth-first, from-inputs)": (lambda: T.TopologicalSort("depth-first", "from-inputs"), []),
    "TopologicalSort(breadth-first, from-inputs)": (lambda: T.TopologicalSort("breadth-first", "from-inputs"), []),
    "TopologicalSort(depth-first, from-outputs)": (lambda: T.TopologicalSort("depth-first", "from-outputs"), []),
    "TopologicalSort(breadth-first, from-outputs)": (lambda: T.TopologicalSort("breadth-first", "from-outputs"), []),
    "RemoveRedundantReshape": (T.RemoveRedundantReshape, TIDY),
    "AdjustMatmulOrder": (T.AdjustMatmulOrder, TIDY),
    "ExpandMatmulOfSum": (T.ExpandMatmulOfSum, TIDY),
    "ReorderPermuteDimsAfterConcat": (T.ReorderPermuteDimsAfterConcat, TIDY),
    "ReorderTakeAfterMatmul": (T.ReorderTakeAfterMatmul, TIDY),
    "CombineParallelMatmul": (T.CombineParallelMatmul, TIDY),
    "DecomposeOpsForTraining": (T.DecomposeOpsForTraining, TIDY),
    "LiftTransformParams": (T.LiftTransformParams, TIDY),
    "BundleModelParams": (T.BundleModelParams, TIDY),
    "LazyGetInput": (T.LazyGetInput, PRINT),
    "LazySetOutput": (T.LazySetOutput, PRINT),
    "LambdaLift": (T.LambdaLift, TIDY),
    "DataflowUseInplaceCalls": (T.DataflowUseInplaceCalls, []),
    "ToNonDataflow": (T.ToNonDataflow, []),
    "RemovePurityChecking": (T.RemovePurityChecking, []),
    "AttachGlobalSymbol": (T.AttachGlobalSymbol, []),
    "ToMixedPrecision(float16)": (lambda: T.ToMixedPrecision("float16"), TIDY),
    "ToMixedPrecision(float32)": (lambda: T.ToMixedPrecision("float32"), TIDY),
    "ConvertLayout({relax.nn.conv2d: [NHWC, OHWI]})": (
        lambda: T.ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]}),
        TIDY,
    ),
    "ConvertLayout({relax.nn.conv2d: [NCHW4c, OIHW4o]})": (
        lambda: T.ConvertLayout({"relax.nn.conv2d": ["NCHW4c", "OIHW4o"]}),
        [REREAD, *TIDY],
    ),
    ALTER: (lambda: alter_add, [REREAD, *TIDY]),
    "OptimizeLayoutTransform": (T.OptimizeLayoutTransform, [REREAD, *TIDY]),
    "AttachAttrLayoutFreeBuffers": (T.AttachAttrLayoutFreeBuffers, TIDY),
    "SplitLayoutRewritePreproc": (T.SplitLayoutRewritePreproc, TIDY),
    "FastMathTransform": (T.FastMathTransform, TIDY),
    'FuseOpsByPattern([[my.matmul_relu, "nn.relu(matmul(*, *))"]])': (
        lambda: T.FuseOpsByPattern([("my.matmul_relu", matmul_relu())]),
        TIDY,
    ),
    'FuseOpsByPattern([[my.matmul_relu, "nn.relu(matmul(*, *))"]], annotate_codegen=True)': (
        lambda: T.FuseOpsByPattern([("my.matmul_relu", matmul_relu())], annotate_codegen=True),
        TIDY,
    ),
    "Gradient(main)": (lambda: T.Gradient("main"), TIDY),
}

PRINT_PASSES = [name for name, (_, modulo) in PASSES.items() if modulo is PRINT]
MATMUL_RELU = 'FuseOpsByPattern([[my.matmul_relu, "nn.relu(matmul(*, *))"]]'
#: Why results differ: a reason, the passes, the programs.
REASONS = [
    (
        "What a hint of a device gives is its argument, which TVM writes over though it is used again.",
        ["DataflowUseInplaceCalls"],
        ["realize_vdevice_crossings"],
    ),
    (
        "TVM's pass asks a function that is called for the name of an operator, and fails.",
        ["FastMathTransform"],
        ["realize_vdevice_functions"],
    ),
    (
        "Text: where a program does not say the type of a result, ours reads a narrower one than TVM prints.",
        [name for name in PASSES if name.startswith(("Elim", "Data", "Dead", "ToNon", "Topo"))],
        ["canonicalize"],
    ),
    (
        "A cast to a symbolic dimension that is bound already is a check, which ours keeps.",
        ["CanonicalizeBindings", "ConvertToDataflow"],
        ["canonicalize_keeps_checks"],
    ),
    (
        "TVM passes a symbolic dimension in place of the tensor that says it; ours keeps the tensor.",
        ["RemoveUnusedParameters"],
        ["remove_unused_parameters_keeps"],
    ),
    (
        "TVM leaves new symbolic variables in what was a body of its own, which nothing binds.",
        ["InlinePrivateFunctions"],
        ["remove_unused_parameters_keeps"],
    ),
    (
        "Orders of what is free: bindings that two others make possible, and those that nothing uses.",
        [name for name in PASSES if name.startswith("Topo")],
        ["to_mixed_precision", "dead_code", "common_subexpr_inplace"],
    ),
    (
        "Ours takes the inputs behind the values that need none, TVM in front of them, so that what needs both comes earlier.",
        ["TopologicalSort(breadth-first, from-inputs)"],
        ["topological_sort_depth_possible", "pack_weights"],
    ),
    (
        "Two weights are multiplied with each other first wherever they come from weights; TVM asks for fewer operations.",
        ["AdjustMatmulOrder"],
        ["lift_transform_params_shared"],
    ),
    (
        "TVM fails: it builds a product of the wrong factors, or a circle of bindings.",
        ["ExpandMatmulOfSum", "CombineParallelMatmul"],
        ["combine_parallel_matmul_mixed"],
    ),
    (
        "TVM leaves products by constants that no variable is bound to.",
        ["CombineParallelMatmul"],
        ["narrow_weights_in_blocks"],
    ),
    (
        "TVM takes a batch_norm with training=False for one in training.",
        ["DecomposeOpsForTraining"],
        ["decompose_batch_norm", "decompose_for_training", "fold_batchnorm"],
    ),
    (
        "TVM binds a tuple that is the result, takes weights at each use, or adds a dimension as parameter; a closure's "
        "variable has the type R.Any there.",
        ["LiftTransformParams", "BundleModelParams", "LambdaLift"],
        [
            "lift_transform_params_keeps_dimensions",
            "expand_matmul_of_sum",
            "lambda_lift",
            "lazy_input_and_output",
        ],
    ),
    (
        "TVM binds a tuple that is the result, and makes a local function one of the module, whether it has weights or not.",
        ["LiftTransformParams"],
        ["allocate_workspace", "attach_attr_layout_free_buffers"],
    ),
    (
        "TVM leaves calls inside the module as they were, though what they call has one more parameter then; ours refuses "
        "such a function.",
        ["LazyGetInput", "LazySetOutput"],
        ["allocate_workspace", "allocate_workspace_blocks"],
    ),
    (
        "TVM also cleans up what is used nowhere or computed twice, fetches inside local functions, and gives programs "
        "whose dimensions nothing binds, which ours refuses.",
        PRINT_PASSES,
        [
            "common_subexpr",
            "common_subexpr_inplace",
            "dead_branches",
            "dead_code",
            "fuse_by_pattern_refuses",
            "fuse_ops_tables",
            "fuse_shape_parameter",
            "lambda_lift",
            "legalize",
            "vm_shape_lower",
        ],
    ),
    (
        "sums of integers that were converted stay exact, where TVM's overflow or are rounded in 16 bits",
        ["ToMixedPrecision(float16)", "ToMixedPrecision(float32)"],
        ["to_mixed_precision_whole_numbers"],
    ),
    (
        "TVM fails on a field of a tuple that is none of tensors only.",
        ["ToMixedPrecision(float16)", "ToMixedPrecision(float32)"],
        [
            "decompose_batch_norm",
            "decompose_for_training",
            "expand_tuple_arguments",
            "fold_batchnorm",
            "inline_private_functions",
            "remove_unused_outputs",
            "remove_unused_parameters",
        ],
    ),
    (
        "TVM also overwrites fields of an operator's tuple, and an operand that is given twice, though a kernel promises "
        "that no two of its buffers are one.",
        ["DataflowUseInplaceCalls"],
        [
            "fold_batchnorm",
            "fold_constant",
            "fold_constant_several_outputs",
            "fuse_several_outputs",
            "fuse_tir_several_outputs",
            "gradient",
        ],
    ),
    (
        "TVM also overwrites what a call of a kernel gives; a kernel that only rearranges elements may become a view, so ours "
        "overwrites what operators give.",
        ["DataflowUseInplaceCalls"],
        ["split_call_tir_by_pattern"],
    ),
    (
        "What only rearranges elements may become a view of its argument, so ours does not overwrite it; TVM does.",
        ["DataflowUseInplaceCalls"],
        ["optimize_layout_transform"],
    ),
    (
        "TVM does not read what it gives itself: calls of plain functions in a dataflow block, where it opens wrappers of "
        "pure calls before ToNonDataflow has run.",
        ["RemovePurityChecking"],
        ["plan_packed_calls"],
    ),
    (
        "A tensor of lower rank lies as the one that it is broadcast to; TVM brings the other back to the program's order, or "
        "fails where that lies in blocks.",
        ["ConvertLayout({relax.nn.conv2d: [NHWC, OHWI]})", "ConvertLayout({relax.nn.conv2d: [NCHW4c, OIHW4o]})"],
        ["convert_layout_packed_stays"],
    ),
    (
        "TVM takes two maps of indices for nothing where the dimensions are equal, as those of a square matrix and its "
        "transpose are.",
        ["OptimizeLayoutTransform"],
        ["optimize_layout_transform"],
    ),
    (
        "Ours clamps tanh in the stage that computes it, computes float16 in float32, and begins a maximum with minus "
        "infinity.",
        ["FastMathTransform"],
        ["fast_math", "legalize_matmul_softmax", "to_mixed_precision"],
    ),
    (
        "TVM fails at a call of a function.",
        ["FastMathTransform"],
        [
            "allocate_workspace",
            "allocate_workspace_blocks",
            "cuda_graph",
            "cuda_graph_off",
            "dead_code_entries",
            "expand_tuple_arguments",
            "inline_private_functions",
            "remove_unused_outputs",
            "remove_unused_outputs_keeps",
            "remove_unused_parameters",
            "remove_unused_parameters_keeps",
        ],
    ),
    (
        "TVM does not read a tuple of scalar types, not even in its own print.",
        list(PASSES),
        ["legalize_scalars"],
    ),
    (
        "TVM fails at a kernel without blocks; ours leaves it as it is.",
        ["SplitLayoutRewritePreproc"],
        ["cuda_graph_off"],
    ),
    (
        "TVM fails where dimensions are not known; ours leaves the call as it is.",
        ["FastMathTransform"],
        ["fast_math_unknown"],
    ),
    (
        "TVM does not read a symbolic variable of a cast that buffers of a kernel name, too, not even in its own print.",
        ["FastMathTransform"],
        ["canonicalize"],
    ),
    (
        "TVM sums over all axes in two steps; ours leaves a sum over all axes as it is.",
        [name for name in PASSES if name.startswith("ConvertLayout")],
        ["gradient", "dataflow_use_inplace_calls"],
    ),
    (
        "The fields of a result are taken in another order, and a local function has symbolic variables of its own.",
        [name for name in PASSES if name.startswith(MATMUL_RELU)],
        ["merge_composite", "fuse_by_pattern", "to_mixed_precision"],
    ),
    (
        "TVM binds the tuple that it makes of a parameter's fields to a name of its own before it is returned.",
        ["ExpandTupleArguments"],
        ["realize_vdevice_functions"],
    ),
    (
        "TVM gives the symbolic variables that no tensor tells a shape of their own behind the other parameters; ours keeps the shape.",
        ["RemoveUnusedParameters"],
        ["fuse_loops"],
    ),
]
EXPLAINED = {(name, program) for _, passes, programs in REASONS for name in passes for program in programs}


def difference(name, program, tmp_path):
    """None where both give the same, else what is different."""
    module = readable()[program]
    make, modulo = PASSES[name]
    path = tmp_path / "program.relax"
    path.write_text(module.script(show_meta=True))
    printed, refusal = ours(name, path)
    try:
        theirs = make()(module)
    except Exception as error:  # either side may refuse; both must
        return None if refusal else f"TVM refuses: {str(error)[-300:]}"
    if refusal:
        return f"ours refuses: {refusal}"
    if modulo is PRINT:
        path.write_text(T.ToNonDataflow()(theirs).script(show_meta=True))
        theirs, refusal = ours("Normalize", path)
        path.write_text(printed)
        printed, _ = ours("ToNonDataflow", path)
        return refusal or (None if printed == theirs else f"ours:\n{printed}\nTVM's:\n{theirs}")
    return unequal(printed, theirs, modulo)


def sample(name):
    """The programs of one pass: those that it changes first, then the others."""
    key = name.split("(")[0]
    own = [p for p in readable() if key.lower() in p.replace("_", "")]
    rest = [p for p in readable() if p not in own]
    chosen = own + rest
    if SAMPLE is None or len(chosen) <= SAMPLE:
        return chosen
    step = max(1, len(rest) // max(1, SAMPLE - len(own)))
    return (own + rest[::step])[: max(SAMPLE, len(own))]


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_gives_what_tvms_gives(name, tmp_path):
    programs_of = sample(name)
    assert len(programs_of) >= 10
    found = {program: difference(name, program, tmp_path) for program in programs_of}
    unexplained = {p: d for p, d in found.items() if d and (name, p) not in EXPLAINED}
    assert not unexplained, "\n".join(f"--- {p}\n{d}" for p, d in unexplained.items())


def test_every_explanation_is_needed(tmp_path):
    """A reason whose every difference is gone would be a lie."""
    needless = [
        reason
        for reason, passes, programs in REASONS
        if not any(difference(n, p, tmp_path) for n in passes for p in programs if p in readable())
    ]
    assert not needless
