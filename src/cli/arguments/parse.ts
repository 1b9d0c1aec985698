/** Parses a command line by the declarations of its command. Node's `parseArgs` splits the words, and the rest is here. */
import { parseArgs } from 'node:util';
import { didYouMean } from '../../base/options.ts';
import { UsageError } from '../terminal/exit-code.ts';
import { commandOf, programOptions, usageOf } from './options.ts';
import type { CommandShape, NamedCommand, Nested, Option, Options } from './options.ts';

/** A parsed command line. */
export interface Parsed<C extends CommandShape> extends Partial<NamedCommand<C>> {
  readonly wants: 'help' | 'version' | 'run';
  /** The values of the options and positionals by name. */
  readonly values: Readonly<Record<string, unknown>>;
}

/** An option as it was given. `value`: the text after it, which is absent from flags and at the end of the line. */
interface OptionToken {
  readonly kind: 'option';
  readonly name: string;
  readonly rawName: string;
  readonly value?: string | undefined;
  readonly inlineValue?: boolean | undefined;
}

type Token =
  | OptionToken
  | { readonly kind: 'positional'; readonly value: string }
  | { readonly kind: 'option-terminator' };

/** Whether a word is an option without its value, which the option allows. */
function isBare(word: string, next: string | undefined, options: Options): boolean {
  const option = Object.entries(options).find(([name]) => word === `--${name}`)?.[1];
  return option?.mayBeBare === true && (next === undefined || next.startsWith('-'));
}

/** Splits words into options and positionals. Options that are not declared take no value. */
function tokensOf(words: readonly string[], options: Options): readonly Token[] {
  const config = Object.entries(options).map(([name, { type, alias }]) => {
    const kind = type === 'boolean' ? 'boolean' : 'string';
    return [name, { type: kind, ...(alias !== undefined && { short: alias }) }] as const;
  });
  return parseArgs({
    args: words.map((word, at) => (isBare(word, words[at + 1], options) ? `${word}=` : word)),
    options: Object.fromEntries(config),
    strict: false,
    allowPositionals: true,
    tokens: true,
  }).tokens;
}

/** Returns the options of all commands. Each is of one type wherever it occurs. */
function optionsOfAll(commands: readonly CommandShape[]): Options {
  const all = commands.map(({ options, subcommands = [] }) => ({ ...optionsOfAll(subcommands), ...options }));
  return Object.assign({}, ...all) as Options;
}

function positionalsOf(tokens: readonly Token[]): string[] {
  return tokens.flatMap((token) => (token.kind === 'positional' ? [token.value] : []));
}

/** Joins names for a sentence: `a, b or c`. */
function alternatives(names: readonly string[]): string {
  return names.join(', ').replace(/, (?=[^,]*$)/, ' or ');
}

/** Makes the value of an option, which `named` names in errors. Throws `UsageError`. */
function valueOf(named: string, { type, choices, coerce }: Option, text: string): unknown {
  if (type === 'number') {
    const number = text.trim() === '' ? Number.NaN : Number(text);
    if (Number.isNaN(number))
      throw new UsageError(`${named} takes a number, and not ${text === '' ? 'nothing' : text}.`);
    return number;
  }
  const value = coerce === undefined ? text : coerce(text);
  if (choices !== undefined && !choices.includes(value as string)) {
    throw new UsageError(`${named} takes ${alternatives(choices)}, and not ${text}${didYouMean(text, choices) || '.'}`);
  }
  return value;
}

/** Makes the value of one occurrence of an option. Throws `UsageError`. */
function valueOfToken({ name, value, inlineValue }: OptionToken, option: Option): unknown {
  const named = `--${name}`;
  if (option.type === 'boolean') {
    if (value === undefined || value === 'true') return true;
    if (value === 'false') return false;
    throw new UsageError(`${named} takes no value, or true or false, and not ${value}.`);
  }
  if (value === undefined) throw new UsageError(`${named} needs a value.`);
  const isOption = !inlineValue && value.length > 1 && value.startsWith('-');
  if (isOption && !(option.type === 'number' && /^-[\d.]/.test(value))) {
    throw new UsageError(`${named} needs a value. Write ${named}=... for one that begins with a dash.`);
  }
  return valueOf(named, option, value);
}

/** Finds the declaration of an option, also for `--no-pager`. */
function declared(
  token: OptionToken,
  options: Options,
): { readonly name: string; readonly option: Option; readonly isNegated: boolean } | undefined {
  if (Object.hasOwn(options, token.name)) {
    return { name: token.name, option: options[token.name] as Option, isNegated: false };
  }
  const name = token.name.startsWith('no-') ? token.name.slice('no-'.length) : '';
  const option = Object.hasOwn(options, name) ? options[name] : undefined;
  return option?.type === 'boolean' && token.value === undefined ? { name, option, isNegated: true } : undefined;
}

