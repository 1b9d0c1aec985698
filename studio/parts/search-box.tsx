/** A box for words, and how they are searched for, for tables with an index on texts. */
import { useEffect, useLayoutEffect, useState } from 'preact/hooks';
import type { IndexInfo, SearchAsked, TableInfo } from '../../src/studio/messages.ts';
import { Check, Select } from './basics.tsx';
import { SearchedFields } from './searched-fields.tsx';

/** How words are searched for. */
export type SearchBy = { readonly [Name in keyof Omit<SearchAsked, 'text'>]: SearchAsked[Name] | undefined };

/** Whether a table can be searched. */
export function isSearchable({ indexes }: TableInfo): boolean {
  return indexes.some(({ isText }) => isText === true);
}

/** Returns a search for words, always with its properties in one order; undefined without words. */
function searchFor(text: string, by: SearchBy): SearchAsked | undefined {
  const { match, prefix, fuzzy, fields, weights, index } = by;
  const words = text.trim();
  if (words === '') return undefined;
  return {
    text: words,
    ...(match === 'any' && { match }),
    ...(prefix === true && { prefix }),
    ...(fuzzy === true && { fuzzy }),
    ...(fields !== undefined && { fields }),
    ...(weights !== undefined && { weights }),
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
  // Before the browser paints: what is typed after that is kept.
  useLayoutEffect(() => {
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
        placeholder={`Search ${(by.fields ?? searchedIndex(table, by.index)?.fields ?? []).join(', ')}`}
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

/** Returns the index that a search looks at, also if it searches some of its fields only. */
function searchedIndex({ indexes }: TableInfo, name: string | undefined): IndexInfo | undefined {
  const all = indexes.filter(({ isText }) => isText === true);
  return all.find((index) => (name === undefined ? !index.isPartial : index.name === name)) ?? all[0];
}

interface OptionsProps {
  readonly table: TableInfo;
  readonly by: SearchBy;
  readonly onChoose: (part: SearchBy) => void;
}

function Options({ table, by, onChoose }: OptionsProps): preact.JSX.Element {
  const names = table.indexes.filter(({ isText }) => isText === true).map(({ name }) => name);
  const searched = searchedIndex(table, by.index);
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
          onChange={(index) => {
            // The other index has other fields.
            onChoose({ index: index === '' ? undefined : index, fields: undefined, weights: undefined });
          }}
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
      {searched !== undefined && searched.fields.length > 1 && (
        <SearchedFields
          key={searched.name}
          index={searched}
          fields={by.fields}
          weights={by.weights}
          onChoose={onChoose}
        />
      )}
    </>
  );
}
