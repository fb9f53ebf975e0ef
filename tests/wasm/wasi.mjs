// Runs a WebAssembly module for WASI, as cargo calls what it has compiled: `node wasi.mjs MODULE ARGUMENT...`. The module sees the
// folder that it is called in, and a folder for temporary files.

import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { WASI } from "node:wasi";

const [path, ...args] = process.argv.slice(2);
const preopens = { ".": process.cwd(), [process.cwd()]: process.cwd(), "/tmp": tmpdir() };
const wasi = new WASI({ version: "preview1", args: [path, ...args], env: { ...process.env, TMPDIR: "/tmp" }, preopens });
const module = await WebAssembly.compile(await readFile(path));
process.exitCode = wasi.start(await WebAssembly.instantiate(module, wasi.getImportObject()));
