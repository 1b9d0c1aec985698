/** The options of `studio()`. */
import { kinds, OptionTable } from '../base/options.ts';
import { InvalidOptionError } from '../index.ts';
import type { NamedPrices } from './messages.ts';

/** Options of `studio()`. */
export interface StudioOptions {
  /**
   * Decides whether a request may see the database: it is called for every request, also for the files of the page. Anything but `true`
   * refuses the request, and so does an error.
   */
  readonly authorize: (request: Request) => boolean | Promise<boolean>;
  /** Whether rows can be changed, and garbage collected. Default false. A replica never writes. */
  readonly write?: boolean;
  /** The path at which the handler is mounted, such as `/admin/studio`. Default: `/`. */
  readonly basePath?: string;
  /** Name of the database on the page: 1 to 200 characters. Default `StoreDb`. */
  readonly title?: string;
  /** The prices of the store, and their name. Default: those of Amazon S3 Standard. The page offers those of some other stores as well. */
  readonly prices?: NamedPrices;
}

/** The options with every default filled in. */
export interface CheckedStudioOptions {
  readonly write: boolean;
  /** Without a slash at its end: empty for the root. */
  readonly basePath: string;
  readonly title: string;
  readonly prices: NamedPrices | undefined;
}

const amount = kinds.number(0, Infinity);

const namedPrices = new OptionTable<NamedPrices>({
  name: kinds.required(kinds.named),
  per1000Writes: kinds.required(amount),
  per1000Reads: kinds.required(amount),
  per1000Lists: kinds.required(amount),
  per1000Deletes: kinds.required(amount),
  perGigabyteRead: kinds.required(amount),
});

const maxTitle = 200;

export const studioOptions: OptionTable<StudioOptions> = new OptionTable({
  authorize: kinds.required({
    ...kinds.callback,
    allowed:
      'a function that decides who may see the database: authorize: (request) => isAdmin(request). Without one, everybody could',
  }),
  write: kinds.flag,
  basePath: kinds.text('a path that begins with a slash, such as /admin/studio', (path) => /^\/[\w./~-]*$/.test(path)),
  title: kinds.text(`a text of 1 to ${maxTitle} characters`, (title) => title !== '' && title.length <= maxTitle),
  prices: kinds.options(namedPrices),
});

/** Fills in the defaults. */
export function withDefaults(options: Omit<StudioOptions, 'authorize'>): CheckedStudioOptions {
  const { write = false, basePath = '', title = 'StoreDb', prices } = options;
  return { write, basePath: basePath.endsWith('/') ? basePath.slice(0, -1) : basePath, title, prices };
}

/** Checks the database that Studio is to show. Throws `InvalidOptionError`. */
export function checkDatabase(db: unknown): void {
  const methods = ['query', 'transaction', 'stats', 'tables'];
  const given = Object(db) as Record<string, unknown>;
  if (methods.every((name) => typeof given[name] === 'function')) return;
  throw new InvalidOptionError('db', 'studio() takes a database that StoreDb() made, and its options.');
}
