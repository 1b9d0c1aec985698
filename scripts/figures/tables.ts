/** Tables of figures, as Markdown. */

export interface FigureTable {
  readonly name: string;
  readonly title: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** As Markdown, with columns that line up; all but those that hold words are aligned to the right. */
export function markdownOf({ head, rows }: FigureTable): string {
  const isText = head.map((_, i) => rows.some((row) => /[a-z]{3}/i.test(row[i] ?? '')));
  const widths = head.map((title, i) => Math.max(3, title.length, ...rows.map((row) => (row[i] ?? '').length)));
  const line = (cells: readonly string[]): string => {
    const padded = cells.map((cell, i) => {
      const cellWidth = widths[i] ?? 0;
      return isText[i] === true ? cell.padEnd(cellWidth) : cell.padStart(cellWidth);
    });
    return `| ${padded.join(' | ')} |`;
  };
  const rule = widths.map((cellWidth, i) =>
    isText[i] === true ? '-'.repeat(cellWidth) : `${'-'.repeat(cellWidth - 1)}:`,
  );
  return [line(head), `| ${rule.join(' | ')} |`, ...rows.map(line)].join('\n');
}
