/** A table that is drafted from what is in files. */
import { isKeyType, Types } from '../../format/types.ts';
import { nearestName } from '../../base/known-names.ts';
import type { TypeId } from '../../format/types.ts';
import type { FieldDefinition, SchemaDefinition } from '../../schema/schema.ts';
import { UsageError } from '../terminal/exit-code.ts';
import { dateFormatOf } from '../input/date-format.ts';
import type { DateFormats } from '../input/date-format.ts';
import { ColumnProfile } from './column-profile.ts';

/** One column of the files, as a field. */
export interface DraftedField {
  readonly name: string;
  readonly definition: FieldDefinition;
  /** Rows in which it is null. */
  readonly nulls: number;
  /** Whether it can be the primary key: it has a value in every row of the files, and no value twice. */
  readonly isCandidate: boolean;
  /** A value, as text; undefined where there is none, and for a key that is made. */
  readonly example: string | undefined;
  /** What somebody should know who reads the draft; undefined for nothing. */
  readonly note: string | undefined;
}

export interface Draft {
  readonly schema: SchemaDefinition & { readonly primaryKey: string };
  readonly fields: readonly DraftedField[];
  /** Rows in the files. */
  readonly rows: number;
  /** Rows that the types come from. */
  readonly sampled: number;
  /** Names of the fields that the files have, in their order. */
  readonly columns: readonly string[];
}

/** What a table and its key are to be called, where somebody says so. */
export interface DraftOptions {
  readonly table: string;
  readonly key: string | undefined;
  readonly dates: DateFormats;
  /** How many rows types follow from. */
  readonly sample: number;
}

/** The expected length of texts: half as much again as the longest that is there, in tens of bytes. */
function roomFor(longestBytes: number): number {
  return Math.max(10, Math.ceil((longestBytes * 1.5) / 10) * 10);
}

/** Names of columns that are likely to be meant as a key, in the order of how likely. */
function keyNames(table: string): RegExp[] {
  const singular = table.toLowerCase().replace(/ies$/, 'y').replace(/s$/, '');
  const safe = singular.replace(/[^\p{L}\p{N}_]/gu, '');
  return [/^_?id$/i, /^(?:uuid|guid|key|pk)$/i, new RegExp(`^${safe}[_ -]?(?:id|key|code|no|number)$`, 'i')];
}

export class DraftedTable {
  readonly #options: DraftOptions;
  readonly #profiles = new Map<string, ColumnProfile>();
  /** The types that files have for their columns; undefined where they differ. */
  readonly #declared = new Map<string, TypeId | undefined>();
  #rows = 0;

  constructor(options: DraftOptions) {
    this.#options = options;
  }

  /** Takes the type that a file has for a column: it is that of the field, whatever the values are, unless another file has another. */
  declare(name: string, typeId: TypeId): void {
    const isNew = !this.#declared.has(name);
    this.#declared.set(name, isNew || this.#declared.get(name) === typeId ? typeId : undefined);
  }

