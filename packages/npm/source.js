// Where the bytes of modules and weights come from: URLs, paths, responses, or memory.

import { RelaxideError } from "./memory.js";

const isNode = typeof process !== "undefined" && process.versions?.node !== undefined;

/** How much of a file is read at a time. */
const PIECE = 1 << 22;

/** The module behind a source, compiled, and where it came from, if that is a place. */
export async function compiled(source, { onProgress } = {}) {
  const say = onProgress && ((loaded, total) => onProgress(loaded, total, "module"));
  if (source instanceof WebAssembly.Module) return { module: source };
  if (isBytes(source)) return { module: await WebAssembly.compile(source) };
  const { response, bytes, place } = await opened(source, "a model is loaded from bytes, a URL or path, a Response, or a WebAssembly.Module");
  if (bytes !== undefined) {
    say?.(bytes.byteLength, bytes.byteLength);
    return { module: await WebAssembly.compile(bytes), place };
  }
  const watched = say === undefined ? response : counted(response, say);
  const isStreamed = watched.headers.get("content-type")?.split(";")[0].trim() === "application/wasm";
  const module = isStreamed ? WebAssembly.compileStreaming(watched) : WebAssembly.compile(await watched.arrayBuffer());
  return { module: await module, place };
}

/** Has a file's content written into `size` bytes of memory as it arrives; `memory(at, length)` is a view of a part of it. `name` is the file
 * that is taken if no source is said, beside `place`. */
export async function fill({ source, name, place, size, memory, onProgress }) {
  if (source === undefined) {
    if (place === undefined) throw new RelaxideError("ValueError", `the model's weights are in another file, ${name}: say where with { weights }`);
    source = beside(place, name);
  }
  const wrong = (found) => new RelaxideError("ValueError", `the weights ${name} have ${found} bytes, where the model was compiled with ${size}`);
  let loaded = 0;
  const take = (piece) => {
    if (loaded + piece.byteLength > size) throw wrong(`more than ${size}`);
    memory(loaded, piece.byteLength).set(piece);
    loaded += piece.byteLength;
    onProgress?.(loaded, size, "weights");
  };
  if (isBytes(source)) {
    take(new Uint8Array(source.buffer ?? source, source.byteOffset ?? 0, source.byteLength));
  } else {
    const { response, file } = await opened(source, "weights are loaded from bytes, a URL or path, or a Response", { isWhole: false });
    if (file !== undefined) {
      for await (const piece of file) take(piece);
    } else {
      for (const reader = response.body.getReader(); ; ) {
        const { done, value } = await reader.read();
        if (done) break;
        take(value);
      }
    }
  }
  if (loaded !== size) throw wrong(loaded);
}

function isBytes(source) {
  return source instanceof ArrayBuffer || ArrayBuffer.isView(source);
}

/** What is behind a source: a response, or (in Node) the bytes of a file, or the file in pieces. */
async function opened(source, expected, { isWhole = true } = {}) {
  let place;
  if (typeof source === "string" || source instanceof URL) {
    const path = isNode ? pathOf(source) : undefined;
    if (path !== undefined) {
      const { createReadStream, promises } = await import("node:fs");
      if (isWhole) return { bytes: await promises.readFile(path), place: path };
      return { file: createReadStream(path, { highWaterMark: PIECE }), place: path };
    }
    place = source;
    source = await fetch(source);
  }
  if (typeof Response === "undefined" || !(source instanceof Response)) throw new TypeError(expected);
  if (!source.ok) throw new Error(`cannot load ${source.url || place}: the server answers ${source.status} ${source.statusText}`);
  return { response: source, place: source.url || place };
}

/** The path of a file in Node, as a text or a URL; nothing for what is no file. */
function pathOf(source) {
  const isUrl = source instanceof URL || /^[a-z][a-z0-9+.-]+:/i.test(source);
  if (isUrl && new URL(source).protocol !== "file:") return undefined;
  return isUrl ? new URL(source) : source;
}

/** The file of a name in the folder of another. */
function beside(place, name) {
  if (isNode && typeof place === "string" && pathOf(place) !== undefined) return place.replace(/[^/\\]*$/, () => name);
  const base = typeof document === "undefined" ? globalThis.location?.href : document.baseURI;
  return new URL(encodeURIComponent(name), new URL(place, base));
}

/** The response, whose reader is told how much has arrived, and of how much if the server says so. */
function counted(response, say) {
  if (response.body === null) return response;
  // A compressed answer says how long it is compressed, which its parts are not.
  const length = response.headers.get("content-encoding") ? null : response.headers.get("content-length");
  const total = length === null ? undefined : Number(length);
  let loaded = 0;
  const counter = new TransformStream({
    transform(piece, controller) {
      loaded += piece.byteLength;
      say(loaded, total);
      controller.enqueue(piece);
    },
  });
  const { status, statusText, headers } = response;
  return new Response(response.body.pipeThrough(counter), { status, statusText, headers });
}
