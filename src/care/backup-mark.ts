/**
 * Marks that say what is under way at a place for backups: backups, which count on objects that they have found there, and
 * prunings, which delete objects. Each puts its mark first and looks for those of the others then, so that of two that begin
 * at once at least one sees the other. A backup waits for prunings to end; a pruning deletes no objects while there are backups.
 *
 * What was killed leaves its mark behind, which counts for a day by the clock of the store; who works for longer renews it.
 */
import type { Environment } from '../base/env.ts';
import { ContentionError } from '../base/errors.ts';
import { newId } from '../base/ids.ts';
import { markFolder, markName, parseMarkName } from '../format/keys.ts';
import type { MarkKind } from '../format/keys.ts';
import { listAll } from '../storage/list-all.ts';
import { putRepeatedly } from '../storage/put-repeatedly.ts';
import type { StorePlace } from './state-copy.ts';

const validMs = 86_400_000;
/** A mark is renewed after so long, and nothing is done any more on one that could not be for so long. */
const renewedAfterMs = validMs / 24;
const trustedMs = validMs / 2;

export class BackupMark {
  readonly #environment: Environment;
  readonly #place: StorePlace;
  readonly #name: string;
  #renewedMs = 0;
  /** What was left behind so long ago that it does not count any more. */
  #stale: readonly string[] = [];
  /** What time it is in the store, as it was said last. */
  storeMs = 0;

  private constructor(environment: Environment, place: StorePlace, kind: MarkKind) {
    this.#environment = environment;
    this.#place = place;
    this.#name = markName(kind, newId(environment, 8));
  }

  static async put(
    environment: Environment,
    place: StorePlace,
    kind: MarkKind,
    signal: AbortSignal | undefined,
  ): Promise<BackupMark> {
    const mark = new BackupMark(environment, place, kind);
    await mark.#renew(signal);
    return mark;
  }

  async #renew(signal: AbortSignal | undefined): Promise<void> {
    const { driver, prefix } = this.#place;
    // From before the request: the store's time of it is later.
    const beganMs = this.#environment.monotonicMs();
    await putRepeatedly(driver, `${prefix}/${this.#name}`, new Uint8Array(), { if: 'any', ...(signal && { signal }) });
    this.#renewedMs = beganMs;
  }

  /** Whether others of a kind are under way. */
  async sees(kind: MarkKind, signal: AbortSignal | undefined): Promise<boolean> {
    const { driver, prefix } = this.#place;
    const marks: { readonly key: string; readonly kind: MarkKind; readonly putMs: number }[] = [];
    for await (const { key, lastModifiedMs } of listAll(driver, `${prefix}/${markFolder}`, signal && { signal })) {
      const name = key.slice(prefix.length + 1);
      const found = parseMarkName(name);
      // One's own tells what time it is in the store.
      if (name === this.#name) this.storeMs = lastModifiedMs;
      else if (found !== undefined) marks.push({ key, kind: found, putMs: lastModifiedMs });
    }
    const isValid = ({ putMs }: { readonly putMs: number }): boolean => this.storeMs - putMs < validMs;
    this.#stale = marks.filter((mark) => !isValid(mark)).map(({ key }) => key);
    return marks.some((mark) => mark.kind === kind && isValid(mark));
  }

  /**
   * To be called before whatever the others must not meet. Rejects with `ContentionError` if this process was held up for so
   * long that they may not count on the mark any more.
   */
  async check(signal: AbortSignal | undefined): Promise<void> {
    const ageMs = this.#environment.monotonicMs() - this.#renewedMs;
    if (ageMs < renewedAfterMs) return;
    if (ageMs > trustedMs) {
      const { prefix } = this.#place;
      throw new ContentionError(
        `The work on the backups under ${prefix}/ stood still for too long for others to go by it. Begin anew.`,
      );
    }
    await this.#renew(signal);
  }

  /** With those that do not count any more. That it cannot be removed is no failure: it counts for a day. */
  async remove(): Promise<void> {
    const { driver, prefix } = this.#place;
    await driver.delete([`${prefix}/${this.#name}`, ...this.#stale]).catch(() => undefined);
  }
}
