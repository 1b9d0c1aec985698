/** Conformance: conditions are checked and writes made in one step. */
import { compareBytes, decodeUtf8, encodeUtf8 } from '../base/bytes.ts';
import type { PutResult } from '../storage/contract/driver.ts';
import {
  assert,
  assertEqual,
  assertSameBytes,
  ConformanceError,
  patternBytes,
  type Bench,
  type ConformanceCase,
} from './conformance-case.ts';

const RACERS = 16;

/** Starts as many puts as there are racers, on both drivers, and returns those that won. */
async function race(put: (racer: number) => Promise<PutResult>): Promise<number[]> {
  const results = await Promise.all(Array.from({ length: RACERS }, (_, racer) => put(racer)));
  return results.flatMap((result, racer) => (result.status === 'written' ? [racer] : []));
}

function driverOf(bench: Bench, racer: number): Bench['driver'] {
  return racer % 2 === 0 ? bench.driver : bench.other;
}

/** Creates, replaces and deletes an object again and again: no ETag may come back. */
async function checkLives(bench: Bench, body: (life: number, write: number) => string): Promise<void> {
  const seen = new Set<string>();
  for (let life = 0; life < 4; life++) {
    const created = await bench.put('again', body(life, 0));
    const replaced = await bench.put('again', body(life, 1), { etag: created });
    for (const etag of seen) {
      await bench.putLost('again', 'x', { etag }, 'the ETag is that of an earlier life of the key.');
    }
    assert(!seen.has(created) && !seen.has(replaced) && created !== replaced, 'An ETag was used twice.');
    seen.add(created).add(replaced);
    await bench.driver.delete([bench.key('again')]);
  }
}

/** Checks the rules for a driver that can copy. */
async function checkCopies(bench: Bench): Promise<void> {
  const { driver, other } = bench;
  if (driver.copy === undefined) return;
  const large = patternBytes(300_000, 9);
  for (const [from, bytes] of [
    ['from/a', encodeUtf8('some text')],
    ['from/ü +%&?#=', large],
    ['from/empty', new Uint8Array()],
  ] as const) {
    await bench.put(from, bytes);
    const to = from.replace('from/', 'to/of/');
    const options = { sizeBytes: bytes.length };
    assertEqual((await driver.copy(bench.key(from), bench.key(to), options)).status, 'copied', 'It must be copied.');
    assertSameBytes((await bench.found(to, {}, other)).bytes, bytes, 'A copy must hold what was copied.');
    assertEqual((await driver.copy(bench.key(from), bench.key(to), options)).status, 'copied', 'And again.');
    assertSameBytes((await bench.found(to)).bytes, bytes, 'A copy that was made twice must hold what was copied.');
    await bench.putLost(to, 'x', 'absent', 'a copy was made there.');
    await driver.delete([bench.key(from)]);
    assertSameBytes((await bench.found(to)).bytes, bytes, 'A copy must outlive what was copied.');
  }
  const names = (await bench.names('to/')).length;
  assertEqual(names, 3, 'Copies must be listed.');
  const missing = await driver.copy(bench.key('from/a'), bench.key('to/none'));
  assertEqual(missing.status, 'refused', 'Where there is nothing, nothing can be copied.');
  await bench.expectMissing('to/none', 'A copy that was refused must not leave anything.');
}

