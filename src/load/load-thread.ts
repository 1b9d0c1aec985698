/**
 * The thread of the application beside the thread of a load (`load-worker.ts`): reads, checks and encodes rows, hands them over, makes the
 * requests of the other thread, and ends it.
 */
import { untilAborted } from '../base/abort.ts';
import { InvariantError } from '../base/errors.ts';
import { Later } from '../base/later.ts';
import type { Logger } from '../base/logger.ts';
import { defined } from '../base/options.ts';
import { commitBlockName } from '../format/commit.ts';
import { openSealed } from '../format/node.ts';
import { stagedName } from '../format/object-names.ts';
import type { StorageDriver } from '../storage/contract/driver.ts';
import { putRepeatedly } from '../storage/contract/retries.ts';
import type { RunLimits } from './row-run.ts';
import { repeatedKey } from './row-stager.ts';
import type { RowStager, RunSink, StagerOptions } from './row-stager.ts';
import type { FilledRows } from './row-source.ts';
import type { StagedPart, StagedTree } from './staged-trees.ts';
import { KeyRefused, ownBytes, RemoteError, ThreadChannel } from './thread-channel.ts';
import type { Answer } from './thread-channel.ts';
import { rowsMessage } from './thread-messages.ts';
import type {
  GetCall,
  MergeCall,
  NewRuns,
  PutCall,
  RunsCall,
  SentPart,
  SentRun,
  SentTree,
  StoredRoot,
  ThreadStart,
} from './thread-messages.ts';

const threads = new Later('threads of loads', () => import('#load-thread'), { onlyOnUse: true });

/** A thread that does not answer for so long, in milliseconds, is taken for one that the runtime cannot start. */
const startMs = 10_000;

export interface LoadThreadOptions extends StagerOptions {
  readonly driver: StorageDriver;
  readonly prefix: string;
  readonly blockSizeBytes: number;
  readonly signal: AbortSignal;
  readonly logger: Logger;
  /** Names the call in errors. */
  readonly callName: string;
  /** Bytes that the blocks of the thread may take. */
  readonly memoryBytes: number;
  /** An estimate of the size of a block. */
  readonly blockBytes: number;
  /** Called once the thread has ended, or has not begun. */
  readonly ended: () => void;
}

/** A thread that runs. */
interface Running {
  end(): Promise<void>;
}

/** Stages the rows in a thread of their own. */
export class LoadThread implements RowStager {
  readonly #options: LoadThreadOptions;
  readonly #channel: ThreadChannel;
  readonly #requests = new Set<Promise<unknown>>();
  #thread: Running | undefined;
  #isReady!: () => void;
  #hasFailed!: (error: unknown) => void;
  /** Resolves when the thread has begun to work. */
  readonly #ready: Promise<void>;
  #sink: RunSink | undefined;
  /** The buffer that the thread gets next. */
  #next: Promise<FilledRows | undefined> | undefined;

