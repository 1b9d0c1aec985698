/**
 * The thread of a load: sorts its rows, cuts them into blocks, and merges sorted runs. All requests to the store are made by the thread of
 * the application, which also encrypts and compresses. `scripts/worker-code.ts` bundles this file and what it needs.
 */
import { isBytes } from '../base/brands.ts';
import { InvariantError } from '../base/errors.ts';
import { realEnvironment } from '../base/env.ts';
import { Pacer } from '../base/pacer.ts';
import { stageChanges } from '../batch/make-member.ts';
import type { StagedChanges } from '../batch/make-member.ts';
import { openCachedSealed } from '../cache/cached-node.ts';
import { InstanceMemory } from '../cache/instance-memory.ts';
import { stagedName } from '../format/object-names.ts';
import type { StoredSchema } from '../format/stored-schema.ts';
import { shapeOf } from '../schema/table-shape.ts';
import type { TableShape } from '../schema/table-shape.ts';
import type { StorageDriver } from '../storage/contract/driver.ts';
import { BlockReader } from '../tree/block-source.ts';
import { Tree, treeOfNode } from '../tree/tree.ts';
import type { ChangeStream } from '../tree/write.ts';
import { sortRows, stageRuns } from './row-run.ts';
import type { RunLimits, SortedRows } from './row-run.ts';
import { KeyRefused, ownBytes, ThreadChannel } from './thread-channel.ts';
import type { Answer, Post } from './thread-channel.ts';
import { receivedRows } from './thread-messages.ts';
import type {
  GetCall,
  MergeCall,
  NewRuns,
  PutCall,
  RunsCall,
  SentPart,
  SentRows,
  SentRun,
  SentTree,
  ThreadStart,
} from './thread-messages.ts';
import { TreeEntries } from '../tree/tree-entries.ts';

/** The other thread, as the platform shows it. */
interface OtherThread {
  readonly post: Post;
  /** Passes all messages of the other thread to a function. */
  readonly listen: (receive: (message: unknown) => void) => void;
}

/** Names of runs that are kept for later: those that are older lie less far ahead of the log. */
const keptNames = 3;

class LoadWorker {
  readonly #start: ThreadStart;
  readonly #channel: ThreadChannel;
  readonly #shape: TableShape;
  readonly #environment = realEnvironment;
  readonly #pacer = new Pacer(realEnvironment);
  readonly #reader: BlockReader;
  readonly #driver: Pick<StorageDriver, 'get' | 'put'>;
  #names: readonly string[] = [];

  constructor(start: ThreadStart, channel: ThreadChannel) {
    this.#start = start;
    this.#channel = channel;
    this.#shape = shapeOf(JSON.parse(start.schema) as StoredSchema);
    this.#driver = {
      get: async (key, options) => {
        const bytes = (await channel.call('get', { key, range: options?.range } satisfies GetCall)) as
          | Uint8Array
          | undefined;
        if (bytes === undefined) return { status: 'missing' };
        return { status: 'found', bytes, etag: '', sizeBytes: bytes.length, lastModifiedMs: 0 };
      },
      put: async (key, body) => {
        const bytes = ownBytes(body as Uint8Array);
        this.#newNames((await channel.call('put', { key, bytes } satisfies PutCall, [bytes.buffer])) as NewRuns);
        return { status: 'written', etag: '' };
      },
    };
    const memory = new InstanceMemory({ maxBytes: start.memoryBytes, blockBytes: start.blockBytes });
    this.#reader = new BlockReader(this.#driver, start.prefix, memory.cache, { memory });
  }

  #newNames({ names }: NewRuns): void {
    this.#names = [...this.#names, ...names].slice(-keptNames);
  }

  /** Takes the newest name. There is one: the other thread gives two before the first object, and one with each that it has stored. */
  #newRun(): string {
    const name = this.#names.at(-1);
    if (name === undefined) throw new InvariantError('A thread of a load has no name for a run');
    this.#names = this.#names.slice(0, -1);
    return name;
  }

  #stage(changes: ChangeStream, storesRoot: boolean): Promise<StagedChanges> {
    const { table, prefix, blockSizeBytes } = this.#start;
    return stageChanges(table, this.#shape.changeShape, changes, this.#pacer, {
      driver: this.#driver,
      prefix,
      environment: this.#environment,
      blockSizeBytes,
      newRun: () => this.#newRun(),
      storesRoot,
    });
  }

  async #nextRows(): Promise<SortedRows | undefined> {
    const sent = (await this.#channel.call('rows')) as SentRows | undefined;
    if (sent === undefined) return undefined;
    return sortRows(receivedRows(sent, this.#shape.layout.stride), this.#pacer, (key) => new KeyRefused(key));
  }

  /** Stages the rows of the source as sorted runs, and tells the other thread of each. */
  async runs(call: RunsCall): Promise<Answer> {
    this.#newNames(call);
    await stageRuns({
      environment: this.#environment,
      nextRows: () => this.#nextRows(),
      limits: call.limits,
      stage: (run) => this.#stage(run, this.#start.storesRoots),
      staged: async (staged, run) => {
        const sent: SentRun = { tree: treeMessage(staged), run };
        return (await this.#channel.call('staged', sent)) as RunLimits | undefined;
      },
    });
    return {};
  }

  /** Stages the rows of several trees as one. */
  async merge(call: MergeCall): Promise<Answer> {
    this.#newNames(call);
    const trees = call.parts.map((part) => this.#open(part));
    const entries = await TreeEntries.of(trees, (key) => new KeyRefused(key));
    return { value: treeMessage(await this.#stage(entries, false)) };
  }

  #open({ runs, root }: SentPart): Tree {
    const blocks = this.#reader.staged(runs, stagedName, this.#shape.changeShape);
    return isBytes(root) ? treeOfNode(openCachedSealed('memory/load', root), blocks) : new Tree(blocks, root);
  }
}

function treeMessage({ node, staged, root }: StagedChanges): SentTree {
  return { node: ownBytes(node.rows), runs: staged.runs, root };
}

/** Works for another thread, until that ends this one. */
export function serve({ post, listen }: OtherThread): void {
  let worker: LoadWorker | undefined;
  const its = (): LoadWorker => worker as LoadWorker;
  const channel = new ThreadChannel(post, {
    async begin(start: ThreadStart) {
      worker = new LoadWorker(start, channel);
      return {};
    },
    runs: (call: RunsCall) => its().runs(call),
    merge: (call: MergeCall) => its().merge(call),
  });
  listen((message) => channel.receive(message));
  void channel.call('ready');
}
