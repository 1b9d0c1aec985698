/** The page of observability lists the log messages, each with its level and its fields, and no other. */
import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { logMessages } from './log-messages.ts';

it('lists every log message that stands in the sources, with its level and fields, and no other', async () => {
  const page = await readFile(new URL('../../../docs/observability.md', import.meta.url), 'utf8');
  const section = page.split('\n## Log lines\n')[1] ?? '';
  const listed = Array.from(
    section.matchAll(/^\| ([a-z ]+) \| `([^`]*)` \| ?(.*) \|$/gm),
    ([, level, text, fields]) => `${level}: ${text} (${fields})`,
  );
  const logged = Array.from(await logMessages(), ([text, { level, fields }]) => `${level}: ${text} (${fields})`);
  expect(logged.length).toBeGreaterThan(25);
  expect(new Set(listed)).toEqual(new Set(logged));
  expect(listed).toHaveLength(logged.length);
});
