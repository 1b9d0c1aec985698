/**
 * The messages between Studio's page and its handler. A call is a POST of JSON to `api/<name>`; a call that takes long answers with lines
 * of JSON, each with progress, the result or an error. Types only: both sides import them.
 */
import type {
  BlockInfo,
  BudgetLimits,
  CommitInfo,
  DatabaseHealth,
  DatabaseStats,
  Explanation,
  GcReport,
  IndexStatus,
  MigrationStatus,
  ObjectGroup,
  PriceTable,
  SearchOptions,
  SnapshotInfo,
  StoreReport,
  TypeName,
  VerifyReport,
} from '../index.ts';

/**
 * A value of a row as JSON: integers beyond 2^53 and numbers that JSON lacks are strings, times are ISO 8601 in UTC, bytes are base64, a
 * blob is its reference.
 */
export type Cell = unknown;

/** A row, by field. */
export type Row = Readonly<Record<string, Cell>>;

/** A field of a table. */
export interface FieldInfo {
  readonly name: string;
  readonly type: TypeName;
  readonly required: boolean;
  /** Most UTF-8 bytes or characters of a text, as the schema says. */
  readonly maxLength?: number;
  /** The values that the schema allows. */
  readonly oneOf?: readonly Cell[];
  /** Whether the schema has a default for it, so that a new row may go without. */
  readonly hasDefault: boolean;
}

/** An index of a table. */
export interface IndexInfo {
  readonly name: string;
  /** Its fields, in order; none for an index on a function. */
  readonly fields: readonly string[];
  readonly function?: string;
  readonly unique: boolean;
  readonly isPartial: boolean;
  /** Whether it is of the words of texts, so that the table can be searched. */
  readonly isText?: boolean;
  /** How much the words of its fields count, where the schema says so. */
  readonly weights?: { readonly [field: string]: number };
}

/** A path into a json field that an index reads, such as `address.city`. */
export interface PathInfo {
  readonly name: string;
  /** The type in which the index reads it; json: any. */
  readonly type: TypeName;
}

/** A table that the store holds. */
export interface TableInfo {
  readonly name: string;
  readonly version: number;
  readonly fields: readonly FieldInfo[];
  readonly primaryKey: readonly string[];
  readonly indexes: readonly IndexInfo[];
  /** The paths that its indexes read. Others can be asked for, too. */
  readonly paths: readonly PathInfo[];
  /** The field with the time of rows that expire, and how long after it they do. */
  readonly expireAfter?: { readonly field: string; readonly seconds: number };
}

/** Result of `overview`. */
export interface Overview {
  /** Where the database is, without passwords: `file:./shop`, `s3://bucket/shop`. */
  readonly title: string;
  /** Whether rows can be changed. */
  readonly writable: boolean;
  readonly version: string;
  readonly position: number;
  readonly generation: number;
  readonly tables: readonly TableInfo[];
  /** Price tables to choose from. The first one is that of the instance. */
  readonly prices: readonly NamedPrices[];
}

/** The prices of a store, by its name: `Amazon S3 Standard, us-east-1`. */
export interface NamedPrices extends PriceTable {
  /** The name that the page shows. */
  readonly name: string;
}

/** A condition on a field. Conditions of a list must all hold. */
export interface Condition {
  /** A field, or a path into a json field. */
  readonly field: string;
  readonly operator: '=' | '!=' | '<' | '<=' | '>' | '>=' | 'IN' | 'BETWEEN' | 'PREFIX' | 'HAS' | 'HAS ANY' | 'HAS ALL';
  /** A cell; a list of cells for `IN`, `BETWEEN`, `HAS ANY` and `HAS ALL`. */
  readonly value: Cell;
}

/** Words to search for in texts, and how. */
export interface SearchAsked extends SearchOptions {
  readonly text: string;
}

/** A field, or a path into one, that rows are sorted by. */
export interface Order {
  readonly field: string;
  readonly direction: 'asc' | 'desc';
}

/** The state that is read. Default: the newest. */
export type Moment = { readonly generation: number } | { readonly time: string } | { readonly snapshot: string };

/** The rows that are asked for. */
export interface Selection {
  readonly table: string;
  readonly where: readonly Condition[];
  /** Words to search for. Without orders, the best rows come first. */
  readonly search?: SearchAsked;
  readonly orderBy: readonly Order[];
  /** The fields that rows have. Default: all. */
  readonly fields?: readonly string[];
  readonly at?: Moment;
}

