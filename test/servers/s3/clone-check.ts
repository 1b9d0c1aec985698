/** Clones a database in a bucket, and counts the bytes that go through this process for it. */
import { StoreDb, Types } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import type { ObservedRequest, StorageDriver } from '../../../src/storage/index.ts';

const notes = {
  name: 'notes',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, text: { typeId: Types.varchar }, file: { typeId: Types.blob } },
  primaryKey: 'id',
} as const;

export interface CloneFindings {
  readonly objects: number;
  readonly copies: number;
  /** Reads of leaves and blobs: inner nodes tell what there is to copy. */
  readonly leavesRead: number;
  /** What the clone holds beyond what the database does, or lacks. */
  readonly differences: number;
  readonly contentTypes: readonly (string | undefined)[];
  readonly isSound: boolean;
}

function open(driver: StorageDriver, dbPrefix: string, onRequest?: (request: ObservedRequest) => void): Database {
  const db = StoreDb({
    dbPrefix,
    nodeId: 1,
    driver,
    logLevel: 'silent',
    blockSizeBytes: 4096,
    polling: 'onDemand',
    ...(onRequest && { onRequest }),
  });
  db.registerSchema(notes);
  return db;
}

/** `makeDriver` makes a driver of the same bucket each time. */
export async function cloneInStore(makeDriver: () => StorageDriver, prefix: string): Promise<CloneFindings> {
  const driver = makeDriver();
  const requests: ObservedRequest[] = [];
  await using db = open(driver, `${prefix}/a`, (request) => void requests.push(request));
  await db.start();
  const batch = db.batch();
  for (let id = 0; id < 800; id++) {
    const file = id === 0 ? db.Blob(Buffer.alloc(100_000, 'x'), { contentType: 'text/plain' }) : null;
    void batch.insert(notes, { id, text: `text of note ${id}`, file });
  }
  await batch.flush();
  await db.checkpoint();
  // Nothing in memory that need not be read for the clone.
  await db.stop();
  await db.start();
  requests.length = 0;
  const { objects, copiedBytes } = await db.clone({ driver, prefix: `${prefix}/b é+` });
  const copies = requests.filter(({ kind, status }) => kind === 'copy' && status === 'done').length;
  const isLeafOrBlob = ({ kind, key, bytes }: ObservedRequest): boolean =>
    kind === 'get' && bytes > 0 && (key.includes('/blobs/') || (key.includes('/data/notes/') && bytes > 2000));
  const leavesRead = requests.filter(isLeafOrBlob).length + (copiedBytes > 0 ? 1 : 0);
  await using clone = open(makeDriver(), `${prefix}/b é+`);
  await clone.start();
  const [rows, cloned] = await Promise.all([db.query(notes).execute(), clone.query(notes).execute()]);
  const differences = rows.filter((row, i) => JSON.stringify(row) !== JSON.stringify(cloned[i])).length;
  const url = await clone.getBlob(cloned[0]?.file as string).getDownloadUrl({ expiresIn: 60 });
  const contentType = (await fetch(url)).headers.get('content-type') ?? undefined;
  const { ok } = await clone.verify({ deep: true });
  return {
    objects,
    copies,
    leavesRead,
    differences: differences + Math.abs(rows.length - cloned.length),
    contentTypes: [contentType],
    isSound: ok,
  };
}
