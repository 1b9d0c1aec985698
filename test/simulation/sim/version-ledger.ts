/**
 * What the log and Block 0 say of the table that is there in several versions: a part of the oracle. Which rows each version
 * must see follows from the rows that commits hold (I13), and from the two writes of Block 0 that change it otherwise: a
 * migration that is cancelled takes what only the new version knew with it, and one that ends makes the new version the active version.
 */
import type { Block0 } from '../../../src/format/block0.ts';
import type { CommitMember } from '../../../src/format/commit.ts';
import { decodeRow } from '../../../src/format/row-decode.ts';
import { rowDeletedFlag } from '../../../src/format/row-layout.ts';
import type { StoredSchema } from '../../../src/format/stored-schema.ts';
import { TableShape } from '../../../src/schema/table-shape.ts';
import { newRow, writtenOld } from '../../features/migrations/version-model.ts';
import type { Entry, Rules } from '../../features/migrations/version-model.ts';
import { changedRows } from './commit-rows.ts';
import type { Objects } from './commit-rows.ts';
import type { Judge } from './judge.ts';
import { applyOps, isRejected, rowsOf, textOf } from './model.ts';
import type { Key, Op, State, TableRows } from './model.ts';
import type { Row } from './tables.ts';
import type { Making } from './versions.ts';
import { fittingFields, isVersioned, people, peopleIn, rulesOf, versionNumbers } from './versions.ts';

interface VersionedEntry extends Entry {
  /** The version of its own row. */
  readonly version: number | undefined;
}

interface Versioned {
  /** The active version; undefined before there is a table. */
  readonly active: number | undefined;
  /** The version that was written beside it. */
  readonly nextVersion: number | undefined;
  readonly entries: ReadonlyMap<Key, VersionedEntry>;
}

type Changes = ReadonlyMap<number, ReadonlyMap<Key, Row | undefined>>;

const invariant = 'I13 migration';
const nothing: Versioned = { active: undefined, nextVersion: undefined, entries: new Map() };

/** Rows that cannot be migrated, as the newer version has them: nobody can show such a row. */
function brokenRow(id: Key, known: Row = {}): Row {
  return { ...known, id, broken: 'cannot be migrated' };
}

function textOfRow(row: Row | undefined): string {
  return row === undefined ? 'no row' : textOf([row]);
}

/** An entry once the old version alone has written its row. */
function afterOld(row: Row, before: VersionedEntry | undefined): Pick<VersionedEntry, 'active' | 'own'> {
  if (before === undefined) return { active: row, own: undefined };
  return writtenOld(row, before);
}

export class VersionLedger {
  readonly #judge: Judge;
  readonly #objects: Objects;
  readonly #making: Making;
  readonly #known = new WeakMap<State, Versioned>();
  readonly #shapes = new Map<number, TableShape>();
  readonly #rules = new Map<string, Rules>();
  /** How often a version was given up. */
  retired = 0;
  cancelled = 0;

  /** By the new version whether the old one may go although instances use it. */
  readonly #told = new Map<number, boolean>();
  /** Running instances that use an old version, and in which migration. */
  readonly #using = new Map<string, number>();

  constructor(judge: Judge, objects: Objects, making: Making) {
    this.#judge = judge;
    this.#objects = objects;
    this.#making = making;
  }

  /** Somebody asks that the version before this one goes: by force, or once nobody is known to use it. */
  tellToRetire(to: number, force: boolean): void {
    this.#told.set(to, force || this.#told.get(to) === true);
  }

  /** An instance has started, and has said by then that it uses an old version, if Block 0 had a migration before. */
  started(name: string, version: number, block0: Block0 | undefined): void {
    const migration = block0?.migrations.find(({ table }) => table === people);
    if (migration !== undefined && version < migration.to) this.#using.set(name, migration.birth);
  }

  /** It stops, or is dead. */
  ended(name: string): void {
    this.#using.delete(name);
  }

  #checkToldToRetire({ birth, from, to }: Block0['migrations'][number]): void {
    const told = this.#told.get(to);
    if (told === undefined) this.#fail(`Version ${from} is retired, and nobody has asked for that`);
    const losing = [...this.#using].filter(([, used]) => used === birth).map(([name]) => name);
    if (told !== true && losing.length > 0) this.#fail(`Version ${from} is retired, and ${losing.join(', ')} uses it`);
  }

