// Charts as SVG text: no library, so that a report is one file that opens anywhere.

const WIDTH = 760;
const HEIGHT = 260;
const LEFT = 56;
const RIGHT = 84; // room for the names of lines
const TOP = 16;
const BOTTOM = 40;

/** Text made safe for HTML and SVG: image names, addresses and messages come from elsewhere. */
export function escaped(value) {
  return String(value)
    .replace(/&/g, '&amp;')
    .replace(/</g, '&lt;')
    .replace(/>/g, '&gt;')
    .replace(/"/g, '&quot;');
}

/** Round numbers from 0 to at least `max`, about `wanted` of them. */
export function ticks(max, wanted = 5) {
  const rough = (max > 0 ? max : 1) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough);
  const count = Math.ceil((max > 0 ? max : 1) / step);
  return Array.from({ length: count + 1 }, (_, index) => Math.round(index * step * 1e6) / 1e6);
}

const at = (value) => value.toFixed(1);

function frame({ title, xTitle, yTitle, xTicks, yTicks, x, y }, inside) {
  const bottom = HEIGHT - BOTTOM;
  const rows = yTicks.map(
    (tick) =>
      `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${at(y(tick))}" y2="${at(y(tick))}"/>` +
      `<text class="tick" text-anchor="end" x="${LEFT - 6}" y="${at(y(tick) + 4)}">${tick}</text>`,
  );
  const columns = xTicks.map(
    ({ value, label }) =>
      `<line class="axis" x1="${at(x(value))}" x2="${at(x(value))}" y1="${bottom}" y2="${bottom + 4}"/>` +
      `<text class="tick" text-anchor="middle" x="${at(x(value))}" y="${bottom + 16}">${escaped(label)}</text>`,
  );
  return [
    `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escaped(title)}">`,
    ...rows,
    `<line class="axis" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${bottom}" y2="${bottom}"/>`,
    ...columns,
    `<text class="name" text-anchor="middle" x="${(LEFT + WIDTH - RIGHT) / 2}" y="${HEIGHT - 6}">${escaped(xTitle)}</text>`,
    `<text class="name" x="${LEFT}" y="${TOP - 4}">${escaped(yTitle)}</text>`,
    ...inside,
    '</svg>',
  ].join('\n');
}

const scale = (low, high, from, to) => (value) => from + ((value - low) / (high - low || 1)) * (to - from);

/** Names at the ends of lines, moved apart where the lines meet. */
function endNames(ends) {
  const sorted = [...ends].sort((one, other) => one.y - other.y);
  for (let index = 1; index < sorted.length; index += 1) {
    sorted[index].y = Math.max(sorted[index].y, sorted[index - 1].y + 13);
  }
  return sorted.map(
    ({ name, color, y }) => `<text class="end" fill="${color}" x="${WIDTH - RIGHT + 6}" y="${at(y + 4)}">${escaped(name)}</text>`,
  );
}

/**
 * Lines over x. `series`: [{ name, color, points: [[x, y]], dots }]; a point whose y is null breaks the line. `marks`: horizontal
 * lines [{ name, y }]. `bands`: shaded spans of x [{ name, from, to }].
 */
export function lines({ title, xTitle, yTitle, xMax, series, marks = [], bands = [] }) {
  const all = series.flatMap(({ points }) => points.map(([, value]) => value)).filter((value) => value !== null);
  const yTicks = ticks(Math.max(0, ...all, ...marks.map((mark) => mark.y)));
  const xTicks = ticks(xMax, 8).filter((tick) => tick <= xMax).map((value) => ({ value, label: value }));
  const x = scale(0, xMax, LEFT, WIDTH - RIGHT);
  const y = scale(0, yTicks[yTicks.length - 1], HEIGHT - BOTTOM, TOP);
  const ends = [];
  const inside = [];
  for (const { name, from, to } of bands) {
    inside.push(
      `<rect class="band" x="${at(x(from))}" width="${at(x(to) - x(from))}" y="${TOP}" height="${HEIGHT - BOTTOM - TOP}"/>`,
      `<text class="tick" x="${at(x(from) + 4)}" y="${TOP + 12}">${escaped(name)}</text>`,
    );
  }
  for (const { name, y: value } of marks) {
    inside.push(`<line class="mark" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${at(y(value))}" y2="${at(y(value))}"/>`);
    ends.push({ name, color: '#6b7280', y: y(value) });
  }
  for (const { name, color, points, dots } of series) {
    let path = '';
    let pen = 'M';
    let last = null;
    for (const [px, py] of points) {
      if (py === null) {
        pen = 'M';
        continue;
      }
      path += `${pen}${at(x(px))} ${at(y(py))}`;
      pen = 'L';
      last = y(py);
      if (dots) {
        inside.push(`<circle fill="${color}" cx="${at(x(px))}" cy="${at(y(py))}" r="4"/>`);
      }
    }
    if (last !== null) {
      inside.push(dots ? '' : `<path fill="none" stroke="${color}" stroke-width="2" stroke-linejoin="round" d="${path}"/>`);
      ends.push({ name, color, y: last });
    }
  }
  return frame({ title, xTitle, yTitle, xTicks, yTicks, x, y }, [...inside, ...endNames(ends)]);
}

