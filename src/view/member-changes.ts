/**
 * What a flush changed in a table: rows of the active version and, where another version wrote them, the same
 * rows of that one beside them (shadow rows).
 */
import type { CommitMember, TableChange } from '../format/commit.ts';

export interface MemberChange {
  /** In the active version. */
  readonly active: TableChange;
  /** The same rows in the version that they were written in, if that is a newer one. */
  readonly shadow: TableChange | undefined;
}

/** The changes of one flush in one table: mostly one, two where they are in two versions. */
export class VersionedChanges {
  readonly first: TableChange;
  readonly #changes: TableChange[];

  constructor(first: TableChange) {
    this.first = first;
    this.#changes = [first];
  }

  add(change: TableChange): void {
    this.#changes.push(change);
  }

  /** Undefined if none is of the version. */
  of(version: number): TableChange | undefined {
    return this.#changes.find(({ schema }) => schema.version === version);
  }

  /**
   * As they are where a version is active; undefined: the table is new, and the version of its first change is active. Of those
   * written before an older version was retired, only the active version's own counts. Where it has none, the first is returned: a
   * state that it does not fit refuses it.
   */
  ofVersion(activeVersion: number | undefined): MemberChange {
    const changes = this.#changes;
    const active = (activeVersion === undefined ? undefined : this.of(activeVersion)) ?? this.first;
    return { active, shadow: changes.find(({ schema }) => schema.version > active.schema.version) };
  }
}

/** A flush's changes by table. */
export function changesByTable({ changes }: CommitMember): Map<string, VersionedChanges> {
  const byTable = new Map<string, VersionedChanges>();
  for (const change of changes) {
    const { name } = change.schema;
    const known = byTable.get(name);
    if (known === undefined) byTable.set(name, new VersionedChanges(change));
    else known.add(change);
  }
  return byTable;
}
