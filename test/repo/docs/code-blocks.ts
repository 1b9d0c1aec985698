/** Takes the programs out of Markdown, and what they say they print. */

/** A program made of the TypeScript blocks of one page. */
export interface Program {
  /** Every line of code stands on the line that it has in the page, so that messages point into the page. */
  readonly source: string;
  /** What follows `// -> ` in the blocks: the lines that the program prints. */
  readonly output: readonly string[];
}

/** The blocks of a page, one after the other, as one program. */
export function programOf(markdown: string): Program {
  const output: string[] = [];
  let inBlock = false;
  const lines = markdown.split('\n').map((line) => {
    if (line.startsWith('```')) {
      inBlock = line === '```ts';
      return '';
    }
    if (!inBlock) return '';
    const printed = /\/\/ -> (.*)$/.exec(line)?.[1];
    if (printed !== undefined) output.push(printed);
    return line;
  });
  return { source: lines.join('\n'), output };
}
