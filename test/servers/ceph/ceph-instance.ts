/** An instance of Ceph that belongs to a test run, by way of `scripts/ceph`. */
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const script = fileURLToPath(new URL('../../../scripts/ceph', import.meta.url));

/** What a client needs to know. */
export interface CephStore {
  readonly endpoint: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** The gateway's port and those after it, as the script says. */
const portsOfInstance = 20;

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

/** Below the ports that systems give to those who connect, of which any may be taken at any time. */
async function freePorts(): Promise<number> {
  for (;;) {
    const first = 18_000 + portsOfInstance * Math.floor(Math.random() * 700);
    const free = await Promise.all(Array.from({ length: portsOfInstance }, (_, i) => isFree(first + i)));
    if (!free.includes(false)) return first;
  }
}

const running = new Set<CephInstance>();
// Where a run ends otherwise than it should, nothing is to stay behind.
process.on('exit', () => {
  for (const instance of running) instance.destroyNow();
});

export class CephInstance {
  readonly #variables: NodeJS.ProcessEnv;

  private constructor(variables: NodeJS.ProcessEnv) {
    this.#variables = { ...process.env, ...variables };
  }

  /**
   * Fetches Ceph if need be, and starts it, on free ports unless `variables` say otherwise. Rejects where that cannot be
   * done.
   */
  static async start(store: 'memstore' | 'bluestore', variables: NodeJS.ProcessEnv = {}): Promise<CephInstance> {
    const instance = new CephInstance({
      CEPH_DIR: mkdtempSync(path.join(tmpdir(), 'store-db-ceph-')),
      CEPH_STORE: store,
      CEPH_PORT: String(await freePorts()),
      ...variables,
    });
    running.add(instance);
    try {
      await instance.start();
    } catch (error) {
      await instance.destroy();
      throw error;
    }
    return instance;
  }

  /** Starts what does not run. Resolves when requests are served. */
  async start(): Promise<void> {
    await this.#run('start');
  }

  /** SIGKILL. */
  async kill(what: 'gateway' | 'osd' | 'monitor' | 'all'): Promise<void> {
    await this.#run('kill', what);
  }

  async store(): Promise<CephStore> {
    return storeOf(await this.#run('env'));
  }

  /** The store as another user sees it, who owns nothing. */
  async storeOfUser(name: string): Promise<CephStore> {
    return storeOf(await this.#run('user', name));
  }

  async version(): Promise<string> {
    return (await this.#run('version')).trim();
  }

  /** Ends it, leaving its data. */
  async stop(): Promise<void> {
    await this.#run('stop');
  }

  /** Rejects unless all of it runs. */
  async status(): Promise<string> {
    return this.#run('status');
  }

  /** Stops it and deletes its data. */
  async destroy(): Promise<void> {
    await this.#run('destroy');
    running.delete(this);
  }

  destroyNow(): void {
    execFileSync(script, ['destroy'], { env: this.#variables, stdio: 'ignore' });
    running.delete(this);
  }

  #run(...args: string[]): Promise<string> {
    return new Promise((resolve, reject) => {
      execFile(script, args, { env: this.#variables }, (error, stdout, stderr) => {
        if (error === null) resolve(stdout);
        // Its own words say more than how the process ended.
        else reject(new Error(`scripts/ceph ${args.join(' ')} failed.\n${stdout}${stderr}`));
      });
    });
  }
}

/** What the script prints as variables for a shell. */
function storeOf(variables: string): CephStore {
  const lines = variables.matchAll(/^export (\w+)=(.*)$/gm);
  const values = new Map(Array.from(lines, ([, name = '', value = '']) => [name, value]));
  const get = (name: string): string => {
    const value = values.get(name);
    if (value === undefined) throw new Error(`scripts/ceph does not tell ${name}.`);
    return value;
  };
  return {
    endpoint: get('STOREDB_ENDPOINT'),
    region: get('STOREDB_REGION'),
    accessKeyId: get('AWS_ACCESS_KEY_ID'),
    secretAccessKey: get('AWS_SECRET_ACCESS_KEY'),
  };
}
