/**
 * Runs the TypeScript blocks of the documentation. The blocks of one page are one program, in their order; it must
 * compile, and print exactly what stands behind `// -> ` in it. Each program runs in a folder of its own, so that
 * `./data` in an example is an empty folder; `store-db` stands for the sources. The environment leads those that want a
 * bucket to one of the test server.
 *
 * Most pages of the guide start from `library.ts`, of which a copy lies beside each program. They leave out that its database is
 * stopped at the end, so that is added to their programs.
 */
import { execFile } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startS3Server } from '../../servers/s3-server/server.ts';
import type { S3Server } from '../../servers/s3-server/server.ts';
import { bundlePrograms } from '../../simulation/crash/program-bundle.ts';
import { programOf } from './code-blocks.ts';
import type { Program } from './code-blocks.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const library = path.join(root, 'examples/library/library.ts');

async function programOfPage(page: string): Promise<Program> {
  const { source, output } = programOf(await readFile(path.join(root, page), 'utf8'));
  const stops = !source.includes("from './library.ts';") || source.includes('await db.stop();');
  return { source: stops ? source : `${source}\nawait db.stop();\n`, output };
}

/** Pages of the guide that have a program. */
async function pagesOfGuide(): Promise<string[]> {
  const names = await readdir(path.join(root, 'docs/guide'));
  const found: string[] = [];
  for (const name of names.toSorted()) {
    const { source } = await programOfPage(`docs/guide/${name}`);
    // The programs of that page are projects of their own, which projects.test.ts compares.
    if (source.trim() !== '' && name !== 'testing.md') found.push(`docs/guide/${name}`);
  }
  return found;
}

const others = ['README.md', 'docs/backups.md', 'docs/errors.md', 'docs/encryption.md', 'docs/observability.md'];
const pages = [...(await pagesOfGuide()), ...others];
const pagesOnABucket = ['docs/object-stores.md'];
const bucket = 'my-bucket';

const run = promisify(execFile);
let folder: string;
let server: S3Server;

/** Where the program of a page is, and the folder that it runs in. */
function programFile(page: string): string {
  return path.join(folder, page.replaceAll('/', '-').replace('.md', '').toLowerCase(), 'program.ts');
}

/** What a user would have set. */
function bucketVariables(): NodeJS.ProcessEnv {
  const { endpoint, region, credentials } = server;
  return {
    STOREDB_BUCKET: bucket,
    STOREDB_ENDPOINT: endpoint,
    STOREDB_REGION: region,
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    // It is about the runtime, and not what the page says that is printed.
    AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true',
  };
}

/** Runs the program of a page, and compares what it prints. */
async function check(page: string, variables: NodeJS.ProcessEnv): Promise<void> {
  const { source, output } = await programOfPage(page);
  expect(source.trim()).not.toBe('');
  const cwd = path.dirname(programFile(page));
  const { stdout, stderr } = await run(process.execPath, ['program.mjs'], {
    cwd,
    env: { ...process.env, NO_COLOR: '1', ...variables },
    timeout: 50_000,
  });
  expect(stderr).toBe('');
  // What the database logs, for instance how long creating it took, is not what the program prints.
  const printed = stdout.trimEnd().split('\n');
  expect(printed.filter((line) => !line.startsWith('store-db: '))).toEqual(output);
}

beforeAll(async () => {
  server = await startS3Server({ buckets: [bucket] });
  await mkdir(path.join(root, '.tmp'), { recursive: true });
  folder = await mkdtemp(path.join(root, '.tmp', 'examples-'));
  await writeFile(
    path.join(folder, 'tsconfig.json'),
    JSON.stringify({ extends: '../../tsconfig.json', include: ['./*/program.ts'] }),
  );
  await writeFile(path.join(folder, 'package.json'), '{ "type": "module" }');
  for (const page of [...pages, ...pagesOnABucket]) {
    const file = programFile(page);
    await mkdir(path.dirname(file));
    await copyFile(library, path.join(path.dirname(file), 'library.ts'));
    await writeFile(file, (await programOfPage(page)).source);
  }
  const settings = [`--tsconfig=${path.join(folder, 'tsconfig.json')}`, `--outbase=${folder}`, '--packages=external'];
  bundlePrograms([...pages, ...pagesOnABucket].map(programFile), folder, settings);
});

afterAll(async () => {
  await server.close();
  await rm(folder, { recursive: true, force: true });
});

describe('the examples of the documentation', () => {
  it('are on most pages of the guide', () => {
    expect(pages.filter((page) => page.startsWith('docs/guide/')).length).toBeGreaterThan(15);
  });

  it('compile', async () => {
    const compiler = path.join(root, 'node_modules/typescript/bin/tsc');
    const { stdout } = await run(process.execPath, [compiler, '-p', folder]).catch((error: unknown) => {
      return { stdout: (error as { stdout: string }).stdout };
    });
    expect(stdout).toBe('');
  });

  it.each(pages)('of %s print the output in their comments', (page) => check(page, {}));

  it.each(pagesOnABucket)('of %s print the output in their comments, on a bucket', (page) =>
    check(page, bucketVariables()),
  );
});
