import { describe, expect, expectTypeOf, it } from 'vitest';
import { completionLines, completionsOf } from './completions.ts';
import { commandHelp, programHelp } from './help.ts';
import type { ArgumentsOf, CommandShape, Options } from './options.ts';
import { parseLine } from './parse.ts';

const common: Options = {
  json: { type: 'boolean', default: false, describe: 'JSON' },
  keys: { type: 'string', mayBeBare: true, describe: 'Keys' },
};
const release: CommandShape = {
  name: 'release',
  summary: 'Release one',
  positionals: { database: { isRequired: true, describe: 'URL' }, id: { isRequired: true, describe: 'Id' } },
  options: { yes: { type: 'boolean', alias: 'y', default: false, describe: 'Do not ask' } },
};
const commands: readonly CommandShape[] = [
  {
    name: 'list',
    summary: 'List '.repeat(40).trim(),
    positionals: { database: { isRequired: true, describe: 'URL' }, files: { array: true, describe: 'Files' } },
    options: {
      limit: { type: 'number', default: 20, describe: 'Rows' },
      where: { type: 'string', array: true, describe: 'Conditions' },
      pager: { type: 'boolean', default: true, describe: 'Page' },
      order: { choices: ['asc', 'desc'], coerce: (text) => text.toLowerCase(), describe: 'Order' },
    },
    subcommands: [release],
  },
];

const valuesOf = (line: string): Readonly<Record<string, unknown>> =>
  parseLine(line.split(' '), commands, common).values;

describe('a command line', () => {
  it('has the defaults, and the values that are given', () => {
    expect(valuesOf('list db')).toEqual({ json: false, limit: 20, pager: true, database: 'db' });
    expect(valuesOf('list db a b --limit=3 --where x --where=-y --no-pager --order DESC')).toEqual({
      json: false,
      limit: 3,
      where: ['x', '-y'],
      pager: false,
      order: 'desc',
      database: 'db',
      files: ['a', 'b'],
    });
  });

  it.each([
    ['--limit 3 list db --limit 4', { limit: 4 }],
    ['list db --limit -5', { limit: -5 }],
    ['list db --json --no-json', { json: false }],
    ['list db --json=false', { json: false }],
    ['list db --keys --json', { keys: '', json: true }],
    ['list db --keys', { keys: '' }],
    ['list db --keys file', { keys: 'file' }],
    ['list db -- --limit -', { limit: 20, files: ['--limit', '-'] }],
  ])('%s', (line, values) => {
    expect(valuesOf(line)).toMatchObject(values);
  });

  it('names a subcommand before positionals', () => {
    const { path, values } = parseLine(['list', '-y', 'release', 'db', '7'], commands, common);
    expect({ path, values }).toMatchObject({ path: 'list release', values: { database: 'db', id: '7', yes: true } });
  });

  it('asks for help and the version at any place, even if it is wrong otherwise', () => {
    expect(parseLine(['list', '--wrong', '-h'], commands, common)).toMatchObject({ wants: 'help', path: 'list' });
    expect(parseLine(['wrong', '--version'], commands, common)).toMatchObject({ wants: 'version' });
    expect(parseLine(['--help'], commands, common)).toEqual({ wants: 'help', values: {} });
  });

  it('has values of the declared types', () => {
    const declared = {
      limit: { type: 'number', default: 20, describe: '' },
      order: { choices: ['asc', 'desc'], describe: '' },
      where: { type: 'string', array: true, describe: '' },
      database: { type: 'string', isRequired: true, describe: '' },
    } as const;
    expectTypeOf<ArgumentsOf<typeof declared>>().branded.toEqualTypeOf<{
      readonly limit: number;
      readonly order: 'asc' | 'desc' | undefined;
      readonly where: string[] | undefined;
      readonly database: string;
    }>();
  });
});

describe('help', () => {
  it.each([40, 60, 100])('fits into %i columns', (width) => {
    const [list] = commands as [CommandShape];
    for (const text of [
      programHelp(commands, common, width),
      commandHelp({ path: 'list', command: list }, common, width),
    ]) {
      expect(text.split('\n').filter((line) => line.length > width)).toEqual([]);
    }
  });
});

describe('completion', () => {
  it.each([
    [[], '', ['list']],
    [['list'], '', ['release']],
    [['list', '--order'], 'd', ['desc']],
    [['list', '--limit'], '', []],
    [['list', 'release'], '-', ['--json', '--keys', '--version', '--help', '-h', '--yes', '-y']],
    [['list'], '--no', ['--no-pager']],
    [['other'], '', []],
  ])('of %j and %j', (words, begun, found) => {
    expect(completionsOf(words, begun, commands, common).map(({ word }) => word)).toEqual(found);
  });

  it('has descriptions for zsh', () => {
    const found = [{ word: 'a:b', describe: 'Text: with a colon' }];
    expect(completionLines(found, 'zsh')).toEqual(['a\\:b:Text: with a colon']);
    expect(completionLines(found, 'bash')).toEqual(['a:b']);
  });
});
