/** The help of the command line as docs/cli.md shows it. */
import { commands, commandNames } from '../../../src/cli/program.ts';
import { run } from './shell.ts';

const begin = '<!-- Below: the help of every command. `npm run docs:cli` writes it. -->';

/** The text with the present help at its end. */
export async function withHelp(text: string): Promise<string> {
  const at = text.indexOf(begin);
  if (at === -1) throw new Error('docs/cli.md does not say where the help begins');
  const parts = [text.slice(0, at) + begin];
  const list = await run(['--help']);
  parts.push('## Help', fenced(list.output));
  for (const names of commandNames(commands)) {
    parts.push(`### ${names.join(' ')}`, fenced((await run([...names, '--help'])).output));
  }
  return `${parts.join('\n\n')}\n`;
}

function fenced(help: string): string {
  const lines = help
    .trimEnd()
    .split('\n')
    .map((line) => line.trimEnd());
  return `\`\`\`text\n${lines.join('\n')}\n\`\`\``;
}
