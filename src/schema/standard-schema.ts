/**
 * The interface of Standard Schema, version 1 (https://standardschema.dev), which zod, valibot, arktype and other libraries have: a
 * schema is an object with the property `~standard`. Only the parts that StoreDb calls.
 */

import { describeValue } from '../base/messages.ts';

/** A problem that a schema finds in a value. */
export interface StandardIssue {
  /** The problem, for people. */
  readonly message: string;
  /** The way to the value with the problem. Absent: the problem is in the value as a whole. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The answer of a schema: the value, perhaps in another form; or the problems. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

/** A schema of any library that implements Standard Schema. */
export interface StandardSchema<Input = unknown, Output = Input> {
  /** The interface of Standard Schema. */
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    /** Only for the compiler. */
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** Whether a value is a schema of a library that implements Standard Schema. Some libraries make their schemas functions. */
export function isStandardSchema(value: unknown): value is StandardSchema {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false;
  const { '~standard': standard } = value as { '~standard'?: { version?: unknown; validate?: unknown } | null };
  return standard?.version === 1 && typeof standard.validate === 'function';
}

/** A problem of a row, with the names and positions that lead to the value. */
export interface RowIssue {
  /** The problem, for people. */
  readonly message: string;
  /** Names of fields and positions in lists, from the row on. Empty: the problem is in the row as a whole. */
  readonly path: readonly PropertyKey[];
}

/** Returns the issues in the answer of a schema. An answer that Standard Schema does not have is an issue: it does not say that the row is valid. */
export function issuesInAnswer(answer: unknown): readonly RowIssue[] {
  if (typeof answer !== 'object' || answer === null) return [noAnswer(describeValue(answer))];
  const { issues = null } = answer as { issues?: Iterable<unknown> | null };
  if (issues === null) return 'value' in answer ? [] : [noAnswer('an object without a value')];
  if (typeof issues !== 'object' || !(Symbol.iterator in issues)) return [noAnswer(`issues: ${describeValue(issues)}`)];
  // Some libraries have lists of their own classes.
  const found = Array.from(issues, toRowIssue);
  return found.length > 0 ? found : [{ message: 'the schema refuses it, and does not say why', path: [] }];
}

function noAnswer(given: string): RowIssue {
  const message = `the schema must answer { value } or { issues }, as Standard Schema has them, and answered ${given}`;
  return { message, path: [] };
}

/** Returns an issue with a path of names and positions only. */
function toRowIssue(issue: unknown): RowIssue {
  const { message, path } = Object(issue) as Partial<StandardIssue>;
  const parts = Array.from(path ?? [], (part) => (typeof part === 'object' ? part.key : part));
  return { message: typeof message === 'string' ? message : 'it is not valid', path: parts };
}

/** Returns a path as it is written in code: `lines[2].price`. */
export function describePath(path: readonly PropertyKey[]): string {
  return path
    .map((part, i) => (typeof part === 'number' ? `[${part}]` : i === 0 ? String(part) : `.${String(part)}`))
    .join('');
}

/** Issues that a message names. */
const namedIssues = 3;

/** Returns issues as the end of a sentence. */
export function describeIssues(issues: readonly RowIssue[]): string {
  const named = issues.slice(0, namedIssues).map(({ message, path }) => {
    const text = message.replace(/\.$/, '');
    return path.length === 0 ? text : `${describePath(path)}: ${text}`;
  });
  const more = issues.length - named.length;
  return `${named.join('; ')}${more > 0 ? `; and ${more} more` : ''}`;
}
