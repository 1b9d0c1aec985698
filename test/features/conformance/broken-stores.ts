/** Stores that each break one rule, and the required result of certifying them. */
import { sleep } from '../../../src/base/env.ts';
import type { Environment } from '../../../src/base/env.ts';
import type { CheckName } from '../../../src/storage/certify/certification.ts';
import type {
  DeleteResult,
  GetOptions,
  GetResult,
  ListOptions,
  ListPage,
  PutBody,
  PutOptions,
  PutResult,
} from '../../../src/storage/contract/driver.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';

/** A store that keeps every rule. Each class below breaks one. */
export class Store extends MemoryDriver {
  readonly environment: Environment;
  constructor(environment: Environment) {
    super({ environment });
    this.environment = environment;
  }
}

type StoreClass = new (environment: Environment) => Store;

export class IgnoresAbsent extends Store {
  override put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    return super.put(key, body, options.if === 'absent' ? { ...options, if: 'any' } : options);
  }
}

class IgnoresAbsentOfStreams extends Store {
  override put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    const isStream = !(body instanceof Uint8Array);
    return super.put(key, body, isStream && options.if === 'absent' ? { ...options, if: 'any' } : options);
  }
}

/** It says that it did not, and did. */
class RefusesAndWrites extends Store {
  override async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    const result = await super.put(key, body, options);
    const writes = result.status === 'lost' && options.if === 'absent' && body instanceof Uint8Array;
    if (writes) await super.put(key, body, { ...options, if: 'any' });
    return result;
  }
}

class IgnoresEtags extends Store {
  override async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    const exists = (await this.get(key)).status === 'found';
    return super.put(key, body, typeof options.if === 'object' && exists ? { ...options, if: 'any' } : options);
  }
}

class CreatesOnMissingEtag extends Store {
  override async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    const isMissing = (await this.get(key)).status === 'missing';
    return super.put(key, body, typeof options.if === 'object' && isMissing ? { ...options, if: 'any' } : options);
  }
}

/** It says that it did not, and did. */
class RefusesAndCreates extends Store {
  override async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    const result = await super.put(key, body, options);
    if (typeof options.if === 'object' && result.status === 'lost') await super.put(key, body, { if: 'absent' });
    return result;
  }
}

/** What a server does that looks first, then writes. */
export class ChecksThenWrites extends Store {
  gapMs = 0;
  override async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    const present = await this.get(key);
    const etag = present.status === 'found' ? present.etag : undefined;
    if (options.if === 'absent' && etag !== undefined) return { status: 'lost' };
    if (typeof options.if === 'object' && options.if.etag !== etag) return { status: 'lost' };
    await (this.gapMs === 0 ? Promise.resolve() : sleep(this.environment, this.gapMs));
    return super.put(key, body, { ...options, if: 'any' });
  }
}

class ChecksThenCreates extends ChecksThenWrites {
  override put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    return options.if === 'absent' ? super.put(key, body, options) : Store.prototype.put.call(this, key, body, options);
  }
}

class ChecksThenReplaces extends ChecksThenWrites {
  override put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    return options.if !== 'absent' ? super.put(key, body, options) : Store.prototype.put.call(this, key, body, options);
  }
}

/** All but one hear that they lost, and the last one is stored. */
class TellsOneOfMany extends ChecksThenCreates {
  readonly #told = new Set<string>();
  override async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    const result = await super.put(key, body, options);
    if (result.status === 'lost' || options.if !== 'absent') return result;
    if (this.#told.has(key)) return { status: 'lost' };
    this.#told.add(key);
    return result;
  }
}

/** Knows which creates of a key are under way at the same time. */
abstract class Races extends Store {
  readonly #underWay = new Map<string, number>();
  abstract answer(result: PutResult, rivals: number): PutResult;
  abstract mayWrite(rivals: number): boolean;
  override async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    if (options.if !== 'absent') return super.put(key, body, options);
    const count = (change: number): number => {
      const rivals = (this.#underWay.get(key) ?? 0) + change;
      this.#underWay.set(key, rivals);
      return rivals;
    };
    count(1);
    await sleep(this.environment, 1);
    const rivals = count(0) - 1;
    const result: PutResult = this.mayWrite(rivals) ? await super.put(key, body, options) : { status: 'lost' };
    await sleep(this.environment, 1);
    count(-1);
    return this.answer(result, rivals);
  }
}

