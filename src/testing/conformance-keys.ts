/** Conformance: keys are kept exactly, and listed in the order of their UTF-8 bytes. */
import { encodeUtf8, compareStrings } from '../base/bytes.ts';
import { assert, assertEqual, assertRejects, type Bench, type ConformanceCase } from './conformance-case.ts';

/** Writes every name (as its own content) and checks that each is kept apart from all others. */
async function checkDistinct(bench: Bench, names: readonly string[]): Promise<void> {
  for (const name of names) await bench.put(name, `content of ${name}`);
  for (const name of names) await bench.expectText(name, `content of ${name}`, `${JSON.stringify(name)} was mixed up.`);
  assertEqual(await bench.names(), names.toSorted(bench.compare), 'Every key must be listed exactly as it was put.');
  for (const name of names) {
    const start = name.slice(0, -1);
    if (start.isWellFormed()) {
      assert((await bench.names(start)).includes(name), `${JSON.stringify(name)} must be found by its beginning.`);
    }
  }
  for (const [index, name] of names.entries()) {
    assertEqual(await bench.driver.delete([bench.key(name)]), { failed: [] }, 'Deleting must succeed.');
    await bench.expectMissing(name, 'A deleted key must be missing.');
    const next = names[index + 1];
    if (next !== undefined) await bench.expectText(next, `content of ${next}`, 'Deleting must spare other keys.');
  }
}

const ODD_KEYS = [
  'a b',
  ' ',
  'percent%41',
  'percentA',
  '%',
  '%25',
  'plus+',
  'at@',
  'equals=',
  '#hash',
  'question?x=y&z',
  'quote"\'`',
  'colon:star*<>|',
  'tilde~$!^(){}[];,',
  '.hidden',
  'dots..dots',
  'trailing.',
  'con',
  'nul.txt',
  'com1',
  'Ü',
  'ü',
  'u\u0308',
  'ﬁ',
  'fi',
  '漢字/かな',
  '🦊',
  'ß',
  'SS',
  '\u200b',
];

