/** A drafted schema as people take it over: TypeScript, or JSON for `--schema`. */
import { withoutControls } from '../../base/message-text.ts';
import { typeName } from '../../format/types.ts';
import type { FieldDefinition } from '../../schema/schema.ts';
import { plural } from '../terminal/figures.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { printTable } from '../terminal/text-table.ts';
import type { Draft } from './drafted-table.ts';

/** A text as a literal, in which nothing does anything to a terminal. */
function quoted(text: string): string {
  const body = withoutControls(JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'"));
  return `'${body}'`;
}

const plainName = /^[A-Za-z_$][\w$]*$/;

function propertyName(name: string): string {
  // As a literal key of an object, this one alone would set its prototype.
  if (name === '__proto__') return "['__proto__']";
  return plainName.test(name) ? name : quoted(name);
}

const reserved = new Set(
  'await break case catch class const continue debugger default delete do else enum export extends false finally for function if implements import in instanceof interface let new null package private protected public return static super switch this throw true try typeof var void while with yield arguments eval defineSchema Types'.split(
    ' ',
  ),
);

/** A name for the constant. */
function variableName(table: string): string {
  const words = table.split(/[^A-Za-z0-9$]+/).filter((word) => word !== '');
  const name = words.map((word, i) => (i === 0 ? word : word.charAt(0).toUpperCase() + word.slice(1))).join('');
  return /^[A-Za-z$]/.test(name) && !reserved.has(name) ? name : `table${name.charAt(0).toUpperCase()}${name.slice(1)}`;
}

function fieldSource({ typeId, maxLength, required, default: made }: FieldDefinition): string {
  const parts = [
    `typeId: Types.${typeName(typeId)}`,
    ...(maxLength === undefined ? [] : [`maxLength: ${maxLength}`]),
    ...(required === true ? ['required: true'] : []),
    ...(made === undefined ? [] : [`default: ${quoted(made as string)}`]),
  ];
  return `{ ${parts.join(', ')} }`;
}

/** The schema as a module of TypeScript. */
export function typeScriptOf({ schema, fields }: Draft): string {
  return [
    "import { defineSchema, Types } from 'store-db';",
    '',
    `export const ${variableName(schema.name)} = defineSchema({`,
    `  name: ${quoted(schema.name)},`,
    `  version: ${schema.version},`,
    '  fields: {',
    ...fields.flatMap(({ name, definition, note }) => [
      ...(note === undefined ? [] : [`    // ${withoutControls(note)}`]),
      `    ${propertyName(name)}: ${fieldSource(definition)},`,
    ]),
    '  },',
    `  primaryKey: ${quoted(schema.primaryKey)},`,
    '});',
  ].join('\n');
}

/** The schema as `--schema` takes it, with the names of types. */
export function jsonOf({ schema }: Draft): object {
  const fields = Object.entries(schema.fields).map(([name, field]): [string, object] => {
    return [name, { ...field, typeId: typeName(field.typeId) }];
  });
  return { ...schema, fields: Object.fromEntries(fields) };
}

/** Says so where names look like values, as they do where a file has no line of names. */
export function tellOfHead(terminal: Terminal, { columns }: Draft, hasHead: boolean): void {
  // Columns may well be years.
  const odd = columns.find((name) => /^-?\d+(?:[.,-]\d+)*$/.test(name) && !/^(?:19|20)\d\d$/.test(name));
  if (!hasHead || odd === undefined) return;
  terminal.tell(
    `The first line was taken for names, and ${JSON.stringify(odd)} looks like a value: if it is a row, say --no-header.`,
  );
}

/** Prints the fields as a table. */
export function printDraft(terminal: Terminal, { schema, fields, rows, sampled }: Draft, files: string): void {
  const of = sampled < rows ? `, types from the first ${sampled}` : '';
  terminal.print(`Table ${schema.name} from ${plural(rows, 'row')} of ${files}${of}:`);
  printTable(
    terminal,
    [
      { name: 'field' },
      { name: 'type' },
      { name: 'key' },
      { name: 'null', align: 'right' },
      { name: 'example' },
      { name: 'note' },
    ],
    fields.map(({ name, definition: { typeId, maxLength }, nulls, isCandidate, example = '', note = '' }) => [
      name,
      maxLength === undefined ? typeName(typeId) : `${typeName(typeId)} (${maxLength})`,
      name === schema.primaryKey ? 'key' : isCandidate ? 'could be' : '',
      nulls === 0 ? 'never' : String(nulls),
      example.length > 40 ? `${example.slice(0, 40).toWellFormed()}\u2026` : example,
      note,
    ]),
  );
}
