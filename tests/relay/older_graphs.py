"""A saved graph as an older release of TVM would have written it: what each release had and had not, taken back step by step.

``python older_graphs.py 6 < new.json > old.json``
"""

import json
import sys

#: Fields of attributes that hold text.
TEXTS = """data_layout kernel_layout out_layout layout src_layout dst_layout mode pad_mode slice_mode ret_type method rounding
coordinate_transformation_mode rounding_method reduction equation weight_layout indexing output_format rounding compute_dtype""".split()
#: Keys that got or lost their prefix with 0.7.
PREFIXED = """Op TypeVar GlobalTypeVar TupleType FuncType IncompleteType TypeCall SourceName Span GlobalVar""".split()


def as_release(text, minor):
    """The graph of 0.16 as 0.``minor`` wrote it."""
    graph = json.loads(text)
    nodes = graph["nodes"]
    graph["attrs"]["tvm_version"] = f"0.{minor}.0"
    if minor < 13:
        _without(nodes, "global_infos", "struct_info_")
    if minor < 10:
        _without(nodes, "attrs", only="IRModule")
    if minor < 9:
        _without(nodes, "virtual_device_")
    if minor < 8:
        for node in nodes:
            _before_8(node)
    if minor < 7:
        _before_7(graph)
    return json.dumps(graph)


def _without(nodes, *names, only=None):
    for node in nodes:
        if only in (None, node["type_key"]):
            for name in names:
                node.get("attrs", {}).pop(name, None)


def _before_8(node):
    """Attributes as the first releases had them: of ``argmax`` those of any reduction, of shapes no zero."""
    attrs = node.get("attrs", {})
    key = node["type_key"]
    if key == "relay.attrs.ArgReduceAttrs":
        node["type_key"] = "relay.attrs.ReduceAttrs"
        attrs.pop("select_last_index")
    elif key == "relay.attrs.ReshapeAttrs":
        attrs.pop("allowzero")
        attrs["reverse"] = "0"
    elif key in ("relay.attrs.SplitAttrs", "relay.attrs.TakeAttrs"):
        attrs.pop("batch_dims", None)


def _before_7(graph):
    nodes = graph["nodes"]
    text_of = lambda number: nodes[int(number)].get("repr_str", "")
    for node in list(nodes):
        key, attrs = node["type_key"], node.get("attrs", {})
        if "name_hint" in attrs:
            attrs["name_hint"] = text_of(attrs["name_hint"])
        if key in ("TypeVar", "GlobalTypeVar"):
            # The name is that of a variable of the lower level.
            nodes.append({"type_key": "Variable", "attrs": {"dtype": "int32", "name": attrs.pop("name_hint")}})
            attrs["var"] = str(len(nodes) - 1)
        elif key.startswith("relay.attrs."):
            for name in TEXTS:
                if name in attrs and attrs[name].isdigit() and nodes[int(attrs[name])]["type_key"] == "runtime.String":
                    attrs[name] = text_of(attrs[name])
        elif key == "IRModule":
            attrs.pop("source_map", None)
            for name in ("global_var_map_", "global_type_var_map_"):
                nodes[int(attrs[name])]["type_key"] = "StrMap"
        elif key == "tir.Any":
            node["type_key"] = "Any"
    for node in nodes:
        key = node["type_key"]
        if "repr_str" in node and key in ("Op", "SourceName"):
            node["global_key"] = node.pop("repr_str")
        elif key == "runtime.String":
            node.clear()
            node.update({"type_key": "StringImm", "attrs": {"dtype": "handle", "value": "unused"}})
        if key in PREFIXED:
            node["type_key"] = f"relay.{key}"
        elif key == "IRModule":
            node["type_key"] = "relay.Module"


if __name__ == "__main__":
    print(as_release(sys.stdin.read(), int(sys.argv[1])))
