/** The options of `db.publish()`, and its report. */
import { InvalidOptionError } from '../../base/errors.ts';
import { describeValue } from '../../base/messages.ts';
import { isNotKnown, kinds, OptionTable } from '../../base/options.ts';
import type { OptionKind } from '../../base/options.ts';
import { maxBundles } from '../../format/bundle.ts';
import type { Clause, Clauses } from '../../query/conditions/clause.ts';

/** Which older bundles stay readable. A bundle stays while one of the two rules keeps it. */
export interface BundleRetention {
  /** The number of newest bundles that stay, the new one included: 1 to 1,000. Default 2. */
  readonly bundles?: number;
  /** How long a bundle stays after a newer one has taken its place, in milliseconds. Default: an hour. */
  readonly ageMs?: number;
}

/** The progress of `db.publish()`. */
export interface PublishProgress {
  /** Rows processed. */
  readonly rows: number;
  /** Objects written. */
  readonly writtenObjects: number;
}

/** Options of `db.publish()`. */
export interface PublishOptions {
  /** Names of the tables to publish. They may be registered and not written yet. Default: all that are stored. */
  readonly tables?: readonly string[];
  /** Conditions on the rows to publish, by table, as `query.where()` takes them. Default: all rows. */
  readonly where?: Readonly<Record<string, (clauses: Clauses<Record<string, unknown>>) => Clause>>;
  /** Names of the fields to publish, by table. The primary key is always published. Default: all fields. */
  readonly fields?: Readonly<Record<string, readonly string[]>>;
  /** Which older bundles stay. */
  readonly keep?: BundleRetention;
  /** Whether bundles of another database may be replaced, as where each build of a site makes its database again. Default false. */
  readonly replace?: boolean;
  /** Called after every few thousand rows. */
  readonly onProgress?: (progress: PublishProgress) => void;
  /** Gives the call up. Readers then see the bundle before, and the next call removes what was written. */
  readonly signal?: AbortSignal;
}

/** The result of `db.publish()`. */
export interface PublishReport {
  /**
   * `published`: readers see the new bundle from now on. `unchanged`: the newest bundle has exactly these rows already.
   * `superseded`: a newer state was published meanwhile, and stays.
   */
  readonly outcome: 'published' | 'unchanged' | 'superseded';
  /** Position in the log of the state. */
  readonly position: number;
  /** Number of rows in the bundle, without those of blobs. */
  readonly rows: number;
  /** Number of objects written. */
  readonly writtenObjects: number;
  /** Bytes of these objects, without blobs. */
  readonly writtenBytes: number;
  /** Number of objects removed, since no bundle that stays needs them. */
  readonly removedObjects: number;
}

function isNames(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length > 0 && value.every((name) => typeof name === 'string');
}

const names: OptionKind = { allowed: 'an array with at least one name', accepts: isNames };

/** An object with an entry for each of some tables. */
function byTable(each: OptionKind): OptionKind {
  return {
    allowed: `an object with, for each of some tables, ${each.allowed}`,
    accepts: (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
    look(callName, path, value) {
      for (const [table, entry] of Object.entries(value as Readonly<Record<string, unknown>>)) {
        if (each.accepts(entry)) continue;
        const message = `Option \`${path}.${table}\` of ${callName} is ${describeValue(entry)}; it must be ${each.allowed}.`;
        throw new InvalidOptionError(`${path}.${table}`, message);
      }
    },
  };
}

const keepOptions = new OptionTable<BundleRetention>({
  bundles: kinds.whole(1, maxBundles),
  ageMs: kinds.milliseconds(0),
});

/** Checks the options of `db.publish()`. */
export const publishOptions: OptionTable<PublishOptions> = new OptionTable({
  tables: names,
  where: byTable({ allowed: 'a function that returns a clause', accepts: (value) => typeof value === 'function' }),
  fields: byTable(names),
  keep: kinds.options(keepOptions),
  replace: kinds.flag,
  onProgress: kinds.callback,
  signal: kinds.signal,
});

/** Throws `InvalidOptionError` for a name in an option that is not among the known ones. */
export function checkName(path: string, name: string, known: readonly string[]): void {
  if (known.includes(name)) return;
  const there = known.length === 0 ? '' : ` There are: ${known.join(', ')}.`;
  throw new InvalidOptionError(
    path,
    `Option \`${path}\` of db.publish(): '${name}' ${isNotKnown(name, known)}${there}`,
  );
}
