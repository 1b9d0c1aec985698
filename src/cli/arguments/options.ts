/**
 * The declarations of options and positionals. The parser, the help and the completion read them, and {@link ArgumentsOf} makes
 * the types of the parsed values from them.
 */

/** An option or a positional. */
export interface Option {
  /** The type of the value. Default: string. */
  readonly type?: 'string' | 'number' | 'boolean';
  /** The values that are allowed, all of type string. Default: any value. */
  readonly choices?: readonly string[];
  /** Whether it takes several values: an option each time it is given, the last positional all words that are left. */
  readonly array?: boolean;
  /** The one letter that stands for the option. */
  readonly alias?: string;
  /** Whether an option may stand without a value, which is the empty text then. Default: no. */
  readonly mayBeBare?: boolean;
  /** The value if none is given. Default: undefined. */
  readonly default?: string | number | boolean;
  /** Whether a positional must be given. Default: no. */
  readonly isRequired?: boolean;
  /** Makes the value from the text, before it is compared with the choices. */
  readonly coerce?: (text: string) => unknown;
  readonly describe: string;
}

/** Options or positionals by name. */
export type Options = Readonly<Record<string, Option>>;

type Single<O extends Option> = O extends { readonly coerce: (text: string) => infer T }
  ? T
  : O extends { readonly choices: readonly (infer T)[] }
    ? T
    : O extends { readonly type: 'number' }
      ? number
      : O extends { readonly type: 'boolean' }
        ? boolean
        : string;

type Value<O extends Option> = O extends { readonly array: true } ? Single<O>[] : Single<O>;

type Given<O extends Option> = O extends { readonly isRequired: true } | { readonly default: string | number | boolean }
  ? Value<O>
  : Value<O> | undefined;

/** The parsed values of options or positionals. */
export type ArgumentsOf<T extends Options> = { readonly [N in keyof T]: Given<T[N]> };

/** A command as the parser, the help and the completion see it. */
export interface CommandShape {
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** In their order; the optional ones come last. */
  readonly positionals: Options;
  readonly options: Options;
  readonly examples?: readonly (readonly [command: string, what: string])[];
  /** Commands whose names follow the name of this one. */
  readonly subcommands?: readonly CommandShape[];
  /** Whether the command only groups its subcommands, and cannot run without the name of one. Default: no. */
  readonly isGroup?: boolean;
}

/** The options that the program itself handles, for every command. */
export const programOptions: Readonly<Record<'version' | 'help', Option>> = {
  version: { type: 'boolean', describe: 'Show version number' },
  help: { type: 'boolean', alias: 'h', describe: 'Show help' },
};

/** A command whose subcommands are of its own type. */
export type Nested<C> = CommandShape & { readonly subcommands?: readonly C[] };

/** A command with the names of the commands that it belongs to: `snapshots release`. */
export interface NamedCommand<C extends CommandShape> {
  readonly path: string;
  readonly command: C;
}

/**
 * Returns the command that the words without a dash begin with, and undefined if the first word is no command. A subcommand wins over
 * a positional.
 */
export function commandOf<C extends Nested<C>>(
  words: readonly string[],
  commands: readonly C[],
): NamedCommand<C> | undefined {
  const [first, ...rest] = words;
  const command = commands.find(({ name }) => name === first);
  if (command === undefined) return undefined;
  const behind = commandOf(rest, command.subcommands ?? []);
  return behind === undefined
    ? { path: command.name, command }
    : { path: `${command.name} ${behind.path}`, command: behind.command };
}

/** Returns the usage of a command: `store-db import [database] [into] [files..]`. */
export function usageOf({ path, command }: NamedCommand<CommandShape>): string {
  const words = Object.entries(command.positionals).map(([name, { isRequired, array }]) => {
    const text = array === true ? `${name}..` : name;
    return isRequired === true ? `<${text}>` : `[${text}]`;
  });
  return ['store-db', path, ...words].join(' ');
}
