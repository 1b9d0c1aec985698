/** Takes the steps of adding indexes one by one, from an instance whose own turns do not come. */
import { Database } from '../../../src/api/database.ts';
import { Instance } from '../../../src/instance/instance.ts';
import { nextAddedChunk, uniqueToCheck } from '../../../src/migration/added-chunk.ts';
import type { AddedChunk } from '../../../src/migration/added-chunk.ts';
import { ChunkWork } from '../../../src/migration/chunk-work.ts';
import type { Step } from '../../../src/migration/chunk-work.ts';
import { UniqueSteps } from '../../../src/migration/index-daemon.ts';
import { checkOptions } from '../../../src/instance/options.ts';
import { toStoredSchema } from '../../../src/schema/schema.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { shapeOf } from '../../../src/schema/table-shape.ts';
import type { Tree } from '../../../src/tree/tree.ts';
import { View } from '../../../src/view/view.ts';
import { prefix, quietIntervalMs } from '../protocol/nodes.ts';
import { plain } from './shelf.ts';
import type { Shelf } from './shelf.ts';

/** A chunk's work ends here, as if the process did. */
class Crash extends Error {}

export interface StepOptions {
  /** Rows of the chunk. */
  readonly rows: number;
  /** Whether it is cut short, wherever it is. */
  readonly isOver?: () => boolean;
  /** Whether the process dies before it is stored. */
  readonly crashes?: boolean;
}

export class Stepper {
  readonly #shelf: Shelf;
  readonly instance: Instance;
  readonly db: Database;

  constructor(shelf: Shelf) {
    this.#shelf = shelf;
    const given = { dbPrefix: prefix, nodeId: 9, driver: shelf.store, logLevel: 'silent', blockSizeBytes: 512 };
    const checked = checkOptions({ ...given, writeForwardInterval: quietIntervalMs }, () => undefined);
    this.instance = new Instance(checked, shelf.environment);
    this.db = new Database(this.instance);
  }

  async open(): Promise<void> {
    this.db.registerSchema(plain);
    await this.#shelf.run(this.db.start());
  }

  /**
   * Takes the next step of a unique index whose entries are all made; undefined if there is none. It may be run while other things
   * go on. `meanwhile`: what happens before what it has found out is stored.
   */
  async uniqueStep(meanwhile: () => Promise<void> = async () => {}): Promise<Step | undefined> {
    const { engine } = this.instance;
    if (engine === undefined) throw new Error('it is not started');
    await engine.refresh();
    const { view } = engine;
    const table = view.table('books');
    const added = table && uniqueToCheck(table);
    if (table === undefined || added === undefined) return undefined;
    const { environment } = this.#shelf;
    const task = { name: 'test', maxRows: 10, delayMs: () => undefined, work: async () => {} };
    const work = new ChunkWork({ environment, engine, role: 'writer', intervalMs: quietIntervalMs }, task);
    const chunks: Pick<ChunkWork, 'store'> = { store: (build) => meanwhile().then(() => work.store(build)) };
    const silent = (): void => undefined;
    const logger = { debug: silent, info: silent, warn: silent, error: silent };
    const step = await new UniqueSteps({ environment, logger, engine, chunks }).step(view, table, added);
    if (typeof step === 'object') await step.tell();
    return step;
  }

  /**
   * Takes a step towards the indexes of a definition: undefined if there is nothing left to do. `meanwhile` runs when the chunk
   * is made and not stored yet; `lost`, if another write came first then.
   */
  async step(
    definition: SchemaDefinition,
    { rows, isOver = () => false, crashes = false }: StepOptions,
    meanwhile: () => Promise<void> = async () => {},
  ): Promise<AddedChunk | 'lost' | undefined> {
    const { engine } = this.instance;
    if (engine === undefined) throw new Error('it is not started');
    const defined = shapeOf(toStoredSchema(definition));
    let chunk: AddedChunk | undefined;
    await this.#shelf.run(engine.refresh());
    const work = engine.merger.rebuild(async (block0, context) => {
      const table = View.ofBlock0(engine.context, block0).table('books');
      const emptyIndex = (index: string): Tree => engine.context.emptyIndex('books', index);
      chunk = table && (await nextAddedChunk(table, defined, { rows, bytes: 1e6, isOver }, context, emptyIndex));
      await meanwhile();
      if (crashes) throw new Crash();
      return chunk === undefined ? [] : [chunk.table];
    });
    const done = await this.#shelf.run(
      work.catch((error: unknown) => {
        if (error instanceof Crash) return true;
        throw error;
      }),
    );
    return done ? chunk : 'lost';
  }
}
