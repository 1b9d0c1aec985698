/** Which fields of an index on texts are searched, and how much the words of each count. */
import { useLayoutEffect, useState } from 'preact/hooks';
import type { IndexInfo, SearchAsked } from '../../src/studio/messages.ts';
import { Check } from './basics.tsx';

type Weights = NonNullable<SearchAsked['weights']>;

/** Returns the weight of a field, if it has one. */
function weightIn(weights: Weights, field: string): number | undefined {
  return Object.hasOwn(weights, field) ? weights[field] : undefined;
}

export interface SearchedFieldsProps {
  readonly index: IndexInfo;
  /** The fields that are searched; undefined: all. */
  readonly fields: readonly string[] | undefined;
  /** Weights other than those of the index. */
  readonly weights: Weights | undefined;
  readonly onChoose: (part: { fields: readonly string[] | undefined; weights: Weights | undefined }) => void;
}

/** The fields of an index, behind a line that says which are searched. */
export function SearchedFields({ index, fields, weights = {}, onChoose }: SearchedFieldsProps): preact.JSX.Element {
  const [wrong, setWrong] = useState('');
  const all = index.fields;
  const searched = all.filter((name) => fields?.includes(name) ?? true);
  // A field that is not searched has no weight.
  const choose = (names: readonly string[], weighed: Weights): void => {
    const kept = names.flatMap((name) => {
      const weight = weightIn(weighed, name);
      return weight === undefined ? [] : [[name, weight] as const];
    });
    onChoose({
      fields: names.length === all.length ? undefined : names,
      weights: kept.length === 0 ? undefined : Object.fromEntries(kept),
    });
  };
  const weigh = (field: string, text: string): void => {
    const { [field]: _, ...others } = weights;
    const weight = text === '' ? undefined : Number(text);
    const isWeight = weight === undefined || (Number.isFinite(weight) && weight > 0);
    setWrong(isWeight ? '' : field);
    if (isWeight) choose(searched, weight === undefined ? others : { ...others, [field]: weight });
  };
  return (
    <details class="searched">
      <summary>
        {searched.length === all.length ? 'in all fields' : `in ${(fields ?? []).join(', ')}`}
        {Object.keys(weights).length > 0 && ', with weights'}
      </summary>
      <div class="searched-fields">
        {all.map((name) => {
          const isSearched = searched.includes(name);
          return (
            <span class="part" key={name}>
              <Check
                label={name}
                title={`Whether ${name} is searched`}
                isChecked={isSearched}
                isDisabled={isSearched && searched.length === 1}
                onChange={(isChosen) => {
                  setWrong('');
                  choose(
                    all.filter((each) => (each === name ? isChosen : searched.includes(each))),
                    weights,
                  );
                }}
              />
              <WeightInput
                field={name}
                weight={weightIn(weights, name)}
                usual={weightIn(index.weights ?? {}, name) ?? 1}
                isWrong={wrong === name}
                isDisabled={!isSearched}
                onApply={(text) => weigh(name, text)}
              />
            </span>
          );
        })}
        {wrong !== '' && (
          <p class="problem" role="alert">
            The weight of {wrong} is a number above 0; left empty, it is that of the index.
          </p>
        )}
      </div>
    </details>
  );
}

interface WeightInputProps {
  readonly field: string;
  readonly weight: number | undefined;
  /** The weight that the index gives the field. */
  readonly usual: number;
  readonly isWrong: boolean;
  readonly isDisabled: boolean;
  readonly onApply: (text: string) => void;
}

/** The weight of a field. It applies on Enter, or when it is left. */
function WeightInput({ field, weight, usual, isWrong, isDisabled, onApply }: WeightInputProps): preact.JSX.Element {
  const written = weight === undefined ? '' : String(weight);
  const [text, setText] = useState(written);
  // Before the browser paints: what is typed after that is kept.
  useLayoutEffect(() => setText(written), [written]);
  const apply = (): void => {
    if (text.trim() !== written || isWrong) onApply(text.trim());
  };
  return (
    <span class="number-input">
      ×
      <input
        type="text"
        inputMode="decimal"
        aria-label={`Weight of ${field}`}
        aria-invalid={isWrong}
        title={`How much the words of ${field} count`}
        placeholder={String(usual)}
        value={text}
        disabled={isDisabled}
        autocomplete="off"
        onInput={(event) => setText(event.currentTarget.value)}
        onBlur={apply}
        onKeyDown={(event) => {
          if (event.key === 'Enter') apply();
        }}
      />
    </span>
  );
}
