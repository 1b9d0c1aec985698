import vm from 'node:vm';
import { describe, expect, it } from 'vitest';
import { InvalidOptionError } from './errors.ts';
import { isNotKnown, kinds, OptionTable, didYouMean, nearestName, defined } from './options.ts';

interface Inner {
  readonly minCommits?: number;
}

interface Outer {
  readonly size: number;
  readonly dryRun?: boolean;
  readonly log?: 'stop' | 'skip';
  readonly policy?: Inner;
  readonly signal?: AbortSignal;
}

const inner = new OptionTable<Inner>({ minCommits: kinds.whole(1, 2000) });
const outer = new OptionTable<Outer>({
  size: kinds.required(kinds.whole(1)),
  dryRun: kinds.flag,
  log: kinds.choice('stop', 'skip'),
  policy: kinds.options(inner),
  signal: kinds.signal,
});

function refusal(given: unknown): InvalidOptionError {
  try {
    outer.check('db.work()', given as Outer);
  } catch (error) {
    if (error instanceof InvalidOptionError) return error;
    throw error;
  }
  throw new Error('Nothing was refused.');
}

describe('options', () => {
  it.each([
    [{ size: 1, dryrun: true }, 'dryrun', 'Option `dryrun` of db.work() is not known; did you mean `dryRun`?'],
    [
      { size: 1, colour: 1 },
      'colour',
      'Option `colour` of db.work() is not known. The options there are size, dryRun,',
    ],
    [{ size: 1, sigal: undefined }, 'sigal', 'did you mean `signal`?'],
    [{ size: 1, constructor: 1 }, 'constructor', 'Option `constructor` of db.work() is not known.'],
    [
      { size: 1, policy: { minCommit: 3 } },
      'policy.minCommit',
      'Option `policy.minCommit` of db.work() is not known; did you mean `minCommits`?',
    ],
    [
      { size: 1, policy: { minCommits: 0 } },
      'policy.minCommits',
      'Option `policy.minCommits` of db.work() is 0; it must be an integer from 1 to 2000.',
    ],
    [
      { size: 1, policy: [] },
      'policy',
      'Option `policy` of db.work() is an array; it must be an object with minCommits.',
    ],
    [{}, 'size', 'Option `size` of db.work() is undefined; it must be an integer >= 1.'],
    [{ size: '1' }, 'size', "Option `size` of db.work() is '1'; it must be an integer >= 1."],
    [{ size: 1.5 }, 'size', 'is 1.5;'],
    [{ size: Number.NaN }, 'size', 'is NaN;'],
    [{ size: 1, dryRun: 'yes' }, 'dryRun', "Option `dryRun` of db.work() is 'yes'; it must be true or false."],
    [{ size: 1, log: 'go' }, 'log', "Option `log` of db.work() is 'go'; it must be 'stop' or 'skip'."],
    [
      { size: 1, signal: new AbortController() },
      'signal',
      'is an AbortController, whose `signal` was meant; it must be an AbortSignal',
    ],
    [
      null,
      'options',
      'The options of db.work() are null; they must be { size, dryRun, log, policy, signal }, or some of them.',
    ],
    [[], 'options', 'The options of db.work() are an array;'],
    ['fast', 'options', "The options of db.work() are 'fast';"],
  ])('%j are refused', (given, option, message) => {
    const error = refusal(given);
    expect(error).toMatchObject({ code: 'INVALID_OPTION', option });
    expect(error.message).toContain(message);
  });

  it('are not a signal: its names would be passed over', () => {
    const signals = new OptionTable<{ readonly signal?: AbortSignal }>({ signal: kinds.signal });
    const { signal } = new AbortController();
    expect(() => signals.check('db.work()', signal as never)).toThrow('are an AbortSignal; they must be { signal }');
  });

  it('are returned as they are', () => {
    const { signal } = new AbortController();
    const given: Outer = { size: 3, dryRun: false, log: 'skip', policy: {}, signal };
    expect(outer.check('db.work()', given)).toBe(given);
  });

  it('include inherited properties', () => {
    const given = Object.create({ size: 3 }) as Outer;
    expect(outer.check('db.work()', given).size).toBe(3);
    expect(refusal(Object.create({ size: 'three' })).option).toBe('size');
  });

  it('of another realm are taken, and get a signal of this one', () => {
    const foreign = vm.runInNewContext('({ size: 3 })') as Outer;
    expect(outer.check('db.work()', foreign)).toBe(foreign);
  });
});

it('an unknown name is reported with a similar known one', () => {
  expect(isNotKnown('indexs', ['name', 'indexes'])).toBe('is not known; did you mean `indexes`?');
  expect(isNotKnown('colour', ['name', 'indexes'])).toBe('is not known.');
});

describe('the nearest known name', () => {
  const known = ['name', 'version', 'fields', 'primaryKey', 'indexes', 'migrate'];
  it.each([
    ['indexs', 'indexes'],
    ['index', 'indexes'],
    ['primarykey', 'primaryKey'],
    ['PRIMARYKEY', 'primaryKey'],
    ['primayrKey', 'primaryKey'],
    ['feilds', 'fields'],
    ['nam', 'name'],
    ['naem', 'name'],
    ['colour', undefined],
    ['', undefined],
    ['x', undefined],
    ['n'.repeat(100_000), undefined],
  ])('to %s is %s', (written, meant) => {
    expect(nearestName(written, known)).toBe(meant);
  });

  it('is given where there is one', () => {
    expect(didYouMean('indexs', known)).toBe(': did you mean indexes?');
    expect(didYouMean('colour', known)).toBe('');
  });
});

it('leaves out undefined values, and nothing else', () => {
  const after: string | undefined = undefined;
  const options: { after?: string; limit: number; name?: string | null } = defined({ after, limit: 0, name: null });
  expect(Object.entries(options)).toEqual([
    ['limit', 0],
    ['name', null],
  ]);
});
