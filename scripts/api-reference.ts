/** Writes docs/api.md: `npm run docs:api`. */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { apiReference } from './api-reference/reference.ts';

const { markdown, undocumented } = apiReference(fileURLToPath(new URL('../', import.meta.url)));
writeFileSync(new URL('../docs/api.md', import.meta.url), markdown);
console.log(`docs/api.md: ${markdown.split('\n').length} lines`);
if (undocumented.length > 0) {
  console.error(`Without a docstring: ${undocumented.join(', ')}`);
  process.exitCode = 1;
}
