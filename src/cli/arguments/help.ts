/** The help of the command line: the list of the commands, and the usage of each. No line is longer than the terminal is wide. */
import { programOptions, usageOf } from './options.ts';
import type { CommandShape, NamedCommand, Option, Options } from './options.ts';

/** Breaks a text into lines of at most `width` characters. Longer words stay whole. */
function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

/** Lays out terms and their descriptions side by side. A term that is wider than half of the width has a line for itself. */
function columns(rows: readonly (readonly [term: string, text: string])[], width: number): string {
  const left = Math.max(...rows.map(([term]) => term.length).filter((length) => length <= width / 2), 0);
  const indent = ' '.repeat(left + 4);
  return rows
    .map(([term, text]) => {
      const lines = wrapped(text, width - indent.length).join(`\n${indent}`);
      return term.length > left ? `  ${term}\n${indent}${lines}` : `  ${term.padEnd(left)}  ${lines}`;
    })
    .join('\n');
}

/** Returns an option as it is written: `--pager, --no-pager`, `-y, --yes`, `--limit <number>`. */
function termOf(name: string, { type, alias, choices, mayBeBare, default: preset }: Option): string {
  const letter = alias === undefined ? '    ' : `-${alias}, `;
  if (type === 'boolean') return `${letter}--${name}${preset === true ? `, --no-${name}` : ''}`;
  if (mayBeBare === true) return `${letter}--${name} [text]`;
  if (choices !== undefined) return `${letter}--${name} <choice>`;
  return `${letter}--${name} <${type === 'number' ? 'number' : 'text'}>`;
}

/** Returns the description of an option or a positional, with its choices and its default. */
function describe({ describe: text, choices, default: preset, array }: Option, isOption: boolean): string {
  const facts = [
    ...(isOption && array === true ? ['can be repeated'] : []),
    ...(choices === undefined ? [] : [choices.join(', ')]),
    ...(preset === undefined || typeof preset === 'boolean' ? [] : [`default: ${preset}`]),
  ];
  return facts.length === 0 ? text : `${text} [${facts.join('; ')}]`;
}

function section(title: string, options: Options, width: number): string[] {
  const rows = Object.entries(options).map(([name, option]) => [termOf(name, option), describe(option, true)] as const);
  return rows.length === 0 ? [] : [`${title}:\n${columns(rows, width)}`];
}

function commandList(parents: readonly string[], commands: readonly CommandShape[], width: number): string[] {
  const rows = commands.map((command) => {
    const path = [...parents, command.name].join(' ');
    return [usageOf({ path, command }), command.summary] as const;
  });
  return rows.length === 0 ? [] : [`Commands:\n${columns(rows, width)}`];
}

/** Returns the help of the program. `common`: the options of every command. */
export function programHelp(commands: readonly CommandShape[], common: Options, width: number): string {
  return [
    'store-db <command>',
    wrapped('Manages StoreDb databases in folders and object stores.', width).join('\n'),
    ...commandList([], commands, width),
    ...section('Options of every command', { ...common, ...programOptions }, width),
  ].join('\n\n');
}

/** Returns the help of a command. `common`: the options of every command. */
export function commandHelp(named: NamedCommand<CommandShape>, common: Options, width: number): string {
  const { path, command } = named;
  const words = Object.entries(command.positionals).map(([name, each]) => [name, describe(each, false)] as const);
  // Not wrapped: users copy them.
  const examples = (command.examples ?? []).map(([line, what]) => `  # ${what}\n  store-db ${line}`);
  return [
    command.isGroup === true ? `${usageOf(named)} <command>` : usageOf(named),
    wrapped(command.summary, width).join('\n'),
    ...commandList([path], command.subcommands ?? [], width),
    ...(words.length === 0 ? [] : [`Arguments:\n${columns(words, width)}`]),
    ...section('Options', command.options, width),
    ...section('Options of every command', { ...common, ...programOptions }, width),
    ...(examples.length === 0 ? [] : [`Examples:\n${examples.join('\n')}`]),
  ].join('\n\n');
}
