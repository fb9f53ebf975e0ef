"""Underlines and remarks in the text of a node: at what paths lead to, and at objects."""

from .. import _core
from ..ffi import Object
from ..script.printer._underline import decorated, merged
from . import _api

_HIDDEN = "Note: No visible object for this path is rendered in TVMScript."
_NEAREST = "Note: The underlined object is the nearest visible parent of this path."


def underlined(root, show_meta, numbers=False, context=-1, paths=(), objects=(), remarks_at=None, remarks_of=None, tell=True):
    """The text of a node with underlines below ``paths`` and ``objects``, and remarks beside what ``remarks_at`` (by paths) and
    ``remarks_of`` (by objects) name; with ``tell`` the paths stand in front of it. What a path leads to may have no text of its own:
    then it is about the nearest node around it that has one."""
    chains = [list(_along(root, path)) for path in paths]
    remarks = [(list(_along(root, path)), text) for path, text in (remarks_at or {}).items()]
    remarks += [([(0, node)], text) for node, text in (remarks_of or {}).items()]
    nodes = [node for chain in [*chains, *(chain for chain, _ in remarks)] for _, node in chain] + list(objects)
    text, spans_of = _text(root, nodes, show_meta)
    spans = [span for node in objects for span in spans_of(node)]
    notes = []
    for path, chain in zip(paths, chains):
        depth, found = next(((depth, spans_of(node)) for depth, node in reversed(chain) if spans_of(node)), (0, []))
        spans += found
        notes.append(f"Access path: {path}")
        if not found:
            notes.append(_HIDDEN)
        elif depth < len(path.to_steps()):
            notes.append(_NEAREST)
    places = [(next((spans_of(node) for _, node in reversed(chain) if spans_of(node)), [])[:1], told) for chain, told in remarks]
    for place, told in sorted(((place[0], told) for place, told in places if place), reverse=True):
        text, spans = _with_remark(text, spans, place, told)
    shown = decorated(text + "\n", merged(spans, _indents(text)), numbers, len(text) if context < 0 else context)[:-1]
    return "\n".join([*notes, "", shown]) if notes and tell else shown


def _along(root, path):
    """The nodes on the way of a path, with their depths, as far as it can be followed."""
    yield 0, root
    node = root
    for depth, step in enumerate(path.to_steps(), 1):
        try:
            node = _step(node, step.key)
        except (AttributeError, KeyError, IndexError, TypeError):
            return
        if isinstance(node, (Object, _core.IRModule)):
            yield depth, node


def _step(node, key):
    if isinstance(node, _core.IRModule):
        return {var.name_hint: func for var, func in node.functions.items()} if key == "functions" else getattr(node, key)
    if isinstance(key, str) and not isinstance(node, dict):
        return node._field(key)
    if isinstance(node, dict):
        return node[getattr(key, "name_hint", key)]
    return node[key]


def _text(root, nodes, show_meta):
    """The text of a node without its last line end, and a function from nodes to their spans."""
    made = _api.ir.ScriptSpans(root, [root, *nodes], show_meta)
    if made is None:
        # Other nodes than functions are one part.
        text = root.script() if hasattr(root, "script") else str(root)
        text = text.removesuffix("\n")
        return text, lambda node: [(0, len(text))] if node is root or _same(node, root) else []
    text = str(made[0]).removesuffix("\n")
    spans = [[(begin, min(end, len(text))) for begin, end in zip(flat[::2], flat[1::2])] for flat in map(list, made[1])]
    by_node = dict(zip(map(_identity, [root, *nodes]), spans))
    return text, lambda node: by_node.get(_identity(node), [])


def _same(left, right):
    return isinstance(left, Object) and left.same_as(right)


def _identity(node):
    return Object.__hash__(node) if isinstance(node, Object) else id(node)


def _indents(text):
    """Where lines end and what they are indented by, which has no underline."""
    place = 0
    for line in text.split("\n"):
        yield max(place - 1, 0), place + len(line) - len(line.lstrip(" "))
        place += len(line) + 1


def _with_remark(text, spans, place, told):
    """A remark behind what stands in one line, and above what takes several."""
    begin, end = place
    while begin < end and text[begin] in " \n":
        begin += 1
    while end > begin and text[end - 1] == "\n":
        end -= 1
    line = text.rfind("\n", 0, begin) + 1
    if "\n" in text[begin:end]:
        at, added = line, text[line:begin] + f"# {told}\n"
    else:
        at = text.find("\n", end)
        at, added = len(text) if at < 0 else at, f"  # {told}"
    moved = [(b + (len(added) if b >= at else 0), e + (len(added) if e > at else 0)) for b, e in spans]
    return text[:at] + added + text[at:], moved
