/** A store that is away for hours: the log says when it begins, how it goes on now and then, and when it is over. */
import { expect, it } from 'vitest';
import { Nodes, people } from './nodes.ts';
import { refused, requestLost } from './scripted-driver.ts';

const intervalMs = 1000;
const what = 'A turn of the write-forward loop';

it.each([
  ['gives no answer', requestLost],
  ['refuses everything', refused],
] as const)('an instance that looks at a store in each interval logs little about one that %s', async (_, script) => {
  const nodes = new Nodes();
  const node = await nodes.start(0, { polling: 'interval', writeForwardInterval: intervalMs, gcInterval: 60_000 });
  await nodes.run(nodes.insert(node, 1));
  await nodes.environment.advance(5000);
  node.log.length = 0;
  const told = (): string[] => {
    return node.log.filter(({ level }) => level !== 'debug').map(({ level, message }) => `${level} ${message}`);
  };
  const about = (words: string): string[] => told().filter((line) => line.includes(words));
  node.driver.onAll(script);
  await nodes.environment.advance(3_600_000);
  const during = told();
  expect(during.length).toBeGreaterThan(0);
  // Thousands of looks failed; of each thing that fails there is a line when it begins, and one for each power of ten.
  expect(during.length).toBeLessThan(20);
  const looks = during.filter((line) => line.startsWith(`warn ${what}`));
  expect(looks[0]).toMatch(/failed and will be tried again/);
  expect(looks.slice(1).map((line) => Number(/has failed (\d+) times/.exec(line)?.[1]))).toEqual(
    [10, 100, 1000, 10_000].slice(0, looks.length - 1),
  );
  expect(looks.length).toBeGreaterThan(2);
  node.driver.heal();
  await nodes.environment.advance(120_000);
  expect(about(what).filter((line) => line.includes('works again'))).toHaveLength(1);
  expect(about('works again')[0]).toMatch(/^info .* works again, after \d+ failures in \d+ min$/);
  const after = told().length;
  await nodes.environment.advance(3_600_000);
  expect(told().slice(after)).toEqual([]);
  expect(await nodes.run(node.db.get(people, 1))).toMatchObject({ name: 'row 1' });
  await nodes.run(node.db.stop());
});
