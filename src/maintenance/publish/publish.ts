/**
 * Publishes a state: builds the trees of its bundle, puts the blocks that no kept bundle has, then the manifest, and replaces the pointer
 * at last, by compare-and-swap. So a publish that ends early leaves the bundle before as it is.
 *
 * Invariants:
 * - A bundle is made of the published rows and fields alone. No block of the database is copied, so nothing else can be in it.
 * - A name of an earlier bundle is used again only if that bundle is in the pointer that is replaced. Names that are not are never
 *   used again, since new names hold a higher number. So whoever removes objects that no bundle of a pointer has removes nothing
 *   that a later bundle needs.
 */
import type { Environment } from '../../base/env.ts';
import { ContentionError } from '../../base/errors.ts';
import { toBase64 } from '../../base/bytes.ts';
import { Pacer } from '../../base/pacer.ts';
import {
  bundleObjectName,
  bundleSource,
  encodeContents,
  encodeManifest,
  maxBundles,
  packBundleObject,
} from '../../format/bundle.ts';
import type { BundleContents, ListedBundle } from '../../format/bundle.ts';
import type { InlinedRoot, StoredTable } from '../../format/stored-table.ts';
import type { View } from '../../view/view.ts';
import type { StorePlace } from '../backup/state-copy.ts';
import { BundlePlace } from './bundle-place.ts';
import type { KeptObjects, ReadPointer } from './bundle-place.ts';
import { BundleTables } from './bundle-tables.ts';
import type { UpperBlock } from './bundle-tables.ts';
import { publishedTables } from './published-table.ts';
import type { TableSource } from './published-table.ts';
import type { PublishOptions, PublishReport } from './publish-options.ts';

/** The state must be held until the call ends. No commits of it may wait to be merged. */
export interface PublishSource extends TableSource {
  readonly environment: Environment;
  /** The place of the database, for blobs. */
  readonly place: StorePlace;
}

const defaultKept = 2;
const defaultAgeMs = 3_600_000;
/** Bytes of blocks in a manifest, compressed. */
const maxInlinedBytes = 64 * 1024;
/** A root that is a leaf is part of the manifest up to this length, in bytes. */
const maxInlinedLeafBytes = 4096;
const maxAttempts = 8;

/** Publishes a state. `to`: the place of the bundles. */
export async function publishState(
  source: PublishSource,
  to: StorePlace,
  options: PublishOptions,
): Promise<PublishReport> {
  const { environment, view } = source;
  const tables = publishedTables(source, options);
  const place = new BundlePlace(environment, to, options.signal);
  await place.refuseDatabase();
  const databaseKey = bundleSource(view.block0.databaseId);
  try {
    for (let attempt = 1; attempt <= maxAttempts; attempt++) {
      const before = await place.readPointer(databaseKey, options.replace === true);
      const newest = before?.pointer.bundles[0];
      const isOlder = before?.pointer.source === databaseKey && (newest?.position ?? 0) > view.tail;
      if (isOlder) return report(place, view, 'superseded', 0, 0);
      const kept = await place.keptObjects(before?.pointer.bundles ?? []);
      const built = await build({ source, options, place, kept, number: (newest?.number ?? 0) + 1 }, tables);
      const published = await put({ source, options, place, kept, before }, built);
      if (published !== undefined) return published;
    }
  } finally {
    await place.end();
  }
  throw new ContentionError(
    `Other processes published to ${to.prefix}/ before each of ${maxAttempts} attempts. Try again later, or publish from one process.`,
  );
}

function report(
  { writtenObjects, writtenBytes }: BundlePlace,
  { tail: position }: View,
  outcome: PublishReport['outcome'],
  rows: number,
  removedObjects: number,
): PublishReport {
  return { outcome, position, rows, writtenObjects, writtenBytes, removedObjects };
}

interface Attempt {
  readonly source: PublishSource;
  readonly options: PublishOptions;
  readonly place: BundlePlace;
  readonly kept: KeptObjects;
}

/** A bundle whose blocks are put, and whose manifest is not yet. */
interface BuiltBundle {
  readonly number: number;
  readonly rows: number;
  readonly tables: readonly StoredTable[];
  readonly inlined: readonly InlinedRoot[];
  readonly contents: BundleContents;
}

