/** Loads the data set: some batches, and one merge of all that they committed. */
import { Presets, SingleBar } from 'cli-progress';
import type { Database } from 'store-db';
import { cities, readCities } from './cities.ts';
import { formatCount, measure, printSteps } from './report.ts';

const rowsPerBatch = 10_000;

/** Loads all cities and returns how many there are. */
export async function loadCities(db: Database): Promise<number> {
  const rows = await readCities();
  const bar = new SingleBar({ format: '{bar} {value} of {total} rows', hideCursor: true }, Presets.shades_classic);
  bar.start(rows.length, 0);
  const insert = await measure(db, async () => {
    const batch = db.batch();
    for (let from = 0; from < rows.length; from += rowsPerBatch) {
      const part = rows.slice(from, from + rowsPerBatch);
      for (const city of part) await batch.insert(cities, city);
      // Each flush is one commit: durable, and visible to queries, once it resolves.
      await batch.flush();
      bar.increment(part.length);
    }
  });
  bar.stop();
  // Commits are merged into blocks every few seconds anyway; this does it now.
  const merge = await measure(db, () => db.checkpoint());
  const batches = Math.ceil(rows.length / rowsPerBatch);
  printSteps([
    [`${batches} batches of ${formatCount(rowsPerBatch)} rows`, `${formatCount(rows.length)} rows durable`, insert],
    ['checkpoint()', 'all merged into blocks', merge],
  ]);
  console.log('Merging goes on in the background; what of it fell into the first step is counted there.');
  return rows.length;
}
