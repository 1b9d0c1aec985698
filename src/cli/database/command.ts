/** The definition of a command: its name, its options and its action. */
import type { ArgumentsOf, CommandShape, Options } from '../arguments/options.ts';
import { UsageError } from '../terminal/exit-code.ts';
import type { ExitCode } from '../terminal/exit-code.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { isKeyText, readKeys, openDatabase, findPlace } from './open-database.ts';
import type { StorageOptions, OpenDatabase, OpenOptions, Place } from './open-database.ts';

/** The options of every command. */
export const commonOptions = {
  json: { type: 'boolean', default: false, describe: 'Print the result as JSON' },
  node: {
    type: 'number',
    default: 255,
    describe: 'Node id of this process, for commands that write; no other process that writes may have the same',
  },
  'log-level': {
    choices: ['debug', 'info', 'warn', 'error', 'silent'],
    default: 'warn',
    describe: 'Lowest level of the log lines, which go to stderr',
  },
  keys: {
    type: 'string',
    mayBeBare: true,
    describe:
      'Keys of an encrypted database: a file that holds the option encryption as JSON, or the JSON itself, which other processes can then read; default: the variable STOREDB_KEYS, which may hold either',
  },
  compression: {
    choices: ['none', 'deflate', 'zstd'],
    describe: 'Compression of the objects that the command writes; default: none',
  },
} as const;

type CommonArguments = ArgumentsOf<typeof commonOptions>;

/** Runs a command line. */
type RunLine = (words: readonly string[], signal: AbortSignal) => Promise<ExitCode>;

/** The terminal, the signal and the common options that a command runs with. */
export class Session {
  readonly terminal: Terminal;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
  readonly #arguments: CommonArguments;
  readonly #run: RunLine;

  constructor(terminal: Terminal, signal: AbortSignal, args: CommonArguments, run: RunLine) {
    this.#run = run;
    this.terminal = terminal;
    this.signal = signal;
    this.#arguments = args;
    if (args.keys !== undefined && isKeyText(args.keys)) {
      terminal.tell(
        'store-db: other processes can read keys on the command line: pass a file or STOREDB_KEYS instead.',
      );
    }
  }

  /** The encryption and compression that the options ask for. Throws `UsageError`. */
  get storage(): StorageOptions {
    const { compression = 'none' } = this.#arguments;
    const given = this.#arguments.keys;
    const keys = given === undefined || given === '' ? process.env['STOREDB_KEYS'] : given;
    return { compression, ...(keys !== undefined && keys !== '' && { encryption: readKeys(keys) }) };
  }

  /** Whether `--keys` was given, with a file or without. */
  get areKeysGiven(): boolean {
    return this.#arguments.keys !== undefined;
  }

  /** Whether `--compression` was given. */
  get isCompressionGiven(): boolean {
    return this.#arguments.compression !== undefined;
  }

  get nodeId(): number {
    return this.#arguments.node;
  }

  /**
   * Runs another command line with the common options of this one. It prints its errors itself. Resolves to its exit status; never
   * rejects.
   */
  async run(words: readonly string[], signal: AbortSignal): Promise<ExitCode> {
    const { terminal } = this;
    const { json, node, 'log-level': logLevel, keys, compression } = this.#arguments;
    const common = [
      ...(json ? ['--json'] : []),
      `--node=${node}`,
      `--log-level=${logLevel}`,
      ...(keys === undefined ? [] : [`--keys=${keys}`]),
      ...(compression === undefined ? [] : [`--compression=${compression}`]),
    ];
    try {
      // Options of the words come later, and so win.
      return await this.#run([...common, ...words], signal);
    } finally {
      terminal.json = json;
    }
  }

  async place(url: string): Promise<Place> {
    return { ...(await findPlace(url, this.signal)), storage: this.storage };
  }

  /** Opens a database that exists. */
  async open(
    url: string,
    role: OpenOptions['role'],
    more: Pick<OpenOptions, 'damaged' | 'finishing' | 'unregistered' | 'isBare' | 'polling'> = {},
  ): Promise<OpenDatabase> {
    return this.openAt(await this.place(url), role, more);
  }

  openAt(
    place: Place,
    role: OpenOptions['role'],
    more: Omit<OpenOptions, 'role' | 'nodeId' | 'logLevel' | 'terminal' | 'signal'> = {},
  ): Promise<OpenDatabase> {
    const { terminal, signal } = this;
    const { node: nodeId, 'log-level': logLevel } = this.#arguments;
    return openDatabase({ ...place, storage: this.storage }, { role, nodeId, logLevel, terminal, signal, ...more });
  }
}

/** A command whose options are known by type. */
export interface Command<P extends Options = Options, O extends Options = Options> extends CommandShape {
  readonly positionals: P;
  readonly options: O;
  readonly subcommands?: readonly Command[];
  readonly run: (session: Session, args: ArgumentsOf<P> & ArgumentsOf<O>) => Promise<ExitCode>;
}

/** Types the arguments of `run` by the options of the command. */
export function command<const P extends Options, const O extends Options>(definition: Command<P, O>): Command {
  return definition as unknown as Command;
}

/** The first positional of nearly all commands. */
export const databasePositional = {
  database: {
    type: 'string',
    isRequired: true,
    describe: 'URL of the database: file:./data, s3://bucket/prefix, azure://container/prefix or gs://bucket/prefix',
  },
} as const;

export const tablePositional = {
  table: { type: 'string', isRequired: true, describe: 'Name of the table' },
} as const;

export const yesOption = {
  yes: { type: 'boolean', alias: 'y', default: false, describe: 'Do not ask' },
} as const;

/**
 * Asks for confirmation before an action that cannot be undone: for yes, or for a name. Resolves to whether to go on. Throws
 * `UsageError` without a terminal and without `--yes`.
 */
export async function confirmed(
  { terminal, signal }: Pick<Session, 'terminal' | 'signal'>,
  question: string,
  yes: boolean,
  name?: string,
): Promise<boolean> {
  if (yes) return true;
  if (!terminal.isInteractive) throw new UsageError(`${question} There is no terminal to ask on: pass --yes.`);
  return name === undefined ? terminal.confirm(question, signal) : terminal.confirmName(question, name, signal);
}
