"""How programs are written as text: options, and the class of what has a text."""

from ..ir.base import Scriptable


class PrinterConfig:
    """Options of a text, by name; see :meth:`relaxide.ir.base.Scriptable.script`, which has the same.

    ``binding_names`` holds the name that ``name`` gives. Others than those of :meth:`Scriptable.script` are a TypeError.
    """

    _DEFAULTS = {
        "show_meta": False,
        "ir_prefix": "I",
        "module_alias": "cls",
        "buffer_dtype": "float32",
        "int_dtype": "int32",
        "float_dtype": "void",
        "verbose_expr": False,
        "indent_spaces": 4,
        "print_line_numbers": False,
        "num_context_lines": -1,
        "syntax_sugar": True,
        "show_object_address": False,
        "show_all_ty": True,
        "extra_config": None,
        "path_to_underline": None,
        "path_to_annotate": None,
        "obj_to_underline": None,
        "obj_to_annotate": None,
    }

    def __init__(self, *, name=None, **options):
        unknown = sorted(set(options) - set(self._DEFAULTS))
        if unknown:
            raise TypeError(f"a text has no option {unknown[0]!r}")
        self.binding_names = [] if name is None else [name]
        for key, default in self._DEFAULTS.items():
            value = options.get(key, default)
            setattr(self, key, default if value is None else value)
        #: Whether paths that are underlined stand in front of the text.
        self.render_invisible_path_info = (self.extra_config or {}).get("render_invisible_path_info", True)

    def options(self):
        """The options that differ from what they are by default."""
        return {key: getattr(self, key) for key, default in self._DEFAULTS.items() if getattr(self, key) != default}


def _script(obj, config):
    options = config.options()
    if hasattr(obj, "script"):
        return obj.script(**options)
    from ..ir._underlined import underlined

    tell = config.render_invisible_path_info
    return underlined(obj, False, paths=config.path_to_underline or (), objects=config.obj_to_underline or (), tell=tell)


_relax_script = _script

__all__ = ["PrinterConfig", "Scriptable"]
