/** Mistakes in primary keys of several fields: their bytes, queries, writes and versions. */
import type { Mutant } from './mutant.ts';

const shape = 'src/schema/table-shape.ts';
const bytes = 'src/format/ordered-key.ts';
const primaryKey = 'src/schema/table-shape.ts';
const renames = 'src/schema/renames.ts';
const operations = 'src/batch/table-operations.ts';
const ranges = 'src/query/conditions/index-ranges.ts';
const tuple = 'src/query/conditions/tuple-condition.ts';
const equalities = 'src/query/conditions/clause.ts';
const position = 'src/query/conditions/keyset-position.ts';
const paths = 'src/query/planner/access-paths.ts';
const translation = 'src/migration/row-translation.ts';

const shapeTests = 'src/schema/table-shape.test.ts';
const translationTests = 'src/migration/row-translation.test.ts';
const operationTests = 'src/batch/table-operations.test.ts';
const writes = 'test/features/compound-keys/writes.test.ts';
const versions = 'test/features/compound-keys/versions.test.ts';
const tuples = 'test/features/compound-keys/tuples.test.ts';

export const keyMutants: readonly Mutant[] = [
  {
    name: 'keys: the parts of a key are in the order of the fields',
    edits: [
      {
        file: shape,
        find: 'this.keyFields = schema.primaryKey.map(field);',
        replace: 'this.keyFields = this.layout.fields.filter(({ name }) => schema.primaryKey.includes(name));',
      },
    ],
    tests: [shapeTests],
  },
  {
    name: 'keys: each part is written with the type of the first',
    edits: [
      {
        file: shape,
        find: 'const { typeId } = this.keyFields[i] as LayoutField;',
        replace: 'const { typeId } = this.keyFields[0] as LayoutField;',
      },
    ],
    tests: [shapeTests],
  },
  {
    name: 'keys: each part is read from the start of the first',
    edits: [{ file: shape, find: '    from = end;\n', replace: '' }],
    tests: [shapeTests],
  },
  {
    name: 'keys: versions have the same bytes if one part has the same type',
    edits: [
      {
        file: 'src/schema/same-shape.ts',
        find: 'keyFields.every(({ typeId }, i) => typeId',
        replace: 'keyFields.some(({ typeId }, i) => typeId',
      },
    ],
    tests: [shapeTests],
  },
  {
    name: 'keys: a zero in a text ends it',
    edits: [{ file: bytes, find: 'if (byte === escape) out[at++] = escapedZero;', replace: '' }],
    tests: [shapeTests],
  },
  {
    name: 'keys: a part that is -0 has different bytes than 0',
    edits: [
      {
        file: bytes,
        find: 'writeFloat(view, at, typeId, value === 0 ? 0 : (value as number));',
        replace: 'writeFloat(view, at, typeId, value as number);',
      },
    ],
    tests: [tuples],
  },
  {
    name: 'keys: an insert resolves to the -0 that it was given',
    edits: [
      {
        file: operations,
        find: "return typeof part !== 'object' && part !== 0;",
        replace: "return typeof part !== 'object';",
      },
    ],
    tests: [operationTests],
  },
  {
    name: 'keys: a default gives a row its field, and not its key',
    edits: [
      {
        file: operations,
        find: `const value = 'generated' in stored ? this.#generated(stored.generated) : constant;
        writeField(writer, base, heapWriter, field, value);
        const place = keyPlaces[field.index] as number;`,
        replace: `const value = 'generated' in stored ? this.#generated(stored.generated) : constant;
        writeField(writer, base, heapWriter, field, value);
        const place = -1;`,
      },
    ],
    tests: [writes],
  },
  {
    name: 'keys: a document without its last part has a shorter key',
    edits: [{ file: operations, find: 'key.length = this.shape.keyFields.length;', replace: '' }],
    tests: [operationTests],
  },
  {
    name: 'keys: extra parts of a key are ignored',
    edits: [
      { file: primaryKey, find: 'value.length !== keyFields.length', replace: 'value.length < keyFields.length' },
    ],
    tests: [writes],
  },
  {
    name: 'keys: each text may be as long as all of them together',
    edits: [
      {
        file: primaryKey,
        find: 'const bytes = sumOf(fields, normal, (text) => encodeUtf8(text).length);',
        replace:
          'const bytes = Math.max(...fields.map((each, i) => sumOf([each], [normal[i] as OrderedValue], (text) => encodeUtf8(text).length)));',
      },
    ],
    tests: [writes],
  },
  {
    name: 'keys: a table may name a field twice in its key',
    edits: [
      {
        file: 'src/schema/schema.ts',
        find: 'if (twice === undefined) return names;',
        replace: 'if (twice !== "") return names;',
      },
    ],
    tests: [writes],
  },
  {
    name: 'keys: updateWhere gives rows another key by its later parts',
    edits: [
      {
        file: 'src/batch/table-operations.ts',
        find: 'const given = keyNames.find(',
        replace: 'const given = keyNames.slice(0, 1).find(',
      },
    ],
    tests: [writes],
  },
  {
    name: 'keys: a trigger gets a row before a deletion that found none',
    edits: [
      {
        file: 'src/batch/mutation.ts',
        find: "return { operation: 'delete', row, before: undefined };",
        replace: "return { operation: 'delete', row, before: row };",
      },
    ],
    tests: [writes],
  },
  {
    name: 'keys: a version may have a part more than the one before it',
    edits: [
      {
        file: renames,
        find: 'from.primaryKey.length === to.primaryKey.length &&',
        replace: 'from.primaryKey.length <= to.primaryKey.length &&',
      },
      {
        file: renames,
        find: 'to.primaryKey.every((name, i) => sources.get(name) === from.primaryKey[i]);',
        replace: 'from.primaryKey.every((name, i) => sources.get(to.primaryKey[i] as string) === name);',
      },
    ],
    tests: [versions],
  },
  {
    name: 'keys: a version may have the parts in another order',
    edits: [
      {
        file: renames,
        find: 'to.primaryKey.every((name, i) => sources.get(name) === from.primaryKey[i]);',
        replace: 'to.primaryKey.every((name) => from.primaryKey.includes(sources.get(name) as string));',
      },
    ],
    tests: [versions],
  },
  {
    name: 'keys: a migration gives each part the value of the first',
    edits: [
      {
        file: translation,
        find: 'if (at >= 0) return this.#keyForward(asList(primaryKey()))[at];',
        replace: 'if (at >= 0) return this.#keyForward(asList(primaryKey()))[0];',
      },
    ],
    tests: [translationTests],
  },
  {
    name: 'keys: a migration checks only for the first part whether its type may change',
    edits: [
      {
        file: translation,
        find: 'for (const [i, toKey] of to.keyFields.entries()) {',
        replace: 'for (const [i, toKey] of to.keyFields.slice(0, 1).entries()) {',
      },
    ],
    tests: [translationTests],
  },
  {
    name: 'keys: a part after one without a condition counts as the next',
    edits: [
      {
        file: ranges,
        find: 'if (access === undefined || keys === undefined) break;',
        replace: 'if (access === undefined || keys === undefined) continue;',
      },
    ],
    tests: [tuples],
  },
  {
    name: 'keys: a range after fixed parts goes on beyond them',
    edits: [
      {
        file: ranges,
        find: 'to: to === undefined ? prefixEnd(values) : concatBytes(values, to),',
        replace: 'to: to === undefined ? undefined : concatBytes(values, to),',
      },
    ],
    tests: [tuples],
  },
  {
    name: 'keys: all combinations of long lists are looked up',
    edits: [{ file: ranges, find: 'const maxRanges = 1024;', replace: 'const maxRanges = 102_400;' }],
    tests: [tuples],
  },
  {
    name: 'keys: an order counts as the order of the key although its later parts have another direction',
    edits: [
      {
        file: ranges,
        find: 'all[i]?.field === field && all[i]?.descending === descending);',
        replace: 'all[i]?.field === field);',
      },
    ],
    tests: [tuples],
  },
  {
    name: 'keys: an order is complete with the first part of the key',
    edits: [
      {
        file: paths,
        find: 'keyFields.every((field) => fixed.has(field))) break;',
        replace: 'keyFields.some((field) => fixed.has(field))) break;',
      },
    ],
    tests: [tuples],
  },
  {
    name: 'keys: a row that is looked up by its key is not tested for the other conditions',
    edits: [
      {
        file: 'src/query/query-run.ts',
        find: 'if (conditions.length !== keyFields.length) return undefined;',
        replace: 'if (conditions.length < keyFields.length) return undefined;',
      },
    ],
    tests: [tuples],
  },
  {
    name: 'keys: tuples of more fields than the key count as tuples of the key',
    edits: [
      {
        file: tuple,
        find: 'return fields.length === this.fields.length && fields.every(',
        replace: 'return fields.every(',
      },
    ],
    tests: [tuples],
  },
  {
    name: 'keys: tuples are looked up in the order in which they were written',
    edits: [
      {
        file: tuple,
        find: 'const places = fields.map((field) => this.fields.indexOf(field));',
        replace: 'const places = fields.map((_, i) => i);',
      },
    ],
    tests: [tuples],
  },
  {
    name: 'keys: tuples are not tested if an index has one of their fields',
    edits: [{ file: tuple, find: 'return { ...keys, exact: false };', replace: 'return keys;' }],
    tests: [tuples],
  },
  {
    name: 'keys: tuples of texts that an index stores in part are not tested',
    edits: [
      {
        file: tuple,
        find: 'components.every((component, i) => !isTruncatedComponent(component, component.length, typeOf(fields, i))),',
        replace: 'components.every((component) => component.length > 0),',
      },
    ],
    tests: [tuples],
  },
  {
    name: 'keys: a branch with two values for a field is a tuple of the last value',
    edits: [{ file: equalities, find: 'values.has(equality.field) || ', replace: '' }],
    tests: [tuples],
  },
  {
    name: 'keys: a page begins after a key although the entries have another order',
    edits: [
      {
        file: position,
        find: 'if (!isByKey || rest.length === 0) return undefined;',
        replace: 'if (!isByKey && rest.length === 0) return undefined;',
      },
    ],
    tests: [tuples],
  },
  {
    name: 'tuples: equal tuples match every operator',
    edits: [{ file: tuple, find: '    return this.#takesEqual;\n  }', replace: '    return true;\n  }' }],
    tests: ['test/features/compound-keys/ranges.slow.test.ts'],
  },
  {
    name: 'tuples: a null that decides is ignored',
    edits: [
      {
        file: tuple,
        find: 'if (isNull(source, base, field)) return false;',
        replace: 'if (isNull(source, base, field)) continue;',
      },
    ],
    tests: ['test/features/compound-keys/ranges.slow.test.ts'],
  },
  {
    name: 'tuples: rows that are equal in the first field are left out',
    edits: [
      {
        file: tuple,
        find: "operator: this.#isGreater ? '>=' : '<=', value",
        replace: "operator: this.#isGreater ? '>' : '<', value",
      },
    ],
    tests: ['test/features/compound-keys/ranges.slow.test.ts'],
  },
  {
    name: 'tuples: a text that a key stores in part counts as the whole text',
    edits: [{ file: tuple, find: '      if (!exact) break;\n', replace: '' }],
    tests: ['test/features/compound-keys/ranges.slow.test.ts'],
  },
  {
    name: 'tuples: the first fields count as all fields',
    edits: [{ file: tuple, find: '    exact &&= components.length === this.fields.length;\n', replace: '' }],
    tests: ['test/features/compound-keys/ranges.slow.test.ts'],
  },
  {
    name: 'tuples: a range begins after all tuples that begin with its values',
    edits: [
      {
        file: tuple,
        find: "from: exact && this.#operator === '>' ? end : begin",
        replace: "from: this.#operator === '>' ? end : begin",
      },
    ],
    tests: ['test/features/compound-keys/ranges.slow.test.ts'],
  },
  {
    name: 'tuples: a range ends before all tuples that begin with its values',
    edits: [
      {
        file: tuple,
        find: "to: exact && this.#operator === '<' ? begin : end",
        replace: "to: this.#operator === '<' ? begin : end",
      },
    ],
    tests: ['test/features/compound-keys/ranges.slow.test.ts'],
  },
  {
    name: 'tuples: a range includes entries with null in a later field',
    edits: [
      {
        file: tuple,
        find: 'if (this.#filled.includes(this.fields[i + 1] as LayoutField)) continue;',
        replace: 'continue;',
      },
    ],
    tests: ['test/features/compound-keys/ranges.slow.test.ts'],
  },
  {
    name: 'tuples: tuples that are equal up to a null match',
    edits: [
      {
        file: tuple,
        find: "      last = isGreater(operator) ? '>' : '<';\n      break;",
        replace: "      last = isGreater(operator) ? '>=' : '<=';\n      break;",
      },
    ],
    tests: ['test/features/compound-keys/ranges.slow.test.ts'],
  },
  {
    name: 'tuples: later fields decide after a value that no row has',
    edits: [
      {
        file: tuple,
        find: '    if (place.side === 0) continue;\n',
        replace: '    if (place.side !== undefined) continue;\n',
      },
    ],
    tests: ['test/features/compound-keys/ranges.slow.test.ts'],
  },
  {
    name: 'tuples: the first field alone decides',
    edits: [
      {
        file: tuple,
        find: '      if (order !== 0) return order > 0 === this.#isGreater;',
        replace: '      return order === 0 ? this.#takesEqual : order > 0 === this.#isGreater;',
      },
    ],
    tests: ['test/features/compound-keys/ranges.slow.test.ts'],
  },
];
