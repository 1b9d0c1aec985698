/** `defineSchema()`, and the types by which the compiler checks a definition. */
import type { Hint } from '../base/options.ts';
import type { TypeId, Types } from '../format/types.ts';
import type { FunctionIndexDefinition, IndexDefinition, IndexedPath } from './index-definitions.ts';
import type { ValueAt } from './path-types.ts';
import type { DocumentOf, Elsewhere, FieldDefinition, InputOf, JsonField, SchemaDefinition } from './schema.ts';

/** An error message for each unknown property. */
type Unknown<What extends string, D, Known extends string> = {
  readonly [P in string extends keyof D
    ? never
    : Exclude<keyof D, Known> & string]: `${What} has no property '${P}'${Hint<P, Known>}`;
};

/** An error message for each unknown property of a field. For names of other libraries it names the equivalent. */
type UnknownOfField<D> = {
  readonly [P in Exclude<keyof D, keyof FieldDefinition> & string]: P extends keyof Elsewhere
    ? `A field has no property '${P}': ${Elsewhere[P]}`
    : `A field has no property '${P}'${Hint<P, keyof FieldDefinition>}`;
};

/** JSON, as `const` infers it. */
type ConstantJson =
  | null
  | boolean
  | number
  | string
  | readonly ConstantJson[]
  | { readonly [key: string]: ConstantJson };

/** A value as `const` infers it. */
type Constant<T> = T extends object ? { readonly [K in keyof T]: Constant<T[K]> } : T;

/** The type of a field's default. */
type DefaultOf<D extends FieldDefinition> = D['typeId'] extends typeof Types.blob
  ? 'A blob field takes no default'
  : D['typeId'] extends typeof Types.uuid | typeof Types.varchar
    ? InputOf<D> | 'uuidv7'
    : D['typeId'] extends typeof Types.timestamp
      ? Date | 'now'
      : D extends JsonField<infer T>
        ? Constant<T>
        : D['typeId'] extends typeof Types.json
          ? ConstantJson
          : InputOf<D>;

/** The type of `oneOf`. */
type ListedOf<D extends FieldDefinition> = D['typeId'] extends keyof ListedTypes
  ? readonly ListedTypes[D['typeId']][]
  : '`oneOf` is for fields of integers, varchar and uuid';

type ListedTypes = {
  1: number;
  2: number;
  3: number;
  4: bigint | number;
  5: number;
  6: number;
  7: number;
  8: bigint | number;
  10: string;
  15: string;
};

/** Properties of fields that {@link FieldDefinition} checks completely. */
type Plain = 'typeId' | 'maxLength' | 'required';

/** The type that a correct field matches, with error messages for a wrong one. */
type CheckedField<D extends FieldDefinition> = {
  readonly default?: DefaultOf<D>;
  readonly oneOf?: ListedOf<D>;
} & UnknownOfField<D>;

/** The wrong ones among fields. It checks all at once, which costs the compiler much less than field by field. */
type WrongField<D extends FieldDefinition> = D extends unknown
  ? keyof D extends Plain
    ? never
    : TypeId extends D['typeId']
      ? never
      : D extends CheckedField<D>
        ? never
        : D
  : never;

type CheckedFields<F extends SchemaDefinition['fields']> = [WrongField<F[keyof F]>] extends [never]
  ? unknown
  : { readonly [N in keyof F]: CheckedField<F[N]> };

/** The name `K` if that field can be a key, else an error message. */
type CheckedKey<F extends SchemaDefinition['fields'], K, What extends string> = K extends keyof F & string
  ? F[K]['typeId'] extends typeof Types.json
    ? `Field '${K}' is of type json, which cannot be ${What}`
    : F[K]['typeId'] extends typeof Types.blob
      ? `Field '${K}' is of type blob, which cannot be ${What}`
      : K
  : keyof F & string;

