"""Object graphs that older versions saved, brought to the names of today."""

import json

#: Nodes that moved, by what stood in front of their names.
_MOVED = {
    "arith.": {
        "sym.": "Analyzer CanonicalExpr ConstIntBound IntervalSet IterMapExpr IterMapResult IterMark IterSplitExpr IterSumExpr ModularSet "
        "PresburgerSet RewriteSimplifierStats SplitExpr SumExpr"
    },
    "tirx.": {
        "ir.prim.": "Cast Add Sub Mul Div Mod FloorDiv FloorMod Min Max EQ NE LT LE GT GE And Or Not Select Let Ramp Broadcast Shuffle",
        "s_tir.": "SBlock SBlockRealize MatchBufferRegion TensorIntrin",
        "te.": "CommReducer Reduce",
        "ir.": "Var",
    },
    "relax.expr.": {"ir.": "Var"},
}
_RENAMED = {
    f"{old}{name}": f"{new}{name}" for old, places in _MOVED.items() for new, names in places.items() for name in names.split()
}
_VARIABLES = ("ir.Var", "relax.expr.DataflowVar")


def get_version(jgraph):
    """The version that saved a graph, which is given as Python's value of the JSON text. A KeyError where it says none."""
    return jgraph["metadata"]["tvm_version"]


def create_updater(node_map, from_ver, to_ver):
    """A function that changes the nodes of a graph.

    Parameters
    ----------
    node_map : dict of str to function or list of functions
        For kinds of nodes, functions of a node and of the list of all that return what takes the node's place.
    from_ver : str
        How the version begins of graphs that it takes; others are an AssertionError.
    to_ver : str
        The version that graphs have behind it.

    Returns
    -------
    function
        Of a graph, which it changes and returns.
    """

    def update(graph):
        version = get_version(graph)
        assert version.startswith(from_ver), f"the graph is of version {version}, not {from_ver}"
        nodes = graph["nodes"]
        for place, node in enumerate(nodes):
            steps = node_map.get(node["type"]) or []
            for step in steps if isinstance(steps, list) else [steps]:
                node = step(node, nodes)
            nodes[place] = node
        graph["metadata"]["tvm_version"] = to_ver
        return graph

    return update


def upgrade_json(json_str):
    """The text of a graph with the names of nodes and fields that are read today.

    Parameters
    ----------
    json_str : str
        What ``save_json`` of TVM 0.26, or of an early 0.27, wrote.

    Raises
    ------
    ValueError
        The text is in the format of TVM 0.16 and older; :func:`relaxide.ir.load_json` reads modules of Relay in that.
    """
    return json.dumps(_upgraded(json.loads(json_str)), indent=2)


def as_written_here(json_str):
    """The text of a graph that TVM wrote as this package writes it: places in files hold the file's name, not a node that has it."""
    graph = _upgraded(json.loads(json_str))
    nodes = graph.get("nodes", [])
    notes = None
    for node in list(nodes):
        if node["type"] == "ir.Span" and "source_name" in node["data"]:
            if notes is None:
                notes = len(nodes)
                nodes.append({"type": "ffi.Array", "data": []})
            node["data"].update(source=node["data"].pop("source_name"), notes=notes)
        elif node["type"] == "ir.SourceName":
            node["type"] = "ffi.String"
    return json.dumps(graph)


def _upgraded(graph):
    if "metadata" not in graph and "attrs" in graph:
        raise ValueError("the graph is in the format of TVM 0.16 and older, which load_json reads where it is a module of Relay")
    for node in graph.get("nodes", ()):
        node["type"] = _RENAMED.get(node["type"], node["type"])
        fields = node.get("data")
        if node["type"] in _VARIABLES and "name" not in fields and "name_hint" in fields:
            fields["name"] = fields.pop("name_hint")
    return graph
