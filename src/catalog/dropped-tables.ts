/**
 * Tells which registrations of tables still count. A table that is dropped takes its registrations with it, on every instance: one that
 * writes on as before would bring the table back. It comes back where its schema is registered again after the drop.
 *
 * A registration after a drop is a shape of its own, so operations of a batch that were added before the drop stay refused after it.
 */
import { TableDroppedError } from '../base/errors.ts';
import type { StoredDrop } from '../format/stored-table.ts';
import type { TableShape } from '../schema/table-shape.ts';
import type { View } from '../view/view.ts';

/** The last drop of a table as far as it is known. */
type KnownDrop = StoredDrop | 'forgotten';

/** Returns the drop of a table that a view shows and an earlier one did not. */
function dropBetween(name: string, before: View, after: View): KnownDrop | undefined {
  const drop = after.drops.of(name);
  if (drop !== undefined) return drop.slot > before.tail ? drop : undefined;
  const mayBeForgotten = after.drops.forgotten > before.tail;
  const isStored = mayBeForgotten && after.block0.tables.some((table) => table.name === name);
  // The view has gone past so many drops at once that Block 0 does not list them all.
  return mayBeForgotten && before.table(name) !== undefined && !isStored ? 'forgotten' : undefined;
}

export class DroppedTables {
  /** The shapes of registrations that no longer count. */
  readonly #drops = new WeakMap<TableShape, KnownDrop>();
  /** The newest view that was followed. Registrations that are not in {@link #drops} count there. */
  #view: View | undefined;

  /** Notes the drops that a newer view shows. `registered`: all registered versions of all tables. */
  follow(view: View, registered: () => Iterable<TableShape>): void {
    const before = this.#view;
    this.#view = view;
    if (before === undefined || before.drops === view.drops) return;
    for (const shape of registered()) {
      const drop = dropBetween(shape.name, before, view);
      if (drop !== undefined && !this.#drops.has(shape)) this.#drops.set(shape, drop);
    }
  }

  /** Whether the table of a registration was dropped since. */
  has(shape: TableShape): boolean {
    return this.#drops.has(shape);
  }

  /** Throws `TableDroppedError` if the table of a registration was dropped since, as far as the newest view shows. */
  refuse(shape: TableShape): void {
    const drop = this.#drops.get(shape);
    if (drop !== undefined) throw dropped(shape, drop);
  }

  /**
   * Throws `TableDroppedError` if the table of a registration was dropped since, and a view shows that drop: earlier states show the table
   * as it was.
   */
  refuseAnew(view: View, shape: TableShape): void {
    const drop = this.#drops.get(shape);
    if (drop === undefined) return;
    const slot = drop === 'forgotten' ? view.drops.forgotten : (view.drops.of(shape.name)?.slot ?? 0);
    if (slot >= (drop === 'forgotten' ? 1 : drop.slot)) throw dropped(shape, drop);
  }

  /** Throws `TableDroppedError` if a view shows that the table of a registration was dropped since: it may be newer than the newest one. */
  refuseOn(view: View, shape: TableShape): void {
    this.refuse(shape);
    const drop = this.#view && dropBetween(shape.name, this.#view, view);
    if (drop !== undefined) throw dropped(shape, drop);
  }
}

function dropped({ name }: TableShape, drop: KnownDrop): TableDroppedError {
  const where = drop === 'forgotten' ? '' : ` at position ${drop.slot} by node ${drop.nodeId}`;
  return new TableDroppedError(
    name,
    drop === 'forgotten' ? undefined : drop.slot,
    `Table '${name}' was dropped${where}, after its schema was registered here. Nothing was written: call registerSchema() again ` +
      'to create the table again, and clear() on batches that still have rows for the old one.',
  );
}