  private constructor(options: LoadThreadOptions, post: (message: unknown, buffers: readonly ArrayBuffer[]) => void) {
    this.#options = options;
    this.#ready = new Promise((resolve, reject) => {
      this.#isReady = resolve;
      this.#hasFailed = reject;
    });
    this.#ready.catch(() => undefined);
    this.#channel = new ThreadChannel(post, {
      ready: async () => {
        this.#isReady();
        return {};
      },
      rows: () => this.#rows(),
      staged: (sent: SentRun) => this.#request(this.#staged(sent)),
      get: (call: GetCall) => this.#request(this.#get(call)),
      put: (call: PutCall) => this.#request(this.#put(call)),
    });
  }

  /** Starts the thread. Undefined where there are none, or it does not start: then nothing has changed. Rejects if the load is given up. */
  static async start(options: LoadThreadOptions): Promise<LoadThread | undefined> {
    const { signal, logger, environment } = options;
    let own: LoadThread | undefined;
    try {
      const { startThread } = threads.loaded ?? (await threads.load());
      if (startThread === undefined) {
        options.ended();
        return undefined;
      }
      const thread = startThread({
        message: (message) => own?.received(message),
        failed: (error) => own?.failed(error),
      });
      const started = new LoadThread(options, thread.post);
      own = started;
      started.#thread = thread;
      const timer = environment.setTimer(() => started.failed(new Error('The thread does not answer')), startMs);
      await untilAborted(started.#ready, signal).finally(() => timer.cancel());
      await started.#begin();
      return started;
    } catch (cause) {
      if (own === undefined) options.ended();
      else await own.end();
      signal.throwIfAborted();
      logger.debug('A load works without a thread of its own, because none can be started', { cause });
      return undefined;
    }
  }

  async #begin(): Promise<void> {
    const { shape, prefix, blockSizeBytes, storesRoots, memoryBytes, blockBytes } = this.#options;
    const schema = JSON.stringify(shape.schema);
    const parts = { prefix, blockSizeBytes, storesRoots, memoryBytes, blockBytes };
    await this.#call('begin', { table: shape.name, schema, ...parts } satisfies ThreadStart);
  }

  /** Takes a message of the thread. */
  private received(message: unknown): void {
    this.#channel.receive(message);
  }

  /** Takes note that the thread answers no more. */
  private failed({ message }: Error): void {
    const error = new InvariantError(
      `The thread of ${this.#options.callName} has failed, and a load without option thread needs none: ${message}`,
    );
    this.#hasFailed(error);
    this.#channel.close(error);
  }

  /** Calls a method of the thread, until the load is given up. */
  async #call(method: string, value: unknown): Promise<unknown> {
    try {
      return await untilAborted(this.#channel.call(method, value), this.#options.signal);
    } catch (error) {
      if (error instanceof KeyRefused) throw repeatedKey(this.#options.shape, error.key);
      if (!(error instanceof RemoteError)) throw error;
      throw new InvariantError(`The thread of ${this.#options.callName} has failed: ${error.message}`);
    }
  }

  async stageRuns(first: FilledRows, sink: RunSink): Promise<void> {
    this.#sink = sink;
    this.#next = Promise.resolve(first);
    await this.#call('runs', { limits: sink.limits(), names: this.#names(2) } satisfies RunsCall);
  }

  async merge(parts: readonly StagedPart[]): Promise<StagedTree> {
    const sent = parts.map(({ node, staged, tree }): SentPart => {
      return { runs: staged.runs, root: node === undefined ? (tree.ref as StoredRoot) : ownBytes(node.rows) };
    });
    return this.#opened(
      (await this.#call('merge', { parts: sent, names: this.#names(2) } satisfies MergeCall)) as SentTree,
    );
  }

  async end(): Promise<void> {
    this.#channel.close(new Error('The thread of the load has ended'));
    await this.#thread?.end();
    await Promise.allSettled(this.#requests);
    this.#options.ended();
  }

  #names(count: number): string[] {
    return Array.from({ length: count }, () => this.#options.staging.newRun());
  }

  /** Hands a buffer of rows over, and fills the next one meanwhile. */
  async #rows(): Promise<Answer> {
    const { reader, shape } = this.#options;
    const rows = await this.#next;
    if (rows === undefined) return {};
    const message = rowsMessage(rows, shape.layout.stride);
    this.#next = reader.fill();
    // The thread asks for it later.
    this.#next.catch(() => undefined);
    return message;
  }

  async #staged({ tree, run }: SentRun): Promise<Answer> {
    const sink = this.#sink as RunSink;
    const { sizeBytes, isLast, ...rest } = run;
    await sink.add({ part: this.#opened(tree), ...rest }, sizeBytes, isLast);
    const value: RunLimits | undefined = sink.limits();
    return { value };
  }

  #opened({ node, runs, root }: SentTree): StagedTree {
    const { shape, staging } = this.#options;
    const sealed = openSealed(commitBlockName(shape.name), node);
    return staging.opened(shape.changeShape, { node: sealed, staged: { runs }, ...defined({ root }) });
  }

  /** Makes a request for the thread, or records its runs: the load has not ended before that has. */
  #request(request: Promise<Answer>): Promise<Answer> {
    this.#requests.add(request);
    const ended = (): void => void this.#requests.delete(request);
    request.then(ended, ended);
    return request;
  }

  async #get({ key, range }: GetCall): Promise<Answer> {
    const result = await this.#options.driver.get(key, defined({ range }));
    if (result.status !== 'found') return {};
    // The driver may keep its bytes.
    const value = new Uint8Array(result.bytes);
    return { value, buffers: [value.buffer] };
  }

  async #put({ key, bytes }: PutCall): Promise<Answer> {
    const { environment, driver, prefix, staging } = this.#options;
    staging.began(key.slice(`${prefix}/${stagedName('')}`.length));
    await putRepeatedly(environment, driver, key, bytes, { if: 'absent', background: true });
    return { value: { names: this.#names(1) } satisfies NewRuns };
  }
}
