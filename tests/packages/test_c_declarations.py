"""Packages that call the C interface by names and numbers are held against its one description, relaxide.h: the npm package, which knows no types,
and the Python wheel, which declares them anew. Java's is held against it in tests/java, C++ includes it."""

import ctypes
import importlib.util
import pathlib
import re
import types

import pytest

ROOT = pathlib.Path(__file__).parents[2]
TEXT = re.sub(r"/\*.*?\*/", "", (ROOT / "crates/capi/include/relaxide.h").read_text(), flags=re.S)
NPM = ROOT / "packages/npm"
#: What only WebAssembly modules have, behind the interface of every library (crates/capi/src/webassembly.rs), with the number of arguments.
MODULES_ALONE = {"memory_new": 1, "memory_free": 2, "weights_file": 2, "weights_take": 2, "panic_message": 0, "start": 0, "optional_builtins": 0}


def split(text):
    """The parts of a list between commas that are not inside of brackets or quotes."""
    parts, depth, quote, last = [""], 0, None, ""
    for c in text:
        if quote:
            quote = None if c == quote and last != "\\" else quote
        elif c in "\"'`":
            quote = c
        depth += not quote and (c in "([{") - (c in ")]}")
        if c == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += c
        last = c
    return [part.strip() for part in parts if part.strip()]


def enclosed(text, begin):
    """What stands between the parenthesis at `begin` and the one that ends it."""
    depth = 0
    for i in range(begin, len(text)):
        depth += (text[i] in "([{") - (text[i] in ")]}")
        if depth == 0:
            return text[begin + 1 : i]
    raise AssertionError(text[begin : begin + 60])


def functions():
    """The parameters of each function, as C has them."""
    found = re.findall(r"^(?:int|void|const char \*) ?\*?relaxide_(\w+)\((.*?)\);", TEXT, re.M | re.S)
    return {name: [] if params == "void" else split(" ".join(params.split())) for name, params in found}


def structs():
    """The fields of each structure: types and names."""
    found = re.findall(r"typedef struct (\w+) \{(.*?)\} \1;", TEXT, re.S)
    return {name: re.findall(r"([\w ]+?[ *]+)(\w+);", body) for name, body in found}


#: Sizes where addresses have four bytes; what is not here is a structure.
SIZES = {"uint8_t": 1, "uint16_t": 2, "int32_t": 4, "int64_t": 8, "size_t": 4}


