/** A row before and after a change, field by field. */
import type { Row, TableInfo } from '../../src/studio/messages.ts';
import { cellText } from '../model/format.ts';
import type { TypeName } from '../model/format.ts';

export interface DifferenceProps {
  readonly table: TableInfo | undefined;
  readonly from: Row | null | undefined;
  readonly to: Row | null | undefined;
  readonly names: readonly [from: string, to: string];
}

/** Shows only the fields that differ, unless the row is new or gone. `undefined` is a row that is not known any more. */
export function Difference({ table, from, to, names }: DifferenceProps): preact.JSX.Element {
  const typeOf = (name: string): TypeName | null => table?.fields.find((field) => field.name === name)?.type ?? null;
  const all = [...new Set([...Object.keys(from ?? {}), ...Object.keys(to ?? {})])];
  const text = (row: Row | null | undefined, name: string): string => {
    if (row === undefined) return '?';
    return row === null ? '–' : cellText(typeOf(name), row[name]);
  };
  const isSame = (name: string): boolean => JSON.stringify(from?.[name] ?? null) === JSON.stringify(to?.[name] ?? null);
  const both = from !== null && from !== undefined && to !== null && to !== undefined;
  const shown = both ? all.filter((name) => !isSame(name)) : all;
  if (shown.length === 0) return <p class="dim">No field differs.</p>;
  return (
    <div class="table-box" tabIndex={0} role="group" aria-label="Table">
      <table class="plain small difference">
        <thead>
          <tr>
            <th scope="col">Field</th>
            <th scope="col">{names[0]}</th>
            <th scope="col">{names[1]}</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((name) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td class={both ? 'before' : ''}>{text(from, name)}</td>
              <td class={both ? 'after' : ''}>{text(to, name)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
