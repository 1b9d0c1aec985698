/** Conditions that a registered function decides: it is given the whole row, and its result must equal a value. */
import { ByteWriter } from '../../base/bytes.ts';
import { isTruncatedComponent } from '../../format/ordered-key.ts';
import { isOfResultType, writeResult } from '../../format/result-component.ts';
import type { RowSource } from '../../format/row-layout.ts';
import { callFunction } from '../../schema/function-call.ts';
import type { RegisteredFunction } from '../../schema/function-call.ts';
import type { FunctionResult, TableShape } from '../../schema/table-shape.ts';
import type { KeyAccess } from './key-ranges.ts';
import { slowCost } from './selector.ts';
import type { Selector } from './selector.ts';

export class FunctionSelector implements Selector {
  readonly cost: number = slowCost;
  readonly #shape: TableShape;
  readonly #registered: RegisteredFunction;
  readonly #value: unknown;

  constructor(shape: TableShape, registered: RegisteredFunction, value: unknown) {
    this.#shape = shape;
    this.#registered = registered;
    this.#value = value;
  }

  /** What rows that match have in the entries of an index on the function; undefined if that cannot be told. */
  keysBy({ name, typeId, version }: FunctionResult): KeyAccess | undefined {
    const { name: called, version: calledVersion } = this.#registered;
    const value = this.#value;
    if (called !== name || calledVersion !== version || Number.isNaN(value)) return undefined;
    const writer = new ByteWriter(64);
    writeResult(writer, typeId, value);
    const component = writer.finish();
    // Of results that are not of the type it is known no more than that.
    const exact = isOfResultType(typeId, value) && !isTruncatedComponent(component, component.length, typeId);
    return { kind: 'values', components: [component], exact };
  }

  select(source: RowSource, first: number, stride: number, picks: Int32Array, count: number): number {
    let kept = 0;
    for (let k = 0; k < count; k++) {
      const pick = picks[k] as number;
      picks[kept] = pick;
      if (callFunction(this.#shape, this.#registered, source, first + pick * stride) === this.#value) kept++;
    }
    return kept;
  }
}
