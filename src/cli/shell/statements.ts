/** What is written to the shell, taken apart: statements, and the words of commands. */
import { UsageError } from '../terminal/exit-code.ts';

const piece = /'(?:[^']|'')*'|"(?:[^"]|"")*"|;|[^'";]+|['"]/g;

/** The statements of a text, at the `;` between them; those in quotes are part of the text. `isEnded`: whether the last one has its `;`. */
export function splitStatements(text: string): { readonly statements: readonly string[]; readonly isEnded: boolean } {
  const statements = [''];
  for (const [part] of text.matchAll(piece)) {
    if (part === ';') statements.push('');
    else statements[statements.length - 1] += part;
  }
  const last = statements.at(-1) ?? '';
  const isEnded = statements.length > 1 && last.trim() === '';
  return {
    statements: statements.map((statement) => statement.trim()).filter((statement) => statement !== ''),
    isEnded,
  };
}

const word = /(?:[^\s'"]|'[^']*'|"[^"]*")+|['"]/g;
const quoted = /'([^']*)'|"([^"]*)"/g;

/** The words of a line as a Unix shell has them: quotes of either kind keep spaces. Throws `UsageError` for a quote that is not closed. */
export function splitWords(line: string): string[] {
  return [...line.matchAll(word)].map(([text]) => {
    if (text === "'" || text === '"') throw new UsageError(`The quote ${text} is opened here and not closed: ${line}`);
    return text.replaceAll(
      quoted,
      (_, single: string | undefined, double: string | undefined) => single ?? double ?? '',
    );
  });
}
