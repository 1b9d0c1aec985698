/** The participants of one run of the model of opening, and the rules that can be broken in it. */
export interface OpeningScope {
  readonly nodes: number;
  /** Requests to create Block 0 that are still on their way when their sender is told that they failed. */
  readonly delays?: number;
  readonly crashes?: number;
  /** Whether something else than a database lies under the prefix. */
  readonly stray?: boolean;
}

export const openingMutants = {
  'no-second-look': 'a node that finds objects refuses without looking for Block 0 again',
  'second-look-only': 'the objects that the listing shows are ignored',
  'probes-count': 'probes of other nodes count as somebody’s objects',
  'created-blindly': 'Block 0 is created without a condition',
  'loser-keeps-own': 'the loser of the race goes on with the database that it meant to create',
  'unknown-means-created': 'a lost answer to the creation counts as a success',
} as const;

export type OpeningMutant = keyof typeof openingMutants;
