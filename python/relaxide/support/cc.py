"""Compilers of C that are on the machine. Relaxide itself needs none."""

import os
import shutil
import subprocess


def get_cc():
    """The compiler of C++: what ``CXX`` or ``CC`` says, else ``g++``, ``clang++``, ``gcc`` or ``clang``; None where none is there."""
    for name in (os.environ.get("CXX"), os.environ.get("CC"), "g++", "clang++", "gcc", "clang"):
        if name and shutil.which(name):
            return name
    return None


def _run(command, cwd=None, env=None):
    merged = {**os.environ, **(env or {})}
    done = subprocess.run(command, cwd=cwd, env=merged, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        text = (done.stdout + done.stderr).strip()
        raise RuntimeError(f"the compiler failed ({done.returncode}).\ncommand line: {' '.join(command)}\n{text}")
    return done.stdout


def _compiler(cc):
    cc = cc or get_cc()
    if cc is None:
        raise ValueError("no compiler of C was found: install gcc or clang, or name one with `cc=` or in CXX")
    return cc.split()


def _listed(values):
    if values is None:
        return []
    return [values] if isinstance(values, str) else list(values)


def _inputs(objects):
    """The files, those that end in ``.c`` as C, which compilers of C++ would take for their own language."""
    inputs = []
    for file in _listed(objects):
        inputs += ["-x", "c", file, "-x", "none"] if str(file).endswith(".c") else [file]
    return inputs


def create_shared(output, objects, options=None, cc=None, cwd=None, ccache_env=None):
    """Link files into a shared library.

    Parameters
    ----------
    output : str
        The library.
    objects : list of str
        Object files, sources or archives.
    options : list of str, optional
        More options.
    cc : str, optional
        The compiler.
    cwd : str, optional
        Where it runs.
    ccache_env : dict, optional
        Environment of ``ccache``, which then runs in front of it.
    """
    command = [*_wrapped(ccache_env), *_compiler(cc), "-shared", "-fPIC", "-o", output, *_inputs(objects), *_listed(options)]
    _run(command, cwd, ccache_env)


def create_executable(output, objects, options=None, cc=None, cwd=None, ccache_env=None):
    """Link files into a program; the parameters are those of :func:`create_shared`."""
    command = [*_wrapped(ccache_env), *_compiler(cc), "-o", output, *_inputs(objects), *_listed(options)]
    _run(command, cwd, ccache_env)


def _wrapped(ccache_env):
    if not ccache_env:
        return []
    if not shutil.which("ccache"):
        raise RuntimeError("`ccache` is not installed, and its environment is given")
    return ["ccache"]


def create_staticlib(output, inputs, ar=None):
    """Put object files into an archive; those of archives among them included."""
    import tempfile

    from . import tar

    with tempfile.TemporaryDirectory() as folder:
        files = tar.normalize_file_list_by_unpacking_tars(_Folder(folder), _listed(inputs))
        _run([*(ar or "ar").split(), "-crs", output, *files])


class _Folder:
    def __init__(self, path):
        self.path = path

    def relpath(self, name):
        return os.path.join(self.path, name)


def get_global_symbol_section_map(path, *, nm=None):
    """The global symbols of a library, each with the letter of its section as ``nm`` has it."""
    text = _run([*(nm or "nm").split(), "-g", "-P", path])
    found = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 2:
            found[words[0]] = words[1]
    return found


def get_target_by_dump_machine(compiler):
    """A function that gives a compiler's own triple, or None where it does not say."""

    def triple():
        if not compiler:
            return None
        try:
            return _run([compiler, "-dumpmachine"]).strip() or None
        except (RuntimeError, OSError):
            return None

    return triple


def cross_compiler(compile_func, options=None, output_format=None, get_target_triple=None, add_files=None):
    """A function that links with a given compiler, for ``export_library(fcompile=...)``.

    Parameters
    ----------
    compile_func : str or callable
        The compiler, or a function of output, objects and options.
    options : list of str, optional
        Options that are always given.
    output_format : str, optional
        The ending of what it makes, such as ``so``.
    get_target_triple : callable, optional
        Gives the triple that it links for.
    add_files : list of str, optional
        Files that are always added.
    """
    fixed, extra = _listed(options), _listed(add_files)
    if callable(compile_func):
        link = compile_func
    else:
        path = compile_func

        def link(outputs, objects, options=None, **kwargs):
            create_shared(outputs, objects, options, cc=path, **kwargs)

    def compile_with(outputs, objects, options=None, **kwargs):
        link(outputs, _listed(objects) + extra, options=fixed + _listed(options), **kwargs)

    if not output_format and hasattr(compile_func, "output_format"):
        output_format = compile_func.output_format
    compile_with.output_format = output_format or "so"
    if get_target_triple is None and not callable(compile_func):
        get_target_triple = get_target_by_dump_machine(compile_func)
    compile_with.get_target_triple = get_target_triple or getattr(compile_func, "get_target_triple", None)
    return compile_with


create_shared.output_format = "so"
create_shared.get_target_triple = get_target_by_dump_machine(get_cc())
