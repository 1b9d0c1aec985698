/** The tables of mutants in docs/testing.md, each between two comments that name it. */

function markersOf(name: string): readonly [begin: string, end: string] {
  return [`<!-- mutants: ${name} -->\n`, `\n<!-- end of ${name} -->`];
}

function placeOf(page: string, name: string): readonly [from: number, to: number] {
  const [begin, end] = markersOf(name);
  const from = page.indexOf(begin) + begin.length;
  const to = page.indexOf(end);
  if (from < begin.length || to < from) throw new Error(`docs/testing.md has no place for table ${name}`);
  return [from, to];
}

export function tableIn(page: string, name: string): string {
  return page.slice(...placeOf(page, name));
}

export function withTable(page: string, name: string, table: string): string {
  const [from, to] = placeOf(page, name);
  return page.slice(0, from) + table + page.slice(to);
}
