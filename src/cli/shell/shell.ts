/** The shell: keeps a database open, and runs statements on it from a terminal or a file. */
import { createInterface } from 'node:readline';
import type { Interface } from 'node:readline';
import { didYouMean } from '../../base/options.ts';
import { keyNamesOf } from '../../schema/schema.ts';
import type { SchemaDefinition } from '../../schema/schema.ts';
import type { Command, Session } from '../database/command.ts';
import type { OpenDatabase } from '../database/open-database.ts';
import { queryFrom } from '../language/asked-query.ts';
import { LanguageError } from '../language/tokens.ts';
import { printAnswers, printExplanation } from '../output/reports.ts';
import { ExitCode, UsageError } from '../terminal/exit-code.ts';
import { isAbort, reportError } from '../terminal/terminal.ts';
import { printFacts } from '../terminal/text-table.ts';
import { describeFields, describeIndexes } from '../values/schema-text.ts';
import type { ShellHistory } from './history.ts';

/** The shell's own commands, with their help. */
const ownCommands = [
  ['.help', 'Show this list'],
  ['.explain QUERY', 'Show the plan of a query and its estimated cost'],
  ['.schema [TABLE]', 'Show the fields, the primary key and the indexes of a table, or of all tables'],
  ['.refresh', 'Open the database again, with its present tables'],
  ['.quit', 'Leave, as Ctrl-D does'],
] as const;

/** Commands that change nothing. After any other, the database is opened again. */
const reading: ReadonlySet<string> = new Set([
  'cat',
  'cost',
  'doctor',
  'export',
  'indexes',
  'log',
  'stats',
  'tables',
  'verify',
]);

/** Thrown to leave the shell. */
class Left extends Error {}

export interface ShellOptions {
  readonly session: Session;
  /** URL of the database. */
  readonly database: string;
  /** Commands whose first argument is a database. They can be run by their name after a dot. */
  readonly commands: readonly Command[];
  readonly history: ShellHistory;
}

export class Shell implements AsyncDisposable {
  readonly #options: ShellOptions;
  #opened: OpenDatabase | undefined;
  /** Stops the running statement. */
  #stopping: AbortController | undefined;

  constructor(options: ShellOptions) {
    this.#options = options;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close();
  }

