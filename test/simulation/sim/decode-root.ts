/** Block 0 by the decoders of the format alone. */
import { decodeBlock0 } from '../../../src/format/block0.ts';
import type { Block0 } from '../../../src/format/block0.ts';
import { catalogueName, decodeCatalogue } from '../../../src/format/catalogue.ts';
import type { Objects } from './commit-rows.ts';

/** Decodes a Block 0 with its catalogue. Throws if that is not among the objects: nobody may name one before it is there. */
export function decodeRoot(bytes: Uint8Array, objects: Objects): Block0 {
  return decodeBlock0(bytes, (ref) => {
    const stored = objects.get(catalogueName(ref));
    if (stored === undefined) throw new Error(`Block 0 names ${catalogueName(ref)}, which is not there`);
    return decodeCatalogue(ref, stored);
  });
}