export const keyCases: readonly ConformanceCase[] = [
  {
    name: 'keys that differ only in case or form are different',
    check: (bench) => checkDistinct(bench, ['Readme', 'README', 'readme', 'caf\u00e9', 'cafe\u0301', 'İ', 'i', 'ı']),
  },
  {
    name: 'a key may be the beginning of others',
    check: (bench) => checkDistinct(bench, ['a', 'a/b', 'a/b/c', 'a-b', 'a.b', 'a0', 'ab', 'a/b-c', 'a/b0']),
  },
  {
    name: 'odd characters are kept',
    check: (bench) => checkDistinct(bench, ODD_KEYS),
  },
  {
    name: 'segments of dots, empty segments, backslashes and control characters are kept',
    needsOddKeys: true,
    check: (bench) =>
      checkDistinct(bench, [
        '..',
        '.',
        '../x',
        './x',
        'x/..',
        'x/../y',
        'x/',
        'x//',
        'x//y',
        '/x',
        'back\\slash',
        'tab\t',
        'nul\0',
        '\n',
      ]),
  },
  {
    name: 'long keys and long segments are kept',
    async check(bench) {
      const room = 1024 - encodeUtf8(bench.prefix).length;
      const segment = 's'.repeat(300);
      await checkDistinct(bench, [
        'x'.repeat(room),
        'X'.repeat(room),
        `${'d/'.repeat(Math.floor(room / 2) - 1)}e`,
        'é'.repeat(Math.floor(room / 2)),
        `q${'🦊'.repeat(60)}`,
        segment,
        `${segment}/below`,
        `${segment}-`,
        `${segment}0`,
        's'.repeat(79),
        's'.repeat(80),
        's'.repeat(81),
        `${'s'.repeat(80)}/x`,
        `${'s'.repeat(80)}-x`,
      ]);
    },
  },
  {
    name: 'what is no key is refused, without effect',
    async check(bench) {
      for (const key of ['', 'k'.repeat(1025), 'é'.repeat(513), `${bench.prefix}\ud800`, `${bench.prefix}\udc00x`]) {
        const why = `The key ${JSON.stringify(key.slice(0, 40))} of length ${key.length} must be refused.`;
        assertEqual((await assertRejects(bench.driver.get(key), why)).outcome, 'none', why);
        const put = bench.driver.put(key, encodeUtf8('x'), { if: 'any' });
        assertEqual((await assertRejects(put, why)).outcome, 'none', why);
      }
    },
  },
  {
    name: 'lists are in the order of keys',
    async check(bench) {
      // By UTF-16 code units the last two are the other way round. XML cannot hold U+FFFF.
      const last = bench.isUtf8Order ? ['\uffff', '\u{10000}'] : ['\u{10000}', '\uff5e'];
      const names = ['-', '0', 'A', 'Z', '_', 'a', 'a-', 'a.', 'a/', 'a/0', 'a0', 'z', '\u00e9', ...last];
      const kept = names.filter((name) => name !== 'a/');
      for (const name of kept.toReversed()) await bench.put(name, name);
      assertEqual(
        await bench.names(),
        kept,
        `The order must be that of the ${bench.isUtf8Order ? 'UTF-8 bytes' : 'UTF-16 code units'}.`,
      );
      assertEqual(await bench.names('a'), ['a', 'a-', 'a.', 'a/0', 'a0'], 'A prefix may end within a name.');
      assertEqual(await bench.names('a/'), ['a/0'], 'A prefix may end at a slash.');
      assertEqual(await bench.names('b'), [], 'A prefix that no key has gives nothing.');
    },
  },
  {
    name: 'pages follow each other without gaps or repetitions',
    async check(bench) {
      const names = Array.from({ length: 40 }, (_, i) => `p/${i % 4}/${i}`).toSorted(compareStrings);
      await Promise.all(names.map((name) => bench.put(name, name)));
      for (const limit of [1, 3, 10, 39, 40, 41, 1000]) {
        assertEqual(await bench.names('p/', limit), names, `Pages of ${limit} must be the whole list.`);
      }
      const page = await bench.driver.list(bench.key('p/'), { limit: 40 });
      assertEqual([page.entries.length, page.more], [40, false], 'The last page must say that nothing follows.');
      for (const limit of [0, -1, 1001, 1.5]) {
        await assertRejects(bench.driver.list(bench.prefix, { limit }), `A limit of ${limit} must be refused.`);
      }
    },
  },
  {
    name: 'a list can start after any key, whether it exists or not',
    async check(bench) {
      for (const name of ['b', 'd', 'd/x', 'd/y', 'f']) await bench.put(name, name);
      for (const [after, expected] of [
        ['a', ['b', 'd', 'd/x', 'd/y', 'f']],
        ['b', ['d', 'd/x', 'd/y', 'f']],
        ['c', ['d', 'd/x', 'd/y', 'f']],
        ['d', ['d/x', 'd/y', 'f']],
        ['d/', ['d/x', 'd/y', 'f']],
        ['d/x', ['d/y', 'f']],
        ['d/z', ['f']],
        ['f', []],
        ['z', []],
      ] as const) {
        const page = await bench.driver.list(bench.prefix, { after: bench.key(after) });
        const names = page.entries.map((entry) => entry.key.slice(bench.prefix.length));
        assertEqual(names, expected, `The list after ${after} must begin with the next key.`);
      }
      const earlier = await bench.driver.list(bench.key('d/'), { after: bench.key('a') });
      assertEqual(earlier.entries.length, 2, 'A key before the prefix to list after changes nothing.');
    },
  },
  {
    name: 'more than a thousand keys',
    async check(bench) {
      const names = Array.from({ length: 1100 }, (_, i) => `n/${String(i).padStart(5, '0')}`);
      for (let i = 0; i < names.length; i += 50) {
        await Promise.all(names.slice(i, i + 50).map((name) => bench.put(name, name)));
      }
      const page = await bench.driver.list(bench.key('n/'));
      assertEqual([page.entries.length, page.more], [1000, true], 'A page must hold 1000 entries by default.');
      assertEqual(await bench.names('n/'), names, 'All keys must be listed.');
      const { failed } = await bench.driver.delete(names.map((name) => bench.key(name)));
      assertEqual(failed, [], 'More than a thousand keys can be deleted at once.');
      assertEqual(await bench.names(), [], 'All keys must be gone.');
    },
  },
  {
    name: 'entries tell size and time, of replaced objects too',
    async check(bench) {
      await bench.put('sized', '12345');
      const etag = await bench.put('replaced', '1');
      await bench.put('replaced', '1234567', { etag });
      const entries = await bench.list();
      assertEqual(
        entries.map(({ key, sizeBytes }) => [key, sizeBytes]),
        [
          ['replaced', 7],
          ['sized', 5],
        ],
        'Sizes must be those of the present objects.',
      );
      for (const entry of entries) {
        const object = await bench.found(entry.key);
        // Some stores keep seconds in one place and milliseconds in the other.
        const apart = Math.abs(entry.lastModifiedMs - object.lastModifiedMs);
        assert(apart <= 1000, 'A list and a get must tell the same time.');
      }
    },
  },
];