/** The primary key, of one or several fields, or an error message. */
type CheckedPrimaryKey<F extends SchemaDefinition['fields'], K> = K extends readonly []
  ? 'The primary key names at least one field'
  : K extends readonly unknown[]
    ? { readonly [I in keyof K]: CheckedKey<F, K[I], 'the primary key'> }
    : CheckedKey<F, K, 'the primary key'>;

type CheckedIndex<F extends SchemaDefinition['fields'], I> = I extends { readonly function: string }
  ? Unknown<'An index on a function', I, keyof FunctionIndexDefinition>
  : I extends { readonly fields: infer N }
    ? {
        readonly fields: I extends { readonly text: object }
          ? CheckedTextNames<F, N>
          : I extends { readonly each: true }
            ? CheckedListNames<F, N>
            : CheckedNames<F, N>;
        readonly unique?: I extends ManyEntries ? 'An index with several entries for a row cannot be unique' : boolean;
        readonly text?: I extends { readonly text: { readonly weights: infer W } } ? CheckedWeights<N, W> : unknown;
        readonly where?: CheckedConditions<F, I>;
        readonly include?: I extends { readonly include: infer M } ? CheckedIncluded<F, M> : unknown;
      } & Unknown<'An index', I, keyof IndexDefinition>
    : CheckedKey<F, I, 'indexed'>;

/** An index with entries for elements or words that is unique. */
type ManyEntries = ({ readonly each: true } | { readonly text: object }) & { readonly unique: true };

/** The weights of an index on texts, or error messages. */
type CheckedWeights<N, W> = {
  readonly weights: {
    readonly [K in keyof W]: N extends readonly (infer M)[]
      ? K extends M
        ? number
        : `The index is not on a field '${K & string}'${Hint<K & string, M & string>}`
      : number;
  };
};

/** The condition of an index, or error messages. */
type CheckedConditions<F extends SchemaDefinition['fields'], I> = I extends { readonly where: infer W }
  ? { readonly [N in keyof W]: AskedOf<F, N> }
  : unknown;

type AskedOf<F extends SchemaDefinition['fields'], N> = N extends keyof F & string
  ? F[N]['typeId'] extends typeof Types.json
    ? `Field '${N}' is of type json, which no index asks for`
    : F[N]['typeId'] extends typeof Types.blob
      ? `Field '${N}' is of type blob, which no index asks for`
      : InputOf<F[N]> | null | readonly (InputOf<F[N]> | null)[] | { readonly not: null }
  : N extends PathName<F>
    ? CheckedValue<F, N> extends N
      ? JsonScalar | readonly JsonScalar[] | { readonly not: null }
      : CheckedValue<F, N>
    : `There is no field '${N & string}'${Hint<N & string, keyof F & string>}`;

/** A value with which the condition of an index compares the one at a path. */
type JsonScalar = string | number | boolean | Date | null;

/** The names of paths into the json fields. */
type PathName<F extends SchemaDefinition['fields']> = `${{
  [N in keyof F]: F[N]['typeId'] extends typeof Types.json ? N : never;
}[keyof F] &
  string}.${string}`;

/** The fields whose conditions in an index are wrong. */
type WrongConditions<F extends SchemaDefinition['fields'], W> = {
  [N in keyof W]: W[N] extends AskedOf<F, N> ? never : N;
}[keyof W];

type CheckedIndexes<F extends SchemaDefinition['fields'], I> = { readonly [N in keyof I]: CheckedIndex<F, I[N]> };

/** The wrong ones among indexes. */
type WrongIndex<F extends SchemaDefinition['fields'], I> = I extends { readonly fields: readonly (infer N)[] }
  ? keyof I extends keyof IndexDefinition
    ?
        | (I extends { readonly text: object }
            ? WrongText<F, N>
            : I extends { readonly each: true }
              ? WrongListKey<F, N>
              : WrongKey<F, N>)
        | (I extends ManyEntries ? I : never)
        | (I extends { readonly text: { readonly weights: infer W } } ? Exclude<keyof W, N> : never)
        | (I extends { readonly where: infer W } ? WrongConditions<F, W> : never)
        | (I extends { readonly include: readonly (infer M)[] } ? WrongIncluded<F, M> : never)
    : I
  : I extends { readonly function: string }
    ? Exclude<keyof I, keyof FunctionIndexDefinition>
    : WrongKey<F, I>;

