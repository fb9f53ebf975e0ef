"""The npm package's remote calls: Node as a server and as a client through our proxy and TVM's, and frames that are hostile."""

import contextlib
import json
import pathlib
import shutil
import socket
import struct
import subprocess

import numpy as np
import pytest
import tvm
from ends import ROOT, free_port, ours, ours_behind
from tvm import rpc

PACKAGE = ROOT / "packages" / "npm"
COMMAND = ROOT / "build" / "relaxide"
#: Doubles what it is given.
DOUBLE = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")):
        with R.dataflow():
            gv = R.add(x, x)
            R.output(gv)
        return gv
"""
#: Node has a WebSocket of its own since 22, and one behind an option since 20.
FLAGS = ["--experimental-websocket", "--no-warnings"]
HEAD = f"""
import assert from "node:assert";
import {{ readFileSync }} from "node:fs";
import {{ connect, serve, RelaxideError }} from {json.dumps((PACKAGE / "rpc.js").as_uri())};
"""
#: A function of two results, and one that doubles.
TWO_FUNCTIONS = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), k: R.Tensor(("n", 4), "int64")):
        with R.dataflow():
            gv = (R.multiply(x, R.const(2, "float32")), R.add(k, R.const(1, "int64")))
            R.output(gv)
        return gv

    @R.function
    def twice(x: R.Tensor(("n", 4), "float32")):
        with R.dataflow():
            gv = R.add(x, x)
            R.output(gv)
        return gv
"""


def has_websocket():
    if shutil.which("node") is None:
        return False
    asked = subprocess.run(["node", *FLAGS, "-e", "process.exit(typeof WebSocket === 'function' ? 0 : 1)"], capture_output=True)
    return asked.returncode == 0


pytestmark = pytest.mark.skipif(not has_websocket(), reason="there is no Node with a WebSocket")


def compiled(folder, program, name, *options):
    source = folder / "model.relax"
    source.write_text(program)
    subprocess.run([COMMAND, "compile", "-q", *options, source, "-o", folder / name], check=True)
    return folder / name


def compiled_to_wasm(folder, program):
    if not COMMAND.exists() or not (COMMAND.resolve().parent / "relaxide_runtime.wasm").exists():
        pytest.skip("the command or the runtime for WebAssembly is not built")
    return compiled(folder, program, "model.wasm", "--target", "wasm")


@contextlib.contextmanager
def our_proxy(*options):
    web = free_port()
    with ours("proxy", "--silent", "--web-port", web, *options) as process:
        yield process.port, web


@contextlib.contextmanager
def tvm_proxy():
    pytest.importorskip("tornado", reason="TVM's proxy needs tornado")
    from tvm.rpc.proxy import Proxy

    web = free_port()
    proxy = Proxy("127.0.0.1", port=free_port(), port_end=65000, web_port=web)
    try:
        yield proxy.port, web
    finally:
        proxy.terminate()


