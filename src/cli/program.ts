/** Reads the command line and runs the command that it names. */
import yargs from 'yargs';
import type { Argv, PositionalOptions } from 'yargs';
import { didYouMean } from '../base/options.ts';
import { backup, backups, clone, prune, restore, rewriteBackups } from './commands/backups.ts';
import { completion } from './commands/completion.ts';
import { clear, drop, rename } from './commands/drop-and-rename.ts';
import { exportTable } from './commands/export.ts';
import { importTable } from './commands/import.ts';
import { cat, log } from './commands/inspect.ts';
import { gc, rewrite, tend } from './commands/maintenance.ts';
import { migrate } from './commands/migrate.ts';
import { explain, query, shellOf } from './commands/query.ts';
import { snapshots } from './commands/snapshots.ts';
import { cost, stats } from './commands/stats.ts';
import { indexes, schema, tables } from './commands/tables.ts';
import { doctor, repair, verify } from './commands/verify.ts';
import { commonOptions, Session } from './database/command.ts';
import type { Command } from './database/command.ts';
import { ExitCode, OutputError, UsageError } from './terminal/exit-code.ts';
import { isAbort, reportError } from './terminal/terminal.ts';
import type { Terminal } from './terminal/terminal.ts';

/** What went wrong, in words and for machines. */
function report(terminal: Terminal, error: unknown, isInterrupted: boolean): ExitCode {
  if (!isInterrupted || !isAbort(error)) return reportError(terminal, error);
  terminal.tell('Interrupted. What was done until then stays; nothing was left half done.');
  return ExitCode.interrupted;
}

/** Names of commands, each with those behind it: `snapshots`, `snapshots release`. */
export function commandNames(all: readonly Command[]): string[][] {
  return all.flatMap(({ name, subcommands = [] }) => {
    const behind = commandNames(subcommands);
    return [[name], ...behind.map((names) => [name].concat(names))];
  });
}

function usageOf({ name, positionals }: Command): string {
  const words = Object.entries(positionals).map(([positional, { demandOption, array }]) => {
    const text = array === true ? `${positional}..` : positional;
    return demandOption === true ? `<${text}>` : `[${text}]`;
  });
  return [name, ...words].join(' ');
}

function add(program: Argv, command: Command, run: (command: Command, args: object) => Promise<void>): void {
  program.command(
    usageOf(command),
    command.summary,
    (builder) => {
      for (const subcommand of command.subcommands ?? []) add(builder, subcommand, run);
      if (command.isGroup === true) builder.demandCommand(1, `Which command? See store-db ${command.name} --help.`);
      for (const [name, options] of Object.entries(command.positionals))
        builder.positional(name, options as PositionalOptions);
      builder.options(command.options);
      // Not as a table, in which lines to be copied would be broken in two.
      const examples = (command.examples ?? []).map(([line, what]) => `  # ${what}\n  store-db ${line}`);
      return examples.length === 0 ? builder : builder.epilogue(`Examples:\n${examples.join('\n')}`);
    },
    (args) => run(command, args),
  );
}

/** A refusal of values that are not among the choices of their options, in one line for each; undefined for another message. */
function choiceRefusal(message: string): string | undefined {
  const wrong = message.matchAll(/^ +Argument: (\S+), Given: (.*), Choices: (.*)$/gm);
  const refusals = Array.from(wrong, ([, option = '', given = '', choices = '']) => {
    const [value, known] = [given, choices].map((text) => text.replaceAll('"', '')) as [string, string];
    return `--${option} takes ${known.replace(/, (?=[^,]*$)/, ' or ')}, and not ${value}${didYouMean(value, known.split(', ')) || '.'}`;
  });
  return refusals.length === 0 ? undefined : refusals.join(' ');
}

/** A refusal of unknown options that names the nearest one of the command; undefined for another message. */
function nearestOptions(message: string, words: readonly string[]): string | undefined {
  const unknown = /^Unknown arguments?: (.+)$/.exec(message)?.[1]?.split(', ');
  const names = words.filter((word) => !word.startsWith('-'));
  const command = commands.find(({ name }) => name === names[0]);
  if (unknown === undefined || command === undefined) return undefined;
  const subcommand = command.subcommands?.find(({ name }) => name === names[1]);
  const known = [commonOptions, command.options, subcommand?.options ?? {}].flatMap((options) => Object.keys(options));
  const hints = unknown.map((name) => didYouMean(name, known) && `--${name}${didYouMean(name, known)}`);
  return [`${message}.`, ...hints].filter((hint) => hint !== '').join(' ');
}

/** Runs one command line. `signal` is aborted by Ctrl-C. Resolves to the exit status; never rejects. */
export async function runProgram(
  words: readonly string[],
  terminal: Terminal,
  signal: AbortSignal,
  version: string,
): Promise<ExitCode> {
  let exitCode: ExitCode = ExitCode.done;
  const run = async (command: Command, args: object): Promise<void> => {
    const { json } = args as { json: boolean };
    terminal.json = json;
    const either = AbortSignal.any([signal, terminal.closed]);
    // Of the shell, which runs the others.
    const runOther = (line: readonly string[], stop: AbortSignal): Promise<ExitCode> =>
      runProgram(line, terminal, stop, version);
    const session = new Session(terminal, either, args as ConstructorParameters<typeof Session>[2], runOther);
    exitCode = await command.run(session, args as never);
  };
  const program: Argv = yargs()
    .scriptName('store-db')
    .usage('$0 <command>\n\nLooks after databases of StoreDb in folders and object stores.')
    .options(commonOptions)
    .version(version)
    .help()
    .alias('help', 'h')
    .strict()
    .demandCommand(1, 'Which command? `store-db --help` lists them.')
    .recommendCommands()
    // Answers the script that `completion` prints. Its own script, which knows nothing of npx, stays hidden.
    .completion('yargs-completion', false)
    .wrap(Math.min(100, terminal.columns ?? 100))
    .exitProcess(false)
    .showHelpOnFail(false)
    .fail((message, error) => {
      throw (
        error ??
        new UsageError(choiceRefusal(message) ?? nearestOptions(message, words) ?? message, ['See store-db --help.'])
      );
    });
  for (const command of commands) add(program, command, run);
  try {
    // Help, versions and completions come this way; errors have gone to `fail`.
    await program.parseAsync(words as string[], {}, (_, __, text) => {
      if (text !== '') terminal.printLines(text);
    });
    await terminal.flushed();
    if (terminal.failure !== undefined) throw terminal.failure;
    return exitCode;
  } catch (caught) {
    await terminal.flushed();
    // Whatever else went wrong then, did so for that.
    const error: unknown = terminal.failure === undefined ? caught : new OutputError('The output', terminal.failure);
    // The command ended since nobody reads its results on, as in a pipe into `head`.
    const isLeft = terminal.closed.aborted && isAbort(error);
    return isLeft ? exitCode : report(terminal, error, signal.aborted);
  }
}

// All commands, in the order in which the help lists them.

const others: readonly Command[] = [
  stats,
  tables,
  indexes,
  query,
  explain,
  importTable,
  schema,
  exportTable,
  clear,
  verify,
  repair,
  gc,
  tend,
  backup,
  backups,
  prune,
  restore,
  clone,
  rename,
  drop,
  rewrite,
  rewriteBackups,
  snapshots,
  log,
  cat,
  migrate,
  doctor,
  cost,
  completion,
];

/** Commands of one database that the shell runs. */
const ofDatabase = others.filter(
  (one) => Object.keys(one.positionals)[0] === 'database' && one !== query && one !== explain,
);

export const commands: readonly Command[] = [shellOf(ofDatabase), ...others];
