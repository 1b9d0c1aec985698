/** Line charts with logarithmic axes as SVG, readable on light and on dark pages. */

export interface Series {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

export interface Chart {
  readonly title: string;
  readonly xLabel: string;
  readonly yLabel: string;
  readonly series: readonly Series[];
}

const width = 760;
const height = 420;
const left = 76;
const right = 200;
const top = 44;
const bottom = 56;
/** Told apart on white and on black, also by those who do not see all colours; lines differ in their dashes as well. */
const colours = ['#3b7dd8', '#d9822b', '#2f9e6e', '#b04fb8', '#8a8f26', '#cf4457', '#5d6bd1', '#7d7d7d'];
const dashes = ['', '7 4', '2 3', '10 3 2 3', '4 2', '', '7 4', '2 3'];

export const style = `
  text { font: 13px system-ui, sans-serif; fill: #24292f; }
  .title { font-size: 15px; font-weight: 600; }
  .grid { stroke: #d0d7de; stroke-width: 1; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .grid { stroke: #3d444d; }
  }
`;

export function escaped(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function shown(value: number): string {
  return value >= 1 ? value.toLocaleString('en-US') : String(Number(value.toPrecision(2)));
}

/** Powers of ten that enclose the values. */
function decades(values: readonly number[]): number[] {
  const first = Math.floor(Math.log10(Math.min(...values)));
  const last = Math.max(first + 1, Math.ceil(Math.log10(Math.max(...values))));
  return Array.from({ length: last - first + 1 }, (_, i) => 10 ** (first + i));
}

/** Where values of an axis lie, between two places. */
function scaleOf(least: number, most: number, from: number, to: number): (value: number) => number {
  const span = Math.log(most / least);
  return (value) => from + ((to - from) * Math.log(value / least)) / span;
}

export function text(x: number, y: number, anchor: 'start' | 'middle' | 'end', content: string, more = ''): string {
  const place = `x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}"`;
  return `<text ${place}${more}>${escaped(content)}</text>`;
}

export function chartOf({ title, xLabel, yLabel, series }: Chart): string {
  // A logarithmic axis has no zero: such points are left out.
  const drawn = series.map(({ name, points }) => ({ name, points: points.filter(([x, y]) => x > 0 && y > 0) }));
  const all = drawn.flatMap(({ points }) => points);
  const xs = [...new Set(all.map(([x]) => x))].toSorted((a, b) => a - b);
  const ys = decades(all.map(([, y]) => y));
  const xOf = scaleOf(xs[0] ?? 1, xs.at(-1) ?? 10, left, width - right);
  const yOf = scaleOf(ys[0] ?? 1, ys.at(-1) ?? 10, height - bottom, top);
  const lines: string[] = [];
  for (const y of ys) {
    const at = yOf(y).toFixed(1);
    lines.push(`<line class="grid" x1="${left}" x2="${width - right}" y1="${at}" y2="${at}"/>`);
    lines.push(text(left - 8, yOf(y) + 4, 'end', shown(y)));
  }
  for (const x of xs) {
    const at = xOf(x).toFixed(1);
    lines.push(`<line class="grid" x1="${at}" x2="${at}" y1="${top}" y2="${height - bottom}"/>`);
    lines.push(text(xOf(x), height - bottom + 18, 'middle', shown(x)));
  }
  drawn.forEach(({ name, points }, i) => {
    const colour = colours[i % colours.length] as string;
    const dash = dashes[i % dashes.length] as string;
    const path = points.map(([x, y]) => `${xOf(x).toFixed(1)},${yOf(y).toFixed(1)}`).join(' ');
    const pen = `fill="none" stroke="${colour}" stroke-width="2.5"${dash === '' ? '' : ` stroke-dasharray="${dash}"`}`;
    lines.push(`<polyline ${pen} points="${path}"/>`);
    for (const [x, y] of points)
      lines.push(`<circle cx="${xOf(x).toFixed(1)}" cy="${yOf(y).toFixed(1)}" r="3" fill="${colour}"/>`);
    const y = top + 12 + i * 22;
    lines.push(`<line ${pen} x1="${width - right + 16}" x2="${width - right + 44}" y1="${y}" y2="${y}"/>`);
    lines.push(text(width - right + 52, y + 4, 'start', name));
  });
  const middle = (top + height - bottom) / 2;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<style>${style}</style>`,
    text(left, 24, 'start', title, ' class="title"'),
    ...lines,
    text((left + width - right) / 2, height - 12, 'middle', xLabel),
    text(18, middle, 'middle', yLabel, ` transform="rotate(-90 18 ${middle})"`),
    '</svg>\n',
  ].join('\n');
}
