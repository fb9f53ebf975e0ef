"""Samples of dimensions, shapes at a sample, and tables of results."""

import random

from ....ir.expr import Var
from ....relax import ShapeType, TensorType

#: Shapes and element types.
INPUT_SHAPE_TYPE = list[tuple[tuple[int, ...], str]]


def get_func_name_from_gv(gv):
    """The name of a function of a module."""
    return gv.name_hint


def dym_var_sample_str(sample):
    """A sample of dimensions as text: ``n=64, m=128``."""
    return ", ".join(f"{getattr(var, 'name', var)}={value}" for var, value in sample.items())


def _length(dim, sample):
    """A dimension at a sample; names stand for dimensions, too."""
    if isinstance(dim, int):
        return dim
    if hasattr(dim, "value"):
        return int(dim.value)
    name = dim.name if isinstance(dim, Var) else str(dim)
    if name not in sample:
        raise ValueError(f"the sample {dym_var_sample_str(sample)} says nothing of the dimension {name}")
    return sample[name]


def populuate_input_shape(input_infos, dym_var_sample):
    """The shapes of inputs at a sample of dimensions.

    Parameters
    ----------
    input_infos : list of TensorType, ShapeType or tuple
        Types, or pairs of a shape and an element type; dimensions are numbers, variables or names. A ``ShapeType`` of one dimension stands
        for a number that is an argument.
    dym_var_sample : dict of str to int
        The dimensions.

    Returns
    -------
    list of tuple
        Pairs of a shape and an element type; ``((n,), "scalar")`` for a number.
    """
    shapes = []
    for info in input_infos:
        if isinstance(info, ShapeType):
            shapes.append(((_length(info.values[0], dym_var_sample),), "scalar"))
            continue
        shape, dtype = (info.shape, info.dtype) if isinstance(info, TensorType) else info
        shapes.append((tuple(_length(dim, dym_var_sample) for dim in shape), str(dtype)))
    return shapes


def default_dym_var_sample_func(dym_var_dict):
    """A random sample: from 2 to 128 for each dimension. The dictionary has the types of the dimensions, which are integers, by their names."""
    for name, dtype in dym_var_dict.items():
        if dtype not in ("int32", "int64"):
            raise TypeError(f"the dimension {name} is of type {dtype}, and only int32 and int64 are sampled")
    return {name: random.randint(2, 128) for name in dym_var_dict}


def print_results(bench_results, sort_by="WxTime(ms)", desc=True):
    """Print results as a table.

    Parameters
    ----------
    bench_results : list of dict
        Rows, which have the same columns.
    sort_by : str, optional
        The column that they are sorted by.
    desc : bool
        Whether the largest comes first.
    """
    rows = list(bench_results)
    columns = list(rows[0]) if rows else []
    if sort_by is not None and rows:
        if sort_by not in columns:
            raise ValueError(f"there is no column {sort_by!r}; there are {', '.join(columns)}")
        rows.sort(key=lambda row: row[sort_by], reverse=bool(desc))
    cells = [[_cell(row[column]) for column in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells)]
    for line in [columns, *cells]:
        print("  ".join(text.rjust(width) for text, width in zip(line, widths)))
    print()


def _cell(value):
    return f"{value:.4f}" if isinstance(value, float) else str(value)


__all__ = ["default_dym_var_sample_func", "dym_var_sample_str", "get_func_name_from_gv", "populuate_input_shape", "print_results"]
