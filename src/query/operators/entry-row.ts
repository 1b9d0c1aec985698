/** The rows that entries of an index name. */
import { isPromise } from '../../base/brands.ts';
import { CorruptionError } from '../../base/errors.ts';
import type { TableIndex } from '../../schema/table-shape.ts';
import type { TableState } from '../../view/table-state.ts';
import type { RowHit } from '../../tree/tree.ts';
import type { Found } from './lookups.ts';

/** Where an entry was found: its index, and the name of its leaf. */
interface Place {
  readonly state: TableState;
  readonly index: TableIndex;
  readonly leafName: string;
}

/** An entry has no row: the index and the table do not belong together. */
export function missingRow({ state, index, leafName }: Place): never {
  const { name: table } = state.shape;
  throw new CorruptionError(leafName, `Index '${index.name}' has an entry for a row that table '${table}' has not`);
}

function storedRow(place: Place, key: Uint8Array): RowHit | Promise<RowHit> {
  const found = place.state.tree.lookup(key);
  if (isPromise(found)) return found.then((hit) => hit ?? missingRow(place));
  return found ?? missingRow(place);
}

/** The row with the primary key of an entry; none if a commit that is not merged yet has changed it. */
export function rowOfEntry(place: Place, key: Uint8Array): Found | Promise<Found> {
  const overlaid = place.state.isOverlaid(key);
  if (isPromise(overlaid)) return overlaid.then((is) => (is ? undefined : storedRow(place, key)));
  return overlaid ? undefined : storedRow(place, key);
}
