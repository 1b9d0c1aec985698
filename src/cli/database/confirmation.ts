/** Asks before what cannot be taken back. */
import { withoutControls } from '../../base/message-text.ts';
import { UsageError } from '../terminal/exit-code.ts';
import type { Session } from './command.ts';

export const yesOption = {
  yes: { type: 'boolean', alias: 'y', default: false, describe: 'Do not ask' },
} as const;

/** Whether to go on. Where nobody can be asked, `--yes` must have said so: throws `UsageError`. */
export async function confirmed(
  { terminal, signal }: Pick<Session, 'terminal' | 'signal'>,
  question: string,
  yes: boolean,
): Promise<boolean> {
  if (yes) return true;
  if (!terminal.isInteractive) throw new UsageError(`${question} Nobody is there to be asked: say --yes.`);
  const { default: confirm } = await import('@inquirer/confirm');
  try {
    return await confirm(
      { message: withoutControls(question), default: false },
      { input: terminal.input as NodeJS.ReadableStream, output: terminal.messages as NodeJS.WritableStream, signal },
    );
  } catch (error) {
    // Ctrl-C at the question.
    if ((error as Error).name === 'ExitPromptError') return false;
    throw error;
  }
}
