"""A reader that goes through a tree and gives each node to the function that its dialect has for it."""

from contextlib import ExitStack, contextmanager

from ... import ScriptMacro
from . import dispatch, doc
from .diagnostics import Diagnostics, Source
from .evaluator import eval_assign, eval_expr

_DEFAULT = "default"


class VarTableFrame:
    """The names of one block of a program."""

    def __init__(self):
        self.vars = set()

    def add(self, var):
        """Add a name; one that is there is a ValueError."""
        if var in self.vars:
            raise ValueError(f"Variable {var} already defined in current scope")
        self.vars.add(var)

    def pop_all(self, fn_pop):
        """Take all names out, each to a function."""
        for var in self.vars:
            fn_pop(var)
        self.vars.clear()


class VarTable:
    """The names that hold at a place of a program, with their values, block by block."""

    def __init__(self):
        self.frames, self.name2value = [], {}

    @contextmanager
    def with_frame(self):
        """A block; its names are forgotten at its end."""
        self.frames.append(VarTableFrame())
        try:
            yield
        finally:
            self.frames.pop().pop_all(lambda name: self.name2value[name].pop())

    def add(self, var, value, allow_shadowing=False):
        """Give a name a value in the innermost block. In one block it has one value, unless it may be given another."""
        values = self.name2value.setdefault(var, [])
        if allow_shadowing and var in self.frames[-1].vars:
            values[-1] = value
            return
        self.frames[-1].add(var)
        values.append(value)

    def get(self):
        """All names with their values."""
        return {name: values[-1] for name, values in self.name2value.items() if values}

    def get_at_depth(self, depth):
        """The names that the outermost ``depth`` blocks know."""
        counts = {}
        for frame in self.frames[:depth]:
            for name in frame.vars:
                counts[name] = counts.get(name, 0) + 1
        return {name: self.name2value[name][count - 1] for name, count in counts.items()}

    def contains_in_current_frame(self, name):
        """Whether the innermost block gives a name a value."""
        return bool(self.frames) and name in self.frames[-1].vars

    def exist(self, value):
        """Whether a name has a value: this very object."""
        return any(value is known for values in self.name2value.values() for known in values)


