"""What is written with spox: operators one by one, control flow with values from outside, sequences and texts."""

import numpy as np


def files():
    import spox.opset.ai.onnx.ml.v3 as ml
    import spox.opset.ai.onnx.v20 as op
    from spox import Tensor, argument, build

    def model(run, **inputs):
        arguments = {name: argument(Tensor(dtype, shape)) for name, (dtype, shape) in inputs.items()}
        results = run(**arguments)
        return build(arguments, {f"y{i}": value for i, value in enumerate(results if isinstance(results, tuple) else (results,))})

    f, s, i = np.float32, np.str_, np.int64
    rng = np.random.default_rng(0)
    rows = [{"x": rng.standard_normal((n, 3)).astype("float32")} for n in (1, 4, 6)]
    words = [{"x": np.array(v, dtype=object)} for v in (["b"], ["a", "b", "zz"], ["Äb", "", "a", "A"])]
    const = op.constant
    x3 = dict(x=(f, ("n", 3)))
    xs = dict(x=(s, ("n",)))
    yield "spox-if", lambda: model(lambda x: op.if_(op.greater(op.reduce_sum(x, keepdims=False), const(value_float=0.0)), then_branch=lambda: [op.mul(x, x)], else_branch=lambda: [op.neg(x)])[0], **x3), rows
    yield "spox-loop", lambda: model(lambda x: tuple(op.loop(const(value_int=3), v_initial=[x], body=lambda n, c, v: [c, op.add(v, x), op.reduce_sum(v, keepdims=False)])), **x3), rows
    yield "spox-scan", lambda: model(lambda x: tuple(op.scan([const(value_floats=[0.0, 0.0, 0.0]), x], num_scan_inputs=1, body=lambda a, b: [op.add(a, b), op.mul(a, b)])), **x3), rows
    yield "spox-sequence", lambda: model(lambda x: op.concat_from_sequence(op.sequence_insert(op.split_to_sequence(x, axis=0), x), axis=0), **x3), rows
    yield "spox-encode", lambda: model(lambda x: ml.label_encoder(x, keys_strings=["a", "b"], values_int64s=[5, 6], default_int64=-3), **xs), words
    yield "spox-encode-texts", lambda: model(lambda x: ml.label_encoder(x, keys_strings=["a", "b"], values_strings=["one", "two"], default_string="?"), **xs), words
    yield "spox-encode-floats", lambda: model(lambda x: ml.label_encoder(x, keys_strings=["a", "b"], values_floats=[0.5, 1.5]), **xs), words
    yield "spox-one-hot", lambda: model(lambda x: ml.one_hot_encoder(x, cats_strings=["zz", "a", "b"]), **xs), words
    yield "spox-mapper", lambda: model(lambda x: ml.category_mapper(x, cats_strings=["zz", "a"], cats_int64s=[9, 4]), **xs), words
    yield "spox-moves", lambda: model(lambda x: (op.concat([x, op.constant(value_strings=["c", "d"])], axis=0), op.unsqueeze(x, op.constant(value_ints=[0])), op.gather(x, op.constant(value_ints=[0, -1])), op.tile(x, op.constant(value_ints=[2])), op.shape(x), op.reshape(x, op.constant(value_ints=[-1, 1]))), **xs), words
    yield "spox-where", lambda: model(lambda x: op.where(op.equal(x, op.constant(value_strings=["a"])), x, op.constant(value_string="other")), **xs), words
    yield "spox-normalize", lambda: model(lambda x: (op.string_normalizer(x, case_change_action="UPPER"), op.string_normalizer(x, case_change_action="LOWER", stopwords=["a"]), op.string_normalizer(x, stopwords=["A", "b"], is_case_sensitive=1)), **xs), words
    yield "spox-concat", lambda: model(lambda x: op.string_concat(op.string_concat(x, op.constant(value_string="-")), op.unsqueeze(x, op.constant(value_ints=[1]))), **xs), words
    lines = [{"x": np.array(v, dtype=object)} for v in (["a b  c"], [" a,b", "", "x"], ["a,,b", ",", "a , b ", "   "])]
    yield "spox-split", lambda: model(lambda x: (*op.string_split(x), *op.string_split(x, delimiter=","), *op.string_split(x, delimiter=",", maxsplit=1), *op.string_split(x, maxsplit=1)), **xs), lines
    yield "spox-match", lambda: model(lambda x: (op.regex_full_match(x, pattern="[a-b]+"), op.regex_full_match(x, pattern=".*")), **xs), words
    numbers = [{"x": np.array(v, dtype="float32")} for v in ([1.5], [0.1, -2e10, 1e-7], [np.inf, 3, -0.0, 123456789, 100000, 1 / 3])]
    yield "spox-cast-to", lambda: model(lambda x: op.cast(x, to=np.str_), x=(f, ("n",))), numbers
    yield "spox-cast-doubles", lambda: model(lambda x: op.cast(x, to=np.str_), x=(np.float64, ("n",))), [{"x": feed["x"].astype("float64")} for feed in numbers]
    yield "spox-cast-integers", lambda: model(lambda x: (op.cast(x, to=np.str_), op.cast(op.greater(x, op.constant(value_int=0)), to=np.str_), op.cast(op.shape(x), to=np.str_)), x=(i, ("n",))), [{"x": np.array(v)} for v in ([1], [-2, 3], [2**62, 0, -(2**63)])]
    digits = [{"x": np.array(v, dtype=object)} for v in (["1"], ["-3", "+4"], ["0012", "7", "9"])]
    yield "spox-cast-from", lambda: model(lambda x: (op.cast(x, to=np.float32), op.cast(x, to=np.int64), op.cast(x, to=np.float64), op.cast(x, to=np.int32)), **xs), digits
    grams = dict(max_gram_length=2, max_skip_count=1, min_gram_length=1, mode="TF", ngram_counts=[0, 3], ngram_indexes=[0, 1, 2, 3], pool_strings=["a", "b", "zz", "a", "b"])
    yield "spox-grams", lambda: model(lambda x: op.tf_idf_vectorizer(x, **grams), **xs), words
    yield "spox-unique", lambda: model(lambda x: tuple(op.unique(x, sorted=1)), **xs), words + [{"x": np.array(["b", "a", "b", "c", "a"], dtype=object)}]
    yield "spox-if-texts", lambda: model(lambda x: op.if_(op.greater(op.size(x), const(value_int=1)), then_branch=lambda: [x], else_branch=lambda: [op.constant(value_strings=["only"])])[0], **xs), words
    yield "spox-identity-texts", lambda: model(lambda x: op.identity(x), x=(s, ("n", 2))), [{"x": np.array([["a", "b"]], dtype=object)}, {"x": np.array([["a", "b"], ["c", ""]], dtype=object)}, {"x": np.array([["é", "b"]] * 3, dtype=object)}]