/** Requests of the instance to its store while a call ran. Other calls at the same time count as well. */
export interface Cost {
  readonly ms: number;
  readonly requests: number;
  readonly bytes: number;
  readonly dollars: number;
}

/** Arguments of `rows`: a page, by the bookmark of the page before. */
export interface RowsAsked extends Selection {
  readonly size: number;
  readonly after?: string;
}

/** Where words are in the cells of a row: for each cell, parts of its text in order, as `slice()` takes them. */
export type RowMarks = readonly (readonly (readonly [start: number, end: number])[])[];

/** Result of `rows`. */
export interface RowsPage {
  readonly columns: readonly string[];
  /** The cells of each row, in the order of `columns`. */
  readonly rows: readonly (readonly Cell[])[];
  /** Of a search: where its words are in each cell of each row. */
  readonly marks?: readonly RowMarks[];
  /** The bookmark for the next page; absent if there are no more rows. */
  readonly next?: string;
  /** The position of the state that was read; absent for an earlier state. */
  readonly position?: number;
  readonly cost: Cost;
}

/** Arguments of `row`: the key is a list with the value of each field of the primary key. */
export interface RowAsked {
  readonly table: string;
  readonly key: readonly Cell[];
  readonly at?: Moment;
}

/** Arguments of `drop`: a table, and its name as somebody has typed it. */
export interface DropAsked {
  readonly table: string;
  readonly typed: string;
}

/** Arguments of `save`: a change of one row. */
export interface SaveAsked {
  readonly table: string;
  /** The row as the page showed it; null to insert a row. */
  readonly before: Row | null;
  /** The row as it shall be; null to delete it. Fields of type blob are left as they are. */
  readonly after: Row | null;
}

/** Result of `save`. */
export type Saved =
  | { readonly status: 'saved'; readonly row: Row | null; readonly position: number }
  /** The stored row is not `before` any more. Nothing was written. */
  | { readonly status: 'conflict'; readonly stored: Row | null };

/** An aggregate of a query: `count` needs no field. */
export interface AggregateAsked {
  readonly name: string;
  readonly kind: 'count' | 'sum' | 'avg' | 'min' | 'max';
  readonly field?: string;
}

/**
 * Arguments of `query` and `explain`. With groups or aggregates, order and limit are those of the groups: an order may name a field of
 * `groupBy` or an aggregate. Without a limit, and with a higher one, there are 10,000 rows at most.
 */
export interface QueryAsked extends Selection {
  readonly limit?: number;
  readonly groupBy?: readonly string[];
  readonly aggregates?: readonly AggregateAsked[];
  readonly budget?: BudgetLimits;
}

/** Result of `query`. */
export interface QueryResult {
  readonly columns: readonly { readonly name: string; readonly type: TypeName | null }[];
  readonly rows: readonly (readonly Cell[])[];
  /** Of a search for rows: where its words are in each cell of each row. */
  readonly marks?: readonly RowMarks[];
  /** Whether there are more rows, which were left out. */
  readonly isCut?: boolean;
  readonly cost: Cost;
}

/** Arguments of `explain`. */
export interface ExplainAsked extends QueryAsked {
  readonly run?: boolean;
}

/** Result of `explain`: the plan, and the line of a schema that creates the index that is missing. */
export interface Explained {
  readonly explanation: Explanation;
  readonly indexLine?: string;
}

/** Result of `objects`: what lies in the store, and what `gc` would delete of it. */
export interface StoredObjects {
  readonly groups: readonly ObjectGroup[];
  readonly garbage: readonly { readonly kind: string; readonly objects: number; readonly sizeBytes: number }[];
  /** Why nothing is known of garbage: a block is damaged. */
  readonly garbageError?: CallError;
}

/** Arguments of `block`. */
export interface BlockAsked {
  readonly table: string;
  readonly index?: string;
  readonly name?: string;
}

/** Arguments of `commits`. */
export interface CommitsAsked {
  readonly before?: number;
  readonly limit: number;
}

/** A change of one row by a commit, or the drop of a table, which has no key. */
export interface ChangeShown {
  readonly table: string;
  readonly operation: 'upsert' | 'delete' | 'drop';
  readonly key: readonly Cell[];
  readonly row?: Row;
  /** The row before it; null if there was none; absent if neither the log nor a kept state has it. */
  readonly before?: Row | null;
}

