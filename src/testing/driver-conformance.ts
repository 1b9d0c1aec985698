/**
 * The conformance suite for storage drivers: the author of a driver runs it with any test runner.
 *
 *     for (const test of driverConformance({ create: () => new MyDriver() })) it(test.name, test.run);
 */
import { realEnvironment, type Environment } from '../base/env.ts';
import { kinds, OptionTable } from '../base/options.ts';
import type { StorageDriver } from '../storage/contract/driver.ts';
import { Bench, type ConformanceCase } from './conformance-case.ts';
import { keyCases } from './conformance-keys.ts';
import { readCases } from './conformance-reads.ts';
import { writeCases } from './conformance-writes.ts';

/** Options of `driverConformance()`. */
export interface ConformanceOptions {
  /** Makes the driver for one test. Its store need not be empty: every test keeps to a prefix of its own. */
  readonly create: () => StorageDriver | Promise<StorageDriver>;
  /** Makes a second driver on the same store, as another process would have it. Default: the same driver again. */
  readonly createOther?: (driver: StorageDriver) => StorageDriver | Promise<StorageDriver>;
  /** Cleans up after one test. Default: the test's keys are deleted and the drivers closed. */
  readonly destroy?: (driver: StorageDriver) => void | Promise<void>;
  /** Features that the store may lack, although most stores have them. */
  readonly supports?: {
    /**
     * Whether segments `.` and `..`, empty segments, backslashes and control characters work, as they do in most stores. Default
     * true.
     */
    readonly oddKeys?: boolean;
    /**
     * Whether every write has an ETag of its own, even of the same bytes. Stores such as S3 make ETags from the content;
     * the database never writes the same bytes twice where that would matter. Default true.
     */
    readonly ownEtags?: boolean;
    /**
     * Whether lists are in the order of UTF-8 bytes. Some stores, such as Azure, list in the order of UTF-16 code units instead,
     * which differs only for keys with characters above U+FFFF; the database makes none. Default true.
     */
    readonly utf8Order?: boolean;
  };
  /** Clock and randomness. Default: the runtime's own. */
  readonly environment?: Environment;
}

const supportOptions = new OptionTable<NonNullable<ConformanceOptions['supports']>>({
  oddKeys: kinds.flag,
  ownEtags: kinds.flag,
  utf8Order: kinds.flag,
});

const conformanceOptions = new OptionTable<ConformanceOptions>({
  create: kinds.required(kinds.callback),
  createOther: kinds.callback,
  destroy: kinds.callback,
  supports: kinds.options(supportOptions),
  environment: kinds.environment,
});

/** One test: `run` resolves if the driver keeps the rule, and rejects if it breaks the rule. */
export interface ConformanceTest {
  /** The rule, in words. */
  readonly name: string;
  /** Checks the rule. */
  readonly run: () => Promise<void>;
}

/** The tests that a driver must pass to be safe to use. They are independent of each other. Throws `InvalidOptionError`. */
export function driverConformance(options: ConformanceOptions): ConformanceTest[] {
  conformanceOptions.check('driverConformance()', options);
  const { oddKeys = true, ownEtags = true } = options.supports ?? {};
  return [...readCases, ...writeCases, ...keyCases]
    .filter((test) => (oddKeys || test.needsOddKeys !== true) && (ownEtags || test.needsOwnEtags !== true))
    .map((test) => ({ name: test.name, run: () => runCase(options, test) }));
}

async function runCase(options: ConformanceOptions, test: ConformanceCase): Promise<void> {
  const driver = await options.create();
  const other = (await options.createOther?.(driver)) ?? driver;
  const bench = new Bench(driver, other, {
    environment: options.environment ?? realEnvironment,
    isUtf8Order: options.supports?.utf8Order ?? true,
  });
  try {
    await test.check(bench);
  } catch (error) {
    // The fault that broke the rule may break the cleanup too: the first error is the one to report.
    await cleanUp(bench, options).catch(() => undefined);
    throw error;
  }
  await cleanUp(bench, options);
}

async function cleanUp(bench: Bench, options: ConformanceOptions): Promise<void> {
  const { driver, other } = bench;
  if (options.destroy === undefined) {
    await driver.delete((await bench.names()).map((name) => bench.key(name)));
    await driver.close?.();
  } else {
    await options.destroy(driver);
  }
  if (other !== driver) await other.close?.();
}
