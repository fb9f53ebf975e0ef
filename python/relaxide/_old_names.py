"""Names that older releases of TVM had, and that documents and programs of their time still use.

A name that means what a newer one means is that one. A name whose thing is gone says what replaced it. The table is asked by the
``__getattr__`` of modules, so that none of these names is listed by ``dir`` or ``__all__``.
"""

import functools
import importlib

#: By module: old names, and where the same thing is now (a module, or an attribute behind a colon).
SAME = {
    "relaxide": {
        "TVMError": "builtins:RuntimeError",
        "dlight": "relaxide.s_tir.dlight",
        "meta_schedule": "relaxide.s_tir.meta_schedule",
        "nd": "relaxide.nd",
        "tir": "relaxide.tir",
    },
    "relaxide.error": {"TVMError": "builtins:RuntimeError"},
    "relaxide.relax": {
        "FuncStructInfo": "relaxide.relax:FuncType",
        "ObjectStructInfo": "relaxide.relax:AnyType",
        "PrimStructInfo": "relaxide.ir:PrimType",
        "PrimValue": "relaxide.relax:prim_value",
        "ShapeStructInfo": "relaxide.relax:ShapeType",
        "StructInfo": "relaxide.relax:Type",
        "TensorStructInfo": "relaxide.relax:TensorType",
        "TupleStructInfo": "relaxide.relax:TupleType",
    },
    "relaxide.runtime": {"NDArray": "relaxide.runtime:Tensor", "ndarray": "relaxide.nd", "profiler_vm": "relaxide.runtime.vm"},
}

#: By module: names without a counterpart, and what does their work.
GONE = {
    "relaxide": {
        "auto_scheduler": "schedule rules are chosen at compilation; `s_tir.meta_schedule` tunes",
        "autotvm": "schedule rules are chosen at compilation; `s_tir.meta_schedule` tunes",
        "hybrid": "loops with statements are TVMScript: `script.tirx.prim_func`",
        "lower": "`tirx.build` compiles kernels, `s_tir.Schedule` shows them scheduled",
        "micro": "`compile(…, target='c')` and `relaxide compile --target c` write C for boards",
    },
}


def find(module, name):
    """What an old name of a module means; an AttributeError, with what replaced it where something did."""
    place = SAME.get(module, {}).get(name)
    if place is None:
        instead = GONE.get(module, {}).get(name)
        hint = f": it was in older releases of TVM; {instead}" if instead else ""
        raise AttributeError(f"module {module!r} has no attribute {name!r}{hint}", name=name)
    path, _, attribute = place.partition(":")
    found = importlib.import_module(path)
    return getattr(found, attribute) if attribute else found


def also_by(**old):
    """Decorates a function some of whose arguments had other names: the old name, and today's."""

    def decorate(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            for before, now in old.items():
                if before in kwargs:
                    if now in kwargs:
                        raise TypeError(f"{function.__name__}() got {now!r} and its older name {before!r}")
                    kwargs[now] = kwargs.pop(before)
            return function(*args, **kwargs)

        return call

    return decorate
