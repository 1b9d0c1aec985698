/** All mutants, what finds them, and the tables of docs/testing.md that say so. */
import { readFileSync } from 'node:fs';
import { addedMutants } from './added-mutants.ts';
import { blobMutants } from './blob-mutants.ts';
import { clusterMutants } from './cluster-mutants.ts';
import { encryptionMutants } from './encryption-mutants.ts';
import { ephemeralMutants } from './ephemeral-mutants.ts';
import { expiryMutants } from './expiry-mutants.ts';
import { functionMutants } from './function-mutants.ts';
import { gcMutants } from './gc-mutants.ts';
import { healthMutants } from './health-mutants.ts';
import { journalMutants } from './journal-mutants.ts';
import { keyMutants } from './key-mutants.ts';
import { changeMutants } from './change-mutants.ts';
import { dropMutants } from './drop-mutants.ts';
import { liveMutants } from './live-mutants.ts';
import { liveServerMutants } from './live-server-mutants.ts';
import { loadMutants } from './load-mutants.ts';
import { logMutants } from './log-mutants.ts';
import { memoryMutants } from './memory-mutants.ts';
import { migrationMutants } from './migration-mutants.ts';
import type { Mutant } from './mutant.ts';
import { planMutants } from './plan-mutants.ts';
import { publishMutants } from './publish-mutants.ts';
import { studioMutants } from './studio-mutants.ts';
import { snapshotMutants } from './snapshot-mutants.ts';
import { transactionMutants } from './transaction-mutants.ts';
import { validationMutants } from './validation-mutants.ts';
import { indexMutants } from './index-mutants.ts';
import { searchMutants } from './search-mutants.ts';
import { uniqueMutants } from './unique-mutants.ts';

export interface Finding {
  /** A seed that found it: the first from 1 on, when the seeds were last gone through. */
  readonly seed: number;
  /** The invariant that failed. */
  readonly as: string;
}

export type Findings = Readonly<Record<string, Finding>>;

export const findingsFile = new URL('findings.json', import.meta.url);

/** By the names of the mutants. */
export function readFindings(): Findings {
  return JSON.parse(readFileSync(findingsFile, 'utf8')) as Findings;
}

/** In the order of docs/testing.md. */
export const mutantTables: Readonly<Record<string, readonly Mutant[]>> = {
  log: [
    ...logMutants,
    ...clusterMutants,
    ...transactionMutants,
    ...uniqueMutants,
    ...indexMutants,
    ...searchMutants,
    ...planMutants,
    ...functionMutants,
    ...addedMutants,
    ...memoryMutants,
    ...keyMutants,
    ...ephemeralMutants,
    ...loadMutants,
    ...healthMutants,
    ...changeMutants,
    ...dropMutants,
    ...validationMutants,
    ...liveMutants,
    ...liveServerMutants,
    ...expiryMutants,
  ],
  objects: [
    ...gcMutants,
    ...snapshotMutants,
    ...blobMutants,
    ...encryptionMutants,
    ...journalMutants,
    ...publishMutants,
    ...studioMutants,
  ],
  migrations: migrationMutants,
};

export const mutants: readonly Mutant[] = Object.values(mutantTables).flat();

/** A table of docs/testing.md. */
export function tableOf(list: readonly Mutant[], findings: Findings): string {
  const rows = list.map(({ name, tests }) => {
    const finding = findings[name];
    if (tests !== undefined) return `| ${name} | | ${tests.map((test) => `\`${test}\``).join(', ')} |`;
    return `| ${name} | ${finding?.seed ?? '?'} | ${finding?.as ?? '?'} |`;
  });
  return ['| mistake | seed | found as |', '|---|---|---|', ...rows].join('\n');
}