class Parser(doc.NodeVisitor):
    """Goes through the tree of a source and calls, for each statement, what :func:`.dispatch.register` has for it in the dialect that holds.

    The dialect of a function is the one that its decorator names in an attribute ``dispatch_token``.
    """

    current_class = None
    base_py_module_context = False

    def __init__(self, source, function_annotations, absent_params=None):
        self.diag = Diagnostics(source)
        self.dispatch_tokens = [_DEFAULT]
        self.function_annotations, self.absent_params = function_annotations, absent_params
        self.var_table = VarTable()
        self.inside_function = False

    def parse(self, extra_vars=None):
        """Read the source; ``extra_vars`` are values by name."""
        with self.var_table.with_frame():
            for name, value in (extra_vars or {}).items():
                self.var_table.add(name, value)
            return self.visit(self.diag.source.as_ast())

    def get_dispatch_token(self, node):
        """The dialect of a function, which its last decorator names."""
        if not isinstance(node, doc.FunctionDef):
            self.report_error(node, "Only can get dispatch token for function.")
        if not node.decorator_list:
            self.report_error(node, "Function must be decorated")
        token = getattr(self.eval_expr(node.decorator_list[-1]), "dispatch_token", None)
        if token is None:
            self.report_error(node, "The parser does not support this function")
        return token

    @contextmanager
    def with_dispatch_token(self, token):
        """A dialect holds for a while."""
        self.dispatch_tokens.append(token)
        try:
            yield
        finally:
            self.dispatch_tokens.pop()

    @contextmanager
    def with_diag_source(self, source):
        """Errors are about another source for a while."""
        before, self.diag = self.diag, Diagnostics(source)
        try:
            yield
        finally:
            self.diag = before

    @contextmanager
    def with_source_span(self, node):
        """Nodes that are built meanwhile have the place of a node."""
        before, self._span = getattr(self, "_span", None), self.diag.source.to_span(node)
        try:
            yield self._span
        finally:
            self._span = before

    def annotate_current_source_span(self, value):
        """What is built, as it is: nodes here have their places from where they were written."""
        return value

    def set_class_context(self, class_name, is_base_py_module=False):
        """Say which class is read."""
        self.current_class, self.base_py_module_context = class_name, is_base_py_module

    def eval_expr(self, node, extra_vars=None):
        """The value of an expression over the names that hold."""
        try:
            return eval_expr(self, node, {**self.var_table.get(), **(extra_vars or {})})
        except Exception as error:
            self.report_error(node, error)

    def eval_assign(self, target, source, bind_value, allow_shadowing=False):
        """Give the names of a target values: what ``bind_value(parser, node, name, value)`` makes of each."""
        given = eval_assign(self, target, source)
        for name, value in given.items():
            self.var_table.add(name, bind_value(self, target, name, value), allow_shadowing)
        return given

    def report_error(self, node, err):
        """Raise a DiagnosticError at the place of a node."""
        from ....error import DiagnosticError

        if isinstance(err, DiagnosticError):
            raise err
        self.diag.error(node, str(err))

    def visit(self, node):
        """Read a node or a list of them."""
        if isinstance(node, (list, tuple)):
            return self.visit_body(node)
        if not isinstance(node, doc.AST):
            return None
        name = type(node).__name__
        own = getattr(self, f"visit_{name}", None)
        return self.generic_visit(node) if own is None else own(node)

    def visit_body(self, node):
        """Read statements in order; gives the value of the last."""
        result = None
        for stmt in node:
            result = self.visit(stmt)
        return result

    def visit_Module(self, node):
        """Read a program."""
        return self.visit_body(node.body)

    def visit_tvm_annotation(self, node):
        """The value of a type that is written behind a colon."""
        return self._given("tvm_annotation", node)

    def visit_tvm_declare_function(self, node):
        """Declare a function of a class before its functions are read."""
        with self.with_dispatch_token(self.get_dispatch_token(node)):
            return self._given("tvm_declare_function", node)

    def visit_FunctionDef(self, node):
        """Read a function in its dialect."""
        with ExitStack() as stack:
            if node.decorator_list:
                stack.enter_context(self.with_dispatch_token(self.get_dispatch_token(node)))
            return self._given("FunctionDef", node)

    def _given(self, name, node):
        """What the dialect has for a node."""
        found = dispatch.get(self.dispatch_tokens[-1], name) or dispatch.get(_DEFAULT, name)
        if found is None:
            self.report_error(node, f"the dialect {self.dispatch_tokens[-1]!r} reads no {name}")
        try:
            return found(self, node)
        except Exception as error:
            self.report_error(node, error)


def _visitor(name):
    def visit(self, node):
        return self._given(name, node)

    visit.__name__ = visit.__qualname__ = f"visit_{name}"
    visit.__doc__ = f"Read a node {name} in the dialect that holds."
    return visit


for _name in "ClassDef ImportFrom arguments For While With Assign AnnAssign Expr If AugAssign Assert Return Continue Break Nonlocal".split():
    setattr(Parser, f"visit_{_name}", _visitor(_name))


def collect_signature_type_vars(parser, node):
    """The lengths that the annotations of a function's parameters name in text, such as ``R.Tensor(("n", 4))``: a variable for each."""
    from ....tirx import Var

    names = {}

    def look(part):
        if isinstance(part, doc.Constant) and isinstance(part.value, str):
            for word in part.value.replace("*", " ").replace("+", " ").replace("-", " ").replace("//", " ").split():
                if word.isidentifier():
                    names.setdefault(word, Var(word, "int64"))
        elif isinstance(part, doc.AST):
            for field in part._FIELDS:
                look(getattr(part, field))
        elif isinstance(part, (list, tuple)):
            for one in part:
                look(one)

    for arg in node.args.args:
        if isinstance(arg.annotation, doc.Call):
            # A whole text as the element type is no length.
            look([one for one in arg.annotation.args if isinstance(one, (doc.Tuple, doc.List))])
    return names


__all__ = ["Parser", "ScriptMacro", "Source", "VarTable", "VarTableFrame", "collect_signature_type_vars"]
