/**
 * An instance of Azurite, Microsoft's server for tests, that belongs to a test run. Azurite is too large to be a dependency: it is
 * taken from the folder in AZURITE_DIR, or installed once into a cache folder.
 */
import { execFileSync, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { ContainerClient, StorageSharedKeyCredential } from '@azure/storage-blob';

/** The version that is installed if AZURITE_DIR is not set. */
export const azuriteVersion = '3.37.0';

const program = path.join('node_modules', 'azurite', 'dist', 'src', 'blob', 'main.js');
const startTimeoutMs = 60_000;

/** The account that Azurite has by itself. Its name and key are public. */
export const emulatorAccount = 'devstoreaccount1';
export const emulatorKey = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';

/** Returns the program of Azurite, which is installed if need be. */
function azuriteProgram(): string {
  const given = process.env['AZURITE_DIR'] ?? '';
  if (given !== '') {
    const file = path.join(given, program);
    if (!existsSync(file)) {
      throw new Error(
        `There is no ${file}: run \`npm install --prefix ${given} azurite@${azuriteVersion}\`, or unset AZURITE_DIR.`,
      );
    }
    return file;
  }
  const cache = process.env['XDG_CACHE_HOME'] ?? path.join(homedir(), '.cache');
  const folder = path.join(cache, 'store-db', `azurite-${azuriteVersion}`);
  const file = path.join(folder, program);
  if (existsSync(file)) return file;
  process.stdout.write(`Installing Azurite ${azuriteVersion} into ${folder}\n`);
  mkdirSync(folder, { recursive: true });
  try {
    const flags = ['--no-save', '--no-audit', '--no-fund', '--loglevel=error'];
    execFileSync('npm', ['install', '--prefix', folder, ...flags, `azurite@${azuriteVersion}`], {
      stdio: ['ignore', 'ignore', 'pipe'],
      encoding: 'utf8',
      shell: process.platform === 'win32',
    });
  } catch (error) {
    const { stderr } = error as { stderr?: string };
    throw new Error(
      `Azurite could not be installed into ${folder}. Without a package registry, set AZURITE_DIR to a folder in which it is installed.\n${stderr ?? ''}`,
      { cause: error },
    );
  }
  return file;
}

/** Creates a container in the account of a server. */
export async function createContainer(endpoint: string, container: string): Promise<void> {
  const key = new StorageSharedKeyCredential(emulatorAccount, emulatorKey);
  await new ContainerClient(`${endpoint}/${container}`, key).create();
}

/** How a server runs. */
export interface AzuriteOptions {
  /** The folder of the data. Default: none, so that the data is in memory. */
  readonly folder?: string;
  /** The files of a certificate and its key: the server then takes access tokens, and speaks HTTPS. */
  readonly tls?: { readonly cert: string; readonly key: string };
}

const running = new Set<ChildProcess>();
// A run that ends early leaves no server behind.
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** A running server. */
export class AzuriteInstance {
  /** URL of the account's blob service. */
  readonly endpoint: string;
  readonly #child: ChildProcess;

  private constructor(endpoint: string, child: ChildProcess) {
    this.endpoint = endpoint;
    this.#child = child;
  }

  /** Starts a server on a free port. Resolves when requests are served. */
  static async start({ folder, tls }: AzuriteOptions = {}): Promise<AzuriteInstance> {
    const file = azuriteProgram();
    const flags = [
      '--blobPort',
      '0',
      '--disableTelemetry',
      '--silent',
      ...(tls === undefined ? [] : ['--oauth', 'basic', '--cert', tls.cert, '--key', tls.key]),
      ...(folder === undefined ? ['--inMemoryPersistence'] : ['--location', folder]),
      // The SDK states a version of the service that Azurite need not know yet.
      '--skipApiVersionCheck',
    ];
    const child = spawn(process.execPath, [file, ...flags], { stdio: ['ignore', 'pipe', 'pipe'] });
    running.add(child);
    child.once('exit', () => running.delete(child));
    try {
      const origin = await listening(child);
      return new AzuriteInstance(`${origin}/${emulatorAccount}`, child);
    } catch (error) {
      child.kill('SIGKILL');
      throw error;
    }
  }

  /** Stops the server for some time, and wakes it. */
  async pause(ms: number): Promise<void> {
    this.#child.kill('SIGSTOP');
    await sleep(ms);
    this.#child.kill('SIGCONT');
  }

  /** Lets the server write its data to the disk, and end. */
  async stop(): Promise<void> {
    await this.#end('SIGTERM');
  }

  /** Ends the server at once. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  async #end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    if (!running.has(this.#child)) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill(signal);
    await exited;
  }
}

/** Resolves with the origin on which the server says that it listens. */
function listening(child: ChildProcess): Promise<string> {
  const said: string[] = [];
  return new Promise((resolve, reject) => {
    const fail = (why: string): void => reject(new Error(`Azurite did not start: ${why}\n${said.join('\n')}`));
    const timer = setTimeout(() => fail(`it said nothing for ${startTimeoutMs} ms`), startTimeoutMs);
    child.once('exit', (code) => {
      clearTimeout(timer);
      fail(`it ended with ${code}`);
    });
    for (const stream of [child.stdout, child.stderr]) {
      if (stream === null) continue;
      createInterface({ input: stream }).on('line', (line) => {
        said.push(line);
        const origin = /successfully listens on (https?:\/\/[\w.:]+)/i.exec(line)?.[1];
        if (origin === undefined) return;
        clearTimeout(timer);
        resolve(origin);
      });
    }
  });
}
