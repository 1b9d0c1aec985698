/** Conformance: reads return the bytes that were written. */
import { encodeUtf8, joinBytes } from '../base/bytes.ts';
import {
  assert,
  assertEqual,
  assertRejects,
  assertSameBytes,
  patternBytes,
  streamOf,
  type ConformanceCase,
} from './conformance-case.ts';

export const readCases: readonly ConformanceCase[] = [
  {
    name: 'a missing key is missing',
    async check(bench) {
      await bench.expectMissing('nothing', 'A key that was never written must be missing.');
      assertEqual(
        (await bench.driver.get(bench.key('nothing'), { ifNoneMatch: '"x"', range: { start: 0, end: 4 } })).status,
        'missing',
        'A missing key must be missing, whatever the options.',
      );
      await bench.put('folder/object', 'x');
      await bench.expectMissing('folder', 'What only begins other keys must be missing.');
    },
  },
  {
    name: 'an object is read back whole, with its size, ETag and time',
    async check(bench) {
      const etag = await bench.put('object', 'hello');
      const object = await bench.found('object');
      assertSameBytes(object.bytes, encodeUtf8('hello'), 'The bytes must be those that were put.');
      assertEqual(object.etag, etag, 'get must return the ETag that the put returned.');
      assertEqual(object.sizeBytes, 5, 'sizeBytes must be the size of the object.');
      assert(object.lastModifiedMs > Date.UTC(2000, 0, 1), 'lastModifiedMs must be milliseconds since 1970.');
    },
  },
  {
    name: 'an empty object exists',
    async check(bench) {
      await bench.put('empty', new Uint8Array());
      const object = await bench.found('empty');
      assertEqual([object.bytes.length, object.sizeBytes], [0, 0], 'An empty object must be found, with no bytes.');
      assertEqual((await bench.list())[0]?.sizeBytes, 0, 'An empty object must be listed with size 0.');
      await bench.putLost('empty', 'x', 'absent', 'an empty object is there too.');
      const ranged = await bench.found('empty', { range: { start: 0, end: 10 } });
      assertEqual([ranged.bytes.length, ranged.sizeBytes], [0, 0], 'A range of an empty object must be empty.');
    },
  },
  {
    name: 'a 5 MiB object, and ranges of it',
    async check(bench) {
      const bytes = patternBytes(5 * 1024 * 1024, 1);
      await bench.put('large', bytes);
      assertSameBytes((await bench.found('large')).bytes, bytes, 'A large object must be read back whole.');
      for (const [start, end] of [
        [0, 1],
        [65_536, 131_072],
        [bytes.length - 1, bytes.length],
      ] as const) {
        const part = await bench.found('large', { range: { start, end } });
        assertSameBytes(part.bytes, bytes.subarray(start, end), `Bytes ${start} to ${end} must be read.`);
        assertEqual(part.sizeBytes, bytes.length, 'sizeBytes must be that of the whole object.');
      }
    },
  },
  {
    name: 'ranges are clipped to the object, and may be empty',
    async check(bench) {
      const etag = await bench.put('ranged', '0123456789');
      for (const [start, end, text] of [
        [0, 10, '0123456789'],
        [2, 5, '234'],
        [8, 100, '89'],
        [0, 1e9, '0123456789'],
        [3, 3, ''],
        [0, 0, ''],
        [10, 20, ''],
        [50, 60, ''],
      ] as const) {
        const part = await bench.found('ranged', { range: { start, end } });
        assertSameBytes(part.bytes, encodeUtf8(text), `The range ${start} to ${end} must be read.`);
        assertEqual([part.sizeBytes, part.etag], [10, etag], 'A range must come with the size and ETag of the whole.');
      }
      for (const range of [
        { start: -1, end: 2 },
        { start: 5, end: 2 },
        { start: 0.5, end: 2 },
      ]) {
        await assertRejects(bench.driver.get(bench.key('ranged'), { range }), 'A range that makes no sense.');
      }
    },
  },
  {
    name: 'ifNoneMatch answers unchanged only for the present ETag',
    async check(bench) {
      const first = await bench.put('polled', 'one');
      assertEqual(
        (await bench.driver.get(bench.key('polled'), { ifNoneMatch: first })).status,
        'unchanged',
        'The same ETag must be unchanged.',
      );
      const second = await bench.put('polled', 'two', { etag: first });
      const object = await bench.found('polled', { ifNoneMatch: first });
      assertSameBytes(object.bytes, encodeUtf8('two'), 'An older ETag must get the new bytes.');
      assertEqual(object.etag, second, 'An older ETag must get the new ETag.');
      await bench.driver.delete([bench.key('polled')]);
      assertEqual(
        (await bench.driver.get(bench.key('polled'), { ifNoneMatch: second })).status,
        'missing',
        'A deleted object must be missing, not unchanged.',
      );
    },
  },
  {
    name: 'a stream is stored as its chunks in order',
    async check(bench) {
      const chunks = [1, 70_000, 0, 300_000, 5].map((length, index) => patternBytes(length, index));
      await bench.put('stream', streamOf(chunks));
      assertSameBytes((await bench.found('stream')).bytes, joinBytes(chunks), 'The chunks must be joined.');
      await bench.put('empty-stream', streamOf([]));
      assertEqual((await bench.found('empty-stream')).sizeBytes, 0, 'A stream without chunks is an empty object.');
      const result = await bench.driver.put(bench.key('stream'), streamOf(chunks), { if: 'absent' });
      assertEqual(result.status, 'lost', 'A condition holds for streams too.');
    },
  },
  {
    name: 'a stream that fails writes nothing',
    async check(bench) {
      async function* failing(): AsyncGenerator<Uint8Array> {
        yield await Promise.resolve(patternBytes(100_000, 1));
        throw new Error('the source of the stream failed');
      }
      const error = await assertRejects(
        bench.driver.put(bench.key('half'), failing(), { if: 'absent' }),
        'A put whose stream fails must be rejected.',
      );
      if (error.outcome === 'none') await bench.expectMissing('half', 'Half an object must never be seen.');
      assertEqual(await bench.names(), [], 'Half an object must never be listed.');
    },
  },
  {
    name: 'changing a buffer after the put changes nothing',
    async check(bench) {
      const buffer = encodeUtf8('original');
      const pending = bench.driver.put(bench.key('aliased'), buffer, { if: 'absent' });
      await pending;
      buffer.fill(0);
      await bench.expectText('aliased', 'original', 'The object must keep the bytes that were put.');
      const inner = encodeUtf8('--inside--').subarray(2, 8);
      await bench.put('view', inner);
      await bench.expectText('view', 'inside', 'Of a view into a larger buffer only the view is put.');
    },
  },
  {
    name: 'a request whose signal is aborted is rejected, and writes nothing',
    async check(bench) {
      const signal = AbortSignal.abort();
      await bench.put('there', 'x');
      const { driver } = bench;
      await assertRejects(driver.get(bench.key('there'), { signal }), 'An aborted get.');
      await assertRejects(driver.put(bench.key('new'), encodeUtf8('x'), { if: 'any', signal }), 'An aborted put.');
      await assertRejects(driver.delete([bench.key('there')], { signal }), 'An aborted delete.');
      await assertRejects(driver.list(bench.prefix, { signal }), 'An aborted list.');
      assertEqual(await bench.names(), ['there'], 'What was aborted before it began must have no effect.');
    },
  },
];
