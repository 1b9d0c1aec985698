/** The texts of an index, and the list that its entries are appended to. */
import type { ByteWriter } from '../base/bytes.ts';
import type { LayoutField } from '../format/row-layout.ts';

/** A list of keys that entries are appended to, such as a `KeyList`. */
export interface EntrySink {
  /** The end of the list, where the next key is written. */
  readonly writer: ByteWriter;
  /** Ends a key. */
  end(): unknown;
}

/** The fields of an index on texts, and how their words are made and ranked. */
export interface TextFields {
  readonly fields: readonly LayoutField[];
  /** The language of the stems. Undefined: words as they are. */
  readonly language: string | undefined;
  /** The weight of each field. */
  readonly weights: readonly number[];
}
