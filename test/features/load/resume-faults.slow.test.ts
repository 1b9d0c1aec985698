/** A load that can be resumed, ended at each of its requests in turn: the next call goes on, and the result is that of a plain load. */
import { expect, it } from 'vitest';
import { answerLost, refused, requestLost } from '../protocol/scripted-driver.ts';
import { Cluster } from '../gc/cluster.ts';
import type { ClusterNode } from '../gc/cluster.ts';
import { expectLoaded, parts, PartSource, shuffled, small } from './resumed-loads.ts';

/** Rows that are recorded once, and some more. */
const count = 4000;
/** Large blocks, so that there are few requests. */
const blocks = { blockSizeBytes: 65_536 };

type Passing = <R>(pass: () => Promise<R>, request: { readonly key: string }) => Promise<R>;

/** Calls a script with the number of each request. */
function onEach(node: ClusterNode, script: (number: number) => Passing): () => number {
  let made = 0;
  const each: Passing = (pass, request) => script(++made)(pass, request);
  node.driver.onAll(each);
  node.driver.onDelete(/^/, each, Number.POSITIVE_INFINITY);
  return () => made;
}

const passes: Passing = (pass) => pass();

/** How many requests a load makes from its call to its answer. */
async function requestsOfLoad(): Promise<number> {
  const cluster = new Cluster();
  const node = await small(cluster, 0, blocks);
  const made = onEach(node, () => passes);
  await cluster.run(node.db.load(parts, new PartSource(shuffled(count)).from, { resume: 'parts' }));
  return made();
}

/** Lets the time pass after which pins are given up, and collects. A write says that the clock is right. */
async function forget(cluster: Cluster, node: ClusterNode): Promise<void> {
  await cluster.advance(8 * 86_400_000);
  await cluster.run(cluster.put(node, [1], 'later'));
  await cluster.collectAll(node);
}

/** Calls the load again unless its rows are there. Resolves to the number of rows in the table. */
async function finished(cluster: Cluster, { db }: ClusterNode, source: PartSource): Promise<number> {
  await cluster.run(db.refresh());
  const there = await cluster.run(db.query(parts).count());
  if (there > 0) return there;
  return (await cluster.run(db.load(parts, source.from, { resume: 'parts' }))).rows;
}

/** Resolves once a load has ended, or its node is killed. */
async function endOf(cluster: Cluster, load: Promise<unknown>, killed: Promise<unknown>): Promise<unknown> {
  return cluster.run(Promise.race([load.catch((error: unknown) => error), killed]));
}

it.each([
  ['before it reaches the store', false],
  ['when it has reached the store', true],
])('is killed at any request, %s, and another instance goes on', async (_, reaches) => {
  const all = await requestsOfLoad();
  expect(all).toBeGreaterThan(20);
  for (let at = 1; at <= all; at++) {
    const cluster = new Cluster();
    const node = await small(cluster, 0, blocks);
    let kill: () => void = () => undefined;
    const killed = new Promise<void>((resolve) => {
      kill = resolve;
    });
    onEach(node, (number) => async (pass) => {
      if (number < at) return pass();
      if (number === at && reaches) await pass();
      node.environment.freeze();
      kill();
      return new Promise(() => {});
    });
    const source = new PartSource(shuffled(count));
    const load = node.db.load(parts, source.from, { resume: 'parts' });
    await endOf(cluster, load, killed);
    const other = await small(cluster, 1, blocks);
    await cluster.collectAll(other);
    expect(await finished(cluster, other, source), `killed at request ${at}`).toBe(count);
    await forget(cluster, other);
    await expectLoaded(cluster, other, count);
  }
});

it('fails or goes on where a request is refused, has no answer or does not arrive, and the same instance goes on', async () => {
  const all = await requestsOfLoad();
  const faults: Passing[] = [refused, answerLost, requestLost];
  const codes = new Set<string>();
  for (let at = 1; at <= all; at++) {
    const cluster = new Cluster();
    const node = await small(cluster, 0, blocks);
    onEach(node, (number) => (number === at ? (faults[at % faults.length] as Passing) : passes));
    const source = new PartSource(shuffled(count));
    const first = node.db.load(parts, source.from, { resume: 'parts' });
    const code = first.then(
      () => 'none',
      (error: unknown) => String((error as { code?: string }).code),
    );
    codes.add(await cluster.run(code));
    node.driver.heal();
    expect(await finished(cluster, node, source), `at request ${at}`).toBe(count);
    await forget(cluster, node);
    await expectLoaded(cluster, node, count);
  }
  expect(codes).toEqual(new Set(['none', 'STORAGE']));
});
