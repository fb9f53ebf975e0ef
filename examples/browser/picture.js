// Pictures as pixels of four bytes: scaled, cut out, turned, and as networks take them.

/** The pixels of a picture at another size, as three planes (blue, green, red) of numbers from -1 to 1. `room` is how wide the planes are,
 * where that is more: the rest is grey. */
export function planes({ data, width, height }, toWidth, toHeight, room = toWidth) {
  const out = new Float32Array(3 * toHeight * room);
  const columns = Array.from({ length: toWidth }, (_, x) => between((x + 0.5) * (width / toWidth) - 0.5, width));
  for (let y = 0; y < toHeight; ++y) {
    const [top, bottom, down] = between((y + 0.5) * (height / toHeight) - 0.5, height);
    for (let x = 0; x < toWidth; ++x) {
      const [left, right, across] = columns[x];
      for (let channel = 0; channel < 3; ++channel) {
        const at = (row, column) => data[4 * (row * width + column) + 2 - channel];
        const above = at(top, left) + across * (at(top, right) - at(top, left));
        const below = at(bottom, left) + across * (at(bottom, right) - at(bottom, left));
        out[(channel * toHeight + y) * room + x] = Math.round(above + down * (below - above)) / 127.5 - 1;
      }
    }
  }
  return out;
}

/** The two places beside a position, and how far it is from the first to the second. */
function between(position, length) {
  const inside = Math.min(Math.max(position, 0), length - 1);
  const first = Math.floor(inside);
  return [first, Math.min(first + 1, length - 1), inside - first];
}

/** The quadrilateral as an upright picture. */
export function crop(picture, quad) {
  const long = (a, b) => Math.hypot(quad[a][0] - quad[b][0], quad[a][1] - quad[b][1]);
  const width = Math.max(1, Math.round(Math.max(long(0, 1), long(3, 2))));
  const height = Math.max(1, Math.round(Math.max(long(0, 3), long(1, 2))));
  const map = projection([[0, 0], [width, 0], [width, height], [0, height]], quad);
  const data = new Uint8ClampedArray(4 * width * height);
  for (let y = 0; y < height; ++y) {
    for (let x = 0; x < width; ++x) {
      const scale = map[6] * x + map[7] * y + 1;
      const [left, right, across] = between((map[0] * x + map[1] * y + map[2]) / scale, picture.width);
      const [top, bottom, down] = between((map[3] * x + map[4] * y + map[5]) / scale, picture.height);
      for (let channel = 0; channel < 4; ++channel) {
        const at = (row, column) => picture.data[4 * (row * picture.width + column) + channel];
        const above = at(top, left) + across * (at(top, right) - at(top, left));
        const below = at(bottom, left) + across * (at(bottom, right) - at(bottom, left));
        data[4 * (y * width + x) + channel] = above + down * (below - above);
      }
    }
  }
  // What is much higher than wide is a line on its side.
  return height >= 1.5 * width ? turned({ data, width, height }, 1) : { data, width, height };
}

/** The eight numbers of the projection that takes four points to four others. */
function projection(from, to) {
  const rows = from.flatMap(([x, y], i) => {
    const [u, v] = to[i];
    return [[x, y, 1, 0, 0, 0, -x * u, -y * u, u], [0, 0, 0, x, y, 1, -x * v, -y * v, v]];
  });
  // Gauss and Jordan, with the largest pivot of each column.
  for (let column = 0; column < 8; ++column) {
    const best = rows.slice(column).reduce((best, row, i) => (Math.abs(row[column]) > Math.abs(rows[best][column]) ? column + i : best), column);
    [rows[column], rows[best]] = [rows[best], rows[column]];
    const pivot = rows[column][column] || 1e-12;
    rows[column] = rows[column].map((value) => value / pivot);
    rows.forEach((row, i) => {
      if (i !== column) rows[i] = row.map((value, k) => value - row[column] * rows[column][k]);
    });
  }
  return rows.map((row) => row[8]);
}

/** The picture, turned to the left by so many quarters. */
export function turned(picture, quarters) {
  let { data, width, height } = picture;
  let pixels = new Uint32Array(data.buffer, data.byteOffset, width * height);
  for (let i = 0; i < quarters; ++i) {
    const next = new Uint32Array(width * height);
    for (let y = 0; y < height; ++y) {
      for (let x = 0; x < width; ++x) next[(width - 1 - x) * height + y] = pixels[y * width + x];
    }
    [pixels, width, height] = [next, height, width];
  }
  return { data: new Uint8ClampedArray(pixels.buffer), width, height };
}