  #fail(what: string): void {
    this.#judge.fail(invariant, what);
  }

  #of(state: State): Versioned {
    return this.#known.get(state) ?? nothing;
  }

  /** The active version; undefined before there is a table. */
  active(state: State): number | undefined {
    return this.#of(state).active;
  }

  /** The version that instances write beside the active version, if it is known of. */
  nextVersion(state: State, block0: Block0 | undefined): number | undefined {
    return block0?.migrations.find(({ table }) => table === people)?.to ?? this.#of(state).nextVersion;
  }

  /** Whether a state has rows that an instance with this version cannot be shown. */
  hasBroken(state: State, version: number): boolean {
    return [...rowsOf(state, peopleIn(version)).values()].some((row) => 'broken' in row);
  }

  /** Whether instances with this version can use the table. */
  isReadable(state: State, version: number, block0: Block0 | undefined): boolean {
    const { active } = this.#of(state);
    if (active === undefined || active === version) return true;
    return active < version && (this.nextVersion(state, block0) ?? version) === version;
  }

  /** Applies what a commit holds of the table to a state's successor. */
  apply(before: State, next: Map<string, TableRows>, member: CommitMember): void {
    const known = this.#of(before);
    const changes = this.#changes(member);
    const [first] = changes.keys();
    const active = known.active ?? first;
    if (first === undefined || active === undefined) {
      this.#known.set(next, known);
      return;
    }
    const entries = new Map(known.entries);
    const touched = this.#write(active, entries, changes);
    const nextVersion = [...changes.keys()].find((version) => version > active) ?? known.nextVersion;
    const after = { active, nextVersion, entries };
    for (const version of versionNumbers) {
      const isNew = known.active === undefined;
      const rows = new Map(isNew ? [] : rowsOf(before, peopleIn(version)));
      for (const key of touched) this.#show(after, version, key, rows);
      next.set(peopleIn(version), rows);
    }
    this.#known.set(next, after);
  }

  #changes({ changes }: CommitMember): Changes {
    const found = new Map<number, Map<Key, Row | undefined>>();
    for (const change of changes) {
      if (change.schema.name !== people) continue;
      const shape = this.#shape(change.schema);
      const rows = new Map<Key, Row | undefined>();
      for (const { node, i } of changedRows(change, this.#objects)) {
        const base = node.rowBase(i);
        const isDeleted = ((node.rows[base] as number) & rowDeletedFlag) !== 0;
        const row = isDeleted ? undefined : (decodeRow(shape.layout, node, base) as Row);
        rows.set(shape.keyValue(node.key(i)) as Key, row);
      }
      found.set(change.schema.version, rows);
    }
    return found;
  }

  #shape(schema: StoredSchema): TableShape {
    const shape = this.#shapes.get(schema.version) ?? new TableShape(schema);
    this.#shapes.set(schema.version, shape);
    return shape;
  }

  #rulesOf(from: number, to: number): Rules {
    const name = `${from} ${to}`;
    const rules = this.#rules.get(name) ?? rulesOf(from, to, this.#making);
    this.#rules.set(name, rules);
    return rules;
  }

  /** Writes a commit's rows, and gives the keys that have changed. */
  #write(active: number, entries: Map<Key, VersionedEntry>, changes: Changes): readonly Key[] {
    const rows = changes.get(active);
    if (rows === undefined) {
      this.#fail(`A commit holds version ${[...changes.keys()].join(', ')} alone, and ${active} is active`);
      return [];
    }
    const version = [...changes.keys()].find((other) => other > active);
    const shadows = version === undefined ? undefined : changes.get(version);
    if (shadows !== undefined && [...shadows.keys()].join() !== [...rows.keys()].join())
      this.#fail(`A commit holds other rows of version ${version} than of version ${active}`);
    for (const [key, row] of rows) {
      const before = entries.get(key);
      if (row === undefined) {
        if (shadows?.get(key) !== undefined) this.#fail(`A commit deletes ${key} in version ${active} only`);
        entries.delete(key);
      } else if (shadows === undefined) entries.set(key, { version: before?.version, ...afterOld(row, before) });
      else this.#writeShadowRow(active, entries, key, row, version as number, shadows.get(key));
    }
    return [...rows.keys()];
  }

  #writeShadowRow(
    from: number,
    entries: Map<Key, VersionedEntry>,
    key: Key,
    row: Row,
    version: number,
    shadow: Row | undefined,
  ): void {
    const before = entries.get(key);
    if (before?.version !== undefined && before.version !== version)
      this.#fail(`Row ${key} is written in version ${version} beside version ${before.version}`);
    if (shadow === undefined) return this.#fail(`A commit deletes ${key} in version ${version} only`);
    const expected = this.#rulesOf(from, version).back(shadow, before?.active) as Row;
    const [found, wanted] = [textOfRow(row), textOfRow(expected)];
    if (found !== wanted) this.#fail(`Beside ${textOfRow(shadow)} version ${from} gets\n${found}\nand not\n${wanted}`);
    entries.set(key, { version, active: row, own: { row: shadow, active: row } });
  }

  #show({ active, entries }: Versioned, version: number, key: Key, rows: Map<Key, Row>): void {
    const entry = entries.get(key);
    if (entry === undefined || active === undefined || version < active) rows.delete(key);
    else if (version === active) rows.set(key, entry.active as Row);
    else {
      const own = entry.version === version ? entry.own : undefined;
      const row = newRow(this.#rulesOf(active, version), { active: entry.active, own }) as Row | undefined;
      // A query by the fields that fit need not come across the row.
      const known =
        this.#making === 'functions'
          ? {}
          : fittingFields(entry.active as Row, version, own === undefined, this.#making);
      rows.set(key, row ?? brokenRow(key, known));
    }
  }

  /** What a flush wrote must be what it asked for, on the state before it, or on one that was superseded meanwhile. */
  check(slot: number, ops: readonly Op[], states: readonly State[], next: State): void {
    for (const { table, key } of ops) {
      if (!isVersioned(table)) continue;
      const found = textOfRow(rowsOf(next, table).get(key));
      const expected = states.map((state) => {
        const after = applyOps(state, ops);
        return isRejected(after) ? 'a rejection' : textOfRow(rowsOf(after, table).get(key));
      });
      if (!expected.includes(found))
        this.#fail(`Slot ${slot} is not what was flushed to ${table} ${key}: expected ${expected[0]}, found ${found}`);
    }
  }

  /**
   * Block 0 was replaced. If that changes what versions see, gives what the state after the last applied slot is from now
   * on: `change` makes it.
   */
  replaced(before: Block0 | undefined, block0: Block0): ((state: State) => State) | undefined {
    const of = (migrations: Block0['migrations'] = []): Block0['migrations'][number] | undefined =>
      migrations.find(({ table }) => table === people);
    const [old, present] = [of(before?.migrations), of(block0.migrations)];
    if (old === undefined || present?.birth === old.birth) return undefined;
    const versions = block0.tables.find(({ name }) => name === people)?.versions.map(({ schema }) => schema.version);
    if (versions?.includes(old.from) === true) {
      this.cancelled++;
      return (state) => this.#changed(state, old.from, (entry) => entry.active);
    }
    this.retired++;
    this.#checkToldToRetire(old);
    return (state) => {
      return this.#changed(state, old.to, (entry, key) => {
        if (entry.version !== undefined && entry.version !== old.to)
          this.#fail(`Version ${old.from} is given up, and row ${key} is of version ${entry.version}`);
        const own = entry.version === old.to ? entry.own : undefined;
        const row = newRow(this.#rulesOf(old.from, old.to), { active: entry.active, own });
        if (row === undefined) this.#fail(`Version ${old.from} is given up, and row ${key} cannot be migrated`);
        return row ?? brokenRow(key);
      });
    };
  }

  #changed(state: State, active: number, rowOf: (entry: VersionedEntry, key: Key) => Entry['active']): State {
    const known = this.#of(state);
    // The table is gone with all its rows, and another one came.
    const entries = new Map<Key, VersionedEntry>();
    for (const [key, entry] of known.entries)
      entries.set(key, { version: undefined, active: rowOf(entry, key), own: undefined });
    const after = { active, nextVersion: undefined, entries };
    const next = new Map(state);
    for (const version of versionNumbers) {
      const rows = new Map<Key, Row>();
      for (const key of entries.keys()) this.#show(after, version, key, rows);
      next.set(peopleIn(version), rows);
    }
    this.#known.set(next, after);
    return next;
  }

  /** The state after a commit, where the one before it has changed since; all else in it is as it was. */
  again(before: State, old: State, members: readonly CommitMember[]): State {
    let state = before;
    for (const member of members) {
      const next = new Map(state);
      this.apply(state, next, member);
      state = next;
    }
    const next = new Map(old);
    for (const version of versionNumbers) next.set(peopleIn(version), rowsOf(state, peopleIn(version)));
    this.#known.set(next, this.#of(state));
    return next;
  }
}