/** Returns the error for options that the command does not have. It names the nearest ones. */
function unknownOptions(tokens: readonly OptionToken[], options: Options): UsageError {
  const known = Object.entries(options).flatMap(([name, { type }]) =>
    type === 'boolean' ? [name, `no-${name}`] : [name],
  );
  const sentences = tokens.map(({ name, rawName }) => {
    const hint = rawName.startsWith('--') ? didYouMean(name, known).replace('mean ', 'mean --') : '';
    return `There is no option ${rawName}${hint || '.'}`;
  });
  return new UsageError([...new Set(sentences)].join(' '), ['See store-db --help.']);
}

function optionValues(tokens: readonly Token[], options: Options): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  const unknown: OptionToken[] = [];
  for (const token of tokens) {
    if (token.kind !== 'option') continue;
    const found = declared(token, options);
    if (found === undefined) {
      unknown.push(token);
      continue;
    }
    const { name, option, isNegated } = found;
    const value = isNegated ? false : valueOfToken(token, option);
    if (option.array === true) values[name] = [...((values[name] as unknown[] | undefined) ?? []), value];
    else values[name] = value;
  }
  if (unknown.length > 0) throw unknownOptions(unknown, options);
  return values;
}

function positionalValues(words: readonly string[], named: NamedCommand<CommandShape>): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  const rest = [...words];
  for (const [name, positional] of Object.entries(named.command.positionals)) {
    const taken = positional.array === true ? rest.splice(0) : rest.splice(0, 1);
    if (taken.length === 0) {
      if (positional.isRequired === true) throw new UsageError(`Name the ${name}: ${usageOf(named)}`);
      continue;
    }
    const made = taken.map((text) => valueOf(name, positional, text));
    values[name] = positional.array === true ? made : made[0];
  }
  if (rest.length > 0) {
    const count = rest.length === 1 ? 'One word is' : `${rest.length} words are`;
    throw new UsageError(`${count} too many: ${usageOf(named)}`, ['A value with spaces needs quotes.']);
  }
  return values;
}

/** Returns the default of each option or positional that has one. */
function defaultsOf(options: Options): Record<string, unknown> {
  const present = Object.entries(options).filter(([, option]) => option.default !== undefined);
  return Object.fromEntries(present.map(([name, option]) => [name, option.default]));
}

/**
 * Parses a command line. `common`: the options of every command. If the line asks for help or the version, only the command is read.
 * Throws `UsageError`.
 */
export function parseLine<C extends Nested<C>>(
  words: readonly string[],
  commands: readonly C[],
  common: Options,
): Parsed<C> {
  const everywhere = { ...common, ...programOptions };
  // The command is not known yet: its options may stand before its name, and their values are no names.
  const split = tokensOf(words, { ...optionsOfAll(commands), ...everywhere });
  const named = commandOf(positionalsOf(split), commands);
  const options = { ...everywhere, ...named?.command.options };
  const tokens = tokensOf(words, options);
  const positionals = positionalsOf(tokens);
  const isAsked = (name: string): boolean => tokens.some((token) => token.kind === 'option' && token.name === name);
  if (isAsked('version')) return { wants: 'version', values: {} };
  if (named === undefined) {
    const [unknown] = positionals;
    if (unknown !== undefined) throw unknownCommand(unknown, commands);
    if (isAsked('help')) return { wants: 'help', values: {} };
    optionValues(tokens, options);
    throw new UsageError('Which command? `store-db --help` lists them.');
  }
  if (isAsked('help')) return { wants: 'help', ...named, values: {} };
  const { command, path } = named;
  const rest = positionals.slice(path.split(' ').length);
  const given = optionValues(tokens, options);
  if (command.isGroup === true) throw groupError(command, rest[0]);
  const values = {
    ...defaultsOf(options),
    ...defaultsOf(command.positionals),
    ...given,
    ...positionalValues(rest, named),
  };
  return { wants: 'run', ...named, values };
}

function unknownCommand(name: string, commands: readonly CommandShape[]): UsageError {
  // It may be anything, and hold a secret.
  if (!/^[\w-]{1,40}$/.test(name)) return new UsageError('The first word is no command.', ['See store-db --help.']);
  const hint = didYouMean(
    name,
    commands.map((command) => command.name),
  );
  return new UsageError(`There is no command ${name}${hint || '.'}`, ['See store-db --help.']);
}

function groupError({ name, subcommands = [] }: CommandShape, word: string | undefined): UsageError {
  if (word === undefined) return new UsageError(`Which command? See store-db ${name} --help.`);
  const known = subcommands.map((command) => command.name);
  return new UsageError(`store-db ${name} has no command ${word}${didYouMean(word, known) || '.'}`, [
    `See store-db ${name} --help.`,
  ]);
}
