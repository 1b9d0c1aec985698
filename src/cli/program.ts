/** Reads the command line and runs the command that it names. */
import { completionLines, completionsOf } from './arguments/completions.ts';
import { commandHelp, programHelp } from './arguments/help.ts';
import { parseLine } from './arguments/parse.ts';
import { publish } from './commands/publish.ts';
import { backup, backups, clone, prune, restore, rewriteBackups } from './commands/backups.ts';
import { completion, completionOption, userShell } from './commands/completion.ts';
import { clear, drop, rename } from './commands/drop-and-rename.ts';
import { exportTable } from './commands/export.ts';
import { importTable } from './commands/import.ts';
import { cat, log } from './commands/inspect.ts';
import { loads } from './commands/loads.ts';
import { gc, rewrite, snapshots } from './commands/maintenance.ts';
import { migrate } from './commands/migrate.ts';
import { explain, query, shellOf } from './commands/query.ts';
import { cost, stats } from './commands/stats.ts';
import { studio } from './commands/studio.ts';
import { indexes, schema, tables } from './commands/tables.ts';
import { tend } from './commands/tend.ts';
import { doctor, repair, verify } from './commands/verify.ts';
import { commonOptions, Session } from './database/command.ts';
import type { Command } from './database/command.ts';
import { ExitCode, OutputError } from './terminal/exit-code.ts';
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

/** Runs a command line, or prints the help, the version or the completions that it asks for. */
async function runLine(
  words: readonly string[],
  terminal: Terminal,
  signal: AbortSignal,
  version: string,
): Promise<ExitCode> {
  if (words[0] === completionOption) {
    // The words of the line that is completed, from the name of the program on.
    const found = completionsOf(words.slice(2, -1), words.at(-1) ?? '', commands, commonOptions);
    for (const line of completionLines(found, userShell())) terminal.print(line);
    return ExitCode.done;
  }
  // Also if the line cannot be parsed: errors are JSON then.
  terminal.json = words.includes('--json');
  const { wants, command, path, values } = parseLine(words, commands, commonOptions);
  if (wants === 'version') {
    terminal.print(version);
    return ExitCode.done;
  }
  if (command === undefined || path === undefined || wants === 'help') {
    const width = Math.min(100, terminal.columns ?? 100);
    const isOne = command !== undefined && path !== undefined;
    terminal.printLines(
      isOne ? commandHelp({ path, command }, commonOptions, width) : programHelp(commands, commonOptions, width),
    );
    return ExitCode.done;
  }
  const args = values as ConstructorParameters<typeof Session>[2];
  terminal.json = args.json;
  // For the shell, which runs other commands.
  const runOther = (line: readonly string[], stop: AbortSignal): Promise<ExitCode> =>
    runProgram(line, terminal, stop, version);
  const session = new Session(terminal, AbortSignal.any([signal, terminal.closed]), args, runOther);
  return command.run(session, args);
}

/** Runs one command line. `signal` is aborted by Ctrl-C. Resolves to the exit status; never rejects. */
export async function runProgram(
  words: readonly string[],
  terminal: Terminal,
  signal: AbortSignal,
  version: string,
): Promise<ExitCode> {
  let exitCode: ExitCode = ExitCode.done;
  try {
    exitCode = await runLine(words, terminal, signal, version);
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
  studio,
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
  publish,
  rename,
  drop,
  rewrite,
  rewriteBackups,
  snapshots,
  loads,
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