export const writeCases: readonly ConformanceCase[] = [
  {
    name: "'absent' creates, and never replaces",
    async check(bench) {
      await bench.put('slot', 'first');
      await bench.putLost('slot', 'second', 'absent', 'the key exists.');
      await bench.expectText('slot', 'first', 'A lost put must change nothing.');
      await bench.driver.delete([bench.key('slot')]);
      await bench.put('slot', 'third');
      await bench.expectText('slot', 'third', 'A key that was deleted can be created again.');
    },
  },
  {
    name: 'copies are whole and of their own, where the driver can make them',
    check: checkCopies,
  },
  {
    name: "'any' creates and replaces",
    async check(bench) {
      const first = await bench.put('any', 'one', 'any');
      const second = await bench.put('any', 'two', 'any');
      assert(first !== second, 'Every write must have another ETag.');
      await bench.expectText('any', 'two', 'The last write must be read.');
      await bench.putLost('any', 'three', 'absent', 'the key exists.');
      await bench.putLost('any', 'three', { etag: first }, 'the ETag was replaced.');
      await bench.put('any', 'three', { etag: second });
      await bench.expectText('any', 'three', 'An ETag of an unconditional put can be replaced.');
    },
  },
  {
    name: 'an ETag condition replaces exactly that version',
    async check(bench) {
      const first = await bench.put('register', 'one');
      const second = await bench.put('register', 'two', { etag: first });
      assert(first !== second, 'Every write must have another ETag.');
      await bench.putLost('register', 'stale', { etag: first }, 'the ETag is that of an older version.');
      await bench.putLost('register', 'wrong', { etag: `${second}0` }, 'no version has this ETag.');
      await bench.expectText('register', 'two', 'A lost put must change nothing.');
    },
  },
  {
    name: 'an ETag condition on a missing key is lost, and creates nothing',
    async check(bench) {
      await bench.putLost('missing', 'x', { etag: '"0123456789abcdef"' }, 'there is nothing to replace.');
      await bench.expectMissing('missing', 'A lost put must not create the object.');
      const etag = await bench.put('gone', 'x');
      await bench.driver.delete([bench.key('gone')]);
      await bench.putLost('gone', 'y', { etag }, 'the object was deleted.');
      await bench.expectMissing('gone', 'A lost put must not bring the object back.');
    },
  },
  {
    name: 'the ETag of a deleted object does not match the next one of that key',
    check: (bench) => checkLives(bench, (life, write) => `life ${life}, write ${write}`),
  },
  {
    name: 'every write has an ETag of its own, even of the same bytes',
    needsOwnEtags: true,
    check: (bench) => checkLives(bench, () => 'same bytes'),
  },
  {
    name: 'a chain of 50 replacements',
    async check(bench) {
      const etags = [await bench.put('chain', '0')];
      for (let i = 1; i <= 50; i++) etags.push(await bench.put('chain', String(i), { etag: etags.at(-1) as string }));
      assertEqual(new Set(etags).size, etags.length, 'Every write must have another ETag.');
      await bench.expectText('chain', '50', 'The last replacement must be read.');
      for (const etag of etags.slice(0, -1)) await bench.putLost('chain', 'x', { etag }, 'the ETag is an old one.');
      await bench.expectText('chain', '50', 'Lost puts must change nothing.');
    },
  },
  {
    name: `a race of ${RACERS} creates has exactly one winner`,
    async check(bench) {
      for (let round = 0; round < 3; round++) {
        const key = bench.key(`race/${round}`);
        const winners = await race((racer) =>
          driverOf(bench, racer).put(key, encodeUtf8(`racer ${racer}`), { if: 'absent' }),
        );
        assertEqual(winners.length, 1, 'Exactly one create must win.');
        await bench.expectText(`race/${round}`, `racer ${winners[0]}`, 'What the winner wrote must be read.');
      }
    },
  },
  {
    name: `a race of ${RACERS} replacements has exactly one winner`,
    async check(bench) {
      let etag = await bench.put('race', 'start');
      for (let round = 0; round < 5; round++) {
        const body = (racer: number): string => `round ${round}, racer ${racer}`;
        const winners = await race((racer) =>
          driverOf(bench, racer).put(bench.key('race'), encodeUtf8(body(racer)), { if: { etag } }),
        );
        assertEqual(winners.length, 1, 'Exactly one replacement must win.');
        await bench.expectText('race', body(winners[0] as number), 'What the winner wrote must be read.');
        etag = (await bench.found('race')).etag;
      }
    },
  },
  {
    name: 'increments by compare-and-swap lose no update',
    async check(bench) {
      await bench.put('counter', '0');
      const increment = async (worker: number): Promise<void> => {
        const driver = driverOf(bench, worker);
        for (let done = 0, attempts = 0; done < 5; attempts++) {
          if (attempts > 2000) throw new ConformanceError('No replacement succeeds any more.');
          const { bytes, etag } = await bench.found('counter', undefined, driver);
          const next = encodeUtf8(String(Number(decodeUtf8(bytes)) + 1));
          const result = await driver.put(bench.key('counter'), next, { if: { etag } });
          if (result.status === 'written') done++;
        }
      };
      await Promise.all([0, 1, 2, 3].map(increment));
      await bench.expectText('counter', '20', 'Every increment that won must count once.');
    },
  },
  {
    name: 'what was written is read and listed at once, by others too',
    async check(bench) {
      for (let i = 0; i < 10; i++) {
        const etag = await bench.put(`log/${i}`, `entry ${i}`);
        assertEqual((await bench.found(`log/${i}`, undefined, bench.other)).etag, etag, 'Another driver must read it.');
        const names = (await bench.list('log/', undefined, bench.other)).map((entry) => entry.key);
        assert(names.includes(`log/${i}`), 'A put that was answered must be in the next listing.');
      }
      await bench.driver.delete([bench.key('log/3')]);
      assertEqual((await bench.other.get(bench.key('log/3'))).status, 'missing', 'A deleted object must be missing.');
      assert(!(await bench.names('log/')).includes('log/3'), 'A deleted object must not be listed.');
    },
  },
  {
    name: 'reads during writes see one version, whole',
    async check(bench) {
      const versions = Array.from({ length: 12 }, (_, i) => patternBytes(20_000 + 10_000 * (i % 3), i));
      let etag = await bench.put('torn', versions[0] as Uint8Array);
      const progress = { isDone: false };
      const readers = [bench.driver, bench.other].map(async (driver) => {
        for (let newest = 0; !progress.isDone; ) {
          const object = await bench.found('torn', undefined, driver);
          assertEqual(object.sizeBytes, object.bytes.length, 'Size and bytes must be of one version.');
          const seen = versions.findIndex((bytes) => compareBytes(bytes, object.bytes) === 0);
          assert(seen >= newest, seen === -1 ? 'A read was torn.' : 'A later read saw an older version.');
          newest = seen;
          await bench.environment.yieldToEventLoop();
        }
      });
      const writer = async (): Promise<void> => {
        try {
          for (const bytes of versions.slice(1)) etag = await bench.put('torn', bytes, { etag });
        } finally {
          progress.isDone = true;
        }
      };
      await Promise.all([...readers, writer()]);
      assertSameBytes((await bench.found('torn')).bytes, versions.at(-1) as Uint8Array, 'The last version is read.');
    },
  },
  {
    name: 'deleting is idempotent, for many keys and for none',
    async check(bench) {
      const { driver } = bench;
      assertEqual((await driver.delete([])).failed, [], 'Deleting nothing must succeed.');
      assertEqual((await driver.delete([bench.key('never')])).failed, [], 'Deleting a missing key is no failure.');
      const names = Array.from({ length: 30 }, (_, i) => `many/${i}`);
      await Promise.all(names.map((name) => bench.put(name, name)));
      const keys = [...names.slice(0, 29), 'many/never'].map((name) => bench.key(name));
      assertEqual((await driver.delete(keys)).failed, [], 'Deleting many keys must succeed.');
      assertEqual(await bench.names('many/'), ['many/29'], 'Exactly the named keys must be gone.');
      assertEqual((await driver.delete(keys)).failed, [], 'Deleting twice must succeed.');
    },
  },
];