  async #database(): Promise<OpenDatabase> {
    const { session, database } = this.#options;
    this.#opened ??= await session.open(database, 'replica');
    return this.#opened;
  }

  async #close(): Promise<void> {
    const opened = this.#opened;
    this.#opened = undefined;
    await opened?.[Symbol.asyncDispose]();
  }

  /** Runs the statements of the input, up to the first that fails. Resolves to the exit status. */
  async runInput(): Promise<ExitCode> {
    const { terminal, signal } = this.#options.session;
    const lines = createInterface({ input: terminal.input, crlfDelay: Number.POSITIVE_INFINITY });
    let number = 0;
    let written = '';
    const runAll = async (text: string, isWhole: boolean): Promise<void> => {
      try {
        written = await this.#runText(text, isWhole, signal);
      } catch (error) {
        if (!terminal.json && !(error instanceof Left)) terminal.tell(`In line ${number} of the input:`);
        throw error;
      }
    };
    try {
      for await (const line of lines) {
        number++;
        signal.throwIfAborted();
        await runAll(written === '' ? line : `${written}\n${line}`, false);
      }
      await runAll(written, true);
    } catch (error) {
      if (error instanceof Left) return ExitCode.done;
      if (error instanceof CommandFailed) return error.status;
      throw error;
    } finally {
      lines.close();
    }
    return ExitCode.done;
  }

  /** Prompts for statements until the user leaves. Prints errors and continues. */
  async runPrompt(): Promise<ExitCode> {
    const { session, history } = this.#options;
    const { terminal } = session;
    const { place } = await this.#database();
    const prompt = `${place.prefix}> `;
    const more = `${'.'.repeat(Math.max(1, prompt.length - 2))}> `;
    terminal.tell(`Type a table's name, or a query; .help lists commands, Tab completes, Ctrl-D leaves.`);
    const typed = new TypedLines(() =>
      createInterface({
        input: terminal.input,
        output: terminal.output,
        terminal: true,
        history: history.newestFirst,
        historySize: 1000,
        removeHistoryDuplicates: true,
        completer: (line: string) => completions(line, this.#opened?.tables ?? [], this.#commandNames()),
      }),
    );
    let written = '';
    terminal.onInterrupt = () => this.#stopping?.abort();
    try {
      for (;;) {
        const line = await typed.next(written === '' ? prompt : more);
        if (line === undefined) {
          // Ends the line of the prompt.
          terminal.tell('');
          break;
        }
        if (line === null) {
          if (typed.isWarned && written === '') terminal.tell('Press Ctrl-C again to leave, or Ctrl-D, or type .quit.');
          written = '';
          continue;
        }
        history.add(line);
        const isWhole = line.trim() === '';
        written = await this.#runTyped(written === '' ? line : `${written}\n${line}`, isWhole);
      }
    } catch (error) {
      if (!(error instanceof Left)) throw error;
    } finally {
      terminal.onInterrupt = undefined;
    }
    const failure = await history.written();
    if (failure !== undefined) terminal.tell(`The history could not be saved: ${failure.message}`);
    return ExitCode.done;
  }

  /** Runs typed text and prints errors. Resolves to the rest of the text that is not complete yet. */
  async #runTyped(text: string, isWhole: boolean): Promise<string> {
    const { session } = this.#options;
    this.#stopping = new AbortController();
    try {
      return await this.#runText(text, isWhole, AbortSignal.any([session.signal, this.#stopping.signal]));
    } catch (error) {
      if (error instanceof Left || session.signal.aborted) throw error;
      if (this.#stopping.signal.aborted && isAbort(error)) session.terminal.tell('Stopped.');
      else if (!(error instanceof CommandFailed)) reportError(session.terminal, error);
      return '';
    } finally {
      this.#stopping = undefined;
    }
  }

  /** Runs the statements of a text. Resolves to the rest of it: a query that continues on the next line. */
  async #runText(text: string, isWhole: boolean, signal: AbortSignal): Promise<string> {
    if (text.trimStart().startsWith('.')) {
      const line = text.trim();
      await this.#runCommand(line.endsWith(';') ? line.slice(0, -1).trimEnd() : line, signal);
      return '';
    }
    const { statements, isEnded } = splitStatements(text);
    for (const [i, statement] of statements.entries()) {
      try {
        await this.#runQuery(statement, signal);
      } catch (error) {
        const goesOn = i === statements.length - 1 && !isEnded && !isWhole;
        if (goesOn && isCutShort(error, statement)) return statement;
        throw error;
      }
    }
    return '';
  }

  async #runQuery(text: string, signal: AbortSignal): Promise<void> {
    const { terminal } = this.#options.session;
    const asked = queryFrom(await this.#database(), text, {});
    await printAnswers({ terminal, signal }, asked, { pager: true, isLimited: asked.isLimited });
    await terminal.flushed();
  }

  /** Runs a command that begins with a dot. */
  async #runCommand(line: string, signal: AbortSignal): Promise<void> {
    const { session, database, commands } = this.#options;
    const [name = '', rest = ''] = /^\.(\S*)\s*(.*)$/s.exec(line)?.slice(1) ?? [];
    if (name === 'quit' || name === 'exit') throw new Left();
    if (name === 'help') return this.#help();
    if (name === 'refresh') return this.#close();
    if (name === 'schema') return this.#printSchemas(rest);
    if (name === 'explain') {
      if (rest === '') throw new UsageError('.explain takes a query: .explain cities where people > 1000000');
      return printExplanation(
        { terminal: session.terminal, signal },
        queryFrom(await this.#database(), rest, {}),
        false,
      );
    }
    if (!commands.some((command) => command.name === name)) {
      const hint = didYouMean(`.${name}`, this.#commandNames()) || '.';
      throw new UsageError(`There is no command .${name}${hint} .help lists them.`);
    }
    const words = splitWords(rest);
    const status = await session.run([name, ...(words.includes('--help') ? [] : [database]), ...words], signal);
    if (!reading.has(name)) await this.#close();
    if (status !== ExitCode.done) throw new CommandFailed(status);
    return undefined;
  }

  async #printSchemas(name: string): Promise<void> {
    const { session } = this.#options;
    const opened = await this.#database();
    for (const schema of name === '' ? opened.tables : [opened.readable(name)]) {
      session.terminal.print(`${schema.name}, version ${schema.version}`);
      printFacts(session.terminal, [
        ...describeFields(schema).map((field) => ['field', field] as const),
        ['primary key', keyNamesOf(schema).join(', ')],
        ['indexes', describeIndexes(schema)],
      ]);
    }
    await session.terminal.flushed();
  }

  #commandNames(): string[] {
    const own = ownCommands.map(([name]) => name.split(' ')[0] as string);
    return [...own, ...this.#options.commands.map(({ name }) => `.${name}`)];
  }

  #help(): void {
    const { terminal } = this.#options.session;
    terminal.print('Type the name of a table, or a query: cities where people > 1000000 order by people desc limit 10');
    terminal.print('A query ends with the line in which it is complete, and always with ; or an empty line.');
    terminal.print();
    printFacts(terminal, [
      ...ownCommands,
      ...this.#options.commands.map(({ name, summary }) => [`.${name}`, summary] as const),
    ]);
    terminal.print();
    terminal.print(
      'Commands take the same arguments as on the command line, without the database. See for example .import --help.',
    );
  }
}