class TellsAllThatTheyWon extends Races {
  override mayWrite(): boolean {
    return true;
  }
  override answer(result: PutResult, rivals: number): PutResult {
    return rivals > 0 && result.status === 'lost' ? { status: 'written', etag: 'none' } : result;
  }
}

export class LetsNobodyWin extends Races {
  override mayWrite(rivals: number): boolean {
    return rivals === 0;
  }
  override answer(result: PutResult): PutResult {
    return result;
  }
}

class NeverCreates extends Store {
  override put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    return options.if === 'absent' ? Promise.resolve({ status: 'lost' }) : super.put(key, body, options);
  }
}

/** The first read after a write shows what was there before. */
class ReadsLate extends Store {
  readonly #earlier = new Map<string, GetResult>();
  override async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    const earlier = await super.get(key);
    const result = await super.put(key, body, options);
    if (result.status === 'written') this.#earlier.set(key, earlier);
    return result;
  }
  override async get(key: string, options?: GetOptions): Promise<GetResult> {
    const earlier = this.#earlier.get(key);
    this.#earlier.delete(key);
    return earlier ?? super.get(key, options);
  }
}

/** Only replacements are read late: what is new is there at once. */
class ReadsReplacementsLate extends ReadsLate {
  override put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    return options.if === 'absent' ? Store.prototype.put.call(this, key, body, options) : super.put(key, body, options);
  }
}

/** Once only, of an object that is read well before and after. */
class LosesSightOnce extends Store {
  #reads = 0;
  override get(key: string, options?: GetOptions): Promise<GetResult> {
    if (key.endsWith('/anchor') && ++this.#reads === 3) return Promise.resolve({ status: 'missing' });
    return super.get(key, options);
  }
}

class CallsEverythingUnchanged extends Store {
  override get(key: string, options?: GetOptions): Promise<GetResult> {
    return options?.ifNoneMatch === undefined ? super.get(key, options) : Promise.resolve({ status: 'unchanged' });
  }
}

class MixesUpBytes extends Store {
  override async get(key: string, options?: GetOptions): Promise<GetResult> {
    const result = await super.get(key, options);
    return result.status === 'found' ? { ...result, bytes: result.bytes.toReversed() } : result;
  }
}

class OneEtagForAll extends Store {
  override async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    const isMissing = (await super.get(key)).status === 'missing';
    if (typeof options.if === 'object' && isMissing) return { status: 'lost' };
    const result = await super.put(key, body, typeof options.if === 'object' ? { ...options, if: 'any' } : options);
    return result.status === 'written' ? { ...result, etag: 'the one' } : result;
  }
  override async get(key: string, options?: GetOptions): Promise<GetResult> {
    const result = await super.get(key, options);
    return result.status === 'found' ? { ...result, etag: 'the one' } : result;
  }
}

class OtherEtagsInReads extends Store {
  override async get(key: string, options?: GetOptions): Promise<GetResult> {
    const result = await super.get(key, options);
    return result.status === 'found' ? { ...result, etag: `W/${result.etag}` } : result;
  }
}

class IgnoresRanges extends Store {
  override get(key: string, options?: GetOptions): Promise<GetResult> {
    const { range: _, ...rest } = options ?? {};
    return super.get(key, rest);
  }
}

class RangesOffByOne extends Store {
  override get(key: string, options?: GetOptions): Promise<GetResult> {
    const { range } = options ?? {};
    return super.get(key, range === undefined ? options : { ...options, range: { ...range, end: range.end + 1 } });
  }
}

class ListsLate extends Store {
  override async list(prefix: string, options?: ListOptions): Promise<ListPage> {
    const page = await super.list(prefix, options);
    const untilMs = this.environment.now() - 10_000;
    return { ...page, entries: page.entries.filter(({ lastModifiedMs }) => lastModifiedMs < untilMs) };
  }
}

class ListsWhatIsDeleted extends Store {
  #earlier: ListPage | undefined;
  override async delete(keys: readonly string[]): Promise<DeleteResult> {
    const folder = keys.find((key) => key.includes('/list/'))?.replace(/[^/]*$/, '') ?? '';
    this.#earlier = await super.list(folder.replace(/list\/.*/, 'list/'));
    return super.delete(keys);
  }
  override list(prefix: string, options?: ListOptions): Promise<ListPage> {
    return this.#earlier === undefined ? super.list(prefix, options) : Promise.resolve(this.#earlier);
  }
}

