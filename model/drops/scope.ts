/** The participants of one run of the model of dropped tables, and the rules that can be broken in it. */
export interface DropScope {
  readonly nodes: number;
  readonly slots: number;
}

export const dropMutants = {
  'not-checked-after-loss': 'a flush that lost its slot goes to the next one without a look for drops',
  'drops-not-listed': 'Block 0 does not list the drops that it has applied',
  'forgotten-not-noticed': 'a node does not ask whether a drop may have been forgotten',
  'back-without-drop': 'a table that comes back once its drop is forgotten counts as one that was never dropped',
  'registered-at-newest': 'a registration counts from the end of the log, and not from the state that its node shows',
} as const;

export type DropMutant = keyof typeof dropMutants;
