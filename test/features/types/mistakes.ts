/** Mistakes that the compiler must tell, one a line, each with what it must say. */
import { expect, it } from 'vitest';
import { errorsOf } from './compiler.ts';

/** A mistake by its name: the line of code, and a part of what the compiler says about it. */
export type Mistake = readonly [name: string, code: string, says: string];

/** Tests that the compiler refuses each line after a program, by an error that says what is wrong, and no right line. */
export function refusesEach(program: string, mistakes: readonly Mistake[], right: readonly string[]): void {
  const first = program.split('\n').length + 1;
  const lines = [...mistakes.map(([, code]) => code), ...right];
  const all = lines.map((line, i) => `export const line${i} = async () => ${line};`);
  let errors: ReturnType<typeof errorsOf> | undefined;
  const errorsAt = async (i: number): Promise<readonly string[]> => {
    errors ??= errorsOf([program, ...all].join('\n'));
    return (await errors).get(first + i) ?? [];
  };
  it.each(mistakes.map(([name, , says], i) => ({ name, says, i })))(
    'refuses $name',
    async ({ says, i }) => {
      const [error, ...more] = await errorsAt(i);
      expect(error ?? 'it compiles').toContain(says);
      expect(more).toEqual([]);
    },
    120_000,
  );
  it('refuses nothing that is right', async () => {
    for (const [i, line] of right.entries()) expect([line, await errorsAt(mistakes.length + i)]).toEqual([line, []]);
    const said = [...(await (errors as ReturnType<typeof errorsOf>)).keys()];
    expect(said.filter((line) => line < first)).toEqual([]);
  }, 120_000);
}
