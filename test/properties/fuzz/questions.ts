/** What the fuzzer asks of a database, and whether the answers are right. */
import { InvariantError, StoreDbError } from '../../../src/base/errors.ts';
import type { Database } from '../../../src/api/database.ts';
import { idOf } from './stored-database.ts';

export interface Question {
  readonly name: string;
  readonly ask: (db: Database) => Promise<unknown>;
}

function textOf(value: unknown): string {
  if (value === undefined) return 'undefined';
  return JSON.stringify(value, (_, member: unknown) => (typeof member === 'bigint' ? `${member}n` : member));
}

async function streamed(db: Database): Promise<unknown[]> {
  const rows: unknown[] = [];
  for await (const row of db.query('readings').where('value', '>=', 3)) rows.push(row);
  return rows;
}

/** The bytes of every blob that a row refers to. */
async function photos(db: Database): Promise<unknown> {
  const rows = await db.query('Towns').where('photo', '!=', null).execute();
  const bytes: string[] = [];
  for (const { photo } of rows) bytes.push(await db.getBlob(String(photo)).getString(0, undefined, 'hex'));
  return bytes;
}

export const questions: readonly Question[] = [
  { name: 'get', ask: (db) => db.get('Towns', idOf(3)) },
  { name: 'get of another', ask: (db) => db.get('Towns', idOf(40)) },
  { name: 'get of one in the log', ask: (db) => db.get('Towns', idOf(75)) },
  { name: 'get of none', ask: (db) => db.get('Towns', 'nowhere') },
  { name: 'get of a number', ask: (db) => db.get('readings', 17) },
  { name: 'key', ask: (db) => db.query('Towns').where('id', '=', idOf(8)).execute() },
  { name: 'keys', ask: (db) => db.query('readings').where('id', 'IN', [1, 20, 60, 999]).execute() },
  { name: 'range of keys', ask: (db) => db.query('readings').where('id', '>', 40).where('id', '<=', 55).execute() },
  { name: 'index', ask: (db) => db.query('Towns').where('country', '=', 'bb').execute() },
  { name: 'index, long', ask: (db) => db.query('Towns').where('country', '>', 'a c').orderBy('country').execute() },
  { name: 'index, descending', ask: (db) => db.query('Towns').orderBy('people', 'desc').limit(9).offset(2).execute() },
  { name: 'index on a function', ask: (db) => db.query('Towns').where('first', '=', 'b').execute() },
  { name: 'filter', ask: (db) => db.query('Towns').where('founded', '>', new Date(0)).execute() },
  { name: 'scan', ask: (db) => db.query('Towns').execute() },
  { name: 'scan backwards', ask: (db) => db.query('readings').orderBy('id', 'desc').execute() },
  { name: 'stream', ask: streamed },
  { name: 'count', ask: (db) => db.query('Towns').count() },
  { name: 'count by index', ask: (db) => db.query('readings').where('value', '<', 4).count() },
  { name: 'blobs', ask: photos },
];

/** The answers of all questions, as texts; for one that was refused, the error. */
export type Answers = readonly (string | StoreDbError)[];

/** An error that StoreDb may answer with: its own, but none that says that StoreDb is wrong. */
function refusal(error: unknown): StoreDbError {
  if (error instanceof StoreDbError && !(error instanceof InvariantError)) return error;
  throw error;
}

export async function orRefusal<T>(call: () => Promise<T>): Promise<T | StoreDbError> {
  try {
    return await call();
  } catch (error) {
    return refusal(error);
  }
}

export async function askAll(db: Database): Promise<Answers> {
  const answers: (string | StoreDbError)[] = [];
  for (const { name, ask } of questions) {
    try {
      answers.push(textOf(await ask(db)));
    } catch (error) {
      try {
        answers.push(refusal(error));
      } catch {
        throw new Error(`${name}: ${String(error)}`, { cause: error });
      }
    }
  }
  return answers;
}

/**
 * Of the states that the database was in, those that all given answers are of. Empty: something was answered that never
 * was, or answers are of different states.
 */
export function statesOf(answers: Answers, history: readonly Answers[]): number[] {
  const all = history.map((_, i) => i);
  return all.filter((i) => {
    return answers.every((answer, q) => answer instanceof StoreDbError || answer === (history[i] as Answers)[q]);
  });
}

/** Which answers are not those of a state. */
export function wrongAnswers(answers: Answers, state: Answers): string {
  return questions
    .filter((_, q) => !((answers[q] as string | StoreDbError) instanceof StoreDbError) && answers[q] !== state[q])
    .map(({ name }) => name)
    .join(', ');
}
