/** Where the words of a search are in the texts of a row. */
import { prepareTexts } from '../../schema/text-indexes.ts';
import type { TableShape } from '../../schema/table-shape.ts';
import type { TextFields } from '../../schema/text-fields.ts';
import { CompiledSearch } from './compiled-search.ts';
import { requireTextIndex } from '../conditions/search-options.ts';
import type { TextSpan, WrittenSearch } from '../conditions/search-options.ts';

/** Returns where the words of a search are in the texts that an object has in the searched fields, by the name of the field. */
export async function highlight(
  shape: TableShape,
  search: WrittenSearch,
  row: Readonly<Record<string, unknown>>,
): Promise<Record<string, readonly TextSpan[]>> {
  const searched = requireTextIndex(shape, search.options);
  await prepareTexts([searched.index]);
  const compiled = new CompiledSearch(searched, search);
  const { fields } = searched.index.text as TextFields;
  const spans: Record<string, readonly TextSpan[]> = {};
  for (const [i, { name }] of fields.entries()) {
    const text = Object.hasOwn(row, name) ? row[name] : undefined;
    if (typeof text === 'string' && (searched.weights[i] as number) > 0) spans[name] = compiled.spansIn(text);
  }
  return spans;
}
