/** The tests run on the runtime that the run is for: a run for Bun or Deno that used Node.js would show nothing. */
import { expect, it } from 'vitest';

it('runs the tests itself', () => {
  const { bun, deno } = process.versions as Readonly<Record<string, string | undefined>>;
  const runtime = bun !== undefined ? 'bun' : deno !== undefined ? 'deno' : 'node';
  expect(runtime).toBe(process.env['EXPECTED_RUNTIME'] ?? 'node');
});
