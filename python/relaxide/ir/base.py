"""What all nodes share: text, places in sources, comparison, and JSON."""

import re

from .. import _core
from ..error import InternalError
from ..ffi import Object, get_first_structural_mismatch, register_object, serialization
from ..ffi import structural_equal as _equal
from ..ffi import structural_hash as _hash
from . import _api


class Scriptable:
    """What has a form in TVMScript."""

    def script(
        self, *, show_meta=False, verbose_expr=False, indent_spaces=4, print_line_numbers=False, num_context_lines=-1, **style
    ):
        """The node as TVMScript. ``show_meta`` adds the section that holds tensor constants.

        ``verbose_expr`` writes in front of a scalar or statement what the variables and buffers in it are, ``indent_spaces`` is by how
        many spaces a block is indented, ``print_line_numbers`` writes the number of each line.

        ``module_alias`` is the name that functions have for their module, ``cls`` if nothing is said; without one they say ``Module``.

        ``path_to_underline`` and ``obj_to_underline`` are lists of what is underlined, ``path_to_annotate`` and ``obj_to_annotate`` give
        remarks by path and by object; around underlined lines, ``num_context_lines`` are shown. The paths stand in front of the text,
        unless ``extra_config`` has ``render_invisible_path_info`` as False. Other options about the look have no effect.
        """
        _known_style(style)
        if _MARKS.intersection(name for name, value in style.items() if value):
            return _marked(self, show_meta, print_line_numbers, num_context_lines, style)
        text = _api.ir.Script(self).removesuffix("\n")
        if style.get("module_alias") is not None:
            text = _with_alias(text, style["module_alias"])
        if verbose_expr:
            from ._declarations import declarations

            text = "\n".join([*declarations(self), text])
        if indent_spaces != 4 or print_line_numbers:
            text = _laid_out(text, indent_spaces, print_line_numbers)
        return text

    # In TVM these differ in how types of both languages print; here they print in one way.
    _relax_script = script

    def show(self, *args, **options):
        """Print the node as TVMScript, coloured where the output shows colours."""
        from ._highlight import show

        _known_style(dict.fromkeys(("style", "black_format")[: len(args)]))
        show(self.script(**{name: value for name, value in options.items() if name not in ("style", "black_format")}))


def _with_alias(text, alias):
    """A text whose functions have another name for their module, or none."""
    lines = [line for line in text.split("\n") if alias or line.strip() != "cls = Module"]
    return re.sub(r"\bcls\b(?= = Module$|\.)", alias or "Module", "\n".join(lines), flags=re.MULTILINE)