  /** Takes a row as a file has it: texts and null, or what JSON holds. */
  add(document: Readonly<Record<string, unknown>>, isFromJson: boolean): void {
    const isSampled = this.#rows++ < this.#options.sample;
    for (const name in document) {
      if (!Object.hasOwn(document, name)) continue;
      let profile = this.#profiles.get(name);
      if (profile === undefined) {
        profile = new ColumnProfile(dateFormatOf(this.#options.dates, name));
        this.#profiles.set(name, profile);
      }
      const value = document[name];
      if (value !== null) profile.add(value, isFromJson, isSampled);
    }
  }

  /** The draft of what was taken. Throws `UsageError` where there is no column, or `--key` names none that can be one. */
  draft(): Draft {
    const { table, sample } = this.#options;
    const columns = [...this.#profiles.keys()];
    if (columns.length === 0) throw new UsageError('There is no row to draft a table from.');
    const drafted = columns.map((name) => this.#field(name));
    const key = this.#key(drafted);
    const made: DraftedField = {
      name: key,
      definition: { typeId: Types.uuid, default: 'uuidv7' },
      nulls: 0,
      isCandidate: true,
      example: undefined,
      note: 'made for each row: no column has another value in every row',
    };
    const fields = columns.includes(key)
      ? drafted.map((field) => (field.name === key ? withoutRequired(field) : field))
      : [made, ...drafted];
    return {
      schema: {
        name: table,
        version: 1,
        fields: Object.fromEntries(fields.map(({ name, definition }) => [name, definition])),
        primaryKey: key,
      },
      fields,
      columns,
      rows: this.#rows,
      sampled: Math.min(this.#rows, sample),
    };
  }

  #field(name: string): DraftedField {
    const profile = this.#profiles.get(name) as ColumnProfile;
    const { count, longestBytes, example, isUnique } = profile;
    const typeId = this.#declared.get(name) ?? profile.typeId;
    const isText = typeId === Types.varchar && longestBytes > 0;
    const nulls = this.#rows - count;
    const definition = {
      typeId,
      ...(isText && { maxLength: roomFor(longestBytes) }),
      ...(nulls === 0 && { required: true }),
    };
    const note = count === 0 ? 'it has no values' : noteOf(name, typeId, profile);
    const isCandidate = nulls === 0 && isUnique && isPlainKey(typeId);
    return { name, definition, nulls, isCandidate, example, note };
  }

  /** The column that is the key, or a free name for one that is made. */
  #key(fields: readonly DraftedField[]): string {
    const { key, table } = this.#options;
    const names = fields.map(({ name }) => name);
    if (key !== undefined) {
      const field = fields.find(({ name }) => name === key);
      if (field === undefined) {
        const nearest = nearestName(key, names);
        const meant = nearest === undefined ? '' : ` Did you mean ${nearest}?`;
        throw new UsageError(`--key ${key} is none of the columns: ${names.join(', ')}.${meant}`);
      }
      if (!isKeyType(field.definition.typeId)) throw new UsageError(`--key ${key}: values of type json are no keys.`);
      return key;
    }
    const candidates = fields.filter(({ isCandidate }) => isCandidate).map(({ name }) => name);
    for (const pattern of keyNames(table)) {
      const named = candidates.find((name) => pattern.test(name));
      if (named !== undefined) return named;
    }
    const [first] = fields;
    if (first?.isCandidate === true) return first.name;
    const taken = new Set(names.map((name) => name.toLowerCase()));
    return ['id', 'row_id', '_id'].find((name) => !taken.has(name)) ?? freeName(taken);
  }
}

/** Whether values are of a kind that people take for keys. */
function isPlainKey(typeId: TypeId): boolean {
  const unlikely: readonly TypeId[] = [Types.float64, Types.float32, Types.timestamp, Types.boolean];
  return isKeyType(typeId) && !unlikely.includes(typeId);
}

function freeName(taken: ReadonlySet<string>): string {
  let n = 2;
  while (taken.has(`row_id_${n}`)) n++;
  return `row_id_${n}`;
}

/** A key is never null, which goes without saying. */
function withoutRequired(field: DraftedField): DraftedField {
  const { required: _, ...definition } = field.definition;
  return { ...field, definition };
}

function noteOf(name: string, typeId: TypeId, profile: ColumnProfile): string | undefined {
  if (typeId === Types.varchar && profile.looksDated)
    return `days? --date-format "${name}=DD/MM/YYYY" or "${name}=MM/DD/YYYY" makes it a timestamp`;
  if (typeId === Types.varchar && profile.nullWord !== undefined) {
    return `${JSON.stringify(profile.nullWord)}? --null ${JSON.stringify(profile.nullWord)} takes it for null`;
  }
  if (typeId === Types.int64 || typeId === Types.uint64) return 'read back as bigint';
  return undefined;
}
