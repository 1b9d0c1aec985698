/** What happens within a transaction beside its own calls: triggers and what they read, blobs, and many rows. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { Transaction } from '../../../src/transaction/transaction.ts';
import { Cluster, items } from '../gc/cluster.ts';
import type { ClusterNode } from '../gc/cluster.ts';
import { caught } from '../protocol/nodes.ts';
import { after } from '../protocol/scripted-driver.ts';

let cluster: Cluster;
let a: ClusterNode;
let b: ClusterNode;

beforeEach(async () => {
  cluster = new Cluster();
  a = await cluster.start(0);
  b = await cluster.start(1);
  await cluster.run(cluster.put(a, [1, 2, 3], 'first'));
  await cluster.run(b.db.refresh());
});

/** How often a transaction of `a` is run while `b` changes something the first time. */
async function attemptsOf(
  run: (tx: Transaction) => Promise<unknown>,
  change: (tx: Transaction) => Promise<unknown>,
): Promise<number> {
  let attempts = 0;
  await cluster.run(
    a.db.transaction(async (tx) => {
      attempts++;
      await run(tx);
      if (attempts > 1) return;
      await b.db.transaction(async (other) => {
        await change(other);
      });
    }),
  );
  expect(await cluster.run(a.db.verify())).toMatchObject({ ok: true });
  return attempts;
}

async function textOf(id: number): Promise<string | null | undefined> {
  return (await cluster.run(a.db.get(items, id)))?.text;
}

describe('triggers', () => {
  const write = (tx: Transaction): Promise<void> => tx.update(items, { id: 1, group: 9 });
  const rename = (id: number) => (tx: Transaction) => tx.update(items, { id, text: 'changed' });

  it('fire, and their additions are committed as well', async () => {
    a.db.registerTrigger('items', 'update', async (row, batch, dbApi) => {
      const other = await dbApi.get(items, 2);
      await batch.upsert(items, { id: 50, text: `${String(row['text'])}, ${other?.text}, ${String(row['group'])}` });
    });
    await cluster.run(a.db.transaction(write));
    expect(await textOf(50)).toBe('first 1, first 2, 9');
  });

  it('add their reads to the reads of the transaction', async () => {
    a.db.registerTrigger('items', 'update', async (row, batch, dbApi) => {
      if (row['id'] === 50) return;
      const other = await dbApi.get(items, 2);
      await batch.upsert(items, { id: 50, text: other?.text ?? 'none' });
    });
    expect(await attemptsOf(write, rename(3))).toBe(1);
    expect(await attemptsOf(write, rename(2))).toBe(2);
    expect(await textOf(50)).toBe('changed');
  });

  it('add the results of their queries, too', async () => {
    a.db.registerTrigger('items', 'update', async (row, batch, dbApi) => {
      if (row['id'] === 50) return;
      const count = await dbApi.query(items).where('group', '=', 77).count();
      await batch.upsert(items, { id: 50, text: `${count}` });
    });
    expect(await attemptsOf(write, (tx) => tx.insert(items, { id: 60, group: 77 }))).toBe(2);
    expect(await textOf(50)).toBe('1');
  });

  it.each<['update' | 'delete' | 'insert', (tx: Transaction) => Promise<unknown>]>([
    ['update', write],
    ['delete', (tx) => tx.delete(items, 1)],
    ['update', (tx) => tx.upsert(items, { id: 1, group: 9 })],
    ['insert', (tx) => tx.upsert(items, { id: 70, group: 9 })],
  ])('that are told of a row at its %s have read it', async (operation, change) => {
    const told: unknown[] = [];
    a.db.registerTrigger('items', '*', (row, _batch, _api, op) => {
      told.push([op, row['text']]);
    });
    const disturb = (tx: Transaction): Promise<unknown> =>
      operation === 'insert' ? tx.insert(items, { id: 70, text: 'there' }) : rename(1)(tx);
    expect(await attemptsOf(change, disturb)).toBe(2);
    expect(told).toHaveLength(2);
    // An upsert's row is what was given; only which operation it is depends on what is there.
    expect(told[0]).toEqual([operation, change === write || operation === 'delete' ? 'first 1' : null]);
  });

  it('that fire for an insert have read nothing', async () => {
    a.db.registerTrigger('items', '*', () => undefined);
    const insertAndDelete = async (): Promise<void> => {
      await b.db.transaction((tx) => tx.insert(items, { id: 70 }));
      await b.db.transaction((tx) => tx.delete(items, 70));
    };
    expect(await attemptsOf((tx) => tx.insert(items, { id: 70 }), insertAndDelete)).toBe(1);
  });

  it('that fail make the transaction fail', async () => {
    a.db.registerTrigger('items', 'update', () => {
      throw new Error('refused');
    });
    const error = await cluster.failure(a.db.transaction(write));
    expect(error.message).toBe('refused');
    expect(await cluster.run(a.db.get(items, 1))).toMatchObject({ group: 1 });
  });
});

