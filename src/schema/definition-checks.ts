/** Checks that all parts of a definition share: names, unknown properties, and fields that can be keys. */
import { encodeUtf8 } from '../base/bytes.ts';
import { InvalidSchemaError } from '../base/errors.ts';
import { describeValue } from '../base/messages.ts';
import { didYouMean, firstUnknown, isNotKnown } from '../base/options.ts';
import type { StoredField } from '../format/stored-schema.ts';
import { isKeyType, typeName } from '../format/types.ts';

/**
 * Throws `InvalidSchemaError` for an unknown property. `what`: the owner of the property, for the message. `hints`: fixes for names of
 * other libraries.
 */
export function refuseUnknown(
  table: string,
  what: string,
  object: object,
  known: ReadonlySet<string>,
  hints: Readonly<Record<string, string>> = {},
): void {
  const name = firstUnknown(object, known);
  if (name === undefined) return;
  const names = [...known];
  const hint = Object.hasOwn(hints, name) ? hints[name] : undefined;
  const fix = hint === undefined ? isNotKnown(name, names) : `is not known: ${hint}.`;
  throw new InvalidSchemaError(
    table,
    `Property \`${name}\` of ${what} ${fix} The properties there are ${names.join(', ')}.`,
  );
}

/** The maximum length of a name, which must fit in object names even with every byte escaped. */
const maxNameBytes = 128;

export function checkName(table: string, what: string, name: unknown): asserts name is string {
  if (typeof name !== 'string' || name === '' || !name.isWellFormed() || encodeUtf8(name).length > maxNameBytes) {
    const allowed = `a string of 1 to ${maxNameBytes} UTF-8 bytes`;
    throw new InvalidSchemaError(table, `The ${what} must be ${allowed}, not ${describeValue(name)}.`);
  }
}

/** Returns the name of a field that can be part of a key. Throws `InvalidSchemaError`. `what`: what it is for, in messages. */
export function checkKeyField(table: string, fields: readonly StoredField[], name: unknown, what: string): string {
  const field = fields.find((candidate) => candidate.name === name);
  if (field === undefined) {
    const known = fields.map((candidate) => candidate.name);
    const hint = typeof name === 'string' ? didYouMean(name, known) : '';
    throw new InvalidSchemaError(
      table,
      `The ${what} ${describeValue(name)} is not a field of table '${table}'${hint || '.'}`,
    );
  }
  if (!isKeyType(field.typeId)) {
    const message = `Field '${field.name}' is of type ${typeName(field.typeId)}, which cannot be the ${what}.`;
    throw new InvalidSchemaError(table, message);
  }
  return field.name;
}
