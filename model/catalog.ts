/** All models, the scopes in which they are run, and their broken variants. */
import { BlobModel } from './blobs/blob-model.ts';
import type { BlobMutant, BlobScope } from './blobs/scope.ts';
import { blobMutants } from './blobs/scope.ts';
import type { Model } from './checker/model.ts';
import { DropModel } from './drops/drop-model.ts';
import type { DropMutant, DropScope } from './drops/scope.ts';
import { dropMutants } from './drops/scope.ts';
import { GcModel } from './gc/gc-model.ts';
import type { GcMutant, GcScope } from './gc/scope.ts';
import { gcMutants } from './gc/scope.ts';
import { LogModel } from './log/log-model.ts';
import type { LogMutant, LogScope } from './log/scope.ts';
import { logMutants } from './log/scope.ts';
import { largeLogScopes, logMutantScopes, logScopes } from './log/scopes.ts';
import { OpeningModel } from './opening/opening-model.ts';
import type { OpeningMutant, OpeningScope } from './opening/scope.ts';
import { openingMutants } from './opening/scope.ts';

export interface CatalogEntry {
  readonly name: string;
  /** Scopes that the tests exhaust. */
  readonly scopes: readonly string[];
  /** Scopes for longer runs. */
  readonly largeScopes: readonly string[];
  /** The mistake of each broken variant, by its name. */
  readonly mutants: Readonly<Record<string, string>>;
  /** The scope in which a broken variant is found soon. */
  readonly scopeOf: (mutant: string) => string;
  readonly make: (scope: string, mutant?: string) => Model;
}

const gcScopes = {
  snapshots: { generations: 3, attempts: 1, merges: 1, pins: 1, runs: 1 },
  merges: { generations: 2, attempts: 2, merges: 2, pins: 1, runs: 1 },
  runs: { generations: 2, attempts: 2, merges: 2, pins: 0, runs: 2 },
  history: { generations: 3, attempts: 1, merges: 1, pins: 1, runs: 1, history: true },
  waits: { generations: 3, attempts: 1, merges: 1, pins: 1, runs: 1, waits: true },
  ahead: { generations: 3, attempts: 1, merges: 2, pins: 1, runs: 1, ahead: 2, waits: true },
} satisfies Record<string, GcScope>;

const largeGcScopes = {
  'three-generations': { generations: 3, attempts: 2, merges: 2, pins: 1, runs: 1 },
  'two-snapshots': { generations: 2, attempts: 2, merges: 1, pins: 2, runs: 2 },
  large: { generations: 3, attempts: 2, merges: 1, pins: 1, runs: 1, history: true },
  'written-ahead': { generations: 3, attempts: 2, merges: 2, pins: 0, runs: 1, ahead: 2, waits: true },
} satisfies Record<string, GcScope>;

const gcMutantScopes: Partial<Record<GcMutant, keyof typeof gcScopes>> = {
  'no-birth-rule': 'merges',
  'births-one-later': 'merges',
  'blocks-carried-over': 'merges',
  'deterministic-names': 'merges',
  'replaced-blocks-again': 'ahead',
  'only-present-kept': 'waits',
  'history-ignored': 'history',
  'history-floor-not-written': 'history',
  'history-not-stored': 'history',
};

const blobScopes = {
  late: { flushes: 1, names: 2, slots: 6, runs: 1, delays: 1 },
  flushes: { flushes: 2, names: 2, slots: 4, runs: 1 },
  runs: { flushes: 1, names: 2, slots: 5, runs: 2 },
  snapshot: { flushes: 1, names: 1, slots: 5, runs: 1, snapshot: true },
} satisfies Record<string, BlobScope>;

const largeBlobScopes = {
  large: { flushes: 2, names: 3, slots: 5, runs: 1, delays: 1 },
} satisfies Record<string, BlobScope>;

const openingScopes = {
  race: { nodes: 2, delays: 1, crashes: 1 },
  three: { nodes: 3 },
  stray: { nodes: 2, delays: 1, stray: true },
} satisfies Record<string, OpeningScope>;

const largeOpeningScopes = {
  large: { nodes: 3, delays: 2, crashes: 1 },
} satisfies Record<string, OpeningScope>;

const dropScopes = {
  two: { nodes: 2, slots: 5 },
  three: { nodes: 3, slots: 4 },
} satisfies Record<string, DropScope>;

/** Everything about one model, from its own files. */
function entry<Scope, Mutant extends string>(
  name: string,
  scopes: Readonly<Record<string, Scope>>,
  largeScopes: Readonly<Record<string, Scope>>,
  mutants: Readonly<Record<Mutant, string>>,
  scopeOf: (mutant: Mutant) => string,
  make: (scope: Scope, mutant: Mutant | undefined) => Model,
): CatalogEntry {
  return {
    name,
    scopes: Object.keys(scopes),
    largeScopes: Object.keys(largeScopes),
    mutants,
    scopeOf: (mutant) => scopeOf(mutant as Mutant),
    make: (scopeName, mutant) => {
      const scope = scopes[scopeName] ?? largeScopes[scopeName];
      if (scope === undefined) throw new RangeError(`The model "${name}" has no scope "${scopeName}"`);
      if (mutant !== undefined && !(mutant in mutants)) {
        throw new RangeError(`The model "${name}" has no mutant "${mutant}"`);
      }
      return make(scope, mutant as Mutant | undefined);
    },
  };
}

export const catalog: readonly CatalogEntry[] = [
  entry<LogScope, LogMutant>(
    'log',
    logScopes,
    largeLogScopes,
    logMutants,
    (mutant) => logMutantScopes[mutant],
    (scope, mutant) => new LogModel(scope, mutant),
  ),
  entry<GcScope, GcMutant>(
    'gc',
    gcScopes,
    largeGcScopes,
    gcMutants,
    (mutant) => gcMutantScopes[mutant] ?? 'snapshots',
    (scope, mutant) => new GcModel(scope, mutant),
  ),
  entry<BlobScope, BlobMutant>(
    'blobs',
    blobScopes,
    largeBlobScopes,
    blobMutants,
    (mutant) => (mutant === 'snapshots-ignored' ? 'snapshot' : 'late'),
    (scope, mutant) => new BlobModel(scope, mutant),
  ),
  entry<OpeningScope, OpeningMutant>(
    'opening',
    openingScopes,
    largeOpeningScopes,
    openingMutants,
    (mutant) => (mutant === 'second-look-only' ? 'stray' : 'race'),
    (scope, mutant) => new OpeningModel(scope, mutant),
  ),
  entry<DropScope, DropMutant>(
    'drops',
    dropScopes,
    {},
    dropMutants,
    () => 'two',
    (scope, mutant) => new DropModel(scope, mutant),
  ),
];