/** Bars side by side over a row of edges on a logarithmic x; `counts` has one more entry than `edges`. */
export function histogram({ title, xTitle, yTitle, edges, counts, color, marks = [] }) {
  const filled = counts.map((number, index) => (number > 0 ? index : -1)).filter((index) => index >= 0);
  const first = Math.max(0, (filled[0] || 0) - 1);
  const last = Math.min(edges.length - 1, (filled[filled.length - 1] || edges.length - 1) + 1);
  const log = (value) => Math.log10(Math.min(Math.max(value, edges[first]), edges[last]));
  const x = (value) => scale(log(edges[first]), log(edges[last]), LEFT, WIDTH - RIGHT)(log(value));
  const yTicks = ticks(Math.max(...counts));
  const y = scale(0, yTicks[yTicks.length - 1], HEIGHT - BOTTOM, TOP);
  const xTicks = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000]
    .filter((value) => value >= edges[first] && value <= edges[last])
    .map((value) => ({ value, label: value }));
  const bars = [];
  for (let bin = first + 1; bin <= last; bin += 1) {
    const [from, to] = [x(edges[bin - 1]), x(edges[bin])];
    if (counts[bin] > 0) {
      bars.push(
        `<rect fill="${color}" x="${at(from + 1)}" width="${at(Math.max(1, to - from - 2))}" ` +
          `y="${at(y(counts[bin]))}" height="${at(HEIGHT - BOTTOM - y(counts[bin]))}"/>`,
      );
    }
  }
  const lined = marks.map(
    ({ name, value }, index) =>
      `<line class="mark" x1="${at(x(value))}" x2="${at(x(value))}" y1="${TOP}" y2="${HEIGHT - BOTTOM}"/>` +
      `<text class="tick" x="${at(x(value) + 4)}" y="${TOP + 12 + index * 13}">${escaped(name)}</text>`,
  );
  return frame({ title, xTitle, yTitle, xTicks, yTicks, x, y }, [...bars, ...lined]);
}

/** One bar made of parts: [{ name, value, color }]. Names stand below, in rows. */
export function stack({ title, unit, parts }) {
  const total = parts.reduce((sum, { value }) => sum + value, 0) || 1;
  const full = WIDTH - 16;
  let left = 8;
  const bars = parts.map(({ value, color }) => {
    const width = (value / total) * full;
    const bar = `<rect fill="${color}" x="${at(left)}" width="${at(Math.max(0, width - 1.5))}" y="6" height="34"/>`;
    left += width;
    return bar;
  });
  const names = parts.map(({ name, value, color }, index) => {
    const [column, row] = [index % 4, Math.floor(index / 4)];
    return (
      `<rect fill="${color}" x="${8 + column * 186}" y="${56 + row * 20}" width="11" height="11"/>` +
      `<text class="tick" x="${24 + column * 186}" y="${66 + row * 20}">${escaped(name)} ${value.toFixed(value < 10 ? 2 : 1)} ${unit}</text>`
    );
  });
  const height = 64 + Math.ceil(parts.length / 4) * 20;
  return `<svg viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${escaped(title)}">\n${[...bars, ...names].join('\n')}\n</svg>`;
}
