/** The reference as a whole: which items there are, and in which order they come. */
import { compareStrings } from '../../src/base/bytes.ts';
import { Writer } from './markdown.ts';
import { Model } from './model.ts';
import type { Entry, Item } from './model.ts';
import { Sources } from './source.ts';

const entries: readonly (Entry & { readonly about: string })[] = [
  {
    specifier: 'store-db',
    path: 'src/index.ts',
    about: 'The database. `StoreDb` is its default export as well.',
  },
  {
    specifier: 'store-db/lib/storage',
    path: 'src/storage/index.ts',
    about: 'Where data can live: the drivers, and what a driver has to do. [drivers.md](drivers.md) tells more.',
  },
  {
    specifier: 'store-db/reader',
    path: 'src/reader.ts',
    about:
      'For browsers, Workers and the edge: reads what `db.publish()` wrote. [guide/reader.md](guide/reader.md) tells more.',
  },
  {
    specifier: 'store-db/live',
    path: 'src/live-server.ts',
    about:
      'Live queries for browsers, to mount in an application. [guide/live-in-the-browser.md](guide/live-in-the-browser.md) tells more.',
  },
  {
    specifier: 'store-db/live-client',
    path: 'src/live-client.ts',
    about: 'Live queries in the browser, for any framework.',
  },
  {
    specifier: 'store-db/react',
    path: 'src/react.ts',
    about: 'Live queries in React 18 and 19.',
  },
  {
    specifier: 'store-db/otel',
    path: 'src/otel.ts',
    about: 'Spans and metrics for OpenTelemetry. [observability.md](observability.md#opentelemetry) tells more.',
  },
  {
    specifier: 'store-db/tanstack',
    path: 'src/tanstack.ts',
    about: 'Live queries as collections of TanStack DB.',
  },
  {
    specifier: 'store-db/studio',
    path: 'src/studio.ts',
    about: 'A page that shows a database, to mount in an application. [studio.md](studio.md) tells more.',
  },
  {
    specifier: 'store-db/workers',
    path: 'src/workers.ts',
    about: 'For Workers of Cloudflare. [object-stores.md](object-stores.md#cloudflare-r2-in-workers) shows one.',
  },
  {
    specifier: 'store-db/testing',
    path: 'src/testing/index.ts',
    about: 'For people who write a driver, or test what they build on the database.',
  },
];

/** What readers look for first, in this order. */
const leading = ['StoreDb', 'Database', 'Batch', 'Query', 'BlobReference', 'TriggerApi', 'defineSchema', 'Types'];

const opening = `# API reference

Everything that the package exports, made from the sources by \`npm run docs:api\`. [guide.md](guide.md) shows how to use
it, and [errors.md](errors.md) says what to do about errors. Types that say "not exported by name" are what calls take
or give; they are listed so that you can look them up.`;

function rankOf({ name, kind }: Item): number {
  const place = leading.indexOf(name);
  if (place !== -1) return place;
  return leading.length + ['class', 'function', 'constant', 'error', 'interface', 'type'].indexOf(kind);
}

function inOrder(a: Item, b: Item): number {
  // Options and types together, by name.
  const [first, second] = [a, b].map((item) => Math.min(rankOf(item), leading.length + 4)) as [number, number];
  return first - second || compareStrings(a.name, b.name);
}

function contentsOf(writer: Writer, items: readonly Item[], hasErrors: boolean): string {
  const isType = ({ kind }: Item): boolean => kind === 'interface' || kind === 'type';
  const links = (some: readonly Item[]): string => some.map((item) => writer.link(item)).join(', ');
  const main = items.filter((item) => !isType(item));
  const types = items.filter(isType);
  const parts = [`- ${links(main)}`, ...(types.length === 0 ? [] : [`- Types: ${links(types)}`])];
  if (hasErrors) parts.push('- [Errors](#errors)');
  return parts.join('\n');
}

export interface Reference {
  readonly markdown: string;
  /** Public things without a docstring. */
  readonly undocumented: readonly string[];
}

/** Makes the reference from the sources under `root`. */
export function apiReference(root: string): Reference {
  const model = new Model(new Sources(root), entries);
  const writer = new Writer(model);
  const contents: string[] = [];
  const sections = entries.map(({ specifier, about }) => {
    const all = model.items.filter((item) => item.specifier === specifier).toSorted(inOrder);
    const isMain = specifier === 'store-db';
    const errors = isMain ? all.filter(({ kind }) => kind === 'error') : [];
    const items = all.filter((item) => !errors.includes(item));
    const heading = writer.heading(2, specifier);
    contents.push(`**${specifier}**\n\n${contentsOf(writer, items, isMain)}`);
    const parts = [heading, about, ...items.map((item) => writer.item(item))];
    if (isMain) parts.push(writer.heading(3, 'Errors'), errorsIntroduction, writer.errors(errors));
    return parts.join('\n\n');
  });
  const markdown = `${[opening, contents.join('\n\n'), ...sections].join('\n\n')}\n`;
  return { markdown, undocumented: writer.undocumented };
}

const errorsIntroduction =
  'All of them extend [`StoreDbError`](#storedberror), and so does [`StorageError`](#storageerror), which drivers raise. ' +
  '[errors.md](errors.md) says what to do about each.';
