/** What a check has found, each thing once, and not so much of one kind that nobody can read it. */
import { isUnreadable } from '../../base/errors.ts';
import { toHex } from '../../base/bytes.ts';
import { MalformedKey } from '../../format/ordered-key.ts';
import { describeValue } from '../../base/describe-value.ts';
import type { TableShape } from '../../schema/table-shape.ts';
import { defaultMaxFindings } from '../../tree/check.ts';
import type { Finding } from '../../tree/check.ts';

/** What a finding is about, apart from the object. */
export type Subject = Omit<Finding, 'name' | 'message'>;

export class Findings {
  readonly list: Finding[] = [];
  readonly #said = new Set<string>();
  readonly #counts = new Map<string, number>();

  /** Takes note, unless the same was said before, or enough was about this subject. */
  add(subject: Subject, name: string, message: string): void {
    const { table, index, generation, snapshot } = subject;
    const about = [table, index, generation, snapshot].join('\0');
    const count = this.#counts.get(about) ?? 0;
    // What is damaged is met from several sides: from an index and its table, from states that share a block.
    const text = `${name}\0${message}`;
    if (count >= defaultMaxFindings || this.#said.has(text)) return;
    this.#said.add(text);
    this.#counts.set(about, count + 1);
    this.list.push({ name, message, ...subject });
  }

  /** Takes note of what damage was met with; anything else is thrown again. `name`: where the error does not tell. */
  addError(subject: Subject, error: unknown, name: string): void {
    if (isUnreadable(error)) {
      this.add(subject, error.key === '' ? name : error.key, error.message);
    } else if (error instanceof MalformedKey) this.add(subject, name, error.message);
    else throw error;
  }
}

/** A row in words, by the bytes of its key. */
export function rowText(shape: TableShape, key: Uint8Array): string {
  return `row ${keyText(shape, key)} of table '${shape.name}'`;
}

/** What a key that was cut short may lack: the rest of a number, or the end of a text. */
const keyEndings: readonly (readonly number[])[] = [[], Array.from({ length: 18 }, () => 0), [0, 1]];

/** The primary key in words. Of a separator, which is as short as it can be, the first one that is not below it. */
export function keyText(shape: TableShape, key: Uint8Array): string {
  for (const ending of keyEndings) {
    try {
      return describeValue(shape.keyValue(Uint8Array.from([...key, ...ending])));
    } catch (error) {
      if (!(error instanceof MalformedKey)) throw error;
    }
  }
  return `with the bytes ${toHex(key)}`;
}
