/**
 * The values that conditions of indexes name. An index whose condition names a value that no published row has is not published, since
 * its definition would tell the value.
 */
import { isNull, readField } from '../../format/row-decode.ts';
import type { LayoutField, RowSource } from '../../format/row-layout.ts';
import { testedText } from '../../schema/index-condition.ts';
import type { TableIndex } from '../../schema/table-shape.ts';

/** The values that the condition of an index names for a field, and that no row has had yet. */
interface UnseenValues {
  readonly index: string;
  readonly field: LayoutField;
  readonly texts: Set<string>;
}

export class NamedValues {
  #unseen: readonly UnseenValues[];

  constructor(indexes: readonly TableIndex[]) {
    this.#unseen = indexes.flatMap(({ name: index, where }) => {
      return (where?.tests ?? []).flatMap(({ field, values }) => {
        return values === undefined || values.size === 0 ? [] : [{ index, field, texts: new Set(values) }];
      });
    });
  }

  /** Takes note of a published row. */
  add(source: RowSource, base: number): void {
    if (this.#unseen.length === 0) return;
    let isDone = false;
    for (const { field, texts } of this.#unseen) {
      if (isNull(source, base, field)) continue;
      texts.delete(testedText(field, readField(source, base, field)));
      if (texts.size === 0) isDone = true;
    }
    if (isDone) this.#unseen = this.#unseen.filter(({ texts }) => texts.size > 0);
  }

  /** Whether published rows have all values that the condition of an index names. */
  hasAllOf({ name }: TableIndex): boolean {
    return this.#unseen.every(({ index }) => index !== name);
  }
}