/** The names that cannot be keys. */
type WrongKey<F extends SchemaDefinition['fields'], K> = K extends keyof F
  ? F[K]['typeId'] extends typeof Types.json | typeof Types.blob
    ? K
    : never
  : K extends CheckedPath<F, K>
    ? never
    : K;

/** The path that an index is on, or error messages; never for what is none. */
type CheckedPath<F extends SchemaDefinition['fields'], K, T = PathType> = K extends { readonly path: infer P }
  ? {
      readonly path: P extends `${infer N}.${string}`
        ? N extends keyof F
          ? F[N]['typeId'] extends typeof Types.json
            ? CheckedValue<F, P>
            : `Field '${N & string}' is not of type json, and has no paths`
          : P
        : 'A path is the name of a json field and keys behind it, joined by dots';
      readonly typeId: T;
    } & Unknown<'A path', K, keyof IndexedPath>
  : never;

/** A path if there is a value at it, as far as the JSON is typed, or an error message. */
type CheckedValue<F extends SchemaDefinition['fields'], P> = P extends `${infer N}.${infer Keys}`
  ? N extends keyof F
    ? F[N] extends JsonField<infer T>
      ? Keys extends `${string}\\${string}`
        ? P
        : [ValueAt<T, Keys>] extends [never]
          ? `There is no value at '${P}'`
          : P
      : P
    : P
  : P;

type PathType = typeof Types.varchar | typeof Types.float64 | typeof Types.boolean | typeof Types.timestamp;

/** The types of paths in an index with entries for the elements of a list. */
type ListPathType = PathType | typeof Types.json;

/** As {@link WrongKey}, in an index with entries for the elements of a list. */
type WrongListKey<F extends SchemaDefinition['fields'], K> = K extends keyof F
  ? F[K]['typeId'] extends typeof Types.blob
    ? K
    : never
  : K extends CheckedPath<F, K, ListPathType>
    ? never
    : K;

/** As {@link WrongKey}, for what an index holds besides. */
type WrongIncluded<F extends SchemaDefinition['fields'], K> = K extends keyof F
  ? WrongKey<F, K>
  : K extends PathName<F>
    ? Exclude<K, CheckedValue<F, K>>
    : K;

/** The names that are not of fields with texts. */
type WrongText<F extends SchemaDefinition['fields'], K> = K extends CheckedText<F, K> ? never : K;

/** The name `K` if that field holds a text, else an error message. */
type CheckedText<F extends SchemaDefinition['fields'], K> = K extends keyof F & string
  ? F[K]['typeId'] extends typeof Types.varchar
    ? K
    : `Field '${K}' is not of type varchar, which an index on texts is on`
  : keyof F & string;

type CheckedTextNames<F extends SchemaDefinition['fields'], N> = { readonly [I in keyof N]: CheckedText<F, N[I]> };

type CheckedIncluded<F extends SchemaDefinition['fields'], N> = {
  readonly [I in keyof N]: N[I] extends keyof F
    ? CheckedKey<F, N[I], 'indexed'>
    : N[I] extends PathName<F>
      ? CheckedValue<F, N[I]>
      : CheckedKey<F, N[I], 'indexed'>;
};

type CheckedNames<F extends SchemaDefinition['fields'], N> = {
  readonly [I in keyof N]: N[I] extends { readonly path: unknown }
    ? CheckedPath<F, N[I]>
    : CheckedKey<F, N[I], 'indexed'>;
};

type CheckedListNames<F extends SchemaDefinition['fields'], N> = {
  readonly [I in keyof N]: N[I] extends keyof F
    ? F[N[I]]['typeId'] extends typeof Types.json
      ? N[I]
      : CheckedKey<F, N[I], 'indexed'>
    : N[I] extends { readonly path: unknown }
      ? CheckedPath<F, N[I], ListPathType>
      : CheckedKey<F, N[I], 'indexed'>;
};