def _laid_out(text, indent, numbers):
    """A text with another indentation, and with the numbers of its lines."""
    from ..script.printer._underline import decorated

    lines = []
    for line in text.split("\n"):
        begin = len(line) - len(line.lstrip(" "))
        lines.append(" " * (begin // 4 * indent + begin % 4) + line[begin:])
    text = "\n".join(lines)
    return decorated(text, [], True, len(text)) if numbers else text


#: Options of TVM's printer about the look of a text. The look is one here.
_STYLE = frozenset(
    "name ir_prefix tir_prefix relax_prefix module_alias buffer_dtype int_dtype float_dtype verbose_expr indent_spaces "
    "print_line_numbers num_context_lines syntax_sugar show_object_address show_all_ty path_to_underline "
    "path_to_annotate obj_to_underline obj_to_annotate extra_config style black_format show_all_struct_info".split()
)


#: Options that say where something stands in a text.
_MARKS = frozenset(("path_to_underline", "path_to_annotate", "obj_to_underline", "obj_to_annotate"))


def _marked(node, show_meta, numbers, context, style):
    from ._underlined import underlined

    tell = (style.get("extra_config") or {}).get("render_invisible_path_info", True)
    paths, objects = (style.get(name) or () for name in ("path_to_underline", "obj_to_underline"))
    remarks = (style.get(name) for name in ("path_to_annotate", "obj_to_annotate"))
    return underlined(node, show_meta, numbers, context, paths, objects, *remarks, tell)


def _known_style(style):
    unknown = set(style) - _STYLE
    if unknown:
        raise TypeError(f"script() has no option {sorted(unknown)[0]!r}")
    for name in ("ir_prefix", "tir_prefix", "relax_prefix"):
        if style.get(name) and not str(style[name]).isidentifier():
            raise InternalError(f"{name} is a name that a text can import a module by, which {style[name]!r} is not")


class Node(Object):
    """The base of all nodes."""

    def __repr__(self):
        try:
            return _api.ir.Script(self).removesuffix("\n")
        except TypeError:
            return Object.__repr__(self)

    __str__ = __repr__

    def __reduce__(self):
        return load_json, (save_json(self),)

    def __getstate__(self):
        return {"handle": save_json(self)}

    def __setstate__(self, state):
        """Become the node of a state. Nodes do not change: one that is made already takes the state of an equal one only."""
        made = load_json(state["handle"])
        if self.__chandle__() == 0:
            self.__init_handle_by_constructor__(lambda: made)
        elif not _equal(self, made, map_free_vars=True):
            raise TypeError("a node does not change: make a new one")


@register_object("ir.Span")
class Span(Node):
    """A range of a source text; lines and columns count from 1."""

    def __init__(self, source_name, line, end_line, column, end_column):
        source = getattr(source_name, "name", source_name)
        self.__init_handle_by_constructor__(_api.ir.Span, source, line, end_line, column, end_column)

    @property
    def source_name(self):
        """The file, or whatever names the source."""
        return SourceName(self.source)

    def __repr__(self):
        return f"Span({self.source}:{self.line}:{self.column})"


class SequentialSpan:
    """The places that one node comes from, where a pass has made it of several: ``spans``. Spans in a row within them are joined."""

    def __init__(self, spans):
        self.spans = [part for span in spans for part in (span.spans if isinstance(span, SequentialSpan) else [span])]

    def __repr__(self):
        return f"SequentialSpan({', '.join(map(repr, self.spans))})"


class SourceName(str):
    """What names a source text."""

    @property
    def name(self):
        """The name itself."""
        return str(self)


def _comparable(node):
    return node.functions if isinstance(node, _core.IRModule) else node


def structural_equal(lhs, rhs, map_free_vars=False, skip_tensor_content=False):
    """Whether two nodes have the same structure: names of variables do not count."""
    return _equal(lhs, rhs, map_free_vars, skip_tensor_content)


def structural_hash(node, map_free_vars=False, skip_tensor_content=False):
    """A number that is the same for nodes of the same structure."""
    return _hash(node, map_free_vars, skip_tensor_content)


def assert_structural_equal(lhs, rhs, map_free_vars=False):
    """Raise a ValueError that names the first difference unless two nodes have the same structure."""
    mismatch = get_first_structural_mismatch(lhs, rhs, map_free_vars)
    if mismatch is None:
        return
    left, right = mismatch
    raise ValueError(
        "StructuralEqual check failed, caused by lhs"
        f" at {left}:\n{_shown_around(lhs, left)}\nand rhs at {right}:\n{_shown_around(rhs, right)}"
    )


def _shown_around(node, path):
    """A node with its part that a path leads to underlined; the part alone where the node has no text."""
    if isinstance(node, (Scriptable, _core.IRModule)):
        return node.script(path_to_underline=[path], syntax_sugar=False)
    return _shown(node, path)


def _shown(node, path):
    """The part of a node that a path leads to, as text, as far as it can be followed."""
    for step in path.to_steps():
        try:
            if isinstance(node, _core.IRModule) and step.key == "functions":
                node = {var.name_hint: func for var, func in node.functions.items()}
            elif isinstance(step.key, str) and not isinstance(node, dict):
                node = node._field(step.key)
            else:
                node = node[step.key]
        except (AttributeError, KeyError, IndexError, TypeError):
            return "<missing>"
    if isinstance(node, Scriptable):
        return node.script()
    if isinstance(node, (tuple, list)) or hasattr(node, "_items"):
        return f"{len(node)} items"
    return repr(node)


def save_json(node):
    """A node, and all that it refers to, as text. A module of Relay is saved as TVM 0.16 saves it."""
    if type(node).__module__ == "relaxide.relay.module":
        from ..relay.module import save_json as save_relay

        return save_relay(node)
    from .. import __version__

    return serialization.to_json_graph_str(node, {"relaxide_version": _core.__version__, "tvm_version": __version__})


#: What graphs have that TVM wrote, and none of this package.
_OF_OTHERS = re.compile(r'"ir\.SourceName"|"tirx\.Var"|"relax\.expr\.Var"|"(ir\.Var|relax\.expr\.DataflowVar)", *"data": *\{[^{}]*"name_hint"')


def load_json(json_str):
    """The node of a text, of this package, or of TVM from 0.26 on; what TVM 0.6 to 0.16 saved is a module of Relay."""
    if '"b64ndarrays"' in json_str and '"root_index"' not in json_str:
        from ..relay.module import load_json as load_relay

        return load_relay(json_str)
    if _OF_OTHERS.search(json_str):
        from .json_compact import as_written_here

        json_str = as_written_here(json_str)
    return serialization.from_json_graph_str(json_str)


def deprecated(method_name, new_method_name):
    """A decorator for a function that another has taken the place of: a call warns, and calls it."""
    import functools
    import warnings

    def decorate(func):
        @functools.wraps(func)
        def call(*args, **kwargs):
            warnings.warn(f"{method_name} is deprecated, use {new_method_name} instead", stacklevel=2)
            return func(*args, **kwargs)

        return call

    return decorate


def __getattr__(name):
    # Functions of the registry are values that build on this module.
    if name == "EnvFunc":
        from .env_func import EnvFunc

        return EnvFunc
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
