"""A root with musl, BusyBox and a Python that is built for musl: what `scripts/empty-roots` tries wheels for musl in.

Debian has musl and a compiler for it, but no Python. Its sources of Python (without its patches, which look for packages elsewhere), libffi (which
`ctypes` calls through) and zlib (which pip unpacks by) are compiled with `musl-gcc` in a root of Debian.
"""

import shutil

#: The folder of a root in which lines of a shell run.
WORK = "work"

#: What the root that builds has.
NEEDS = ["gcc", "make", "musl-tools", "musl", "dpkg-dev", "linux-libc-dev", "busybox-static", "xz-utils", "python3"]
#: The version of Debian bookworm.
PYTHON = "3.11"

#: The release whose musl runs it: before 1.2.4, musl knows no relative relocations, without which NumPy's libraries end with a signal.
MUSL = "trixie"

#: The compiler as configure wants it: it says what system it is for, and finds the kernel's headers, which belong to no C library.
COMPILER = """#!/bin/sh
case $1 in --print-multiarch|-print-multiarch) echo x86_64-linux-musl; exit ;; esac
exec musl-gcc -idirafter /usr/include -idirafter /usr/include/x86_64-linux-gnu "$@"
"""

BUILD = f"""
sed -n "s/^deb /deb-src /p" /etc/apt/sources.list >/etc/apt/sources.list.d/source.list
apt-get update -qq
apt-get source -qq libffi zlib python{PYTHON}
export CFLAGS="-O1 -fPIC"
cd /{WORK}/zlib-*/ && CC=cc-musl ./configure --static --prefix=/opt/musl && make -s install
cd /{WORK}/libffi-*/ && ./configure --quiet CC=cc-musl --disable-shared --with-pic --disable-docs --disable-multi-os-directory --prefix=/opt/musl && make -s install
cd /{WORK} && mkdir python && tar -C python --strip-components 1 -xf python{PYTHON}_*.orig.tar.* && cd python
export PKG_CONFIG=false LIBFFI_INCLUDEDIR=/opt/musl/include
export CPPFLAGS=-I/opt/musl/include LDFLAGS=-L/opt/musl/lib
./configure --quiet CC=cc-musl --prefix=/usr/local --without-ensurepip --disable-test-modules
make -s -j2
make -s install DESTDIR=/{WORK}/out
sed "s/^deb \\([^ ]*\\) .*/deb \\1 {MUSL} main/" /etc/apt/sources.list >/etc/apt/sources.list.d/musl.list
apt-get update -qq
cd /{WORK} && apt-get download -qq musl/{MUSL} && dpkg-deb -x musl_*.deb musl
"""


def build(maker, root, inside):
    """Builds Python in the root `maker`, where `inside` runs lines of a shell, and lays out `root`."""
    compiler = maker / "usr/local/bin/cc-musl"
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    (maker / WORK / "build.sh").write_text("set -e\n" + BUILD)
    inside(f"sh /{WORK}/build.sh")
    lay_out(maker, root)


def lay_out(maker, root):
    """A root of what was built, and nothing else."""
    shutil.rmtree(root, ignore_errors=True)
    for folder in ["bin", "lib", "etc", "tmp", "proc", "dev", "root", "work", "usr/bin", "usr/lib"]:
        (root / folder).mkdir(parents=True)
    shutil.copytree(maker / "work/out/usr/local", root / "usr/local", symlinks=True)
    shutil.copy(maker / "work/musl/usr/lib/x86_64-linux-musl/libc.so", root / "lib/ld-musl-x86_64.so.1")
    shutil.copy(maker / "bin/busybox", root / "bin/busybox")
    for name in ["sh", "env", "mkdir", "rm", "cat", "ls"]:
        (root / "bin" / name).symlink_to("busybox")
    packages = root / f"usr/local/lib/python{PYTHON}/site-packages"
    shutil.rmtree(packages / "test", ignore_errors=True)
    [pip] = (root / f"usr/local/lib/python{PYTHON}/ensurepip/_bundled").glob("pip-*.whl")
    shutil.unpack_archive(pip, packages, "zip")
    program = root / "usr/local/bin/pip"
    program.write_text("#!/bin/sh\nexec python3 -m pip \"$@\"\n")
    program.chmod(0o755)