/** Result of `commit`: the changes of one commit, the first so many of them. */
export interface CommitShown {
  readonly changes: readonly ChangeShown[];
  readonly isCut: boolean;
}

/** Result of `moments`: the states that can be read besides the newest. */
export interface Moments {
  readonly generation: number;
  readonly snapshots: readonly SnapshotInfo[];
}

/** Arguments of `compare`: rows of a table that differ between two moments, in the order of their keys. */
export interface CompareAsked {
  readonly table: string;
  readonly from: Moment;
  /** Default: the newest state. */
  readonly to?: Moment;
  readonly limit: number;
}

/** Result of `compare`. */
export interface Compared {
  readonly differences: readonly {
    readonly key: readonly Cell[];
    readonly from: Row | null;
    readonly to: Row | null;
  }[];
  readonly isCut: boolean;
  readonly rowsRead: number;
}

/** Result of `health`. */
export interface Health {
  readonly health: DatabaseHealth;
  readonly stats: DatabaseStats;
  readonly migrations: readonly MigrationStatus[];
  readonly indexes: readonly { readonly table: string; readonly indexes: readonly IndexStatus[] }[];
}

/** Result of `bill`. */
export interface Bill {
  readonly stats: DatabaseStats;
  /** Milliseconds between two looks at the log, as the instance is set; null for polling on demand. */
  readonly pollingMs: number | null;
}

/** Progress of a call that takes long. `done` of `total`, where the total is known. */
export interface CallProgress {
  readonly done: number;
  readonly total?: number;
  readonly what: string;
}

/** An error, as the page shows it. */
export interface CallError {
  readonly code: string;
  readonly message: string;
}

/** A line of the answer to a call that takes long. */
export type Line<Result> =
  | { readonly progress: CallProgress }
  | { readonly result: Result }
  | { readonly error: CallError };

/** The calls that answer at once: the arguments and the result of each. Failures answer with `{ error: CallError }` and a status of 4xx or 5xx. */
export interface Calls {
  readonly overview: [asked: Record<string, never>, result: Overview];
  readonly rows: [asked: RowsAsked, result: RowsPage];
  readonly count: [asked: Selection, result: { readonly count: number; readonly cost: Cost }];
  readonly row: [asked: RowAsked, result: { readonly row: Row | null }];
  readonly save: [asked: SaveAsked, result: Saved];
  readonly drop: [asked: DropAsked, result: { readonly position: number }];
  readonly query: [asked: QueryAsked, result: QueryResult];
  readonly explain: [asked: ExplainAsked, result: Explained];
  readonly block: [asked: BlockAsked, result: BlockInfo | null];
  readonly commits: [asked: CommitsAsked, result: { readonly commits: readonly CommitInfo[] }];
  readonly commit: [asked: { readonly position: number }, result: CommitShown];
  readonly moments: [asked: Record<string, never>, result: Moments];
  readonly health: [asked: Record<string, never>, result: Health];
  readonly bill: [asked: Record<string, never>, result: Bill];
}

/** The calls that take long, and answer with lines. */
export interface LongCalls {
  /** `garbage: false` leaves out what `gc` would delete, which takes longer than the rest. */
  readonly objects: [asked: { readonly garbage?: boolean }, result: StoredObjects];
  readonly compare: [asked: CompareAsked, result: Compared];
  /** `deep` also reads blobs, snapshots and history. */
  readonly verify: [asked: { readonly deep?: boolean }, result: VerifyReport];
  readonly doctor: [asked: Record<string, never>, result: StoreReport];
  /** A preview, which names 10,000 objects at most; `collect: true` deletes, and needs a writable Studio. */
  readonly gc: [asked: { readonly collect?: boolean }, result: GcReport];
}

/**
 * An event of `GET api/events` (server-sent events, named `state`): sent at once, and whenever the instance shows a newer state or its health changes. Downloads
 * are `GET api/blob?table=&key=&field=&at=` (`key` and `at` as JSON; `download=1` for an attachment) and
 * `GET api/export?format=csv|ndjson&asked=<Selection as JSON>`.
 */
export interface StateEvent {
  readonly position: number;
  readonly generation: number;
  readonly health: DatabaseHealth;
  readonly stats: DatabaseStats;
}
