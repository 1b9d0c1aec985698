/** A result of a watched query as clients get it: whole, or as its differences from an earlier one. */
import { joinBytes, toHex } from '../base/bytes.ts';
import { eventOf } from '../web/event-stream.ts';
import { sha256 } from '#platform';
import type { LiveRows, LiveValue } from '../query/live-results.ts';
import { encodeRow, joinedTypes } from '../live-wire/wire-values.ts';
import type { EncodedRow } from '../live-wire/wire-values.ts';

/** Bytes of a digest: enough that no two results of a query have the same. */
const digestBytes = 12;

/** Bytes that a row of a result takes beside its values. */
const rowBytes = 160;

interface KnownRow extends EncodedRow {
  readonly digest: Uint8Array;
}

/** The rows of a query as JSON. A row that stays the same object from result to result is encoded once. */
export class KnownRows {
  readonly #rows = new WeakMap<object, KnownRow>();

  of(row: object): KnownRow {
    let known = this.#rows.get(row);
    if (known === undefined) {
      const encoded = encodeRow(row);
      known = { ...encoded, digest: sha256(JSON.stringify(encoded)).subarray(0, digestBytes) };
      this.#rows.set(row, known);
    }
    return known;
  }
}

/** Tells clients why there are no more results. */
export function failureEvent(code: string, message: string): Uint8Array {
  return eventOf('failure', JSON.stringify({ code, message }));
}

export class ShownResult {
  readonly position: number;
  /** Tells results with other rows, or in another order, apart; in all processes. */
  readonly digest: string;
  readonly #known: KnownRows;
  readonly #rows: readonly object[] | undefined;
  readonly #value: EncodedRow | undefined;
  #whole: Uint8Array | undefined;
  #sizeBytes: number | undefined;
  /** The last change that was asked for: most clients have the same result. */
  #change: { readonly from: ShownResult; readonly event: Uint8Array } | undefined;

  constructor(result: LiveRows<object> | LiveValue<unknown>, known: KnownRows) {
    this.position = result.position;
    this.#known = known;
    let digest: Uint8Array;
    if ('rows' in result) {
      this.#rows = result.rows;
      digest = sha256(joinBytes(result.rows.map((row) => known.of(row).digest)));
    } else {
      const { value } = result;
      const isObject = typeof value === 'object' && value !== null;
      const { text, types } = encodeRow(isObject ? value : { value });
      // A count is sent as it is.
      this.#value = { text: isObject ? text : text.slice('{"value":'.length, -1), types };
      digest = sha256(JSON.stringify(this.#value));
    }
    this.digest = toHex(digest.subarray(0, digestBytes));
  }

  /** The size of its rows as JSON, and of what holds them, for limits on what is kept. */
  get sizeBytes(): number {
    this.#sizeBytes ??= this.#leastWhole() + rowBytes * (this.#rows?.length ?? 1);
    return this.#sizeBytes;
  }

  get #id(): string {
    return `${this.position}.${this.digest}`;
  }

  /** The event for a client that has this result already. */
  current(): Uint8Array {
    return eventOf('current', JSON.stringify({ position: this.position }), this.#id);
  }

  /** The event for a client that has no result. */
  whole(): Uint8Array {
    this.#whole ??= eventOf('result', this.#wholeData(), this.#id);
    return this.#whole;
  }

  #wholeData(): string {
    const head = `{"position":${this.position}`;
    if (this.#rows === undefined) {
      const { text, types } = this.#value as EncodedRow;
      return `${head},"value":${text},"types":${JSON.stringify(types)}}`;
    }
    const rows = this.#rows.map((row) => this.#known.of(row));
    const texts = rows.map(({ text }) => text).join();
    return `${head},"rows":[${texts}],"types":${JSON.stringify(joinedTypes(rows))}}`;
  }

  /** The event for a client that has an earlier result. */
  since(earlier: ShownResult): Uint8Array {
    if (earlier.digest === this.digest) return this.current();
    if (this.#rows === undefined || earlier.#rows === undefined) return this.whole();
    if (this.#change?.from !== earlier) {
      const event = eventOf('change', this.#changeData(earlier.#rows, this.#rows), this.#id);
      // Nothing of the result before is left.
      this.#change = { from: earlier, event: event.length < this.#leastWhole() ? event : this.whole() };
    }
    return this.#change.event;
  }

  /** The least bytes that the whole result takes, without encoding it. */
  #leastWhole(): number {
    return this.#rows?.reduce((sum, row) => sum + this.#known.of(row).text.length, 0) ?? 0;
  }

  #changeData(before: readonly object[], rows: readonly object[]): string {
    const places = new Map(before.map((row, place) => [row, place]));
    const kept: [number, number][] = [];
    const fresh: KnownRow[] = [];
    const texts: string[] = [];
    for (const [place, row] of rows.entries()) {
      const from = places.get(row);
      const last = kept.at(-1);
      if (from === undefined) {
        const known = this.#known.of(row);
        fresh.push(known);
        texts.push(`[${place},${known.text}]`);
      } else if (last !== undefined && last[0] + last[1] === from) last[1]++;
      else kept.push([from, 1]);
    }
    const types = JSON.stringify(joinedTypes(fresh));
    return `{"position":${this.position},"kept":${JSON.stringify(kept)},"rows":[${texts.join()}],"types":${types}}`;
  }
}
