/** Calls with any arguments: whoever sends them need not be the page. */
import * as fc from 'fast-check';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { CallError } from '../../../src/studio/messages.ts';
import { Shown } from './shown.ts';
import type { Page } from './shown.ts';

let shown: Shown;
let page: Page;
beforeEach(async () => {
  shown = new Shown();
  page = shown.page(await shown.withCities(20), { write: true });
});
afterEach(async () => {
  await shown[Symbol.asyncDispose]();
});

const calls = [
  'overview',
  'rows',
  'count',
  'row',
  'save',
  'query',
  'explain',
  'block',
  'commits',
  'commit',
  'moments',
  'drop',
];
const longCalls = ['compare'];
const fields = ['id', 'name', 'country', 'population', 'area', 'founded', 'tags', 'hash', 'uid', 'coat', 'capital'];

/** Values that are right somewhere, and any others. */
const value: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(
    ...fields,
    'cities',
    '=',
    'IN',
    'BETWEEN',
    'PREFIX',
    'asc',
    'count',
    'sum',
    '__proto__',
    'constructor',
  ),
  fc.constantFrom<unknown>(1, 5, 0, -1, 1e300, '1e999', '2020-01-01', null, true, [], {}, [1, 2], ['FI', null]),
  fc.jsonValue({ maxDepth: 2 }),
);
const condition = fc.record({ field: fc.constantFrom(...fields), operator: value, value }, { requiredKeys: [] });
const key = fc.array(value, { maxLength: 2 });
const asked = fc.record(
  {
    table: fc.oneof({ weight: 6, arbitrary: fc.constant<unknown>('cities') }, { weight: 1, arbitrary: value }),
    where: fc.oneof(fc.array(condition, { maxLength: 2 }), value),
    orderBy: fc.oneof(
      fc.array(fc.record({ field: value, direction: fc.constantFrom('asc', 'desc') }), { maxLength: 2 }),
      value,
    ),
    fields: fc.oneof(fc.uniqueArray(fc.constantFrom(...fields), { minLength: 1 }), value),
    size: fc.oneof(fc.constant(5), value),
    limit: fc.oneof(fc.constant(5), value),
    after: value,
    before: fc.oneof(fc.record({ id: value, name: value }), value),
    key: fc.oneof(key, value),
    groupBy: fc.oneof(fc.array(fc.constantFrom(...fields), { maxLength: 2 }), value),
    aggregates: fc.oneof(fc.array(fc.record({ name: value, kind: value, field: value }), { maxLength: 2 }), value),
    budget: fc.oneof(fc.record({ requests: value, ms: value }), value),
    at: fc.oneof(fc.record({ generation: value, time: value, snapshot: value }, { requiredKeys: [] }), value),
    from: fc.record({ generation: value }),
    index: value,
    name: value,
    position: fc.oneof(fc.constant(1), value),
    run: value,
  },
  { requiredKeys: ['table'] },
);

it('gives a result, or an error that says what is wrong', async () => {
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...calls, ...longCalls), fc.oneof(asked, asked, value), async (call, given) => {
      const answer = await page.post(call, given);
      const text = await answer.text();
      const last = JSON.parse(text.trim().split('\n').at(-1) ?? '') as {
        readonly error?: CallError;
      } | null;
      expect([call, JSON.stringify(given), last?.error?.code, last?.error?.message]).not.toContain('INTERNAL');
      expect(answer.status, `${call} ${JSON.stringify(given)} ${text}`).toBeLessThan(500);
    }),
    { numRuns: 600 },
  );
});