/** The name `N` if that field can hold the time by which rows expire, else an error message. */
type CheckedTime<F extends SchemaDefinition['fields'], N> = N extends keyof F & string
  ? TypeId extends F[N]['typeId']
    ? N
    : F[N]['typeId'] extends TimeType
      ? N
      : `Field '${N}' holds no time: it must be of type timestamp, int64, uint64 or float64`
  : `There is no field '${N & string}'${Hint<N & string, keyof F & string>}`;

type TimeType = typeof Types.timestamp | typeof Types.int64 | typeof Types.uint64 | typeof Types.float64;

/** Whether the fields are not known: the definition was read from a file, or the compiler has not inferred them yet. */
type IsUnknown<S extends SchemaDefinition> = unknown extends S ? true : string extends keyof S['fields'] ? true : false;

/** The names that are written out. A row that was spread with `...row` adds unknown names. */
type WrittenName<R> = keyof { [N in keyof R as string extends N ? never : number extends N ? never : N]: unknown } &
  keyof R &
  string;

/** An error message for a property of the row that `migrate` returns; `never` if it is right. */
type WrongResult<S extends SchemaDefinition, R, N> = N extends keyof S['fields'] & keyof R
  ? unknown extends R[N]
    ? never
    : [R[N]] extends [DocumentOf<S>[N & keyof DocumentOf<S>]]
      ? never
      : `migrate gives field '${N & string}' a value that it does not take`
  : `migrate gives '${N & string}', which is no field of this version${Hint<N & string, keyof S['fields'] & string>}`;

type CheckedMigrate<S extends SchemaDefinition> = S extends { readonly migrate: (...args: never) => infer R }
  ? [R] extends [never]
    ? unknown
    : R extends Record<string, unknown>
      ? [WrongResult<S, R, WrittenName<R>>] extends [never]
        ? unknown
        : WrongResult<S, R, WrittenName<R>>
      : unknown
  : unknown;

/**
 * The checks of a definition beyond `SchemaDefinition`. A correct part is `unknown`. Definitions whose fields are not known, such as
 * those read from a file, are not checked.
 */
export type CheckedSchema<S extends SchemaDefinition> = CheckedParts<S> & Unknown<'A table', S, keyof SchemaDefinition>;

interface CheckedParts<S extends SchemaDefinition> {
  readonly fields: CheckedFields<S['fields']>;
  /** A field of the definition, or several, not of type json or blob. */
  readonly primaryKey: IsUnknown<S> extends true ? unknown : CheckedPrimaryKey<S['fields'], S['primaryKey']>;
  readonly indexes?: IsUnknown<S> extends true
    ? unknown
    : [WrongIndex<S['fields'], S['indexes'] extends readonly (infer I)[] ? I : never>] extends [never]
      ? unknown
      : CheckedIndexes<S['fields'], S['indexes']>;
  /** Its field holds a time. */
  readonly expireAfter?: IsUnknown<S> extends true
    ? unknown
    : S extends { readonly expireAfter: { readonly field: infer N } }
      ? { readonly field: CheckedTime<S['fields'], N> }
      : unknown;
  /** The row that it returns fits the fields. */
  readonly migrate?: CheckedMigrate<S>;
  /** Its keys are fields of the definition. */
  readonly renames?: {
    readonly [F in keyof S['renames']]: F extends keyof S['fields']
      ? string | readonly string[]
      : `There is no field '${F & string}'`;
  };
}

/**
 * Returns a schema definition unchanged, with the exact types from which {@link RowOf} infers the type of a row. The compiler refuses
 * the mistakes that `registerSchema()` would refuse: unknown properties, keys that are not fields, defaults of another type.
 */
export function defineSchema<const S extends SchemaDefinition & CheckedSchema<S>>(schema: S): S {
  return schema;
}