def layout(name):
    """Where the fields of a structure are in a module's memory, its size, and what its addresses are multiples of."""
    places, at, most = {}, 0, 1
    for kind, field in structs()[name]:
        kind = kind.replace("const ", "").strip()
        size, align = (4, 4) if "*" in kind else (SIZES[kind],) * 2 if kind in SIZES else layout(kind)[1:]
        at = -(-at // align) * align
        places[field], at, most = at, at + size, max(most, align)
    return places, -(-at // most) * most, most


def test_the_header_is_read():
    assert len(functions()) > 45 and len(functions()["model_call"]) == 5 and functions()["version"] == []
    assert len(structs()) == 5 and layout("RelaxideDType") == ({"code": 0, "bits": 1, "lanes": 2}, 4, 2)


def scripts():
    """What the package calls: file, name of the function, number of arguments (None where it is not said there)."""
    for path in sorted(NPM.glob("*.js")):
        text = re.sub(r"//[^\n]*", "", path.read_text())
        for found in re.finditer(r'\.(call|result)\("([a-z]+_\w+)"', text):
            begin = text.index("(", found.start())
            count = len(split(enclosed(text, begin))) - 1
            yield path.name, found[2], count + (found[1] == "result")
        for found in re.finditer(r"\.exports\.relaxide_(\w+)(\()?", text):
            yield path.name, found[1], len(split(enclosed(text, found.end() - 1))) if found[2] else None
        # Hands its value and a place on.
        for found in re.finditer(r'#number\("(\w+)"', text):
            yield path.name, found[1], 2
        for found in re.finditer(r'\.free\("(\w+)"', text):
            yield path.name, f"{found[1]}_free", 1


def test_javascript_calls_what_the_header_declares():
    known = {name: len(params) for name, params in functions().items()}
    wrong, called = [], set()
    for file, name, count in scripts():
        called.add(name)
        if name not in known and name not in MODULES_ALONE:
            wrong.append(f"{file}: relaxide_{name} is not declared")
        elif count is not None and count != {**known, **MODULES_ALONE}[name]:
            wrong.append(f"{file}: relaxide_{name} takes {({**known, **MODULES_ALONE})[name]} arguments, not {count}")
    assert not wrong and len(called) > 20, wrong


def test_modules_export_what_javascript_calls():
    said = re.search(r'^interface="(.*?)"', (ROOT / "scripts/wasm-runtime").read_text(), re.M | re.S)[1].split()
    called = {name for _, name, _ in scripts()}
    assert called <= {*said, "optional_builtins"}, called - set(said)
    # Other hosts may call more.
    assert set(said) <= {*functions(), *MODULES_ALONE}


@pytest.mark.parametrize(("file", "table", "struct"), [("model.js", "PARAM", "RelaxideParamInfo"), ("tensor.js", "INFO", "RelaxideTensorInfo")])
def test_javascript_reads_descriptions_where_their_parts_are(file, table, struct):
    read = re.search(rf"const {table} = \{{(.*?)\}};", (NPM / file).read_text())[1]
    ours = {name: int(number) for name, number in re.findall(r"(\w+): (\d+)", read)}
    places, size, _ = layout(struct)
    # The last of ours is how much there is to be written to; in tensors' that may name the field, too.
    room = ours.pop("bytes")
    assert room >= size, f"{struct} has {size} bytes"
    assert ours == {name: places[name] for name in ours}


def test_javascript_knows_the_kinds_of_values():
    header = {name.lower(): int(number) for name, number in re.findall(r"RELAXIDE_(\w+) = (\d+)", TEXT)}
    said = re.search(r"const KIND = \{(.*?)\};", (NPM / "model.js").read_text())[1]
    ours = {name: int(number) for name, number in re.findall(r"(\w+): (\d+)", said)}
    assert ours == {name: number for name, number in header.items() if name != "other"}


@pytest.fixture(scope="module")
def wheel(monkeypatch_module):
    """The wheel's module of declarations, over a library that has every function and does nothing."""

    class Library(dict):
        def __getattr__(self, name):
            return self.setdefault(name, types.SimpleNamespace())

    opened = Library()
    monkeypatch_module.setattr(ctypes, "CDLL", lambda path: opened)
    spec = importlib.util.spec_from_file_location("declarations", ROOT / "packages/python-runtime/relaxide_runtime/_library.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, opened


@pytest.fixture(scope="module")
def monkeypatch_module():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


def c_type(declared, module):
    """What a parameter or field of C is in ctypes; the wheel has one type for all handles."""
    kind = re.sub(r"\bconst\b ?", "", re.sub(r"\w+$", "", declared) if re.search(r"[ *]\w+$", declared) else declared).replace(" ", "")
    stars = kind.count("*")
    base = kind.rstrip("*")
    plain = {
        "int": ctypes.c_int, "int32_t": ctypes.c_int32, "int64_t": ctypes.c_int64, "size_t": ctypes.c_size_t, "double": ctypes.c_double,
        "uint8_t": ctypes.c_uint8, "uint16_t": ctypes.c_uint16, "RelaxideKind": ctypes.c_int, "RelaxideDType": module.DType,
        "RelaxideTensorInfo": module.TensorInfo, "RelaxideFunctionInfo": module.FunctionInfo, "RelaxideParamInfo": module.ParamInfo,
    }
    if base in ("char", "void") or base not in plain:
        made, stars = (ctypes.c_char_p if base == "char" else ctypes.c_void_p), stars - 1
    else:
        made = plain[base]
    for _ in range(stars):
        made = ctypes.POINTER(made)
    return made


def test_the_wheel_declares_what_the_header_does(wheel):
    module, opened = wheel
    known = functions()
    for name, function in opened.items():
        params = known[name.removeprefix("relaxide_")]
        given = [c_type(param, module) for param in params]
        assert getattr(function, "argtypes", []) == given, f"{name}: {function.argtypes} for {params}"
    assert len(opened) > 25


@pytest.mark.parametrize("name", ["DType", "TensorInfo", "FunctionInfo", "ParamInfo"])
def test_the_wheel_lays_structures_out_as_the_header_does(wheel, name):
    module, _ = wheel
    wanted = []
    for kind, field in structs()[f"Relaxide{name}"]:
        if "RelaxideDevice" in kind:
            wanted += [(f"{field}_type", ctypes.c_int32), (f"{field}_id", ctypes.c_int32)]
        else:
            wanted.append((field, c_type(f"{kind.strip()} {field}" if "*" not in kind else f"{kind}{field}", module)))
    assert getattr(module, name)._fields_ == wanted
