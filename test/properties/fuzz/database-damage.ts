/** What is done to the objects of a stored database in one case. */
import type { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { commitName } from '../../../src/format/object-names.ts';
import {
  mutate,
  mutateBlock0,
  mutateCommitHeader,
  mutateCommitRows,
  mutateNode,
  resealBlock,
  resealBlock0,
  resealCommit,
  resealStaged,
} from './mutations.ts';
import { dbPrefix } from './stored-database.ts';
import type { StoredDatabase } from './stored-database.ts';

export interface Damage {
  /** By key; undefined: deleted. */
  readonly changes: Map<string, Uint8Array | undefined>;
  readonly what: string[];
  /** Whether whole objects were taken away or put back: the database may be in a state that it was in before. */
  timeTravel: boolean;
  /** Whether a checksum was made right again: then anything may be answered. */
  sealed: boolean;
}

/** Makes the checksums in an object right again, whatever it is. */
function reseal(name: string, bytes: Uint8Array, random: SeededRandom): void {
  if (name === 'block0') resealBlock0(bytes);
  else if (name.startsWith('committed/')) resealCommit(name, bytes, random.chance(0.7));
  else if (name.startsWith('staged/')) resealStaged(name, bytes);
  else if (!name.startsWith('blobs/')) resealBlock(name, bytes);
}

/** Some object's name: those that everything depends on as often as all the others together. */
function pickName(names: readonly string[], random: SeededRandom): string {
  if (random.chance(0.5)) return random.pick(names);
  return random.pick(names.filter((name) => name === 'block0' || /^(committed|staged|blobs)\//.test(name)));
}

export class Damager {
  readonly #stored: StoredDatabase;
  readonly #names: readonly string[];
  readonly #random: SeededRandom;
  readonly damage: Damage = { changes: new Map(), what: [], timeTravel: false, sealed: false };

  constructor(stored: StoredDatabase, random: SeededRandom) {
    this.#stored = stored;
    this.#names = [...stored.objects.keys()];
    this.#random = random;
  }

  #bytes(name: string): Uint8Array {
    const key = `${dbPrefix}/${name}`;
    if (this.damage.changes.has(key)) return this.damage.changes.get(key) ?? new Uint8Array();
    return this.#stored.objects.get(name) as Uint8Array;
  }

  #change(what: string, name: string, bytes: Uint8Array | undefined): void {
    this.damage.what.push(`${what} ${name}`);
    this.damage.changes.set(`${dbPrefix}/${name}`, bytes);
  }

  /** Damage that no checksum hides. */
  plain(): void {
    const random = this.#random;
    const name = pickName(this.#names, random);
    const other = pickName(this.#names, random);
    switch (random.integer(0, 9)) {
      case 0:
        this.#change('empty', name, new Uint8Array());
        break;
      case 1: {
        const bytes = this.#bytes(name);
        this.#change('swap', name, this.#bytes(other));
        this.#change('with', other, bytes);
        break;
      }
      case 2:
        this.#travel(name);
        break;
      case 3:
        this.#change(`copy ${other} to`, commitName(this.#stored.tail + random.integer(1, 2)), this.#bytes(other));
        break;
      default:
        this.#change('mutate', name, mutate(this.#bytes(name), random));
    }
  }

  /** Deletes an object, or puts an older Block 0 in its place: no object is damaged then. */
  #travel(name: string): void {
    this.damage.timeTravel = true;
    const { appliedSeq, tail } = this.#stored;
    const pending = commitName(this.#random.integer(appliedSeq + 1, tail));
    if (this.#random.chance(0.6)) this.#change('delete', this.#random.chance(0.5) ? name : pending, undefined);
    else this.#change('older', 'block0', this.#random.pick(this.#stored.oldBlock0s));
  }

  /** Damage under right checksums. */
  sealed(): void {
    const random = this.#random;
    this.damage.sealed = true;
    const name = pickName(this.#names, random);
    const whole = this.#bytes(name);
    const dice = random.next();
    if (name === 'block0' && dice < 0.7 && whole.length > 100)
      return this.#tryJson(name, () => mutateBlock0(whole, random));
    if (name.startsWith('committed/') && dice < 0.6) {
      const mutateCommit = dice < 0.2 ? mutateCommitHeader : mutateCommitRows;
      return this.#tryJson(name, () => mutateCommit(name, whole, random));
    }
    let bytes = mutateNode(name, whole, random);
    // Another object in its place, under this one's name: mostly of the same kind, or none of it would be read.
    if (dice > 0.8) bytes = this.#bytes(this.#similar(name)).slice();
    const target = dice > 0.95 ? commitName(this.#stored.tail + 1) : name;
    reseal(target, bytes, random);
    this.#change('reseal', target, bytes);
  }

  #similar(name: string): string {
    const [kind] = name.split('/');
    const same = this.#names.filter((other) => other.split('/')[0] === kind);
    return this.#random.chance(0.7) ? this.#random.pick(same) : this.#random.pick(this.#names);
  }

  /** Where an object is no longer JSON after an earlier change, it stays as it is. */
  #tryJson(name: string, make: () => Uint8Array): void {
    try {
      this.#change('change in', name, make());
    } catch {
      this.damage.what.push(`leave ${name}`);
    }
  }
}

export function damageOf(stored: StoredDatabase, random: SeededRandom): Damage {
  const damager = new Damager(stored, random);
  const sealed = random.chance(0.5);
  for (let left = random.pick([1, 1, 1, 2, 3]); left > 0; left--) {
    if (sealed && random.chance(0.8)) damager.sealed();
    else damager.plain();
  }
  return damager.damage;
}