describe('blobs', () => {
  it('are stored with the transaction, and read back', async () => {
    const reference = await cluster.run(
      a.db.transaction(async (tx) => {
        await tx.insert(items, { id: 10, file: a.db.Blob('contents') });
        return (await tx.get(items, 10))?.file;
      }),
    );
    expect(await cluster.run(a.db.getBlob(reference as string).getString())).toBe('contents');
    expect(await cluster.run(a.db.verify({ deep: true }))).toMatchObject({ ok: true });
  });

  it('of its own are read before they are stored', async () => {
    const seen = await cluster.run(
      a.db.transaction(async (tx) => {
        await tx.insert(items, { id: 10, file: a.db.Blob('contents', { contentType: 'text/plain' }) });
        const reference = (await tx.get(items, 10))?.file as string;
        const blob = tx.getBlob(reference.toUpperCase());
        const bytes = await blob.getBuffer(-3);
        bytes[0] = 0;
        const pieces: Uint8Array[] = [];
        for await (const piece of blob.stream(1, 4)) pieces.push(piece as Uint8Array);
        const read = [
          await blob.size(),
          await blob.getString(),
          await blob.getString(-3),
          String(Buffer.concat(pieces)),
        ];
        return { blob, read, url: await caught(blob.getDownloadUrl()) };
      }),
    );
    expect(seen.read).toEqual([8, 'contents', 'nts', 'ont']);
    expect(seen.url).toMatchObject({
      code: 'BLOB_NOT_FOUND',
      message: expect.stringMatching(/is not stored yet/) as string,
    });
    // As every other call through the transaction.
    expect(await cluster.failure(seen.blob.getString())).toMatchObject({ code: 'BATCH_STATE' });
  });

  it('of its own that are streams can be read once they are stored', async () => {
    async function* pieces(): AsyncGenerator<string> {
      yield 'streamed';
    }
    const { reference, errors } = await cluster.run(
      a.db.transaction(async (tx) => {
        await tx.insert(items, { id: 10, file: a.db.Blob(pieces()) });
        const blob = tx.getBlob((await tx.get(items, 10))?.file as string);
        return { reference: blob.reference, errors: [await caught(blob.size()), await caught(blob.getString())] };
      }),
    );
    for (const error of errors) {
      expect(error).toMatchObject({
        code: 'BLOB_NOT_FOUND',
        message:
          `Blob ${reference} is not stored yet. Its stream can be read only once, and the commit of the transaction stores it: ` +
          'read the blob after the transaction.',
      });
    }
    expect(await cluster.run(a.db.getBlob(reference).getString())).toBe('streamed');
  });

  it('of a batch that is not flushed are said to be not flushed, if an overlay shows their reference', async () => {
    const batch = a.db.batch();
    await cluster.run(batch.insert(items, { id: 10, file: a.db.Blob('contents') }));
    const row = await cluster.run(a.db.query(items).where('id', '=', 10).overlay(batch).first());
    const error = await cluster.failure(a.db.getBlob(row?.file as string).getString());
    expect(error.message).toMatch(/or the batch that adds it is not flushed yet\.$/);
  });

  it('are read as they were when the transaction began, and count as read', async () => {
    const store = (data: string): Promise<unknown> =>
      b.db.transaction((tx) => tx.upsert(items, { id: 10, file: b.db.Blob(data) }));
    await cluster.run(store('old'));
    await cluster.run(a.db.refresh());
    const seen: string[] = [];
    await cluster.run(
      a.db.transaction(async (tx) => {
        const reference = (await tx.get(items, 10))?.file as string;
        if (seen.length === 0) {
          await store('new');
          await a.db.refresh();
          seen.push((await caught(a.db.getBlob(reference).getString())).name);
        }
        seen.push(await tx.getBlob(reference).getString());
        await tx.update(items, { id: 1, text: seen.join() });
      }),
    );
    expect(seen).toEqual(['BlobNotFoundError', 'old', 'new']);
  });

  it('are not uploaded if the attempt is known to fail before', async () => {
    let attempts = 0;
    await cluster.run(
      a.db.transaction(async (tx) => {
        attempts++;
        const row = await tx.get(items, 1);
        await tx.update(items, { id: 1, file: a.db.Blob(`of ${row?.text}`) });
        if (attempts > 1) return;
        await b.db.transaction((other) => other.update(items, { id: 1, text: 'changed' }));
        await a.db.refresh();
      }),
    );
    expect(attempts).toBe(2);
    expect(await cluster.namesIn('blobs')).toHaveLength(1);
    const row = await cluster.run(a.db.get(items, 1));
    expect(await cluster.run(a.db.getBlob(row?.file as string).getString())).toBe('of changed');
  });

  it('of an attempt that lost its slot are garbage', async () => {
    a.driver.onPut(
      /^committed/,
      after(() => b.db.transaction((other) => other.update(items, { id: 1, text: 'changed' }))),
    );
    await cluster.run(
      a.db.transaction(async (tx) => {
        const row = await tx.get(items, 1);
        await tx.update(items, { id: 1, file: a.db.Blob(`of ${row?.text}`) });
      }),
    );
    expect(await cluster.namesIn('blobs')).toHaveLength(2);
    await cluster.collectAll(a);
    expect(await cluster.namesIn('blobs')).toHaveLength(1);
    const row = await cluster.run(a.db.get(items, 1));
    expect(await cluster.run(a.db.getBlob(row?.file as string).getString())).toBe('of changed');
  });
});

describe('many rows', () => {
  it('may be written, more than one object holds', async () => {
    const text = 'x'.repeat(100_000);
    const count = await cluster.run(
      a.db.transaction(async (tx) => {
        const before = await tx.query(items).count();
        for (let id = 100; id < 200; id++) await tx.insert(items, { id, text });
        return before;
      }),
    );
    expect(count).toBe(3);
    await cluster.run(b.db.refresh());
    expect(await cluster.run(b.db.query(items).count())).toBe(103);
  });
});
