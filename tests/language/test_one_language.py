"""TVM and Relaxide read what the other prints, and mean the same by it.

The modules are the programs of ``tests/answers``, as written and with their operators lowered by TVM, and what TVM makes of
real networks; with ``RELAXIDE_DEEP=1`` all are lowered, otherwise some. Where TVM does not read what it prints itself, it is not
asked to read what Relaxide prints.
"""

import os
import pathlib
import sys

import pytest
import tvm
from tvm import relax as tvm_relax

import relaxide
from relaxide.script import from_source

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / place) for place in ("answers", "interop", "models")]

import compile_with_tvm  # noqa: E402
import corpus  # noqa: E402
import zoo  # noqa: E402
from source import load  # noqa: E402

DEEP = os.environ.get("RELAXIDE_DEEP") == "1"
#: Networks, and the shape at which TVM imports each.
NETWORKS = {"det": (1, 3, 64, 96), "rec": (1, 3, 48, 160), "cls": (1, 3, 48, 192), "magika": (1, 2048)}

PROGRAMS = corpus.usual()


def text_of(module):
    return module.script(show_meta=True)


#: Modules that TVM does not read back from its own print.
UNREADABLE = []


def tvm_reads(text, module, name):
    """Holds what TVM reads against a module; not where TVM does not even read its own print of that module."""
    try:
        tvm.ir.assert_structural_equal(tvm.script.from_source(text), module)
    except Exception:
        try:
            tvm.ir.assert_structural_equal(tvm.script.from_source(text_of(module)), module)
        except Exception:
            UNREADABLE.append(name)
            return
        raise


def check(name, theirs, ours=None):
    """Holds TVM's module against Relaxide's, which is read from TVM's print where it is not given."""
    read = from_source(text_of(theirs))
    if ours is not None:
        relaxide.ir.assert_structural_equal(read, ours)
    text = text_of(read)
    assert text_of(from_source(text)) == text
    tvm_reads(text, theirs, name)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_programs(program, tmp_path):
    theirs, ours = load(program, "tvm", tmp_path), load(program, "relaxide", tmp_path)
    check(program.name, theirs, ours)
    if DEEP or PROGRAMS.index(program) % 5 == 0:
        check(f"{program.name}, lowered", tvm_relax.transform.LegalizeOps()(theirs))


@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name, tmp_path):
    model = zoo.MODELS[name]
    shape = f"{model.input}={','.join(map(str, NETWORKS[name]))}"
    module = compile_with_tvm.imported(tmp_path, name, model.path, shape, keep_params_in_input=True)
    # Weights are arguments: their print would be megabytes of text.
    module, _ = tvm_relax.frontend.detach_params(module)
    check(name, module)
    if DEEP:
        check(f"{name}, lowered", tvm_relax.transform.LegalizeOps()(module))


def test_few_are_unreadable():
    assert len(set(UNREADABLE)) <= 12, UNREADABLE
