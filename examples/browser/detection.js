// Finding text: from a picture to quadrilaterals around its lines, as examples/ocr/detection.py does.
//
// The network gives each pixel the probability that it is in the shrunken core of a line. Regions of such pixels get the smallest rectangle
// around them, which grows by as much as cores were shrunk.

import { planes } from "./picture.js";

/** Probability from which a pixel is text, and mean probability from which a region is a line. */
const [PIXEL_THRESHOLD, REGION_THRESHOLD] = [0.3, 0.5];
/** How much larger a line is than its core: the growth is this times area over perimeter. */
const GROWTH = 1.6;
/** Lines less high than this many pixels are noise. */
const MIN_HEIGHT = 4;

/** A picture as the network wants it: sides multiples of 32, the shorter at least `shortest`. */
export function toInput(picture, shortest = 384) {
  const scale = Math.max(1, shortest / Math.min(picture.width, picture.height));
  const [width, height] = [picture.width, picture.height].map((side) => Math.max(32, Math.round((side * scale) / 32) * 32));
  return { dtype: "float32", shape: [1, 3, height, width], data: planes(picture, width, height) };
}

/** Corners (clockwise from the top left) of each line in the picture, from top to bottom. */
export function quads({ shape, data }, picture) {
  const [height, width] = shape.slice(-2);
  const [across, down] = [picture.width / width, picture.height / height];
  const found = [];
  for (const { edge, mean } of regions(data, width, height)) {
    const rectangle = smallestRectangle(hull(edge));
    if (Math.min(rectangle.width, rectangle.height) < MIN_HEIGHT || mean < REGION_THRESHOLD) continue;
    const growth = (GROWTH * rectangle.width * rectangle.height) / (rectangle.width + rectangle.height);
    found.push(clockwise(corners(rectangle, growth).map(([x, y]) => [x * across, y * down])));
  }
  return readingOrder(found);
}

/** Connected regions of text: the pixels at their edges, and the mean probability of all. */
function regions(probability, width, height) {
  const isText = new Uint8Array(width * height);
  for (let y = 0; y < height; ++y) {
    for (let x = 0; x < width; ++x) {
      // A pixel more to the right and below, so that thin bridges hold.
      if (probability[y * width + x] <= PIXEL_THRESHOLD) continue;
      const [right, below] = [Math.min(x + 1, width - 1), Math.min(y + 1, height - 1)];
      for (const row of [y, below]) isText[row * width + x] = isText[row * width + right] = 1;
    }
  }
  const found = [];
  const stack = [];
  for (let start = 0; start < isText.length; ++start) {
    if (isText[start] !== 1) continue;
    const edge = [];
    let [sum, count] = [0, 0];
    stack.push(start);
    isText[start] = 2;
    while (stack.length > 0) {
      const at = stack.pop();
      const [x, y] = [at % width, Math.floor(at / width)];
      sum += probability[at];
      ++count;
      let isInside = true;
      for (let row = y - 1; row <= y + 1; ++row) {
        for (let column = x - 1; column <= x + 1; ++column) {
          const isThere = row >= 0 && row < height && column >= 0 && column < width && isText[row * width + column] !== 0;
          isInside &&= isThere;
          if (isThere && isText[row * width + column] === 1) {
            isText[row * width + column] = 2;
            stack.push(row * width + column);
          }
        }
      }
      if (!isInside) edge.push([x, y]);
    }
    found.push({ edge, mean: sum / count });
  }
  return found;
}

/** The convex hull of points (Andrew's monotone chain). */
function hull(points) {
  const sorted = points.sort(([ax, ay], [bx, by]) => ax - bx || ay - by);
  const half = (chain) => {
    const kept = [];
    for (const [x, y] of chain) {
      while (kept.length > 1) {
        const [[ax, ay], [bx, by]] = kept.slice(-2);
        if ((bx - ax) * (y - ay) - (by - ay) * (x - ax) > 0) break;
        kept.pop();
      }
      kept.push([x, y]);
    }
    return kept.slice(0, -1);
  };
  const all = [...half(sorted), ...half([...sorted].reverse())];
  return all.length === 0 ? sorted.slice(0, 1) : all;
}

/** The rectangle of least area around a convex polygon: one of its sides lies on one of the polygon's. */
function smallestRectangle(polygon) {
  let best = { area: Infinity };
  polygon.forEach(([x, y], i) => {
    const [nextX, nextY] = polygon[(i + 1) % polygon.length];
    const length = Math.hypot(nextX - x, nextY - y) || 1;
    const [ux, uy] = length === 1 && nextX === x && nextY === y ? [1, 0] : [(nextX - x) / length, (nextY - y) / length];
    const along = polygon.map(([px, py]) => px * ux + py * uy);
    const off = polygon.map(([px, py]) => py * ux - px * uy);
    const [left, right, top, bottom] = [Math.min(...along), Math.max(...along), Math.min(...off), Math.max(...off)];
    const [width, height] = [right - left, bottom - top];
    if (width * height < best.area) {
      const [a, o] = [(left + right) / 2, (top + bottom) / 2];
      best = { area: width * height, width, height, center: [a * ux - o * uy, a * uy + o * ux], axis: [ux, uy] };
    }
  });
  return best;
}

function corners({ center: [x, y], axis: [ux, uy], width, height }, growth) {
  const [w, h] = [(width + growth) / 2, (height + growth) / 2];
  return [[-w, -h], [w, -h], [w, h], [-w, h]].map(([a, o]) => [x + a * ux - o * uy, y + a * uy + o * ux]);
}

/** The corners from the top left on. */
function clockwise(points) {
  const least = (value) => points.reduce((best, point) => (value(point) < value(best) ? point : best));
  return [([x, y]) => x + y, ([x, y]) => y - x, ([x, y]) => -x - y, ([x, y]) => x - y].map(least);
}

/** From top to bottom; what stands side by side, from left to right. */
function readingOrder(found) {
  const middle = (quad) => quad.reduce((sum, [, y]) => sum + y, 0) / 4;
  const rows = [];
  for (const quad of found.sort((a, b) => middle(a) - middle(b))) {
    const ys = quad.map(([, y]) => y);
    const last = rows.at(-1);
    if (last && Math.abs(middle(quad) - middle(last.at(-1))) < (Math.max(...ys) - Math.min(...ys)) / 2) last.push(quad);
    else rows.push([quad]);
  }
  const left = (quad) => Math.min(...quad.map(([x]) => x));
  return rows.flatMap((row) => row.sort((a, b) => left(a) - left(b)));
}
