/** Configurations of the simulator on the command line, as JSON: null stands for "never", which JSON cannot say. */
import { configOf } from './config.ts';
import type { SimConfig, SimOverrides } from './config.ts';

export function textOfConfig(config: SimOverrides): string {
  return JSON.stringify(config);
}

/** Times between two events: infinite if there are none. */
export function parseOverrides(text: string): SimOverrides {
  const parsed = JSON.parse(text) as Record<string, unknown>;
  for (const name of Object.keys(parsed)) if (parsed[name] === null) parsed[name] = Number.POSITIVE_INFINITY;
  const known = Object.keys(configOf(1));
  const unknown = Object.keys(parsed).filter((name) => !known.includes(name));
  if (unknown.length > 0) throw new Error(`There is no ${unknown.join(', ')}; there are ${known.join(', ')}`);
  return parsed;
}

/** What of a configuration the seed alone would not give. */
export function overridesOf(seed: number, config: SimConfig): SimOverrides {
  const own = configOf(seed);
  const differs = ([name, value]: [string, unknown]): boolean =>
    JSON.stringify(value) !== JSON.stringify(own[name as keyof SimConfig]);
  return Object.fromEntries(Object.entries(config).filter(differs));
}

/** What a run had to put up with: the promises that say that everything else holds all the same. */
export function conditionsOf(config: SimConfig): string[] {
  const { nodeIds, habits, faults } = config;
  const dies = config.crashChance > 0 || Number.isFinite(config.crashEveryMs);
  const clock = [
    ...(config.wrongClocks ? ['wrong clocks'] : []),
    ...(config.pauseChance > 0 ? ['pauses'] : []),
    ...(new Set(nodeIds).size < nodeIds.length ? ['two nodes of one id'] : []),
    ...(habits.some(({ draws }) => draws !== undefined) ? ['a clone'] : []),
  ];
  return [
    ...(dies ? ['I11 crash safety: processes die'] : []),
    ...(clock.length > 0 ? [`I12 clock freedom: ${clock.join(', ')}`] : []),
    ...(config.migrationChance > 0 ? ['I13 migration: versions side by side'] : []),
    ...(config.pageChance > 0 ? ['I10 index entries: a primary key of several fields'] : []),
    ...(config.indexChance > 0 ? ['I10 index entries: indexes that are added and dropped'] : []),
    ...(config.functions ? ['I10 index entries: an index on a function that some nodes have'] : []),
    ...((faults.damaged ?? 0) > 0 ? ['I14 fail closed: damaged bytes'] : []),
  ];
}

/** The command that runs a seed with a configuration. */
export function replayOf(seed: number, config: SimConfig): string {
  const overrides = overridesOf(seed, config);
  const set = Object.keys(overrides).length === 0 ? '' : ` --config '${textOfConfig(overrides)}'`;
  return `npm run sim -- --seed ${seed}${set} --trace`;
}
