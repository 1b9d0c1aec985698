/** Json fields of rows that are made of index entries: they have the values at paths that an entry holds, and nothing else. */
import { ByteWriter, encodeUtf8 } from '../../base/bytes.ts';
import { copyComponent, readKeyComponent, writeWholeTextComponent } from '../../format/ordered-key.ts';
import type { RowArena } from '../../format/row-encode.ts';
import type { FieldPath, LayoutField } from '../../format/row-layout.ts';
import { Types } from '../../format/types.ts';

/** A value, or what is inside of it. Lists are objects here, whose keys are positions. */
interface Place {
  /** The component of the entry that holds the value. */
  at?: number;
  readonly inside: Map<string, Place>;
}

/** A key of an entry, and where its components end. */
export interface EntryKey {
  readonly key: Uint8Array;
  startOf(component: number): number;
  endOf(component: number): number;
  isNull(component: number): boolean;
}

/** Returns the path of a value that an entry holds; undefined for a field. */
export function pathIn({ path, jsonOf }: LayoutField): FieldPath | undefined {
  return path ?? jsonOf?.path;
}

export class EntryJson {
  readonly #fields: readonly LayoutField[];
  readonly #places = new Map<LayoutField, Place>();
  readonly #scratch = new ByteWriter(64);

  /** `fields`: those of the entry. `needed`: which of their values rows are made with. */
  constructor(fields: readonly LayoutField[], needed: readonly boolean[]) {
    this.#fields = fields;
    for (const [at, field] of fields.entries()) {
      const path = pathIn(field);
      if (path === undefined || needed[at] !== true) continue;
      let place: Place = this.#places.get(path.of) ?? { inside: new Map() };
      this.#places.set(path.of, place);
      for (const key of path.keys) {
        const next: Place = place.inside.get(key) ?? { inside: new Map() };
        place.inside.set(key, next);
        place = next;
      }
      place.at = at;
    }
  }

  /** Writes the json fields of the row at `base`, in which they are null. */
  write(entry: EntryKey, { writer, heapWriter }: RowArena, base: number): void {
    for (const [{ offset, nullByte, nullMask }, place] of this.#places) {
      const text = this.#textOf(entry, place);
      if (text === undefined) continue;
      const scratch = this.#scratch;
      const bytes = encodeUtf8(text);
      scratch.length = 0;
      writeWholeTextComponent(scratch, bytes, 0, bytes.length);
      copyComponent(
        scratch.bytes,
        0,
        scratch.length,
        Types.varchar,
        writer.bytes,
        writer.view,
        base + offset,
        heapWriter,
      );
      writer.bytes[base + nullByte] = (writer.bytes[base + nullByte] as number) & ~nullMask;
    }
  }

  /** Returns the JSON of what an entry holds; undefined if that is nothing. */
  #textOf(entry: EntryKey, { at, inside }: Place): string | undefined {
    if (at !== undefined && !entry.isNull(at)) {
      const { typeId, jsonOf } = this.#fields[at] as LayoutField;
      const value = readKeyComponent(entry.key, entry.startOf(at), entry.endOf(at), typeId);
      return jsonOf === undefined ? JSON.stringify(value) : (value as string);
    }
    const members: string[] = [];
    for (const [key, place] of inside) {
      const text = this.#textOf(entry, place);
      if (text !== undefined) members.push(`${JSON.stringify(key)}:${text}`);
    }
    return members.length === 0 ? undefined : `{${members.join()}}`;
  }
}
