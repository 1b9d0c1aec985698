/** Checks of a store: listings, their order, and deletions. */
import { compareStrings } from '../../base/order.ts';
import type { Verdicts } from './certification.ts';
import { Unsettled, Violation } from './prober.ts';
import type { Prober } from './prober.ts';

/**
 * Names in the order of their UTF-8 bytes. The first two differ in characters as StoreDb's own names have them; the last
 * two are the other way round in UTF-16.
 */
const names = ['list/a-b', 'list/a/\u{ff5e}', 'list/a/\u{1f600}'];
const pageLimit = 2;
/** A store that says for ever that more follows is not asked for ever. */
const maxPages = 6;

/** What was just put is listed, over several pages, in order. */
export async function probeLists(prober: Prober, verdicts: Verdicts): Promise<void> {
  const keys = names.map((name) => prober.key(name));
  await Promise.all(keys.map((key) => prober.write(key, prober.probe(), 'absent')));
  const listed: string[] = [];
  for (let pages = 0, after: string | undefined; pages < maxPages; pages++) {
    const page = await prober.list(prober.key('list/'), pageLimit, after);
    listed.push(...page.entries.map(({ key }) => key));
    after = listed.at(-1);
    if (!page.more) break;
  }
  if (!keys.every((key) => listed.includes(key))) {
    throw new Violation('lists', 'A list did not show every object that had been written before it was asked for.');
  }
  if (listed.length !== keys.length) {
    throw new Violation('lists', 'The pages of a list showed objects twice, or objects that nobody had written.');
  }
  verdicts.pass('lists', 'A list shows what was just written, and nothing twice.');
  if (listed[0] !== keys[0]) throw new Violation('order of lists', 'Lists are not in the order of the names.');
  if (listed.every((key, at) => at === 0 || compareStrings(listed[at - 1] as string, key) < 0)) {
    verdicts.pass('order of lists', 'In the order of UTF-8 bytes, over several pages.');
    return;
  }
  verdicts.warn(
    'order of lists',
    "Lists are not in the order of UTF-8 bytes where names have characters beyond ASCII. StoreDb's own names have none.",
  );
}

/** Deletes all probes; those of the lists are not listed any more. */
export async function probeDeletions(prober: Prober, verdicts: Verdicts): Promise<void> {
  const { gone, failure } = await prober.deleteAll().catch((error: unknown) => {
    if (!(error instanceof Unsettled) || prober.permissions.delete !== 'forbidden') throw error;
    return { gone: new Set<string>(), failure: error.message };
  });
  if (failure !== undefined) {
    verdicts.warn('deletions', `Probes could not be deleted, and stay: ${failure}`);
    return;
  }
  const deleted = names.map((name) => prober.key(name)).filter((key) => gone.has(key));
  if (deleted.length === 0) {
    verdicts.pass('deletions', 'The probes were deleted.');
    return;
  }
  const { entries } = await prober.list(prober.key('list/'), names.length, undefined);
  if (entries.some(({ key }) => deleted.includes(key))) {
    throw new Violation('lists', 'A list showed an object that had been deleted before it was asked for.');
  }
  verdicts.pass('deletions', 'The probes were deleted, and are not listed any more.');
}
