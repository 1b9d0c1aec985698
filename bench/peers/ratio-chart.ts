/** Bars that go from a goal to what was reached, as SVG: to the right where it is more, to the left where it is less. */
import { escaped, style, text } from '../../scripts/figures/line-chart.ts';

export interface RatioBar {
  readonly name: string;
  readonly beside: string;
  /** What was reached over the goal. */
  readonly ratio: number;
}

const width = 980;
const left = 330;
const right = 230;
const top = 56;
const barHeight = 26;
const colours = { reached: '#2f9e6e', missed: '#d9822b' };
/** Beyond these a bar is cut: what matters is on which side it is. */
const [least, most] = [0.05, 20];
const marks = [0.1, 0.2, 0.5, 1, 2, 5, 10];

function xOf(ratio: number): number {
  const shown = Math.min(most, Math.max(least, ratio));
  return left + ((width - left - right) * Math.log(shown / least)) / Math.log(most / least);
}

export function ratioChartOf(title: string, bars: readonly RatioBar[]): string {
  const height = top + bars.length * barHeight + 40;
  const bottom = height - 32;
  const lines: string[] = [];
  for (const mark of marks) {
    const at = xOf(mark).toFixed(1);
    const pen = mark === 1 ? ' stroke-width="2"' : '';
    lines.push(`<line class="grid" x1="${at}" x2="${at}" y1="${top - 8}" y2="${bottom}"${pen}/>`);
    lines.push(text(xOf(mark), bottom + 18, 'middle', mark === 1 ? 'goal' : `${mark}`));
  }
  bars.forEach(({ name, beside, ratio }, i) => {
    const y = top + i * barHeight;
    const [from, to] = [Math.min(xOf(1), xOf(ratio)), Math.max(xOf(1), xOf(ratio))];
    const colour = ratio >= 1 ? colours.reached : colours.missed;
    const place = `x="${from.toFixed(1)}" y="${y}" width="${Math.max(1, to - from).toFixed(1)}" height="${barHeight - 10}"`;
    lines.push(`<rect ${place} fill="${colour}"/>`);
    lines.push(text(left - 10, y + 13, 'end', name));
    lines.push(text(width - right + 10, y + 13, 'start', beside));
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<style>${style}</style>`,
    text(left, 24, 'start', title, ' class="title"'),
    ...lines,
    '</svg>\n',
  ].join('\n');
}
