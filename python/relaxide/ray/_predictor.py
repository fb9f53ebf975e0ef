"""Batches of a data set through a model."""

import numpy as np

from ._files import Shared


class Predictor:
    """A model in a process of Ray: called with the columns of a batch, it gives them and those of the results.

    Parameters
    ----------
    model : str, path or Shared
        A library that is on every machine under that path, or one of :func:`relaxide.ray.put`. Its first dimension is that of the rows.
    function : str
        The function to call.
    inputs : dict of str to str, optional
        By parameter, the column that it is; columns of the parameters' names where nothing is said.
    outputs : list of str, optional
        Columns of the results, in order; the names that the library has for them where nothing is said, or ``output_0`` and so on.
    keep : bool
        Whether the columns of the batch are among the results.
    threads : int
        How many threads kernels use: as many as Ray gives the process processors.
    """

    def __init__(self, model, function="main", inputs=None, outputs=None, keep=True, threads=1):
        from .. import cpu, relax
        from ..runtime import load_module, set_num_threads

        path = model.local() if isinstance(model, Shared) else str(model)
        set_num_threads(threads)
        machine = relax.VirtualMachine(load_module(path), cpu())
        name = machine.module["get_function_param_name"]
        self._parameters = [str(name(function, i)) for i in range(machine.module["get_function_arity"](function))]
        unknown = set(inputs or {}) - set(self._parameters)
        if unknown:
            raise ValueError(f"{function} has no parameter {', '.join(sorted(unknown))}; it has {', '.join(self._parameters)}")
        self._columns = [(inputs or {}).get(name, name) for name in self._parameters]
        self._names = list(outputs) if outputs is not None else machine.output_names(function)
        self._call, self._function, self._keep = machine[function], function, keep

    def __call__(self, batch):
        missing = [column for column in self._columns if column not in batch]
        if missing:
            raise KeyError(f"the batch has no column {', '.join(missing)}, which {self._function} takes; it has {', '.join(batch)}")
        results = self.run([batch[column] for column in self._columns])
        return {**(batch if self._keep else {}), **results}

    def run(self, arrays):
        """Results by name, of arrays in the order of the parameters."""
        from ..runtime import tensor

        found = self._call(*[tensor(np.ascontiguousarray(array)) for array in arrays])
        found = [found] if hasattr(found, "numpy") else list(found)
        names = self._names or [f"output_{i}" for i in range(len(found))]
        if len(names) != len(found):
            raise ValueError(f"{self._function} gives {len(found)} results, and {len(names)} are named: {', '.join(names)}")
        return {name: value.numpy() for name, value in zip(names, found)}


def predict(dataset, model, *, batch_size=256, concurrency=1, threads=1, function="main", inputs=None, outputs=None, keep=True, **options):
    """A data set with columns of results.

    Each row comes out once, also where a process or a machine is lost: its blocks are computed again elsewhere.

    Parameters
    ----------
    dataset : ray.data.Dataset
        The rows; their columns have the element types and shapes of the parameters, without the first dimension.
    model, function, inputs, outputs, keep, threads
        See :class:`Predictor`.
    batch_size : int
        Rows of a call.
    concurrency : int or (int, int)
        How many processes, or the least and the most.
    options
        More for ``Dataset.map_batches``, such as ``max_restarts``.

    Returns
    -------
    ray.data.Dataset
        Computed when it is read, as all of Ray's.
    """
    arguments = {"function": function, "inputs": inputs, "outputs": outputs, "keep": keep, "threads": threads}
    options.setdefault("num_cpus", threads)
    return dataset.map_batches(
        Predictor, fn_constructor_args=(model,), fn_constructor_kwargs=arguments, batch_size=batch_size, batch_format="numpy", concurrency=concurrency, **options
    )
