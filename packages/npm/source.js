// Where the bytes of a module come from.

const isNode = typeof process !== "undefined" && process.versions?.node !== undefined;

/** The module behind a source, compiled. */
export async function compiled(source, { onProgress } = {}) {
  if (source instanceof WebAssembly.Module) return source;
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return WebAssembly.compile(source);
  if (typeof source === "string" || source instanceof URL) {
    const file = isNode ? await fileOf(source) : undefined;
    if (file !== undefined) {
      onProgress?.(file.byteLength, file.byteLength);
      return WebAssembly.compile(file);
    }
    source = await fetch(source);
  }
  if (typeof Response === "undefined" || !(source instanceof Response)) {
    throw new TypeError("a model is loaded from bytes, a URL or path, a Response, or a WebAssembly.Module");
  }
  if (!source.ok) throw new Error(`cannot load ${source.url}: the server answers ${source.status} ${source.statusText}`);
  const isStreamed = onProgress === undefined && source.headers.get("content-type") === "application/wasm";
  return isStreamed ? WebAssembly.compileStreaming(source) : WebAssembly.compile(await bytesOf(source, onProgress));
}

/** The bytes of a file in Node; nothing for what is no file. */
async function fileOf(source) {
  const isUrl = source instanceof URL || /^[a-z][a-z0-9+.-]+:/i.test(source);
  if (isUrl && new URL(source).protocol !== "file:") return undefined;
  const { readFile } = await import("node:fs/promises");
  return readFile(isUrl ? new URL(source) : source);
}

/** The bytes of a response. `onProgress` is told how many are there, of how many if the server says so. */
async function bytesOf(response, onProgress) {
  if (onProgress === undefined || response.body === null) return response.arrayBuffer();
  // A compressed answer says how long it is compressed, which its parts are not.
  const length = response.headers.get("content-encoding") ? null : response.headers.get("content-length");
  const total = length === null ? undefined : Number(length);
  const parts = [];
  let loaded = 0;
  for (const reader = response.body.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    loaded += value.byteLength;
    onProgress(loaded, total);
  }
  return new Blob(parts).arrayBuffer();
}
