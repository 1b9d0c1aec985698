/** What is wrong with a condition or a query that somebody wrote, and where. */
import { withoutControls } from '../../base/message-text.ts';
import { displayWidth } from '../terminal/display-width.ts';
import { UsageError } from '../terminal/exit-code.ts';

/** Characters of a long text that are shown before and behind the place. */
const shownBefore = 50;
const shownBehind = 25;

/** The line of the text that is meant, and one below it with a caret at the place. */
function pointedAt(text: string, at: number): [string, string] {
  const begin = text.lastIndexOf('\n', at - 1) + 1;
  const end = text.indexOf('\n', at);
  const line = text.slice(begin, end === -1 ? undefined : end);
  const column = at - begin;
  const from = Math.max(0, column - shownBefore);
  const to = Math.min(line.length, column + shownBehind);
  const [left, right] = [from > 0 ? '\u2026' : '', to < line.length ? '\u2026' : ''];
  const before = left + withoutControls(line.slice(from, column));
  const shown = before + withoutControls(line.slice(column, to)) + right;
  return [`  ${shown}`, `  ${' '.repeat(displayWidth(before))}^`];
}

/** Its message ends with the text and a caret below the place. */
export class LanguageError extends UsageError {
  /** Of the character in the text, counted from 1. */
  readonly position: number;

  constructor(message: string, text: string, at: number) {
    super(`${message} (at character ${at + 1})`, pointedAt(text, at));
    this.position = at + 1;
  }
}
