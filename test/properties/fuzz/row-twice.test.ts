/** A tree or a commit that holds a row twice, under right checksums, must not end a merge with anything but its own error. */
import { describe, expect, it } from 'vitest';
import { realEnvironment } from '../../../src/base/env.ts';
import { CorruptionError } from '../../../src/base/errors.ts';
import { Pacer } from '../../../src/base/pacer.ts';
import { IndexChanges } from '../../../src/merge/index-changes.ts';
import { openNode } from '../../../src/format/node.ts';
import { TableShape } from '../../../src/schema/table-shape.ts';
import type { TableIndex } from '../../../src/schema/table-shape.ts';
import { objects, schema } from '../../features/golden/samples.ts';

describe('a row that is there twice', () => {
  it('ends a merge with an error that names the index', async () => {
    const shape = new TableShape(schema);
    const leaf = openNode(objects['table-leaf'].name, objects['table-leaf'].bytes);
    const row = { source: leaf, base: leaf.rowBase(0) };
    const changes = new IndexChanges(shape, shape.indexes[0] as TableIndex, undefined, null);
    for (let i = 0; i < 2; i++) changes.add(undefined, row, leaf.key(0));
    const stream = await changes.take(new Pacer(realEnvironment));
    expect(() => stream.advance()).toThrow(CorruptionError);
  });
});
