// Measures in Node: node.mjs FOLDER ONNXRUNTIME-WEB OPTIONS, where the folder has what web.py puts there. Answers with one line of JSON for
// each network. Time is the processor's, which both engines take on one thread: what else the machine does counts little.
import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { load } from "../../packages/npm/index.js";
import { measure } from "./measure.mjs";

const [folder, peer, options] = process.argv.slice(2);
const { names, ...limits } = JSON.parse(options);
const read = (file) => readFile(`${folder}/${file}`);
const clock = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};
const engines = { relaxide: { load } };
if (peer !== "") {
  const ort = await import(pathToFileURL(`${peer}/dist/ort.node.min.mjs`));
  ort.env.wasm.numThreads = 1;
  engines.onnxruntime = ort;
}
for (const name of names) {
  const described = JSON.parse(await readFile(`${folder}/${name}.json`));
  console.log(JSON.stringify({ name, ...(await measure(engines, described, read, { ...limits, clock })) }));
}
