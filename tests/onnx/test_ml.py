"""Operators of ai.onnx.ml give what ONNX Runtime gives; what is corrupt is refused with a reason."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from relaxide.onnx_backend import RelaxideBackend

ML = "ai.onnx.ml"
FLOAT, DOUBLE, INT64, INT32 = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.INT32
KINDS = {"float32": FLOAT, "float64": DOUBLE, "int64": INT64, "int32": INT32}


def runtime(model, arrays):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {f"x{i}": a for i, a in enumerate(arrays)})


def model_of(op, arrays, outputs, version=3, **attributes):
    names = [f"x{i}" for i in range(len(arrays))]
    node = helper.make_node(op, names, [f"y{i}" for i in range(len(outputs))], domain=ML, **attributes)
    shape = lambda a, i: [f"d{i}_{k}" if k == 0 and a.ndim > 1 else n for k, n in enumerate(a.shape)]  # noqa: E731
    inputs = [helper.make_tensor_value_info(n, KINDS[str(a.dtype)], shape(a, i)) for i, (n, a) in enumerate(zip(names, arrays))]
    results = [helper.make_tensor_value_info(f"y{i}", kind, None) for i, kind in enumerate(outputs)]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(ML, version)]
    return helper.make_model(helper.make_graph([node], "g", inputs, results), opset_imports=opsets, ir_version=8)


def compare(op, arrays, outputs=(FLOAT,), version=3, tolerance=1e-5, **attributes):
    model = model_of(op, arrays, outputs, version, **attributes)
    expected = runtime(model, arrays)
    check(expected, model, arrays, tolerance)


def check(expected, model, arrays, tolerance=1e-5):
    got = RelaxideBackend.prepare(model).run(list(arrays))
    for one, other in zip(expected, got, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape, (one.dtype, one.shape, other.dtype, other.shape)
        np.testing.assert_allclose(other, one, rtol=tolerance, atol=tolerance)


def refused(match, op, arrays, outputs=(FLOAT,), version=3, **attributes):
    with pytest.raises(Exception, match=match):
        RelaxideBackend.prepare(model_of(op, arrays, outputs, version, **attributes))


def random(seed):
    return np.random.default_rng(seed)


def features(rows=7, columns=4, dtype="float32", seed=0):
    x = random(seed).standard_normal((rows, columns)) * 3
    return x.astype(dtype)


MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


def forest(prefix, trees=5, depth=4, targets=1, columns=4, modes=MODES[:1], seed=0, missing=False, votes=1, low=-1.0, ids=None):
    """Random trees as the older operators list them: children of node i are 2i + 1 and 2i + 2; some end early."""
    rng = random(seed)
    nodes = {k: [] for k in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")}
    leaves = {k: [] for k in ("treeids", "nodeids", "ids", "weights")}

    def add(tree, node, level):
        leaf = level == depth or (level > 0 and rng.random() < 0.25)
        row = (tree, node, int(rng.integers(columns)), "LEAF" if leaf else str(rng.choice(modes)), float(rng.integers(-4, 5)) / 2)
        for key, value in zip(nodes, (*row, 0 if leaf else 2 * node + 1, 0 if leaf else 2 * node + 2)):
            nodes[key].append(value)
        if not leaf:
            return add(tree, 2 * node + 1, level + 1), add(tree, 2 * node + 2, level + 1)
        for target in rng.permutation(ids or list(range(targets)))[:votes]:
            for key, value in zip(leaves, (tree, node, int(target), float(rng.uniform(low, 1)))):
                leaves[key].append(value)

    for tree in range(trees):
        add(tree, 0, 0)
    attributes = {f"nodes_{k}": v for k, v in nodes.items()} | {f"{prefix}_{k}": v for k, v in leaves.items()}
    if missing:
        attributes["nodes_missing_value_tracks_true"] = [int(rng.integers(2)) for _ in nodes["modes"]]
    return attributes


@pytest.mark.parametrize("modes", [MODES[:1], MODES[1:2], MODES[2:3], MODES[3:4], MODES])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
def test_trees_of_every_comparison_and_element_type(modes, dtype):
    # ONNX Runtime takes no integers here; as numbers they are the same.
    x, trees = features(dtype=dtype), forest("target", modes=modes)
    known = x.astype("float32") if dtype.startswith("int") else x
    expected = runtime(model_of("TreeEnsembleRegressor", [known], (FLOAT,), n_targets=1, **trees), [known])
    check(expected, model_of("TreeEnsembleRegressor", [x], (FLOAT,), n_targets=1, **trees), [x])


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("targets, votes", [(1, 1), (3, 1), (3, 3)])
@pytest.mark.parametrize("based", [False, True])
def test_aggregates_of_leaves(aggregate, targets, votes, based):
    if based and votes < targets:
        pytest.skip("ONNX Runtime leaves targets without votes at zero")
    base = {"base_values": [0.5 * i + 0.25 for i in range(targets)]} if based else {}
    trees = forest("target", targets=targets, votes=votes, trees=9, seed=targets)
    compare("TreeEnsembleRegressor", [features(33)], aggregate_function=aggregate, n_targets=targets, **trees, **base)


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
def test_transformed_scores_of_trees(transform):
    trees = forest("target", targets=3, votes=2, seed=4)
    compare("TreeEnsembleRegressor", [features()], post_transform=transform, n_targets=3, **trees)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_no_number_goes_where_the_node_says(dtype):
    x = features(40, dtype=dtype)
    x[random(3).random(x.shape) < 0.3] = np.nan
    compare("TreeEnsembleRegressor", [x], n_targets=1, **forest("target", modes=MODES[:1], missing=True, trees=8))
    compare("TreeEnsembleRegressor", [x], n_targets=1, **forest("target", modes=MODES[:1], trees=8))


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("labels", [[3, 1, 7], [5, 6, 7, 8]])
def test_classes_by_votes(transform, labels):
    n = len(labels)
    trees = forest("class", targets=n, votes=n, trees=7, seed=n)
    compare("TreeEnsembleClassifier", [features(30)], (INT64, FLOAT), classlabels_int64s=labels, post_transform=transform, **trees)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("low", [-1.0, 0.0])
@pytest.mark.parametrize("ids", [[0], [1]])
def test_two_classes_by_the_votes_for_one(transform, low, ids):
    trees = forest("class", targets=2, trees=3, seed=2, low=low, ids=ids)
    compare("TreeEnsembleClassifier", [features(30)], (INT64, FLOAT), classlabels_int64s=[4, 9], post_transform=transform, **trees)


@pytest.mark.parametrize("low", [-1.0, 0.0])
def test_two_classes_by_votes_for_both(low):
    # ONNX Runtime's label is not that of the larger score; ONNX's is.
    x, trees = features(30), forest("class", targets=2, votes=2, trees=3, seed=5, low=low)
    model = model_of("TreeEnsembleClassifier", [x], (INT64, FLOAT), classlabels_int64s=[4, 9], **trees)
    scores = runtime(model, [x])[1]
    check([np.array([4, 9])[scores.argmax(1)], scores], model, [x])
    based = model_of("TreeEnsembleClassifier", [x], (INT64, FLOAT), classlabels_int64s=[4, 9], base_values=[0.5, -0.25], **trees)
    scores = scores + np.array([0.5, -0.25], "float32")
    check([np.array([4, 9])[scores.argmax(1)], scores], based, [x])


def tensor(values, dtype):
    return numpy_helper.from_array(np.array(values, dtype))


def ensemble(dtype="float32", **changes):
    """A tree of two branches and three leaves, and one that shares them."""
    return dict(
        n_targets=2,
        tree_roots=[0, 1],
        nodes_featureids=[0, 1],
        nodes_modes=tensor([0, 3], "uint8"),
        nodes_splits=tensor([0.5, -0.5], dtype),
        nodes_truenodeids=[1, 1],
        nodes_trueleafs=[0, 1],
        nodes_falsenodeids=[0, 2],
        nodes_falseleafs=[1, 1],
        leaf_targetids=[0, 1, 0],
        leaf_weights=tensor([1.5, 2.5, -3.5], dtype),
    ) | changes


@pytest.mark.parametrize("dtype, kind", [("float32", FLOAT), ("float64", DOUBLE)])
@pytest.mark.parametrize("aggregate", [0, 1, 2, 3])
def test_numbered_trees(dtype, kind, aggregate):
    x, trees = features(12, 2, dtype), ensemble(dtype, aggregate_function=aggregate, tree_roots=[0])
    compare("TreeEnsemble", [x], (kind,), 5, **trees)
    # The numbers of transformations are ONNX's; ONNX Runtime has others.
    (plain,) = runtime(model_of("TreeEnsemble", [x], (kind,), 5, **trees), [x])
    powers = np.exp(plain)
    for number, expected in [(1, powers / powers.sum(1, keepdims=True)), (2, 1 / (1 + 1 / powers))]:
        check([expected], model_of("TreeEnsemble", [x], (kind,), 5, post_transform=number, **trees), [x])


def test_trees_that_share_branches():
    x = features(12, 2)
    first, second, both = (ensemble(tree_roots=roots) for roots in ([0], [1], [0, 1]))
    parts = [RelaxideBackend.prepare(model_of("TreeEnsemble", [x], (FLOAT,), 5, **trees)).run([x])[0] for trees in (first, second)]
    check([parts[0] + parts[1]], model_of("TreeEnsemble", [x], (FLOAT,), 5, **both), [x])


@pytest.mark.parametrize(
    "changes, match",
    [
        ({"nodes_falsenodeids": [7, 2]}, "does not exist"),
        ({"tree_roots": [5]}, "does not exist"),
        ({"tree_roots": [-1]}, "leads to node -1"),
        ({"nodes_trueleafs": [0, 0]}, "back to one of its own branches"),
        ({"nodes_featureids": [0, 9]}, "feature 9 of 2"),
        ({"nodes_featureids": [0, -1]}, "feature -1"),
        ({"nodes_featureids": [0]}, "has 2 elements where 1 are needed"),
        ({"leaf_targetids": [0, 1, 2]}, "target 2 of 2"),
        ({"leaf_targetids": [0, 1]}, "leaf_weights"),
        ({"nodes_modes": tensor([0, 9], "uint8")}, "the mode 9"),
        ({"nodes_modes": tensor([0, 6], "uint8")}, "membership_values"),
        ({"aggregate_function": 8}, "aggregate_function"),
        ({"post_transform": -2}, "post_transform"),
        ({"n_targets": 0}, "n_targets"),
        ({"n_targets": 1 << 40}, "more than"),
        ({"tree_roots": []}, "tree"),
    ],
)
def test_corrupt_trees_are_refused(changes, match):
    refused(match, "TreeEnsemble", [features(3, 2)], (FLOAT,), 5, **ensemble(**changes))


def test_corrupt_lists_of_nodes_are_refused():
    good = forest("target", trees=1, depth=2, seed=1)
    for key in [k for k in good if k.startswith("nodes_")]:
        refused("elements where", "TreeEnsembleRegressor", [features()], n_targets=1, **good | {key: good[key][:-1]})
    first = good["nodes_truenodeids"][0]
    refused("does not have", "TreeEnsembleRegressor", [features()], **good | {"nodes_truenodeids": [99] + good["nodes_truenodeids"][1:]})
    right = good["nodes_falsenodeids"][0]
    loop = good | {"nodes_truenodeids": [right] + good["nodes_truenodeids"][1:]}
    refused("several nodes that no other leads to", "TreeEnsembleRegressor", [features()], **loop)
    refused("not reached from its root", "TreeEnsembleRegressor", [features()], **good | {"nodes_truenodeids": [0] + good["nodes_truenodeids"][1:]})
    refused("two nodes", "TreeEnsembleRegressor", [features()], **good | {"nodes_nodeids": [first] + good["nodes_nodeids"][1:]})


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"])
@pytest.mark.parametrize("targets", [1, 3])
def test_linear_regression(transform, targets):
    if targets == 1 and transform != "NONE":
        pytest.skip("ONNX Runtime transforms several targets only")
    rng = random(targets)
    coefficients = (rng.uniform(0, 0.1, 4 * targets) if transform == "PROBIT" else rng.standard_normal(4 * targets)).tolist()
    x = np.abs(features(5)) / 3
    attributes = dict(coefficients=coefficients, intercepts=rng.uniform(0.1, 0.2, targets).tolist(), targets=targets)
    compare("LinearRegressor", [x], post_transform=transform, tolerance=2e-4, **attributes)


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("classes", [1, 3])
def test_linear_classes(transform, classes):
    rng = random(classes)
    labels = [7, 3] if classes == 1 else [5, 2, 9]
    attributes = dict(coefficients=rng.standard_normal(4 * classes).tolist(), intercepts=rng.standard_normal(classes).tolist())
    compare("LinearClassifier", [features(20)], (INT64, FLOAT), classlabels_ints=labels, post_transform=transform, **attributes)


KERNELS = ["LINEAR", "POLY", "RBF", "SIGMOID"]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("one_class", [0, 1])
def test_support_vectors_of_a_regression(kernel, one_class):
    rng = random(11)
    attributes = dict(
        coefficients=rng.standard_normal(6).tolist(),
        support_vectors=rng.standard_normal(24).tolist(),
        rho=[0.3],
        n_supports=6,
        kernel_type=kernel,
        kernel_params=[0.2, 0.5, 3.0],
        one_class=one_class,
    )
    compare("SVMRegressor", [features(9) / 3], tolerance=1e-4, **attributes)


def test_a_regression_without_support_vectors():
    compare("SVMRegressor", [features(9)], coefficients=[1.0, -2.0, 0.5, 0.25], rho=[0.3], kernel_type="LINEAR", kernel_params=[0.0, 0.0, 0.0])


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("counts", [[3, 4], [2, 3, 4], [1, 2, 3, 2]])
@pytest.mark.parametrize("likely", [False, True])
def test_support_vectors_of_classes(kernel, counts, likely):
    rng = random(len(counts))
    n, total = len(counts), sum(counts)
    attributes = dict(
        coefficients=rng.standard_normal((n - 1) * total).tolist(),
        support_vectors=rng.standard_normal(4 * total).tolist(),
        rho=rng.standard_normal(n * (n - 1) // 2).tolist(),
        vectors_per_class=counts,
        classlabels_ints=[10 * i + 5 for i in range(n)],
        kernel_type=kernel,
        kernel_params=[0.2, 0.5, 3.0],
    )
    if likely:
        pairs = len(attributes["rho"])
        attributes |= dict(prob_a=(-rng.uniform(0.5, 1.5, pairs)).tolist(), prob_b=rng.uniform(-0.2, 0.2, pairs).tolist())
    compare("SVMClassifier", [features(25) / 3], (INT64, FLOAT), tolerance=1e-4, **attributes)


@pytest.mark.parametrize("classes", [2, 3])
def test_classes_without_support_vectors(classes):
    # Of two classes ONNX Runtime takes the second where any score is positive; the larger score is what ONNX says.
    x, labels = features(25), [4, 2, 6][:classes]
    attributes = dict(
        coefficients=random(classes).standard_normal(4 * classes).tolist(),
        rho=[0.1],
        classlabels_ints=labels,
        kernel_type="LINEAR",
        kernel_params=[0.0, 0.0, 0.0],
    )
    model = model_of("SVMClassifier", [x], (INT64, FLOAT), **attributes)
    scores = runtime(model, [x])[1]
    check([np.array(labels)[scores.argmax(1)], scores], model, [x])


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
@pytest.mark.parametrize("shape", [(5, 4), (4,), (1, 1)])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_normalized_rows(norm, shape, dtype):
    x = (random(1).standard_normal(shape) * 5).astype(dtype)
    if x.ndim == 2 and len(x) > 1:
        x[1] = 0
    compare("Normalizer", [x], norm=norm)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
def test_scaled_imputed_and_binarized_features(dtype):
    x = np.rint(features(6, 3, dtype="float32")).astype(dtype)
    compare("Scaler", [x], offset=[0.5, 1.0, -1.0], scale=[2.0, 0.5, 1.5])
    compare("Scaler", [x], offset=[0.5], scale=[2.0])
    if dtype == "float32":
        compare("Binarizer", [x], threshold=0.5)
        compare("Imputer", [x], imputed_value_floats=[7.0, 8.0, 9.0], replaced_value_float=1.0)
        x[0, 1] = np.nan
        compare("Imputer", [x], imputed_value_floats=[7.5], replaced_value_float=float("nan"))
    elif dtype == "int64":
        compare("Imputer", [x], (INT64,), imputed_value_int64s=[7, 1 << 60, 9], replaced_value_int64=1)
    else:
        # ONNX Runtime has neither.
        name = "floats" if dtype == "float64" else "int64s"
        how = {f"imputed_value_{name}": [7.0 if name == "floats" else 7], f"replaced_value_{name[:-1]}": 1.0 if name == "floats" else 1}
        check([np.where(x == 1, 7, x).astype(dtype)], model_of("Imputer", [x], (KINDS[dtype],), **how), [x])
        check([(x > 0.5).astype(dtype)], model_of("Binarizer", [x], (KINDS[dtype],), threshold=0.5), [x])


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4), (4,)])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_extracted_features(shape, dtype):
    x = (random(2).standard_normal(shape) * 9).astype(dtype)
    compare("ArrayFeatureExtractor", [x, np.array([[2, 0, 2]])], (KINDS[dtype],))


def test_joined_features():
    compare("FeatureVectorizer", [features(5, 3), features(5, 2, seed=1)], inputdimensions=[3, 2])
    compare("FeatureVectorizer", [features(5, 3, "int64"), features(5, 2, "int64", 1)], inputdimensions=[3, 2])
    compare("FeatureVectorizer", [features(5, 3), features(10, 3).reshape(5, 2, 3)], inputdimensions=[3, 6])


@pytest.mark.parametrize("dtype", ["int64", "float32"])
@pytest.mark.parametrize("shape", [(6,), (3, 2)])
def test_one_hot_categories(dtype, shape):
    x = random(6).integers(0, 6, shape).astype(dtype)
    compare("OneHotEncoder", [x], cats_int64s=[4, 0, 2, 5])


def test_categories_that_must_be_there():
    program = RelaxideBackend.prepare(model_of("OneHotEncoder", [np.array([1, 2])], (FLOAT,), cats_int64s=[1, 2], zeros=0))
    assert program.run([np.array([2, 1])])[0].tolist() == [[0, 1], [1, 0]]
    with pytest.raises(Exception):
        program.run([np.array([2, 3])])


def test_labels_mapped_to_labels():
    ints, floats = np.array([[3, 1], [9, (1 << 60) + 1]]), np.array([0.5, np.nan, 2.5, -1.0], "float32")
    keys = [1, 1 << 60, (1 << 60) + 1, 3]
    compare("LabelEncoder", [ints], (INT64,), keys_int64s=keys, values_int64s=[10, 20, 1 << 61, 40], default_int64=-7)
    compare("LabelEncoder", [ints], (FLOAT,), keys_int64s=keys, values_floats=[0.5, 1.5, 2.5, 3.5], default_float=0.25)
    compare("LabelEncoder", [floats], (INT64,), 4, keys_floats=[2.5, 0.5, float("nan")], values_int64s=[1, 2, 3])
    compare("LabelEncoder", [floats], (FLOAT,), keys_floats=[2.5, 0.5], values_floats=[1.0, 2.0], default_float=9.0)
    compare(
        "LabelEncoder",
        [floats.astype("float64")],
        (DOUBLE,),
        4,
        keys_tensor=tensor([2.5, 0.5], "float64"),
        values_tensor=tensor([0.1, 0.2], "float64"),
        default_tensor=tensor([7.0], "float64"),
    )


@pytest.mark.parametrize(
    "op, attributes, match",
    [
        ("DictVectorizer", {"int64_vocabulary": [1]}, "not a map"),
        ("CategoryMapper", {"cats_int64s": [1, 2], "cats_strings": ["a"]}, "1 `cats_strings` are given for 2"),
        ("LabelEncoder", {"keys_strings": ["a"], "values_int64s": [1]}, "its keys are texts"),
        ("OneHotEncoder", {"cats_strings": ["a"]}, "not a tensor of texts"),
        ("ZipMap", {}, "neither `classlabels_strings` nor"),
        ("LabelEncoder", {"keys_int64s": [1, 2], "values_int64s": [1]}, "1 values are given for 2 keys"),
        ("LinearRegressor", {"coefficients": [1.0] * 5, "targets": 2}, "cannot be divided"),
        ("LinearRegressor", {"coefficients": [1.0] * 5}, "dimension"),
        ("SVMRegressor", {"coefficients": [1.0], "rho": [1.0], "n_supports": 3, "support_vectors": [1.0] * 12}, "1 coefficients"),
        ("Scaler", {"scale": [1.0, 2.0]}, "2 numbers"),
        ("Normalizer", {"norm": "L7"}, "L7"),
        ("Imputer", {}, "imputed_value"),
        ("NoSuchOperator", {}, "not supported"),
    ],
)
def test_what_is_no_tensor_or_does_not_fit_is_refused(op, attributes, match):
    refused(match, op, [features(dtype="int64" if op in ("LabelEncoder", "CategoryMapper") else "float32")], **attributes)


def test_texts_of_the_model_are_returned():
    x = features()
    attributes = {"coefficients": [1.0] * 4 + [-1.0] * 4, "intercepts": [0.0, 0.0], "classlabels_strings": ["no", "yes"]}
    labels, scores = RelaxideBackend.prepare(model_of("LinearClassifier", [x], (TensorProto.STRING, FLOAT), **attributes)).run([x])
    assert [str(label) for label in labels] == ["yes" if row[1] > row[0] else "no" for row in scores]
    keys = np.array([1, 5, 2], "int64")
    encoder = {"keys_int64s": [1, 2], "values_strings": ["one", "two"], "default_string": "other"}
    texts, = RelaxideBackend.prepare(model_of("LabelEncoder", [keys], (TensorProto.STRING,), **encoder)).run([keys])
    assert [str(text) for text in texts] == ["one", "other", "two"]
