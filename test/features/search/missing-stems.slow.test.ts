/** A language whose stems come from a package that is not installed: the sources are run from a folder without packages. */
import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const folder = mkdtempSync(path.join(tmpdir(), 'store-db-stems-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const program = `
import { Types } from './src/format/types.ts';
import { StoreDb } from './src/index.ts';
import { MemoryDriver } from './src/storage/memory-driver.ts';

const fields = { id: { typeId: Types.uint32 }, body: { typeId: Types.varchar } };
for (const language of ['en', 'da'] as const) {
  const db = StoreDb({ driver: new MemoryDriver(), dbPrefix: 'db', nodeId: 0, logLevel: 'error' });
  const index = { fields: ['body'], text: { language } };
  db.registerSchema({ name: 'articles', version: 1, fields, primaryKey: 'id', indexes: [index] });
  await db.start();
  const batch = db.batch();
  try {
    await batch.insert('articles', { id: 1, body: 'bilerne' });
    await batch.flush();
    const found = await db.query('articles').search('bilerne').execute();
    console.log(language, found.length);
  } catch (error) {
    console.log(language, error.code, error.message);
  }
  await db.stop();
}
`;

it('is refused with what to install, and English needs no package', async () => {
  cpSync(path.join(root, 'src'), path.join(folder, 'src'), { recursive: true });
  for (const file of ['package.json', 'tsconfig.json']) cpSync(path.join(root, file), path.join(folder, file));
  writeFileSync(path.join(folder, 'program.ts'), program);
  const loader = new URL('../../../node_modules/tsx/dist/loader.mjs', import.meta.url).href;
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', loader, 'program.ts'], { cwd: folder });
  const [english, danish] = stdout.trim().split('\n');
  expect(english).toBe('en 1');
  expect(danish).toMatch(/^da NOT_SUPPORTED .*language 'da'.*cannot be loaded.*npm install @orama\/stemmers@\d/);
});
