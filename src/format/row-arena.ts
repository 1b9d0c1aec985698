/** Rows in memory, one after the other in buffers that grow. An offset into it stays valid; its bytes move. */
import { ByteWriter } from '../base/bytes.ts';
import type { RowSource } from './row-layout.ts';

export class RowArena implements RowSource {
  readonly name: string;
  readonly writer: ByteWriter = new ByteWriter();
  readonly heapWriter: ByteWriter = new ByteWriter();
  readonly rowsStart = 0;
  readonly heapStart = 0;
  readonly text = undefined;

  /** `name`: of whom the rows are, for errors. */
  constructor(name: string) {
    this.name = name;
  }

  get rows(): Uint8Array {
    return this.writer.bytes;
  }

  get rowsView(): DataView {
    return this.writer.view;
  }

  get heap(): Uint8Array {
    return this.heapWriter.bytes;
  }

  get heapEnd(): number {
    return this.heapWriter.length;
  }

  get sizeBytes(): number {
    return this.writer.length + this.heapWriter.length;
  }

  /** Takes back everything from these lengths on. */
  rewind(rows: number, heap: number): void {
    this.writer.length = rows;
    this.heapWriter.length = heap;
  }
}
