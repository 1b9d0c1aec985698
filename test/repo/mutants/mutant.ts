/** Mistakes that are put into a copy of the engine, to see that the tests would notice. */

export interface MutantEdit {
  /** From the repository's root. */
  readonly file: string;
  /** Text that is there exactly once. */
  readonly find: string;
  readonly replace: string;
}

export interface Mutant {
  /** What is wrong, in a few words; begins with the part of the engine, except where it is the log. */
  readonly name: string;
  readonly edits: readonly MutantEdit[];
  /** Test files that must fail, of a mutant that the simulator does not find. */
  readonly tests?: readonly string[];
}

/** What a mutant does to the text of one file. Throws if it does not fit. */
export function mutate(mutant: Mutant, file: string, text: string): string {
  let mutated = text;
  for (const edit of mutant.edits) {
    if (edit.file !== file) continue;
    const places = mutated.split(edit.find).length - 1;
    if (places !== 1) throw new Error(`Mutant '${mutant.name}': ${file} has ${places} of\n${edit.find}`);
    // Not as a pattern: the text may hold dollars.
    mutated = mutated.replace(edit.find, () => edit.replace);
  }
  return mutated;
}

export function filesOf({ edits }: Mutant): string[] {
  return [...new Set(edits.map(({ file }) => file))];
}
