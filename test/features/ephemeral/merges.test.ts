/** Who merges where every instance lives as long as a request, and how much waits meanwhile. */
import { beforeEach, describe, expect, it } from 'vitest';
import { people } from '../protocol/nodes.ts';
import { commitsRead, RequestNodes } from './requests.ts';

let nodes: RequestNodes;

beforeEach(() => {
  nodes = new RequestNodes();
});

async function pending(): Promise<number> {
  const { appliedSeq } = await nodes.block0();
  const { entries } = await nodes.store.list('db/committed/');
  return entries.length - appliedSeq;
}

describe('requests one after the other', () => {
  it('leave sixteen commits at most to be merged, and the sixteenth merges', async () => {
    const waited: number[] = [];
    for (let id = 1; id <= 50; id++) {
      await nodes.run(nodes.upsert(id));
      waited.push(await pending());
    }
    expect(Math.max(...waited)).toBe(15);
    expect(waited[15]).toBe(0);
    expect(waited[31]).toBe(0);
    expect((await nodes.block0()).generation).toBe(3);
    const reader = nodes.ephemeral();
    await nodes.run(reader.db.start());
    expect(await nodes.run(reader.db.query(people).count())).toBe(50);
  });
  it('y', async () => {
    const lines: string[][] = [];
    let next = 0;
    const errors: string[] = [];
    const waits: number[] = [];
    const worker = async (): Promise<void> => {
      while (next < 500) {
        try {
          const s = nodes.environment.monotonicMs();
          lines.push(await nodes.upsert(next++, {}, 40));
          waits.push(Math.round(nodes.environment.monotonicMs() - s));
        } catch (e) {
          errors.push(String(e));
        }
      }
    };
    const t = nodes.environment.monotonicMs();
    await nodes.run(nodes.upsert(1000));
    await nodes.run(Promise.all(Array.from({ length: 50 }, worker)));
    const all = lines.flat();
    console.log(errors.length, errors[0]);
    console.log(
      waits
        .sort((a, b) => a - b)
        .filter((_, i) => i % 20 === 19)
        .join(' '),
    );
    console.log(
      'losses',
      lines
        .map((l) => l.filter((x) => /put committed.*lost/.test(x)).length)
        .sort((a, b) => a - b)
        .join(' '),
    );
    console.log(
      nodes.environment.monotonicMs() - t,
      Math.max(...lines.map(commitsRead)),
      await pending(),
      all.length / lines.length,
      all.filter((l) => l.startsWith('put block0')).length,
      all.filter((l) => l.startsWith('put block0 lost')).length,
      all.filter((l) => l.startsWith('put data')).length,
      all.filter((l) => l.startsWith('put committed')).length,
      (await nodes.block0()).generation,
      all.filter((l) => l.startsWith('get committed')).length,
    );
  });
});
