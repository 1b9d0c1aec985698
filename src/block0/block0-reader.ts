/** Reads Block 0 and the catalogue that it names, which is kept: most of the time the next Block 0 names the same one. */
import { defined } from '../base/options.ts';
import { CorruptionError, isUnreadable } from '../base/errors.ts';
import { isSameBlock } from '../format/block.ts';
import { joinBlock0, parseBlock0 } from '../format/block0.ts';
import type { Block0 } from '../format/block0.ts';
import { catalogueName, decodeCatalogue } from '../format/catalogue.ts';
import type { Catalogue, CatalogueRef } from '../format/catalogue.ts';
import { block0Name } from '../format/object-names.ts';
import type { GetOptions, RequestOptions, StorageDriver } from '../storage/contract/driver.ts';

/** A catalogue is not there: the Block 0 that names it was replaced meanwhile, or the database is damaged. */
export class CatalogueMissingError extends CorruptionError {
  constructor(ref: CatalogueRef) {
    super(catalogueName(ref), 'The catalogue of the tables, which Block 0 names, is missing');
  }
}

/** Block 0 and the ETag under which it was read. */
export interface VersionedBlock0 {
  readonly block0: Block0;
  readonly etag: string;
}

/** Reads at which Block 0 names another catalogue each time, and each is gone. */
const maxReads = 40;

export class Block0Reader {
  readonly #driver: StorageDriver;
  readonly #prefix: string;
  #last: Catalogue | undefined;

  constructor(driver: StorageDriver, prefix: string) {
    this.#driver = driver;
    this.#prefix = prefix;
  }

  /** Takes note of a catalogue that Block 0s to come may name. */
  note({ catalogue }: Pick<Block0, 'catalogue'>): void {
    this.#last = catalogue ?? this.#last;
  }

  /**
   * Reads the present Block 0: one request, and another one where it names a catalogue that is not known yet. A damaged answer
   * is asked for again once, since the damage may be on the way only. So is one whose catalogue is gone, for as long as
   * another one takes its place: then the catalogue was collected meanwhile. Throws as {@link decode} does.
   */
  async read(options: GetOptions): Promise<VersionedBlock0 | 'missing' | 'unchanged'> {
    let gone: string | undefined;
    for (let attempt = 1; ; attempt++) {
      const result = await this.#driver.get(`${this.#prefix}/${block0Name}`, options);
      if (result.status !== 'found') return result.status;
      const { bytes, etag } = result;
      try {
        return { block0: await this.decode(bytes, options), etag };
      } catch (error) {
        const isReplaced = error instanceof CatalogueMissingError && etag !== gone && attempt < maxReads;
        if (!isReplaced && (!isUnreadable(error) || attempt > 1)) throw error;
        gone = etag;
      }
    }
  }

  /** Reads a Block 0 that is kept under another name; undefined if there is none. Throws as {@link decode} does. */
  async readKept(name: string, options: RequestOptions = {}): Promise<Block0 | undefined> {
    const found = await this.#driver.get(`${this.#prefix}/${name}`, options);
    return found.status === 'found' ? this.decode(found.bytes, options) : undefined;
  }

  /** Block 0 of the bytes of an object that holds one. Throws `CorruptionError`, also if its catalogue is missing, and `UnknownFormatError`. */
  async decode(bytes: Uint8Array, options: RequestOptions = {}): Promise<Block0> {
    const part = parseBlock0(bytes);
    return joinBlock0(part, part.catalogue && (await this.#catalogue(part.catalogue, options)));
  }

  async #catalogue(ref: CatalogueRef, options: RequestOptions): Promise<Catalogue> {
    const known = this.#last;
    if (known !== undefined && isSameBlock(known.ref, ref)) return known;
    this.#last = await readCatalogue(this.#driver, this.#prefix, ref, options);
    return this.#last;
  }
}

/** Reads a catalogue: one request, or two where the first answer is damaged. Throws `CorruptionError`. */
export async function readCatalogue(
  driver: StorageDriver,
  prefix: string,
  ref: CatalogueRef,
  { signal }: RequestOptions = {},
): Promise<Catalogue> {
  for (let attempt = 1; ; attempt++) {
    const found = await driver.get(`${prefix}/${catalogueName(ref)}`, defined({ signal }));
    if (found.status !== 'found') throw new CatalogueMissingError(ref);
    try {
      return decodeCatalogue(ref, found.bytes);
    } catch (error) {
      // The damage may be on the way only.
      if (!isUnreadable(error) || attempt > 1) throw error;
    }
  }
}
