// What the page shows. Reading happens in a worker (reader.js), so that nothing here ever waits.

const find = (id) => document.getElementById(id);
const [stage, shown, canvas, boxes, lines, status, copy] = ["stage", "shown", "picture", "boxes", "lines", "status", "copy"].map(find);

/** The longest side of what is read; larger pictures are made smaller first. */
const LONGEST = 1600;

const reader = new Worker(new URL("./reader.js", import.meta.url), { type: "module", name: "reader" });
/** The number of the picture that is being read; answers about earlier ones are of no interest. */
let current = 0;
let found = [];

function say(text, isWrong = false) {
  status.textContent = text;
  status.classList.toggle("wrong", isWrong);
}

const ANSWERS = {
  progress({ loaded, total }) {
    find("progress").value = loaded / total;
    find("loading-text").textContent = `Loading the networks: ${(loaded / 1e6).toFixed(1)} of ${(total / 1e6).toFixed(1)} MB`;
  },
  ready() {
    find("loading").classList.add("done");
    document.documentElement.dataset.ready = "yes";
  },
  quads({ quads, milliseconds }) {
    say(quads.length === 0 ? "No text was found in this picture." : `Found ${quads.length} lines in ${milliseconds.toFixed(0)} ms; reading …`);
    found = quads.map((quad, i) => ({ quad, polygon: box(quad, i) }));
  },
  line({ index, text, confidence }) {
    const line = found[index];
    line.polygon.classList.remove("waiting");
    if (text === "") return line.polygon.remove();
    line.text = text;
    line.item = document.createElement("li");
    const [words, sure] = [document.createElement("span"), document.createElement("small")];
    words.textContent = text;
    sure.textContent = `${Math.round(100 * confidence)}%`;
    line.item.append(words, sure);
    follow(line.item, line);
    lines.append(line.item);
    copy.disabled = false;
  },
  done({ milliseconds }) {
    const count = found.filter(({ text }) => text).length;
    if (count > 0) say(`${count} ${count === 1 ? "line" : "lines"}, read in ${(milliseconds / 1000).toFixed(1)} s on one thread.`);
    else say("No text was found in this picture.");
    document.documentElement.dataset.done = String(current);
  },
  failed({ message }) {
    say(message, true);
    document.documentElement.dataset.failed = message;
  },
};

reader.onmessage = ({ data }) => {
  if (data.picture === undefined || data.picture === current) ANSWERS[data.is](data);
};
reader.onerror = (event) => ANSWERS.failed({ message: `The reader did not start: ${event.message ?? "its script cannot be loaded"}` });

function box(quad, index) {
  const polygon = document.createElementNS("http://www.w3.org/2000/svg", "polygon");
  polygon.setAttribute("points", quad.map((corner) => corner.join(",")).join(" "));
  polygon.classList.add("waiting");
  boxes.append(polygon);
  follow(polygon, index);
  return polygon;
}

/** Lights a box and its line up together. */
function follow(element, of) {
  const line = () => (typeof of === "number" ? found[of] : of);
  const light = (isLit) => [line()?.polygon, line()?.item].forEach((part) => part?.classList.toggle("lit", isLit));
  element.addEventListener("pointerenter", () => light(true));
  element.addEventListener("pointerleave", () => light(false));
  element.addEventListener("click", () => line()?.item?.scrollIntoView({ block: "nearest", behavior: "smooth" }));
}

async function show(blob) {
  const picture = ++current;
  found = [];
  lines.replaceChildren();
  boxes.replaceChildren();
  copy.disabled = true;
  let bitmap;
  try {
    bitmap = await createImageBitmap(blob);
  } catch {
    say("This file is no picture that the browser can read.", true);
    return;
  }
  if (picture !== current) return;
  const scale = Math.min(1, LONGEST / Math.max(bitmap.width, bitmap.height));
  [canvas.width, canvas.height] = [bitmap.width, bitmap.height].map((side) => Math.max(1, Math.round(side * scale)));
  const context = canvas.getContext("2d", { willReadFrequently: true });
  // What is transparent lies on white paper.
  context.fillStyle = "white";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.imageSmoothingQuality = "high";
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
  boxes.setAttribute("viewBox", `0 0 ${canvas.width} ${canvas.height}`);
  shown.hidden = false;
  stage.classList.add("has-picture");
  say("Looking for text …");
  const { data, width, height } = context.getImageData(0, 0, canvas.width, canvas.height);
  reader.postMessage({ picture, data, width, height }, [data.buffer]);
}

async function showFrom(url) {
  const answer = await fetch(url);
  if (answer.ok) await show(await answer.blob());
  else say(`The picture is not there: ${url}`, true);
}

find("file").addEventListener("change", ({ target }) => {
  if (target.files.length > 0) show(target.files[0]);
  target.value = "";
});
document.addEventListener("dragover", (event) => {
  event.preventDefault();
  stage.classList.add("over");
});
document.addEventListener("dragleave", (event) => event.relatedTarget === null && stage.classList.remove("over"));
document.addEventListener("drop", (event) => {
  event.preventDefault();
  stage.classList.remove("over");
  const file = [...event.dataTransfer.files].find(({ type }) => type.startsWith("image/"));
  if (file) show(file);
  else say("Drop a file that is a picture.", true);
});
document.addEventListener("paste", (event) => {
  const item = [...event.clipboardData.items].find(({ type }) => type.startsWith("image/"));
  if (item) show(item.getAsFile());
});
find("samples").addEventListener("click", ({ target }) => {
  const button = target.closest("button");
  if (button) showFrom(button.dataset.picture);
});
copy.addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(found.filter(({ text }) => text).map(({ text }) => text).join("\n"));
    copy.textContent = "Copied";
  } catch {
    copy.textContent = "Not allowed";
  }
  setTimeout(() => (copy.textContent = "Copy all"), 1500);
});