class ForgetsFurtherPages extends Store {
  override async list(prefix: string, options?: ListOptions): Promise<ListPage> {
    return { ...(await super.list(prefix, options)), more: false };
  }
}

class RepeatsPages extends Store {
  override list(prefix: string, { after: _, ...options }: ListOptions = {}): Promise<ListPage> {
    return super.list(prefix, options);
  }
}

/** Pages begin with the last name of the one before. */
class ListsTwice extends Store {
  override async list(prefix: string, { after, limit = 1000 }: ListOptions = {}): Promise<ListPage> {
    const { entries } = await super.list(prefix);
    const rest = after === undefined ? entries : entries.filter(({ key }) => key >= after);
    return { entries: rest.slice(0, limit), more: rest.length > limit };
  }
}

/** Lists in an order of its own, over pages too. */
abstract class Sorts extends Store {
  abstract before(a: string, b: string): boolean;
  override async list(prefix: string, { after, limit = 1000 }: ListOptions = {}): Promise<ListPage> {
    const { entries } = await super.list(prefix);
    const sorted = entries.toSorted((a, b) => (this.before(a.key, b.key) ? -1 : 1));
    const rest = after === undefined ? sorted : sorted.filter(({ key }) => this.before(after, key));
    return { entries: rest.slice(0, limit), more: rest.length > limit };
  }
}

class SortsDown extends Sorts {
  override before(a: string, b: string): boolean {
    return a > b;
  }
}

export class SortsByCodeUnit extends Sorts {
  override before(a: string, b: string): boolean {
    return a < b;
  }
}

export class AlwaysSendsBytes extends Store {
  override get(key: string, options?: GetOptions): Promise<GetResult> {
    const { ifNoneMatch: _, ...rest } = options ?? {};
    return super.get(key, rest);
  }
}

export class IsSlowClock extends Store {
  override async get(key: string, options?: GetOptions): Promise<GetResult> {
    const result = await super.get(key, options);
    return result.status === 'found' ? { ...result, lastModifiedMs: result.lastModifiedMs - 300_000 } : result;
  }
}

export class ThrowsOnLostRaces extends Store {
  override async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    const result = await super.put(key, body, options);
    if (result.status === 'lost') throw new Error('PreconditionFailed');
    return result;
  }
}

export const broken: readonly { readonly Broken: StoreClass; readonly names: readonly CheckName[] }[] = [
  { Broken: IgnoresAbsent, names: ['create-only put', 'race of creates'] },
  { Broken: RefusesAndWrites, names: ['create-only put', 'race of creates'] },
  { Broken: IgnoresAbsentOfStreams, names: ['streamed put'] },
  { Broken: IgnoresEtags, names: ['stale ETag', 'race of updates'] },
  { Broken: CreatesOnMissingEtag, names: ['missing key'] },
  { Broken: RefusesAndCreates, names: ['missing key'] },
  { Broken: ChecksThenCreates, names: ['race of creates'] },
  { Broken: TellsOneOfMany, names: ['race of creates'] },
  { Broken: ChecksThenReplaces, names: ['race of updates'] },
  { Broken: TellsAllThatTheyWon, names: ['race of creates'] },
  { Broken: LetsNobodyWin, names: ['race of creates'] },
  { Broken: NeverCreates, names: ['condition that holds'] },
  { Broken: ReadsLate, names: ['reads'] },
  { Broken: ReadsReplacementsLate, names: ['reads'] },
  { Broken: LosesSightOnce, names: ['reads'] },
  { Broken: CallsEverythingUnchanged, names: ['reads'] },
  { Broken: MixesUpBytes, names: ['reads'] },
  { Broken: OneEtagForAll, names: ['race of updates', 'ETags'] },
  { Broken: OtherEtagsInReads, names: ['ETags'] },
  { Broken: IgnoresRanges, names: ['ranges'] },
  { Broken: RangesOffByOne, names: ['ranges'] },
  { Broken: ListsLate, names: ['lists'] },
  { Broken: ListsWhatIsDeleted, names: ['lists'] },
  { Broken: ForgetsFurtherPages, names: ['lists'] },
  { Broken: RepeatsPages, names: ['lists'] },
  { Broken: ListsTwice, names: ['lists'] },
  { Broken: SortsDown, names: ['order of lists'] },
];
