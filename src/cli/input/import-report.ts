/** What imports tell: what was done, and where they stopped. */
import { defined } from '../../base/defined.ts';
import type { Session } from '../database/command.ts';
import { ExitCode, UsageError } from '../terminal/exit-code.ts';
import { plural } from '../terminal/figures.ts';
import type { InputFile } from './input-files.ts';
import { describePosition, LineError } from './line-error.ts';
import type { Imported, ImportStopped } from './row-import.ts';

/** Where to go on after what is done. */
function nextOf(done: Imported, files: readonly InputFile[], fromLine: number): { file: InputFile; line: number } {
  const { last } = done;
  return { file: last?.file ?? (files[0] as InputFile), line: last === undefined ? fromLine : last.line + 1 };
}

interface StopContext {
  readonly files: readonly InputFile[];
  readonly fromLine: number;
  /** What to do about bad rows, as a sentence; undefined for nothing special. */
  readonly advice?: string | undefined;
  /** What has to be left out to go on, such as ` and without --create`. */
  readonly without?: string;
}

function print({ terminal, signal }: Session, { done, file, cause }: ImportStopped, context: StopContext): void {
  const { files, fromLine, advice, without = '' } = context;
  const { message } = cause as Error;
  const next = nextOf(done, files, fromLine);
  if (terminal.json) {
    const position =
      cause instanceof LineError ? { badLine: cause.line, badColumn: cause.column ?? null } : { badLine: null };
    terminal.printJson({
      rows: done.rows,
      importedToLine: done.last?.line ?? 0,
      file: file?.name ?? null,
      ...position,
      message,
      ...defined({ advice }),
      resumeFromFile: next.file.name,
      resumeFromLine: next.line,
    });
    return;
  }
  const where = cause instanceof LineError && file !== undefined ? `${describePosition(file.name, cause)}: ` : '';
  if (signal.aborted) terminal.tell('Interrupted.');
  else terminal.tell(`${terminal.styleMessage('red', 'error')}: ${where}${message}`);
  if (advice !== undefined) terminal.tell(advice);
  if (done.last === undefined) {
    terminal.tell('Nothing was imported.');
    return;
  }
  const of = files.length > 1 ? ` of ${next.file.name}` : '';
  const more = files.length > 1 ? ` --from-file ${next.file.name}` : '';
  terminal.tell(
    `${plural(done.rows, 'row')} up to line ${done.last.line}${of} are imported, and nothing after it. Go on with${more} --from-line ${next.line}${without}.`,
  );
}

/** Tells why an import stopped and where it can go on. Throws what is no matter of rows. */
export function reportStop(session: Session, stopped: ImportStopped, context: StopContext): ExitCode {
  const { cause } = stopped;
  if (cause instanceof UsageError) throw cause;
  print(session, stopped, context);
  if (session.signal.aborted) return ExitCode.interrupted;
  return cause instanceof LineError ? ExitCode.found : ExitCode.failed;
}

/** Tells what was imported. `more`: what else is told in JSON. */
export function reportDone({ terminal }: Session, done: Imported, rejected: number, table: string, more = {}): void {
  if (terminal.json) {
    terminal.printJson({ rows: done.rows, skipped: done.skipped, rejected, ...more });
    return;
  }
  terminal.print(`${plural(done.rows, 'row')} imported into ${table}.`);
  if (done.skipped > 0) terminal.tell(`${plural(done.skipped, 'row')} left out that the table has already.`);
  if (rejected > 0) terminal.tell(`${plural(rejected, 'bad row')} left out.`);
}