/** Builds the trees of a bundle, and puts the blocks and blobs that are not there. */
async function build(
  { source, options, place, kept, number }: Attempt & { readonly number: number },
  tables: ReturnType<typeof publishedTables>,
): Promise<BuiltBundle> {
  const { environment, view } = source;
  const pacer = new Pacer(environment);
  const { signal, onProgress } = options;
  const building = new BundleTables({ pacer, place, kept, number, view, from: source.place, signal, onProgress });
  for (const table of tables) await building.add(table);
  await building.addBlobs();
  const { inlined, objects } = divide(building.upper);
  for (const { name, bytes } of objects) await building.putBlock(name, bytes);
  await place.finish();
  return {
    number,
    rows: building.rows,
    tables: building.tables,
    inlined: inlined.map(({ name, bytes }) => ({ name, block: toBase64(bytes) })),
    contents: {
      blocks: [...building.blocks],
      inlined: inlined.map(({ name }) => name),
      blobs: building.blobs,
    },
  };
}

/** Divides blocks into those that are part of the manifest, which are the ones near the roots, and objects. */
function divide(upper: readonly UpperBlock[]): Record<'inlined' | 'objects', UpperBlock[]> {
  const inlined: UpperBlock[] = [];
  const objects: UpperBlock[] = [];
  let left = maxInlinedBytes;
  for (const block of upper.toSorted((a, b) => a.depth - b.depth)) {
    const isShort = block.level > 0 || block.bytes.length <= maxInlinedLeafBytes;
    if (isShort) left -= packBundleObject(block.name, block.bytes).length;
    (isShort && left >= 0 ? inlined : objects).push(block);
  }
  return { inlined, objects };
}

/** Puts the manifest of a bundle and replaces the pointer. Undefined if another process has replaced it meanwhile. */
async function put(
  { source, options, place, kept, before }: Attempt & { readonly before: ReadPointer | undefined },
  { number, rows, tables, inlined, contents }: BuiltBundle,
): Promise<PublishReport | undefined> {
  const { environment, view } = source;
  const databaseKey = bundleSource(view.block0.databaseId);
  const manifestBytes = encodeManifest({ source: databaseKey, tables, inlined });
  const manifest = bundleObjectName('manifests', number, manifestBytes);
  const listed = before?.pointer.bundles ?? [];
  const [newest] = listed;
  const nowMs = environment.now();
  // The manifest of another database differs, since it names the database.
  const isUnchanged = newest !== undefined && hashIn(newest.manifest) === hashIn(manifest);
  let first: ListedBundle;
  if (isUnchanged) first = { ...newest, position: Math.max(newest.position, view.tail) };
  else {
    const contentsBytes = encodeContents(contents);
    const contentsName = bundleObjectName('contents', number, contentsBytes);
    await place.put(contentsName, contentsBytes);
    await place.put(manifest, manifestBytes);
    await place.finish();
    first = { number, manifest, contents: contentsName, position: view.tail, publishedMs: nowMs };
    kept.add(first, contents);
  }
  const bundles = retained([first, ...listed.slice(isUnchanged ? 1 : 0)], nowMs, options);
  const outcome = isUnchanged ? 'unchanged' : 'published';
  const isSame = isUnchanged && bundles.length === listed.length && first.position === newest.position;
  if (isSame) return report(place, view, outcome, rows, 0);
  if (!(await place.replacePointer(before, { source: databaseKey, bundles }))) return undefined;
  const isShorter = bundles.length < listed.length + (isUnchanged ? 0 : 1);
  const stay = isShorter ? await place.keptObjects(bundles) : kept;
  return report(place, view, outcome, rows, await place.removeOthers(stay, first.number));
}

/** Returns the hash in the name of a manifest: manifests of equal bundles differ in their numbers only. */
function hashIn(manifest: string): string {
  return manifest.slice(manifest.lastIndexOf('-'));
}

/** Returns the bundles that stay. */
function retained(bundles: readonly ListedBundle[], nowMs: number, { keep = {} }: PublishOptions): ListedBundle[] {
  const { bundles: most = defaultKept, ageMs = defaultAgeMs } = keep;
  return bundles.slice(0, maxBundles).filter((_, i) => {
    const newer = bundles[i - 1];
    return newer === undefined || i < most || nowMs - newer.publishedMs < ageMs;
  });
}
