/** Where the packages of Azure are not installed, every call says so: nothing reads as an object that is missing. */
import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { AzureBlobDriver } from './azure-blob-driver.ts';

/** Makes Node.js fail to find a package, as where it is not installed. */
const hook = (name: string): string => `
  export async function resolve(specifier, context, next) {
    return next(specifier === '${name}' ? '${name}-that-is-not-installed' : specifier, context);
  }`;

/** The messages of the errors of all calls, in a process in which a package is not installed. */
function messagesWithout(name: string, options: object): string[] {
  const program = `
    import { register } from 'node:module';
    register('data:text/javascript,' + encodeURIComponent(${JSON.stringify(hook(name))}));
    const { AzureBlobDriver } = await import(${JSON.stringify(new URL('azure-blob-driver.ts', import.meta.url).href)});
    const driver = new AzureBlobDriver(${JSON.stringify(options)});
    async function* stream() { yield new Uint8Array(1); }
    const bytes = new Uint8Array(1);
    const calls = [
      () => driver.get('key'),
      () => driver.get('key', { range: { start: 0, end: 0 } }),
      () => driver.get('key', { range: { start: 3, end: 9 } }),
      () => driver.list('key'),
      () => driver.put('key', bytes, { if: 'absent' }),
      () => driver.put('key', bytes, { if: { etag: '"a"' } }),
      () => driver.put('key', stream(), { if: 'absent' }),
      () => driver.delete(['key']),
      () => driver.copy('key', 'other'),
      () => driver.presign('key', { expiresInSeconds: 60 }),
    ];
    const errors = [];
    for (const call of calls) errors.push(await call().then(() => 'no error', (e) => [e.name, e.outcome, e.message].join(' ')));
    await driver.close();
    console.log(JSON.stringify(errors));`;
  const output = execFileSync(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', program], {
    encoding: 'utf8',
  });
  return JSON.parse(output) as string[];
}

it.each([
  ['@azure/storage-blob', { container: 'photos', account: 'notes', accountKey: 'a2V5' }],
  ['@azure/identity', { container: 'photos', account: 'notes' }],
])('without %s every call rejects with a StorageError that says what to install', (name, options) => {
  const messages = messagesWithout(name, options);
  expect(messages).toHaveLength(10);
  for (const message of messages) {
    expect(message).toMatch(/^StorageError none The client for container photos could not be made: /);
    expect(message).toContain(`${name}, which is not installed: run \`npm install ${name}\``);
  }
});

it('keys that Azure would change are refused before anything is loaded', async () => {
  const driver = new AzureBlobDriver({ container: 'photos', account: 'notes', accountKey: 'a2V5' });
  for (const key of ['.', 'a/../b', 'a/.', 'back\\slash']) {
    await expect(driver.get(key), key).rejects.toMatchObject({
      outcome: 'none',
      message: expect.stringMatching(/use another key\.$/) as unknown,
    });
  }
});