@contextlib.contextmanager
def node_server(folder, web, options=""):
    """A server in Node; it says when it waits."""
    script = folder / "server.mjs"
    script.write_text(f"""{HEAD}
const functions = {{
  "app.scale": (x, by) => ({{ ...x, shape: x.shape, dtype: x.dtype, data: x.data.map((v) => v * by) }}),
  "app.refuse": () => {{ throw new RelaxideError("ValueError", "not today"); }},
  "app.counter": () => {{ let count = 0; return () => (count += 1); }},
  "app.join": (...parts) => parts.join("-"),
  "app.bytes": (bytes) => new Uint8Array([...bytes].reverse()),
  "app.list": () => [1, "two", 3.5],
}};
const onError = (error) => console.log(`failed: ${{error.kind}}: ${{error.message}}`);
serve("ws://127.0.0.1:{web}/ws", {{ key: "page", functions, pause: 50, onError, {options} }});
""")
    process = subprocess.Popen(["node", *FLAGS, script], stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def in_node(folder, text):
    script = folder / "client.mjs"
    script.write_text(HEAD + text + '\nconsole.log("done");\n')
    done = subprocess.run(["node", *FLAGS, script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("make_proxy", [our_proxy, tvm_proxy])
def test_node_serves_clients_of_tvm(tmp_path, make_proxy):
    with make_proxy() as (port, web), node_server(tmp_path, web):
        for _ in range(2):
            session = rpc.connect("127.0.0.1", port, key="page", session_timeout=30)
            x = np.arange(12, dtype="float32").reshape(3, 4)
            there = tvm.runtime.tensor(x, session.cpu())
            np.testing.assert_array_equal(there.numpy(), x)
            np.testing.assert_array_equal(session.get_function("app.scale")(there, 3).numpy(), x * 3)
            np.testing.assert_array_equal(session.get_function("testing.echo")(there).numpy(), x)
            count = session.get_function("app.counter")()
            assert [count(), count()] == [1, 2]
            assert session.get_function("app.join")("a", 7, 2.5) == "a-7-2.5"
            assert bytes(session.get_function("app.bytes")(bytearray(b"ab\0c"))) == b"c\0ba"
            listed = session.get_function("app.list")()
            item = session.get_function("ffi.ArrayGetItem")
            assert [item(listed, i) for i in range(session.get_function("ffi.ArraySize")(listed))] == [1, "two", 3.5]
            with pytest.raises(Exception, match="ValueError: not today"):
                session.get_function("app.refuse")()
            session.upload(bytearray(b"content"), "file")
            assert session.download("file") == b"content"
            with pytest.raises(AttributeError):
                session.get_function("app.none")
            del there, count, listed, item, session


def test_python_runs_and_times_a_model_in_node(tmp_path):
    module = compiled_to_wasm(tmp_path, TWO_FUNCTIONS)
    with our_proxy() as (port, web), node_server(tmp_path, web):
        session = rpc.connect("127.0.0.1", port, key="page", session_timeout=60)
        session.upload(str(module))
        vm = tvm.relax.VirtualMachine(session.load_module("model.wasm"), session.cpu())
        x, k = np.arange(8, dtype="float32").reshape(2, 4), np.arange(8).reshape(2, 4)
        there = [tvm.runtime.tensor(array, session.cpu()) for array in (x, k)]
        np.testing.assert_array_equal(vm["twice"](there[0]).numpy(), 2 * x)
        vm.set_input("main", *there)
        vm.invoke_stateful("main")
        for found, wanted in zip(vm.get_outputs("main"), (2 * x, k + 1)):
            np.testing.assert_array_equal(found.numpy(), wanted)
        timed = vm.time_evaluator("twice", session.cpu(), number=3, repeat=2)(there[0])
        assert len(timed.results) == 2 and min(timed.results) > 0
        with pytest.raises(Exception, match="no parameter|has no|shape|ValueError"):
            vm["twice"](there[1])
        # The session goes on.
        np.testing.assert_array_equal(vm["twice"](there[0]).numpy(), 2 * x)


@pytest.mark.parametrize("client", ["tvm", "relaxide"])
def test_a_session_is_made_around_a_module(tmp_path, client):
    module = compiled_to_wasm(tmp_path, DOUBLE).read_bytes()
    their = tvm if client == "tvm" else pytest.importorskip("relaxide")
    import relaxide.rpc

    connect = rpc.connect if client == "tvm" else relaxide.rpc.connect
    x = np.arange(8, dtype="float32").reshape(2, 4)
    with our_proxy() as (port, web), node_server(tmp_path, web):

        def session_of(*constructor):
            return connect("127.0.0.1", port, key="page", session_timeout=60, session_constructor_args=list(constructor))

        for _ in range(2):
            session = session_of("rpc.WasmSession", module)
            vm = their.relax.VirtualMachine(session.system_lib(), session.cpu(0))
            np.testing.assert_array_equal(vm["main"](their.runtime.tensor(x, session.cpu(0))).numpy(), 2 * x)
            del vm, session
        # The bytes of a module with nothing in it, which another runtime may have made.
        empty = b"\0asm\1\0\0\0"
        for constructor, problem in [
            (["rpc.WasmSession", empty], "another runtime inside; compile the program with the target `wasm`"),
            (["rpc.WasmSession", b"ELF"], "3 bytes are no module"),
            (["rpc.WasmSession"], "made of the bytes of a module"),
            (["rpc.Other", module], 'no session constructor "rpc.Other" here'),
        ]:
            with pytest.raises(Exception, match=problem):
                session_of(*constructor)
        # Without a module there is no library.
        with pytest.raises(AttributeError, match="ffi.SystemLib"):
            connect("127.0.0.1", port, key="page", session_timeout=60).system_lib()


def test_node_is_a_client_of_a_native_server(tmp_path):
    folder = json.dumps(str(tmp_path))
    with our_proxy("--web-clients") as (port, web), ours_behind(port, "native"):
        has_model = COMMAND.exists()
        if has_model:
            compiled(tmp_path, DOUBLE, "model.so")
        in_node(tmp_path, f"""
const session = await connect("ws://127.0.0.1:{web}/ws", {{ key: "native", timeout: 30 }});
const x = await session.tensor("float32", [2, 4], [0, 1, 2, 3, 4, 5, 6, 7]);
assert.deepEqual([...(await x.toArray())], [0, 1, 2, 3, 4, 5, 6, 7]);
const shape = await (await session.function("ffi.Shape")).call(3, 4);
assert.equal(await (await session.function("rpc.testing.GetShapeElem")).call(shape, 1), 4);
await assert.rejects(session.function("no.such"), (error) => error.kind === "AttributeError");
await assert.rejects(session.loadModule("none.so"), RelaxideError);
const large = new Float64Array(5_000_000).map((_, i) => i);
assert.deepEqual(await (await session.from(large)).toArray(), large);
await session.upload("file", new Uint8Array([1, 0, 2]));
assert.deepEqual([...(await session.download("file"))], [1, 0, 2]);
if ({json.dumps(has_model)}) {{
  await session.upload("model.so", new Uint8Array(readFileSync(`${{{folder}}}/model.so`)));
  const model = await session.loadModel("model.so");
  const y = await model.call("main", x);
  assert.deepEqual([y.dtype, ...y.shape], ["float32", 2, 4]);
  assert.deepEqual([...(await y.toArray())], [0, 2, 4, 6, 8, 10, 12, 14]);
  y.dispose();
}}
x.dispose();
await assert.rejects(() => (async () => session.call(1n, [x]))(), /disposed/);
session.close();
await assert.rejects(session.function("ffi.Shape"), (error) => error.kind === "ConnectionError");
""")


def test_clients_come_by_websocket_only_where_they_may(tmp_path):
    with our_proxy() as (port, web), ours_behind(port, "native"):
        in_node(tmp_path, f"""
await assert.rejects(connect("ws://127.0.0.1:{web}/ws", {{ key: "native" }}), /is not there/);
""")


def upgrade(web, origin=None, host=None):
    """A WebSocket of its own; the answer's first line and the socket."""
    one = socket.create_connection(("127.0.0.1", web))
    lines = ["GET /ws HTTP/1.1", f"Host: {host or f'127.0.0.1:{web}'}", "Upgrade: websocket", "Connection: Upgrade"]
    lines += ["Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]
    lines += [f"Origin: {origin}"] if origin is not None else []
    one.sendall("\r\n".join([*lines, "", ""]).encode())
    one.settimeout(10)
    answer = b""
    while b"\r\n\r\n" not in answer:
        part = one.recv(4096)
        if not part:
            break
        answer += part
    return answer.split(b"\r\n")[0].decode(), one


def frame(payload, opcode=2):
    """A masked frame, as browsers send them."""
    length = struct.pack("!BBH", 0x80 | opcode, 0x80 | 126, len(payload)) if len(payload) > 125 else struct.pack("!BB", 0x80 | opcode, 0x80 | len(payload))
    return length + b"\0\0\0\0" + payload


def test_pages_of_others_and_broken_frames_get_nowhere(tmp_path):
    with our_proxy("--web-origins", "https://example.invalid") as (port, web):
        for origin, host, status in [
            (None, None, "101"),
            (f"http://127.0.0.1:{web}", None, "101"),
            ("https://example.invalid", None, "101"),
            ("https://onnx.ai", None, "403"),
            (f"http://onnx.ai:{web}", f"onnx.ai:{web}", "403"),
            ("null", None, "403"),
        ]:
            line, one = upgrade(web, origin, host)
            one.close()
            assert status in line, (origin, line)
        hello = struct.pack("<ii", 0xFF271, 11) + b"server:page"
        for bytes_ in [
            b"\xff" * 64,
            frame(b"text", opcode=1),
            frame(b"\0" * 8),
            frame(struct.pack("<ii", 0xFF271, 1 << 30)),
            frame(struct.pack("<ii", 0xFF271, -1)),
            frame(struct.pack("<ii", 0xFF271, 4) + b"\xff\xfe\xfd\xfc"),
            # A frame that claims more than any memory has.
            struct.pack("!BBQ", 0x82, 0x80 | 127, 1 << 62) + b"\0\0\0\0",
            # No mask, which browsers must have.
            struct.pack("!BB", 0x82, len(hello)) + hello,
        ]:
            _, one = upgrade(web)
            one.sendall(bytes_)
            with one, contextlib.suppress(ConnectionError):
                while one.recv(4096):
                    pass
        with node_server(tmp_path, web):
            session = rpc.connect("127.0.0.1", port, key="page", session_timeout=30)
            assert session.get_function("app.join")("still", "here") == "still-here"


def raw_client(port):
    one = socket.create_connection(("127.0.0.1", port))
    one.settimeout(10)
    one.sendall(struct.pack("<ii", 0xFF271, 11) + b"client:page")
    assert one.recv(4, socket.MSG_WAITALL) == struct.pack("<i", 0xFF271)
    (length,) = struct.unpack("<i", one.recv(4, socket.MSG_WAITALL))
    assert one.recv(length, socket.MSG_WAITALL) == b"server:page"
    return one


def packet(code, body=b""):
    return struct.pack("<Qi", 4 + len(body), code) + body


INIT = packet(2, struct.pack("<Q", 5) + b"0.8.0" + struct.pack("<i", 0))


def test_nothing_that_a_client_sends_ends_a_server_in_node(tmp_path):
    """Requests that are wrong are answered; what cannot be read ends the session, and the next one is served."""
    pointer = lambda value: struct.pack("<iQ", 4, value)  # noqa: E731
    view = lambda data, shape, offset=0: struct.pack("<QiiiBBH", data, 1, 0, len(shape), 2, 32, 1) + struct.pack(f"<{len(shape)}qQ", *shape, offset)  # noqa: E731
    answered = [
        packet(3, struct.pack("<Qi", 999, 0)),
        packet(6, view(4096, [4]) + struct.pack("<Q", 16)),
        packet(6, view(0, [1 << 40]) + struct.pack("<Q", 1 << 42)),
        packet(7, view(12345, [1]) + struct.pack("<Q", 4) + b"abcd"),
        packet(10, struct.pack("<i", 1) + pointer(77)),
        packet(13, struct.pack("<i", 2) + struct.pack("<iii", 6, 1, 0) + struct.pack("<iq", 1, 1 << 50)),
        packet(13, struct.pack("<i", 2) + struct.pack("<iii", 6, 1, 0) + struct.pack("<iq", 1, -5)),
        packet(14, struct.pack("<i", 2) + struct.pack("<iii", 6, 1, 0) + pointer(64)),
        packet(12, struct.pack("<i", 0)),
        packet(16, struct.pack("<i", 0)),
        packet(99, struct.pack("<i", 0)),
    ]
    ended = [
        struct.pack("<Q", 1 << 60),
        struct.pack("<Q", 2),
        packet(3, struct.pack("<Qi", 1, 1 << 30)),
        packet(9, struct.pack("<iiQ", 1, 8, 1 << 40)),
        packet(9, struct.pack("<ii", 1, 12345)),
        packet(7, struct.pack("<Qiii", 0, 1, 0, 1 << 20)),
        packet(7, view(4096, [-3])),
    ]
    with our_proxy() as (port, web), node_server(tmp_path, web):
        with raw_client(port) as one:
            one.sendall(packet(9, struct.pack("<i", 0)) + INIT)
            codes = []
            for _ in range(2):
                length, code = struct.unpack("<Qi", one.recv(12, socket.MSG_WAITALL))
                one.recv(length - 4, socket.MSG_WAITALL) if length > 4 else b""
                codes.append(code)
            assert codes == [5, 4]
            for bytes_ in answered:
                one.sendall(bytes_)
                length, code = struct.unpack("<Qi", one.recv(12, socket.MSG_WAITALL))
                one.recv(length - 4, socket.MSG_WAITALL)
                assert code in (4, 5), bytes_
        for bytes_ in ended:
            with raw_client(port) as one:
                one.sendall(INIT + bytes_)
                while one.recv(4096):
                    pass
        session = rpc.connect("127.0.0.1", port, key="page", session_timeout=30)
        assert session.get_function("app.join")("still", "here") == "still-here"
