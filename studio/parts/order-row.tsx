/** A field, or a path into one, by which rows are sorted, and the direction. */
import type { Order, TableInfo } from '../../src/studio/messages.ts';
import { Button, Select } from './basics.tsx';
import { FieldChoice, isOrdered } from './field-choice.tsx';

export interface OrderRowProps {
  readonly order: Order;
  readonly table: TableInfo;
  /** The names to choose from, in place of the fields of the table: those of groups. */
  readonly names?: readonly string[] | undefined;
  /** Whether a path that is not typed yet takes the focus. */
  readonly isFocused?: boolean;
  readonly onChange: (order: Order | undefined) => void;
}

export function OrderRow({ order, table, names, isFocused, onChange }: OrderRowProps): preact.JSX.Element {
  const choose = (field: string): void => onChange({ ...order, field });
  return (
    <span class="part">
      {names === undefined ? (
        <FieldChoice
          label="Sorted by"
          table={table}
          field={order.field}
          takes={isOrdered}
          isFocused={isFocused ?? false}
          onChange={choose}
        />
      ) : (
        <Select
          label="Sorted by"
          options={names.map((name) => [name, name] as const)}
          value={order.field}
          onChange={choose}
        />
      )}
      <Select
        label={`Direction of ${order.field}`}
        options={[
          ['asc', 'up'],
          ['desc', 'down'],
        ]}
        value={order.direction}
        onChange={(direction) => onChange({ ...order, direction })}
      />
      <Button kind="quiet" icon="close" label={`Do not sort by ${order.field}`} onClick={() => onChange(undefined)} />
    </span>
  );
}
