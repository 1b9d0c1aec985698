import { describe, expect, it } from 'vitest';
import { configOf } from './config.ts';
import type { SimConfig } from './config.ts';
import { conditionsOf, overridesOf, parseOverrides, replayOf, textOfConfig } from './config-text.ts';
import type { Violation } from './judge.ts';
import { shrink } from './shrinking.ts';
import { simulate } from './simulation.ts';

const violation: Violation = { invariant: 'I1 durability', message: '' };
const seed = 7;
const large: SimConfig = {
  ...configOf(seed, {
    nodeIds: [0, 1, 2, 3],
    actions: 30,
    crashEveryMs: 2000,
    faults: { latencyMs: [0.5, 200], lostAnswer: 0.1, lateEffect: 0.1, slow: 0.5, slowMs: [500, 3000] },
  }),
};
const config: SimConfig = { ...large, habits: large.nodeIds.map(() => ({ polling: 'adaptive', mergePolicy: {} })) };

function shrunk(run: (config: SimConfig) => Violation | undefined, most = 1000): Promise<SimConfig> {
  let runs = 0;
  const mayGoOn = (): boolean => runs < most;
  const counted = async (tried: SimConfig): Promise<Violation | undefined> => {
    runs++;
    return run(tried);
  };
  return shrink({ config, violation }, { run: counted, mayGoOn }).then((smallest) => smallest.config);
}

describe('shrinking', () => {
  it('keeps everything that the failure needs', async () => {
    const smallest = await shrunk(({ nodeIds, actions, faults }) =>
      nodeIds.includes(2) && actions >= 5 && faults.lostAnswer !== undefined ? violation : undefined,
    );
    expect(smallest).toMatchObject({
      nodeIds: [2],
      actions: 5,
      habits: [{ polling: 'interval' }],
      crashEveryMs: Number.POSITIVE_INFINITY,
    });
    expect(Object.keys(smallest.faults)).toEqual(expect.arrayContaining(['latencyMs', 'lostAnswer']));
    expect(smallest.faults).not.toHaveProperty('lateEffect');
  });

  it('does not take another failure for the same', async () => {
    const other = { invariant: 'I2 atomicity', message: '' };
    expect(await shrunk(({ nodeIds }) => (nodeIds.length < 4 ? other : violation))).toMatchObject({
      nodeIds: config.nodeIds,
      actions: 1,
    });
  });

  it('ends when nobody waits any longer', async () => {
    expect((await shrunk(() => violation, 2)).actions).toBeGreaterThan(1);
  });
});

describe('a configuration on the command line', () => {
  it('is unchanged', () => {
    const set = { trimEveryMs: Number.POSITIVE_INFINITY, actions: 3, faults: { lostAnswer: 0.5 } };
    expect(parseOverrides(textOfConfig(set))).toEqual(set);
    expect(overridesOf(seed, configOf(seed, set))).toEqual(set);
    expect(replayOf(seed, configOf(seed, { actions: 3 }))).toContain(`--seed ${seed} --config '{"actions":3}'`);
    expect(replayOf(seed, configOf(seed))).not.toContain('--config');
  });

  it('cannot contain unknown settings', () => {
    expect(() => parseOverrides('{"actoins":3}')).toThrow('There is no actoins');
  });

  it('describes the faults of the run', () => {
    const hard = { nodeIds: [1, 1], crashChance: 0.1, pauseChance: 0.1, wrongClocks: true, faults: { damaged: 0.1 } };
    expect(conditionsOf(configOf(seed, hard))).toEqual([
      'I11 crash safety: processes die',
      'I12 clock freedom: wrong clocks, pauses, two nodes of one id',
      'I14 fail closed: damaged bytes',
    ]);
    const easy = { nodeIds: [1], crashChance: 0, crashEveryMs: Number.POSITIVE_INFINITY, pauseChance: 0, faults: {} };
    expect(conditionsOf(configOf(seed, { ...easy, wrongClocks: false }))).toEqual([]);
  });

  it('sets the simulation', async () => {
    const set = parseOverrides('{"nodeIds":[5],"actions":2}');
    const result = await simulate(seed, { config: set });
    expect(result).toMatchObject({ violation: undefined, config: set });
    expect(await simulate(seed, { config: set })).toMatchObject({ hash: result.hash });
    expect(await simulate(seed, { config: { ...set, actions: 3 } })).not.toMatchObject({ hash: result.hash });
  });
});
