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
import { gc, rewrite, tend, snapshots } from './commands/maintenance.ts';
import { migrate } from './commands/migrate.ts';
import { explain, query, shellOf } from './commands/query.ts';
import { cost, stats } from './commands/stats.ts';
import { indexes, schema, tables } from './commands/tables.ts';
import { doctor, repair, verify } from './commands/verify.ts';
import { commonOptions, Session } from './database/command.ts';
import type { Command } from './database/command.ts';
import { ExitCode, OutputError, UsageError } from './terminal/exit-code.ts';
import { isAbort, reportError } from './terminal/terminal.ts';
import type { Terminal } from './terminal/terminal.ts';

/** Reports an error, or that the command was interrupted, and returns the exit status. */
function report(terminal: Terminal, error: unknown, isInterrupted: boolean): ExitCode {
  if (!isInterrupted || !isAbort(error)) return reportError(terminal, error);
  terminal.tell('Interrupted. Completed work stays; nothing was left half done.');
  return ExitCode.interrupted;
}

/** Returns the names of all commands and subcommands: `snapshots`, `snapshots release`. */
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
      // Printed as plain lines: a table would wrap command lines that users copy.
      const examples = (command.examples ?? []).map(([line, what]) => `  # ${what}\n  store-db ${line}`);
      return examples.length === 0 ? builder : builder.epilogue(`Examples:\n${examples.join('\n')}`);
    },
    (args) => run(command, args),
  );
}

/** Rewrites the yargs message for values that are no choice of their options; undefined for another message. */
function choiceRefusal(message: string): string | undefined {
  const wrong = message.matchAll(/^ +Argument: (\S+), Given: (.*), Choices: (.*)$/gm);
  const refusals = Array.from(wrong, ([, option = '', given = '', choices = '']) => {
    const [value, known] = [given, choices].map((text) => text.replaceAll('"', '')) as [string, string];
    return `--${option} takes ${known.replace(/, (?=[^,]*$)/, ' or ')}, and not ${value}${didYouMean(value, known.split(', ')) || '.'}`;
  });
  return refusals.length === 0 ? undefined : refusals.join(' ');
}

/** Rewrites the yargs message for unknown options to suggest the nearest ones; undefined for another message. */
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
    // For the shell, which runs other commands.
    const runOther = (line: readonly string[], stop: AbortSignal): Promise<ExitCode> =>
      runProgram(line, terminal, stop, version);
    const session = new Session(terminal, either, args as ConstructorParameters<typeof Session>[2], runOther);
    exitCode = await command.run(session, args as never);
  };
  const program: Argv = yargs()
    .scriptName('store-db')
    .usage('$0 <command>\n\nManages StoreDb databases in folders and object stores.')
    .options(commonOptions)
    .version(version)
    .help()
    .alias('help', 'h')
    .strict()
    .demandCommand(1, 'Which command? `store-db --help` lists them.')
    .recommendCommands()
    // Answers the script that `completion` prints. The script of yargs does not support npx, and stays hidden.
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
    // Yargs passes help, versions and completions to this callback, and errors to `fail`.
    await program.parseAsync(words as string[], {}, (_, __, text) => {
      if (text !== '') terminal.printLines(text);
    });
    await terminal.flushed();
    if (terminal.failure !== undefined) throw terminal.failure;
    return exitCode;
  } catch (caught) {
    await terminal.flushed();
    // If the output failed, other errors are consequences of that.
    const error: unknown = terminal.failure === undefined ? caught : new OutputError('The output', terminal.failure);
    // The reader of the output has left, as `head` does.
    const isLeft = terminal.closed.aborted && isAbort(error);
    return isLeft ? exitCode : report(terminal, error, signal.aborted);
  }
}

/** All commands but the shell, in the order of the help. */
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

/** The commands on one database, which the shell can run. */
const ofDatabase = others.filter(
  (one) => Object.keys(one.positionals)[0] === 'database' && one !== query && one !== explain,
);

export const commands: readonly Command[] = [shellOf(ofDatabase), ...others];
