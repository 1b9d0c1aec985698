/** Blobs: each lane has a paper of its own, and rewrites it, each time with a higher number. */
import type { Database } from '../../../src/api/database.ts';
import type { Snapshot } from '../../../src/api/snapshot.ts';
import { flushOnce } from './flush.ts';
import type { Patience } from './flush.ts';
import type { FieldRows } from './history.ts';
import { papers } from './tables.ts';

/** What a paper says follows from its number, so that one damaged character shows. Up to three blocks long. */
function textOf(number: number): string {
  return `${number} ${`${number} `.repeat((number * 7919) % 1000)}`;
}

export async function writePaper(db: Database, id: string, number: number, patience: Patience): Promise<void> {
  const batch = db.batch();
  void batch.upsert(papers, { id, content: db.Blob(textOf(number)) });
  await flushOnce(batch, patience);
}

/** The numbers of all papers, as fields of one row. Rejects if one does not say what it should. */
export async function readPapers(state: Database | Snapshot): Promise<FieldRows> {
  const found: Record<string, number> = {};
  for (const { id, content } of await state.query(papers).execute()) {
    const text = await state.getBlob(content as string).getString();
    const number = Number.parseInt(text, 10);
    if (text !== textOf(number)) throw new Error(`Paper ${id} says ${JSON.stringify(text.slice(0, 80))}`);
    found[id] = number;
  }
  return { papers: found };
}

/** Of the present: in a snapshot, since a paper may be replaced, and its blob collected, while it is read. */
export async function readPapersNow(db: Database): Promise<FieldRows> {
  const snapshot = await db.snapshot();
  try {
    return await readPapers(snapshot);
  } finally {
    await snapshot.release().catch(() => undefined);
  }
}
