// A program with types, for `tsc --noEmit --strict`. What is marked has to be an error.
import { load, Model, RelaxideError, Tensor, type Input, type Parameter, type Value } from "relaxide";
import { load as remote, RemoteModel, RemoteTensor } from "relaxide/worker";
import { connect, serve, RemoteTensor as There, type Session } from "relaxide/rpc";

async function here(bytes: Uint8Array<ArrayBuffer>): Promise<Float32Array> {
  const model: Model = await load(bytes, {
    weights: new Response(bytes),
    onProgress: (loaded, total, part) => console.log(part, total === undefined ? loaded : loaded / total),
  });
  const names: string[] = model.inputs.map(({ name }: Parameter) => name);
  const x: Tensor = model.tensor("float32", [3, 784]);
  const given: Record<string, Input> = { x, y: { shape: [2], data: [1, 2], dtype: "int32" }, z: new Float32Array(3) };
  const { scores } = model.run(given, { function: names[0] });
  const value: Value = model.call("main", x, 3, "text", [x, 2n]);
  if (value instanceof Tensor) value.dispose();
  // @ts-expect-error there is no such element type
  model.tensor("float33", [1]);
  // @ts-expect-error tensors come from models
  new Tensor();
  return scores.toArray() as Float32Array;
}

async function there(): Promise<RemoteTensor> {
  const model: RemoteModel = await remote("model.wasm", { onProgress: (loaded) => console.log(loaded) });
  try {
    const { scores } = await model.run({ x: { shape: [3, 784], data: new Float32Array(2352) } }, { transfer: true });
    const size: number = scores.data.length + scores.size;
    console.log(size, scores.dtype === "float32", (await model.call("main", scores)) === null);
    // @ts-expect-error results are promises
    model.run({}).scores;
    return scores;
  } catch (error) {
    if (error instanceof RelaxideError) console.log(error.kind, error.message);
    throw error;
  } finally {
    model.terminate();
  }
}

async function elsewhere(): Promise<There> {
  const session: Session = await connect("ws://127.0.0.1:8888/ws", { key: "board", timeout: 5 });
  const x = await session.tensor("float32", [2], [1, 2]);
  const model = await session.loadModel("model.so");
  const y = await model.call("main", x, 3, { float: 1 }, "text");
  if (!(y instanceof There)) throw new RelaxideError("TypeError", "no tensor");
  // @ts-expect-error elements are promised
  (await y.toArray)[0].toFixed();
  const server = serve("ws://127.0.0.1:8888/ws", { key: "page", functions: { add: (a: number, b: number) => a + b } });
  await server.stop();
  return y;
}

export { here, there, elsewhere };
