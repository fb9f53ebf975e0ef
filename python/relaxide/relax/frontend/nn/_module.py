"""Modules, the building blocks of models, and effects, the state that their calls hand on."""

from . import _tree
from .subroutine import SubroutineMixin


class Effect:
    """State of a model that its functions take and give back: caches, output. Written by authors of such state."""

    def emit_init(self, name_hint, builder):
        """Write what makes the first state; returns its variables."""
        raise NotImplementedError(f"{type(self).__name__} does not say how its state begins (`emit_init`)")

    def create(self, name_hint):
        """Fresh variables through which a function takes the state."""
        raise NotImplementedError(f"{type(self).__name__} does not say what its state is (`create`)")

    def set_state(self, state_vars):
        """Go on from the state in these variables."""
        raise NotImplementedError(f"{type(self).__name__} does not take a state (`set_state`)")

    def finalize(self):
        """The variables of the state that a function gives back."""
        raise NotImplementedError(f"{type(self).__name__} does not give its state back (`finalize`)")

    def to(self, dtype=None):
        """Change the element type of the state, where it has one."""


class Module(SubroutineMixin):
    """The base of all modules: a class with parameters and modules as attributes, and methods over tensors::

        class Net(nn.Module):
            def __init__(self):
                self.fc = nn.Linear(784, 10)

            def forward(self, x):
                return nn.op.relu(self.fc(x))

        mod, params = Net().export_tvm({"forward": {"x": nn.spec.Tensor(["n", 784], "float32")}})

    With ``define_subroutine = True`` in a class, ``forward`` becomes a function of the program that is called.
    """

    def named_parameters(self, prefix=""):
        """``(name, parameter)`` of this module and those in it, names joined by dots."""
        yield from _tree.parameters(self, prefix)

    def parameters(self):
        """The parameters of this module and those in it."""
        for _, parameter in self.named_parameters():
            yield parameter

    def state_dict(self, *, prefix="", destination=None):
        """Parameters by name; they are added to ``destination`` where one is given."""
        destination = {} if destination is None else destination
        destination.update(_tree.parameters(self, prefix))
        return destination

    def load_state_dict(self, state_dict, strict=True):
        """Take the values of another model's parameters.

        Returns
        -------
        (list of str, list of str)
            Parameters that got no value, and names that are no parameters here; with ``strict`` either is a ``KeyError``.
        """
        own = dict(self.named_parameters())
        unexpected = [name for name in state_dict if name not in own]
        missing = [name for name in own if name not in state_dict]
        if strict and (missing or unexpected):
            raise KeyError(f"Missing keys: {missing}, Unexpected keys: {unexpected}")
        for name, value in state_dict.items():
            if name in own:
                if value.data is None:
                    raise ValueError(f"Parameter {name} is not set to any concrete tensor")
                own[name].data = value.data
        return missing, unexpected

    def __call__(self, *args, **kwargs):
        forward = getattr(self, "forward", None)
        if forward is None:
            raise NotImplementedError(f"Module {type(self)} does not have a `forward` method")
        return forward(*args, **kwargs)

    def to(self, dtype=None):
        """Change the element type of all parameters and effects below, and of an attribute ``dtype``."""
        for _, value in _tree.members(self):
            convert = getattr(value, "to", None)
            if callable(convert):
                convert(dtype=dtype)
        if dtype is not None and isinstance(getattr(self, "dtype", None), str):
            self.dtype = dtype

    def export_tvm(self, spec, debug=False, allow_extern=False):
        """The model as a program.

        Parameters
        ----------
        spec : dict or ModuleSpec
            For each method to export the specifications of its arguments by name.
        debug : bool
            Let methods print and call debug functions (:func:`op.print_`, :func:`op.debug_func`).
        allow_extern : bool
            Return external modules too; without it their use is a ``ValueError``.

        Returns
        -------
        (IRModule, list of (str, Parameter)) or (IRModule, list of (str, Parameter), list of ExternModule)
        """
        from .exporter import Exporter
        from .spec import ModuleSpec

        mod, params, externs = Exporter(debug=debug).build(ModuleSpec.from_raw(spec, self))
        if allow_extern:
            return mod, params, externs
        if externs:
            raise ValueError("the model uses external modules: export it with `allow_extern=True` to get them too")
        return mod, params

    def jit(self, spec, device="cpu", pipeline="default_build", out_format="torch", debug=False):
        """Compile the model and load it: a callable for each method.

        Parameters
        ----------
        spec : dict, list or ModuleSpec
            As for :meth:`export_tvm`.
        device : str or Device
            Where it runs.
        pipeline : str, pass or None
            The passes over the program.
        out_format : str
            ``"torch"``: methods take and give tensors of PyTorch. ``"tvm"``: the machine itself and the parameters' values.
        debug : bool
            As for :meth:`export_tvm`.
        """
        from .jit import jit

        return jit(self, spec, device, pipeline, out_format, debug)


__all__ = ["Effect", "Module"]
