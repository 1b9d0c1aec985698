/** The generated parts of a page: each stands between a comment that names it and the next comment that ends it. */

function placeOf(page: string, name: string): readonly [from: number, to: number] {
  const begin = `<!-- table ${name} -->\n`;
  const from = page.indexOf(begin) + begin.length;
  const to = page.indexOf('<!-- end -->', from);
  if (from < begin.length || to < 0) throw new Error(`The page has no place for the table ${name}.`);
  return [from, to];
}

/** Returns a part of a page. Throws where the page has no place for it. */
export function partOf(page: string, name: string): string {
  return page.slice(...placeOf(page, name)).trim();
}

/** Returns a page with other content in one of its parts. Throws where the page has no place for it. */
export function withPart(page: string, name: string, content: string): string {
  const [from, to] = placeOf(page, name);
  return `${page.slice(0, from)}\n${content}\n\n${page.slice(to)}`;
}
