"""Relay: the functional language of TVM's releases up to 0.19, with the names that it had there.

::

    x = relay.var("x", shape=(1, 784))
    w = relay.var("w", shape=(10, 784))
    mod = tvm.IRModule.from_expr(relay.Function([x, w], relay.nn.softmax(relay.nn.dense(x, w))))
    exe = relay.vm.compile(mod, target="llvm")
    print(tvm.runtime.vm.VirtualMachine(exe, tvm.cpu()).invoke("main", image, weights))

``to_relax`` makes a Relax module of one, so that it gets the whole of that compiler.
"""

from .. import _core
from .._core import IRModule as _RelaxModule
from ..runtime.params import load_param_dict, save_param_dict
from . import adt, analysis, expr, module, op, parser, prelude, qnn, testing, transform, ty, vm
from .adt import Clause, Constructor, Match, Pattern, PatternConstructor, PatternTuple, PatternVar, PatternWildcard, TypeData
from .build_module import build
from .executor import create_executor
from .expr import Call, Constant, Expr, ExprWithOp, Function, GlobalVar, If, Let, Op, RefCreate, RefRead, RefWrite
from .expr import RelayExpr, Tuple, TupleGetItem, TupleWrapper, Var, bind, const, var
from .module import IRModule, fromtext, load_json, parse, parse_expr, save_json
from .op import annotation, image, memory, nn, random, vision
from .prelude import Prelude
from .scope_builder import ScopeBuilder
from .ty import Any, FuncType, GlobalTypeVar, IncompleteType, RefType, RelayRefType, TensorType, TupleType, Type, TypeCall
from .ty import TypeVar, scalar_type
from .frontend import from_relax
from . import frontend


def to_relax(mod):
    """The program as a Relax module. What has no form there is refused at its line."""
    return _core.relay_to_relax(module.module_of(mod)._node)


def optimize(mod, target=None, params=None):
    """A module after the passes that ``build`` runs, and the parameters that are left."""
    mod = vm.bind_params(module.module_of(mod), params)
    passes = ["SimplifyInference", "EliminateCommonSubexpr", "SimplifyExpr", "FoldConstant", "FoldScaleAxis", "CanonicalizeOps"]
    mod = transform.Sequential([getattr(transform, name)() for name in passes])(mod)
    return mod, {}


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(op, name)


_RelaxModule._relay = module
