/** A list of the fields of a table, and of paths into its json fields, also of those that people type. */
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { TableInfo } from '../../src/studio/messages.ts';
import { jsonFieldOf } from '../model/values.ts';
import type { ComparedType } from '../model/values.ts';
import { Select } from './basics.tsx';

/**
 * Returns the fields of a table with some types, the paths that its indexes read, and for each json field a path that people type:
 * `address.`
 */
function choicesOf(
  { fields, paths }: TableInfo,
  takes: (type: ComparedType) => boolean,
): readonly (readonly [name: string, text: string])[] {
  const own = (name: string, type: ComparedType): (readonly [string, string])[] => (takes(type) ? [[name, name]] : []);
  return fields.flatMap(({ name, type }) => {
    const known = paths.filter((path) => path.name.startsWith(`${name}.`));
    return [
      ...own(name, type),
      ...(type === 'json' ? known : []).flatMap((path) => own(path.name, path.type === 'json' ? 'any' : path.type)),
      ...(type === 'json' && takes('any') ? [[`${name}.`, `${name}. …`] as const] : []),
    ];
  });
}

/** Returns the paths of which people type the keys: `address.` for each json field. */
export function pathStarts({ fields }: TableInfo): readonly string[] {
  return fields.filter(({ type }) => type === 'json').map(({ name }) => `${name}.`);
}

/** Whether rows are sorted and grouped by a type: json as a whole has no order. */
export function isOrdered(type: ComparedType): boolean {
  return type !== 'json';
}

/** Returns the choice that stands for a field or a path. */
export function choiceOf(table: TableInfo, name: string): string {
  const json = jsonFieldOf(table, name);
  return json === undefined || table.paths.some((path) => path.name === name) ? name : `${json}.`;
}

export interface FieldChoiceProps {
  readonly label: string;
  readonly table: TableInfo;
  /** The field or the path; a json field and a dot while its path is not typed. */
  readonly field: string;
  /** Whether fields of a type can be chosen; any: paths that no index reads. Default: all. */
  readonly takes?: (type: ComparedType) => boolean;
  /** Whether a path that is not typed yet takes the focus. */
  readonly isFocused?: boolean;
  readonly onChange: (field: string) => void;
}

export function FieldChoice(props: FieldChoiceProps): preact.JSX.Element {
  const { label, table, field, takes = () => true, isFocused = false, onChange } = props;
  const choice = choiceOf(table, field);
  return (
    <>
      <Select label={label} options={choicesOf(table, takes)} value={choice} onChange={onChange} />
      {jsonFieldOf(table, field) !== undefined && choice.endsWith('.') && (
        <PathInput root={choice} field={field} isFocused={isFocused && field === choice} onApply={onChange} />
      )}
    </>
  );
}

interface PathInputProps {
  /** The json field and a dot. */
  readonly root: string;
  readonly field: string;
  /** Whether it takes the focus at first. */
  readonly isFocused: boolean;
  readonly onApply: (field: string) => void;
}

/** The keys of a path behind its field. They apply on Enter, or when they are left. */
function PathInput({ root, field, isFocused, onApply }: PathInputProps): preact.JSX.Element {
  const [keys, setKeys] = useState(field.slice(root.length));
  // Before the browser paints: what is typed after that is kept.
  useLayoutEffect(() => setKeys(field.slice(root.length)), [field]);
  const element = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => {
    if (isFocused) element.current?.focus();
  }, []);
  const apply = (): void => {
    if (root + keys.trim() !== field) onApply(root + keys.trim());
  };
  return (
    <input
      ref={element}
      type="text"
      class="path"
      aria-label={`Path in ${root.slice(0, -1)}`}
      placeholder="city"
      title="Keys with dots between them; a number is a place in a list, from 0"
      value={keys}
      spellcheck={false}
      autocomplete="off"
      onInput={(event) => setKeys(event.currentTarget.value)}
      onBlur={apply}
      onKeyDown={(event) => {
        if (event.key === 'Enter') apply();
      }}
    />
  );
}
