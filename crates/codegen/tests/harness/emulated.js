// Carries out calls of kernels in WebAssembly for a test: reads calls from its input and answers on its output, as emulated.c
// does on a machine of its own. emulated.rs is the other side.
"use strict";
const fs = require("fs");

let wasm, memory, heap, error, openWorkspaces = 0;
const entries = new Map();
const table = () => wasm.exports.__indirect_function_table;
const bytes = () => new Uint8Array(memory.buffer);
const view = () => new DataView(memory.buffer);

// Memory behind everything that the linker placed; given back as a stack is.
function room(size) {
  const at = (heap + 63) & ~63;
  heap = at + size + 64;
  if (heap > memory.buffer.byteLength) memory.grow(((heap - memory.buffer.byteLength) >> 16) + 16);
  return at;
}

function text(at) {
  const all = bytes();
  let end = at;
  while (all[end]) ++end;
  return Buffer.from(all.subarray(at, end)).toString();
}

function launch(task, environment, tasks) {
  const outer = heap, count = tasks || 3, group = room(8);
  view().setInt32(group, 0, true);
  view().setInt32(group + 4, count, true);
  let code = 0;
  for (let i = count - 1; i >= 0 && code === 0; --i) code = table().get(task)(i, group, environment);
  heap = outer;
  return code;
}

const runtime = {
  TVMFFIErrorSetRaisedFromCStr: (kind, message) => { error = [text(kind), text(message)]; },
  TVMFFIEnvModRegisterSystemLibSymbol: (name, entry) => { entries.set(text(name), entry); return 0; },
  TVMBackendParallelLaunch: launch,
  RelaxideParallelFor: (task, environment, extent) =>
    launch(task, environment, Number(extent < 1n ? 1n : extent > 6n ? 6n : extent)),
  TVMBackendAllocWorkspace: (device, id, size) => { ++openWorkspaces; return room(Number(size)); },
  TVMBackendFreeWorkspace: () => { --openWorkspaces; return 0; },
  memcpy: (to, from, size) => { bytes().copyWithin(to, from, from + size); return to; },
  memmove: (to, from, size) => { bytes().copyWithin(to, from, from + size); return to; },
  memset: (to, value, size) => { bytes().fill(value, to, to + size); return to; },
  fma: (a, b, c) => a * b + c,
  fmod: (a, b) => a % b,
};

// The C library's functions of floats: those of doubles, rounded.
function imported(name) {
  if (runtime[name]) return runtime[name];
  if (Math[name]) return Math[name];
  const wide = name.endsWith("f") && (runtime[name.slice(0, -1)] || Math[name.slice(0, -1)]);
  if (wide) return (...args) => Math.fround(wide(...args));
  return () => { throw new Error(`${name} is called`); };
}

const input = { chunk: Buffer.alloc(1 << 16), left: 0, at: 0 };
function take(size) {
  const out = Buffer.alloc(size);
  for (let got = 0; got < size;) {
    if (input.at === input.left) {
      input.at = 0;
      input.left = fs.readSync(0, input.chunk, 0, input.chunk.length, null);
      if (input.left === 0) process.exit(0);
    }
    const part = Math.min(size - got, input.left - input.at);
    input.chunk.copy(out, got, input.at, input.at + part);
    input.at += part;
    got += part;
  }
  return out;
}
const takeCount = () => take(4).readUInt32LE();

function give(buffer) {
  for (let at = 0; at < buffer.length;) at += fs.writeSync(1, buffer, at);
}
function giveNumber(number) {
  const out = Buffer.alloc(4);
  out.writeInt32LE(number);
  give(out);
}
function giveText(string) {
  const out = Buffer.from(string);
  giveNumber(out.length);
  give(out);
}

// A tensor's description, with addresses of four bytes, and where its data is.
function takeTensor() {
  const device = take(8), ndim = takeCount(), dtype = take(4), offset = take(8), [hasStrides, isNull] = take(2);
  const shape = take(8 * ndim), strides = hasStrides ? take(8 * ndim) : null;
  const contents = take(Number(take(8).readBigUInt64LE()));
  const place = (buffer) => { const at = room(buffer.length); bytes().set(buffer, at); return at; };
  const data = place(contents), shapeAt = place(shape), stridesAt = strides ? place(strides) : 0, at = room(40);
  view().setUint32(at, isNull ? 0 : data, true);
  bytes().set(device, at + 4);
  view().setInt32(at + 12, ndim, true);
  bytes().set(dtype, at + 16);
  view().setUint32(at + 20, shapeAt, true);
  view().setUint32(at + 24, stridesAt, true);
  bytes().set(offset, at + 32);
  return { at, data, size: contents.length };
}

function answer() {
  const name = take(takeCount()).toString(), outer = heap;
  const tensors = Array.from({ length: takeCount() }, takeTensor);
  const scalars = takeCount(), packed = take(16 * scalars);
  const args = room(16 * (tensors.length + scalars)), result = room(16);
  bytes().fill(0, args, result + 16);
  tensors.forEach((tensor, i) => {
    view().setInt32(args + 16 * i, 7, true);
    view().setUint32(args + 16 * i + 8, tensor.at, true);
  });
  bytes().set(packed, args + 16 * tensors.length);
  error = ["", ""];
  const code = table().get(entries.get(name))(0, args, tensors.length + scalars, result);
  giveNumber(code);
  error.forEach(giveText);
  give(Buffer.from(bytes().subarray(result, result + 16)));
  giveNumber(openWorkspaces);
  for (const tensor of tensors) give(Buffer.from(bytes().subarray(tensor.data, tensor.data + tensor.size)));
  heap = outer;
}

const module_ = new WebAssembly.Module(fs.readFileSync(process.argv[2]));
const env = Object.fromEntries(WebAssembly.Module.imports(module_).map(({ name }) => [name, imported(name)]));
wasm = new WebAssembly.Instance(module_, { env });
memory = wasm.exports.memory;
heap = wasm.exports.__heap_base.value;
wasm.exports.__wasm_call_ctors();
for (;;) answer();
