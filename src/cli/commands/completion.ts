import { command } from '../database/command.ts';
import type { Command } from '../database/command.ts';
import { completionScript, shells } from './completion-script.ts';
import { ExitCode } from '../terminal/exit-code.ts';

/** `completion`: what makes a shell complete command lines. */
export const completion: Command = command({
  name: 'completion',
  summary: 'Print a script for bash or zsh that completes commands and options, of store-db and of npx store-db',
  positionals: { shell: { choices: shells, describe: 'Default: the one that SHELL names, else bash' } },
  options: {},
  examples: [['completion bash >> ~/.bashrc', 'for shells that are opened from then on']],
  run: async ({ terminal }, { shell }) => {
    const isZsh = process.env['SHELL']?.endsWith('zsh') === true;
    terminal.printLines(completionScript(shell ?? (isZsh ? 'zsh' : 'bash')));
    return ExitCode.done;
  },
});
