/** Writes lines of CSV and TSV. */

function quoted(text: string | null, delimiter: string): string {
  if (text === null) return '';
  const isQuoted = text === '' || text.includes(delimiter) || /["\r\n]|^\s|\s$/.test(text);
  return isQuoted ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Returns the line of a row, with its end. Null is an empty cell, and an empty text one with quotes. */
export function cellLine(cells: readonly (string | null)[], delimiter: string): string {
  // An import would skip an empty line.
  const [only] = cells;
  if (cells.length === 1 && only === null) return '""\n';
  return `${cells.map((text) => quoted(text, delimiter)).join(delimiter)}\n`;
}