/** A command of the shell ended with another status than 0. It has printed its error. */
class CommandFailed extends Error {
  readonly status: ExitCode;
  constructor(status: ExitCode) {
    super(`A command ended with status ${status}.`);
    this.status = status;
  }
}

/** Whether a query fails only because it is incomplete, and may continue on the next line. */
function isCutShort(error: unknown, text: string): boolean {
  return error instanceof LanguageError && error.position > text.trimEnd().length;
}

/**
 * Reads typed lines one at a time. Between lines, readline is closed and the terminal is in its normal mode: Ctrl-C sends a signal, and
 * commands can ask questions.
 */
class TypedLines {
  readonly #open: () => Interface;
  /** Lines that were pasted after another one. */
  readonly #early: string[] = [];
  /** The beginning of the next line, if it is typed already. */
  #begun = '';
  /** Whether Ctrl-C was pressed on an empty line: a second Ctrl-C then leaves. */
  isWarned = false;

  constructor(open: () => Interface) {
    this.#open = open;
  }

  /** Reads the next line. Resolves to null if Ctrl-C was pressed, and to undefined at the end of the input. */
  next(prompt: string): Promise<string | null | undefined> {
    const early = this.#early.shift();
    if (early !== undefined) return Promise.resolve(early);
    const lines = this.#open();
    return new Promise((resolve) => {
      let isGivenUp = false;
      let answer: string | null | undefined;
      lines.on('line', (line) => {
        if (answer !== undefined) {
          this.#early.push(line);
          return;
        }
        answer = isGivenUp ? null : line;
        if (!isGivenUp) this.isWarned = false;
        // Pasted lines come in one piece: their `line` events come before this microtask.
        queueMicrotask(() => lines.close());
      });
      lines.on('close', () => {
        this.#begun = answer === undefined ? '' : lines.line;
        resolve(answer);
      });
      lines.on('SIGINT', () => {
        const isEmpty = lines.line === '';
        if (isEmpty && this.isWarned) {
          lines.close();
          return;
        }
        this.isWarned = isEmpty;
        isGivenUp = true;
        // Deletes the typed text on both sides of the cursor.
        lines.write(null, { ctrl: true, name: 'e' });
        lines.write(null, { ctrl: true, name: 'u' });
        lines.write(null, { name: 'return' });
      });
      lines.setPrompt(prompt);
      lines.prompt();
      if (this.#begun !== '') lines.write(this.#begun);
    });
  }
}

/** The keywords of the query language that Tab completes. */
const keywords = [
  'select',
  'from',
  'where',
  'group by',
  'order by',
  'limit',
  'offset',
  'and',
  'or',
  'not',
  'in',
  'between',
  'like',
  'has',
  'has any',
  'has all',
  'is null',
  'is not null',
  'asc',
  'desc',
  'as',
  'count()',
  'sum(',
  'avg(',
  'min(',
  'max(',
];

/** Returns the completions of the last word of a line, and that word: commands, tables, fields of the named tables, and keywords. */
export function completions(
  line: string,
  tables: readonly SchemaDefinition[],
  commands: readonly string[],
): [found: string[], last: string] {
  const last = line.split(/[\s,()=<>!]/).at(-1) ?? '';
  const before = line.slice(0, line.length - last.length);
  const names = tables.map(({ name }) => name);
  const starting = (words: readonly string[]): [string[], string] => {
    const wanted = last.toLowerCase();
    return [[...new Set(words)].filter((word) => word.toLowerCase().startsWith(wanted)).toSorted(), last];
  };
  if (before.trim() === '') return starting(last.startsWith('.') ? commands : [...names, 'select']);
  if (line.trimStart().startsWith('.') && !/^\s*\.explain\s+\S+\s/.test(before)) return starting(names);
  if (/\bfrom\s+$/i.test(before)) return starting(names);
  const named = tables.filter(({ name }) => new RegExp(`(^|[^\\w])${escaped(name)}([^\\w]|$)`, 'i').test(before));
  // The columns of a select come before its table.
  const fields = (named.length > 0 ? named : tables).flatMap(({ fields: all }) => Object.keys(all));
  return starting([...fields, ...keywords]);
}

function escaped(text: string): string {
  return text.replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&');
}

const piece = /'(?:[^']|'')*'|"(?:[^"]|"")*"|;|[^'";]+|['"]/g;

/** Splits a text into statements at each `;` outside of quotes. `isEnded`: whether the last statement has its `;`. */
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

/** Splits a line into words as a Unix shell does: quotes of either kind keep spaces. Throws `UsageError` for a quote that is not closed. */
export function splitWords(line: string): string[] {
  return [...line.matchAll(word)].map(([text]) => {
    if (text === "'" || text === '"') throw new UsageError(`The quote ${text} is opened here and not closed: ${line}`);
    return text.replaceAll(
      quoted,
      (_, single: string | undefined, double: string | undefined) => single ?? double ?? '',
    );
  });
}
