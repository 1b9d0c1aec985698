/** The shell: a database that stays open, and statements on it, typed by somebody or read from a file. */
import { createInterface } from 'node:readline';
import type { Interface } from 'node:readline';
import { didYouMean } from '../../base/options.ts';
import type { SchemaDefinition } from '../../schema/schema.ts';
import type { Command, Session } from '../database/command.ts';
import type { OpenDatabase } from '../database/open-database.ts';
import { queryFrom } from '../language/asked-query.ts';
import { LanguageError } from '../language/tokens.ts';
import { printAnswers, printExplanation } from '../output/reports.ts';
import { ExitCode, UsageError } from '../terminal/exit-code.ts';
import { isAbort, reportError } from '../terminal/terminal.ts';
import { printFacts } from '../terminal/text-table.ts';
import { describeField, describeIndexes } from '../values/schema-text.ts';
import type { ShellHistory } from './history.ts';

/** Commands of the shell's own, and what they do. */
const ownCommands = [
  ['.help', 'this list'],
  ['.explain QUERY', 'how a query would be run, and what that would take'],
  ['.schema [TABLE]', 'the fields, the primary key and the indexes of a table, or of all'],
  ['.refresh', 'open the database anew, with the tables that there are now'],
  ['.quit', 'leave, as Ctrl-D does'],
] as const;

/** After these the database is as it was, as far as this command line goes. */
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

/** Thrown where somebody asks to leave. */
class Left extends Error {}

export interface ShellOptions {
  readonly session: Session;
  /** URL of the database. */
  readonly database: string;
  /** Commands that take a database first: they can be run with a dot before their name. */
  readonly commands: readonly Command[];
  readonly history: ShellHistory;
}

export class Shell implements AsyncDisposable {
  readonly #options: ShellOptions;
  #opened: OpenDatabase | undefined;
  /** What the statement that runs is stopped by. */
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

  /** Runs what the input holds, statement after statement, up to the first that fails. Resolves to the exit status. */
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

  /** Asks for statements until somebody leaves. Errors are told, and it goes on. */
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
          // What comes after it begins a line of its own.
          terminal.tell('');
          break;
        }
        if (line === null) {
          if (typed.isWarned && written === '') terminal.tell('Ctrl-C once more leaves, as Ctrl-D and .quit do.');
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
    if (failure !== undefined) terminal.tell(`The lines could not be kept for the next time: ${failure.message}`);
    return ExitCode.done;
  }

  /** Runs what was typed, and tells what goes wrong. Resolves to what is not complete yet. */
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

  /** Runs the statements of a text. Resolves to what is left of it: a query that goes on in the next line. */
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

  /** Runs a command with a dot before its name. */
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
    for (const schema of name === '' ? opened.tables : [opened.table(name)]) {
      const { primaryKey, fields } = schema;
      session.terminal.print(`${schema.name}, version ${schema.version}`);
      printFacts(session.terminal, [
        ...Object.entries(fields).map(([field, type]) => ['field', describeField(field, type)] as const),
        ['primary key', typeof primaryKey === 'string' ? primaryKey : primaryKey.join(', ')],
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
    terminal.print('A table by its name, or a query: cities where people > 1000000 order by people desc limit 10');
    terminal.print('A query ends with its line where it is complete, and with ; or an empty line in any case.');
    terminal.print();
    printFacts(terminal, [
      ...ownCommands,
      ...this.#options.commands.map(({ name, summary }) => [`.${name}`, summary] as const),
    ]);
    terminal.print();
    terminal.print(
      'What stands behind a command is as on the command line, without the database. .import --help, say, tells more.',
    );
  }
}

/** A command that was run by the shell ended with another status than 0. It has told why. */
class CommandFailed extends Error {
  readonly status: ExitCode;
  constructor(status: ExitCode) {
    super(`A command ended with status ${status}.`);
    this.status = status;
  }
}

/** Whether a query fails only since it ends too early: more of it may follow. */
function isCutShort(error: unknown, text: string): boolean {
  return error instanceof LanguageError && error.position > text.trimEnd().length;
}

/**
 * Lines as somebody types them. While none is asked for, nobody reads the terminal, and it is as programs find it: Ctrl-C is a signal,
 * and commands can ask questions.
 */
class TypedLines {
  readonly #open: () => Interface;
  /** Pasted behind a line. */
  readonly #early: string[] = [];
  /** The beginning of a line that was typed already. */
  #begun = '';
  /** Whether an empty line was given up: the next Ctrl-C leaves. */
  isWarned = false;

  constructor(open: () => Interface) {
    this.#open = open;
  }

  /** The next line; null where it was given up, and undefined at the end. */
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
        // What was pasted comes in one piece, and the rest of it before this.
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
        // Takes away what was typed, on both sides of the cursor.
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

// What Tab completes in the shell: commands, tables, fields of the tables that are named, and words of the query language.

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

/** What may come instead of the last word of a line, and that word. */
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
  // After select, the table is named only later.
  const fields = (named.length > 0 ? named : tables).flatMap(({ fields: all }) => Object.keys(all));
  return starting([...fields, ...keywords]);
}

function escaped(text: string): string {
  return text.replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&');
}

// What is written to the shell, taken apart: statements, and the words of commands.

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
