/** A box for words, and how they are searched for, for tables with an index on texts. */
import { useEffect, useState } from 'preact/hooks';
import type { SearchAsked, TableInfo } from '../../src/studio/messages.ts';
import { Select } from './basics.tsx';

/** How words are searched for. */
export type SearchBy = { readonly [Name in keyof Omit<SearchAsked, 'text'>]: SearchAsked[Name] | undefined };

/** Whether a table can be searched. */
export function isSearchable({ indexes }: TableInfo): boolean {
  return indexes.some(({ isText }) => isText === true);
}

/** Returns a search for words, always with its properties in one order; undefined without words. */
function searchFor(text: string, { match, prefix, fuzzy, index }: SearchBy): SearchAsked | undefined {
  const words = text.trim();
  if (words === '') return undefined;
  return {
    text: words,
    ...(match === 'any' && { match }),
    ...(prefix === true && { prefix }),
    ...(fuzzy === true && { fuzzy }),
    ...(index !== undefined && { index }),
  };
}

export interface SearchBoxProps {
  readonly table: TableInfo;
  readonly search: SearchAsked | undefined;
  /** How words are searched for where nothing was chosen yet. */
  readonly first: SearchBy;
  /** Milliseconds after the last letter until the words apply. Default: they do on Enter, or when the box is left. */
  readonly delayMs?: number;
  readonly onChange: (search: SearchAsked | undefined) => void;
  /** Is told of Enter, after a change. */
  readonly onEnter?: () => void;
}

/** The words that people search for, and behind them how. */
export function SearchBox({ table, search, first, delayMs, onChange, onEnter }: SearchBoxProps): preact.JSX.Element {
  const [text, setText] = useState(search?.text ?? '');
  const [by, setBy] = useState<SearchBy>(search ?? first);
  const written = JSON.stringify(search);
  useEffect(() => {
    // A space behind the words is the beginning of the next one.
    if ((search?.text ?? '') !== text.trim()) setText(search?.text ?? '');
    if (search !== undefined) setBy(search);
  }, [written]);
  const apply = (words: string, how: SearchBy): void => {
    const next = searchFor(words, how);
    if (JSON.stringify(next) !== written) onChange(next);
  };
  useEffect(() => {
    if (delayMs === undefined) return undefined;
    const timer = setTimeout(() => apply(text, by), delayMs);
    return () => clearTimeout(timer);
  }, [text]);
  const choose = (part: SearchBy): void => {
    const how = { ...by, ...part };
    setBy(how);
    apply(text, how);
  };
  return (
    <div class="search-box" role="search">
      <input
        type="search"
        class="search-rows"
        aria-label={`Search ${table.name}`}
        placeholder={`Search ${fieldsOf(table, by.index).join(', ')}`}
        title={'"a phrase" in double quotes; - before a word leaves out rows with it'}
        value={text}
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => setText(event.currentTarget.value)}
        onBlur={(event) => apply(event.currentTarget.value, by)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter') return;
          apply(event.currentTarget.value, by);
          onEnter?.();
        }}
      />
      {(delayMs === undefined || text !== '') && <Options table={table} by={by} onChoose={choose} />}
    </div>
  );
}

/** Returns the fields that a search looks at. */
function fieldsOf({ indexes }: TableInfo, name: string | undefined): readonly string[] {
  const all = indexes.filter(({ isText }) => isText === true);
  const found = all.find((index) => (name === undefined ? !index.isPartial : index.name === name)) ?? all[0];
  return found?.fields ?? [];
}

interface OptionsProps {
  readonly table: TableInfo;
  readonly by: SearchBy;
  readonly onChoose: (part: SearchBy) => void;
}

function Options({ table, by, onChoose }: OptionsProps): preact.JSX.Element {
  const names = table.indexes.filter(({ isText }) => isText === true).map(({ name }) => name);
  return (
    <>
      <Select
        label="Words that a row must have"
        options={[
          ['all', 'all words'],
          ['any', 'any word'],
        ]}
        value={by.match ?? 'all'}
        onChange={(match) => onChoose({ match })}
      />
      {names.length > 1 && (
        <Select
          label="Index that is searched"
          options={[['', 'first index'], ...names.map((name) => [name, name] as const)]}
          value={by.index ?? ''}
          onChange={(index) => onChoose({ index: index === '' ? undefined : index })}
        />
      )}
      <Check
        label="beginnings"
        title="The last word also stands for words that begin with it"
        isChecked={by.prefix === true}
        onChange={(prefix) => onChoose({ prefix })}
      />
      <Check
        label="misspelled"
        title="Words in which a letter or two differ are found, too"
        isChecked={by.fuzzy === true}
        onChange={(fuzzy) => onChoose({ fuzzy })}
      />
    </>
  );
}

interface CheckProps {
  readonly label: string;
  readonly title: string;
  readonly isChecked: boolean;
  readonly onChange: (isChecked: boolean) => void;
}

function Check({ label, title, isChecked, onChange }: CheckProps): preact.JSX.Element {
  return (
    <label class="check" title={title}>
      <input type="checkbox" checked={isChecked} onChange={(event) => onChange(event.currentTarget.checked)} />
      {label}
    </label>
  );
}
