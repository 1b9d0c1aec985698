/** The completions of a command line, for the scripts that `store-db completion` prints. */
import { commandOf, programOptions } from './options.ts';
import type { CommandShape, Nested, Option, Options } from './options.ts';

/** A word that may come next. */
export interface Completion {
  readonly word: string;
  readonly describe: string;
}

function optionWords([name, { type, alias, default: preset, describe }]: readonly [string, Option]): Completion[] {
  const long = type === 'boolean' && preset === true ? `--no-${name}` : `--${name}`;
  const words = alias === undefined ? [long] : [long, `-${alias}`];
  return words.map((word) => ({ word, describe }));
}

function choiceWords({ choices = [] }: Option): Completion[] {
  return choices.map((word) => ({ word, describe: '' }));
}

function commandWords(commands: readonly CommandShape[]): Completion[] {
  return commands.map(({ name, summary }) => ({ word: name, describe: summary }));
}

/** Returns the option that the last word is the value of; undefined for none. */
function optionBefore(words: readonly string[], options: Options): Option | undefined {
  const last = words.at(-1) ?? '';
  const name = last.startsWith('--') ? last.slice(2) : '';
  const option = Object.hasOwn(options, name) ? options[name] : undefined;
  return option?.type === 'boolean' ? undefined : option;
}

/** Returns the words that may come after `words`, and begin with `begun`. `common`: the options of every command. */
export function completionsOf<C extends Nested<C>>(
  words: readonly string[],
  begun: string,
  commands: readonly C[],
  common: Options,
): Completion[] {
  const named = words.filter((word) => !word.startsWith('-'));
  const found = commandOf(named, commands);
  const options = { ...common, ...programOptions, ...found?.command.options };
  const before = optionBefore(words, options);
  const starting = (all: readonly Completion[]): Completion[] => all.filter(({ word }) => word.startsWith(begun));
  if (before !== undefined) return starting(choiceWords(before));
  if (begun.startsWith('-')) return starting(Object.entries(options).flatMap(optionWords));
  if (found === undefined) return named.length === 0 ? starting(commandWords(commands)) : [];
  const at = named.length - found.path.split(' ').length;
  const positional = Object.values(found.command.positionals)[at];
  return starting([
    ...(at === 0 ? commandWords(found.command.subcommands ?? []) : []),
    ...(positional === undefined ? [] : choiceWords(positional)),
  ]);
}

/** Returns completions as lines: words alone for bash, and for zsh with their descriptions. */
export function completionLines(completions: readonly Completion[], shell: 'bash' | 'zsh'): string[] {
  if (shell === 'bash') return completions.map(({ word }) => word);
  const escaped = completions.map(({ word, describe }) => [word.replaceAll(':', '\\:'), describe]);
  return escaped.map(([word, describe]) => (describe === '' ? `${word}` : `${word}:${describe}`));
}
