/** A batch laid over the stored rows shows its writes at every moment: before, while and after they are committed. */
import { beforeEach, describe, expect, it } from 'vitest';
import { caught, Nodes, people } from './nodes.ts';
import type { TestNode } from './nodes.ts';
import { requestLost } from './scripted-driver.ts';

let nodes: Nodes;
let a: TestNode;

beforeEach(async () => {
  nodes = new Nodes();
  a = await nodes.start(0);
});

describe('an overlay', () => {
  it('shows operations that are being committed, and later ones', async () => {
    let answer: () => void = () => undefined;
    a.driver.onPut(/^committed/, async (pass) => {
      await new Promise<void>((resolve) => {
        answer = resolve;
      });
      return pass();
    });
    const batch = a.db.batch();
    const seen = async (): Promise<number[]> => {
      const rows = await nodes.run(a.db.query(people).overlay(batch).execute());
      return rows.map(({ id }) => id);
    };
    void batch.insert(people, { id: 1 });
    expect(await seen()).toEqual([1]);
    const flushed = batch.flush();
    await nodes.environment.quiesce();
    void batch.insert(people, { id: 2 });
    expect(await seen()).toEqual([1, 2]);
    answer();
    await nodes.run(flushed);
    expect(await seen()).toEqual([1, 2]);
    expect(await nodes.run(a.db.query(people).count())).toBe(1);
  });

  it('shows operations whose outcome is in doubt', async () => {
    a.driver.onPut(/^committed/, requestLost, Number.POSITIVE_INFINITY);
    const batch = a.db.batch();
    void batch.insert(people, { id: 1 });
    await nodes.run(caught(batch.flush()));
    expect(await nodes.run(a.db.query(people).overlay(batch).count())).toBe(1);
    expect(await nodes.run(a.db.query(people).count())).toBe(0);
  });
});
