/**
 * Generates the figures, tables and plots of docs/scale.md: `npm run scale`. `--quick` simulates a part of it in about a
 * minute and prints it, without changing anything; `--only steady,checks` simulates some sections and keeps the figures of
 * the others; `--plots-only` draws the figures of docs/scale.json.
 */
import { parseArgs } from 'node:util';
import { Presets, SingleBar } from 'cli-progress';
import { Terminal } from '../src/cli/terminal/terminal.ts';
import { printTable } from '../src/cli/terminal/text-table.ts';
import { jobs, noFigures, readFigures, writeFigures } from './scale/figures.ts';
import type { Figures, Section } from './scale/figures.ts';
import { tables, writePage } from './scale/page.ts';
import { writePlots } from './scale/plots.ts';

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    'plots-only': { type: 'boolean', default: false },
    only: { type: 'string' },
  },
});

async function simulate(figures: Figures): Promise<void> {
  const only = values.only?.split(',');
  const list = jobs(values.quick).filter(({ section }) => only === undefined || only.includes(section));
  for (const section of new Set(list.map((job): Section => job.section))) {
    figures[section].length = 0;
    // Months are computed from the windows of the same section.
    if (section === 'steady') figures.months.length = 0;
  }
  const bar = new SingleBar({ format: '{bar} {value}/{total} | {duration_formatted} | {name}' }, Presets.legacy);
  bar.start(list.length, 0, { name: '' });
  for (const job of list) {
    bar.update({ name: job.name });
    await job.run(figures);
    bar.increment();
    if (!values.quick) await writeFigures(figures);
  }
  bar.stop();
}

function print(figures: Figures): void {
  const terminal = new Terminal(process.stdin, process.stdout, process.stderr);
  for (const { title, head, rows } of tables(figures)) {
    terminal.printLines(`\n${title}`);
    const columns = head.map((name, i) => ({ name, align: i === 0 ? 'left' : 'right' }) as const);
    printTable(terminal, columns, rows);
  }
}

const kept = values['plots-only'] || (values.only !== undefined && !values.quick);
const figures = kept ? await readFigures().catch(noFigures) : noFigures();
if (!values['plots-only']) await simulate(figures);
if (values.quick) print(figures);
else {
  await writePlots(figures);
  await writePage(figures);
}
