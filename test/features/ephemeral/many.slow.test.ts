/** Thousands of processes that live as long as a request: EPHEMERAL_REQUESTS, 1,000 if it is not set. */
import { expect, it } from 'vitest';
import { listAll } from '../../../src/storage/contract/driver.ts';
import { people } from '../protocol/nodes.ts';
import { mostReadToOpen, RequestNodes } from './requests.ts';

const requests = Number(process.env['EPHEMERAL_REQUESTS'] ?? 1000);
/** The time that each request to the store takes, in virtual milliseconds. */
const latencyMs = 40;

it.each([1, 50])(
  'each commit once, and open with nineteen reads at most: %i at a time',
  {
    timeout: 600_000 + requests * 100,
  },
  async (atOnce) => {
    const nodes = new RequestNodes();
    await nodes.run(nodes.upsert(0));
    let [next, mostRead, lines, lost] = [1, 0, 0, 0];
    const client = async (): Promise<void> => {
      while (next < requests) {
        const own = await nodes.upsert(next++, {}, latencyMs);
        mostRead = Math.max(mostRead, mostReadToOpen(own));
        lines += own.length;
        lost += own.filter((line) => line.startsWith('put block0 lost')).length;
      }
    };
    const startedMs = nodes.environment.monotonicMs();
    for (const clients = Array.from({ length: atOnce }, client); ; ) {
      // In parts: no single wait may take as long as all of them.
      const ended = Promise.all(clients).then(() => true);
      const isOver = Promise.race([ended, nodes.environment.advance(60_000).then(() => false)]);
      if (await isOver) break;
    }
    const seconds = (nodes.environment.monotonicMs() - startedMs) / 1000;
    const { appliedSeq, generation } = await nodes.block0();
    let commits = 0;
    for await (const _ of listAll(nodes.store, 'db/committed/')) commits++;
    process.stdout.write(
      `${requests} requests, ${atOnce} at a time: ${(requests / seconds).toFixed(1)} a second, ${(lines / requests).toFixed(1)} ` +
        `requests to the store each, ${mostRead} reads to open at most, ${generation} merges, ${lost} in vain\n`,
    );
    expect(mostRead).toBeLessThanOrEqual(19);
    expect(commits).toBe(requests);
    expect(requests - appliedSeq).toBeLessThanOrEqual(16);
    expect(lost).toBeLessThanOrEqual(generation / 10);
    const { db } = nodes.ephemeral();
    await nodes.run(db.start());
    expect(await nodes.run(db.query(people).count())).toBe(requests);
    expect(await nodes.run(db.verify())).toMatchObject({ ok: true, findings: [] });
    await nodes.run(db.stop());
  },
);
