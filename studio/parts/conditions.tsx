/** A row of conditions on fields, with the operators that fit the type of each. */
import { useLayoutEffect, useState } from 'preact/hooks';
import type { Condition, TableInfo } from '../../src/studio/messages.ts';
import {
  comparedIn,
  conditionOf,
  draftOf,
  hintOf,
  isUnfinished,
  takesList,
  NoValue,
  operatorsOf,
} from '../model/values.ts';
import type { ComparedType, Draft } from '../model/values.ts';
import { Button, Select } from './basics.tsx';
import { choiceOf, FieldChoice } from './field-choice.tsx';

export interface ConditionsProps {
  readonly table: TableInfo;
  readonly where: readonly Condition[];
  readonly onChange: (where: readonly Condition[]) => void;
}

/** Shows conditions, and lets them be changed. They apply on Enter, or when a field is left. */
export function Conditions({ table, where, onChange }: ConditionsProps): preact.JSX.Element {
  const typeOf = (name: string): ComparedType => comparedIn(table, name).type;
  const written = JSON.stringify(where);
  const [drafts, setDrafts] = useState<readonly Draft[]>([]);
  const [problem, setProblem] = useState('');
  // Before the browser paints: what is typed after that is kept.
  useLayoutEffect(() => {
    setDrafts(where.map((condition) => draftOf(condition, typeOf(condition.field))));
    setProblem('');
  }, [written, table.name]);
  const apply = (next: readonly Draft[]): void => {
    setDrafts(next);
    try {
      const complete = next.filter(
        ({ field, operator, text }) =>
          !isUnfinished(table, field) && (operator === 'null' || operator === 'not null' || text !== ''),
      );
      const conditions = complete
        .filter(({ operator, second }) => operator !== 'BETWEEN' || second !== '')
        .map((draft) => conditionOf(draft, typeOf(draft.field)));
      setProblem('');
      if (JSON.stringify(conditions) !== written) onChange(conditions);
    } catch (error) {
      if (!(error instanceof NoValue)) throw error;
      setProblem(error.message);
    }
  };
  const change = (at: number, part: Partial<Draft>): readonly Draft[] =>
    drafts.map((draft, i) => (i === at ? { ...draft, ...part } : draft));
  const first = table.indexes.find(({ fields }) => fields.length > 0)?.fields[0] ?? table.fields[0]?.name ?? '';
  const add = (): void => {
    if (first === '') return;
    const operator = operatorsOf(comparedIn(table, first))[0]?.[0] ?? '=';
    setDrafts([...drafts, { field: first, operator, text: '', second: '' }]);
  };
  return (
    <div class="conditions" role="group" aria-label="Conditions">
      {drafts.map((draft, at) => (
        <DraftRow
          // Rows have no identity but their place.
          key={`${at} ${choiceOf(table, draft.field)}`}
          draft={draft}
          table={table}
          onEdit={(part) => setDrafts(change(at, part))}
          onApply={(part) => apply(change(at, part))}
          onRemove={() => apply(drafts.filter((_, i) => i !== at))}
        />
      ))}
      <Button kind="quiet" icon="plus" onClick={add}>
        Condition
      </Button>
      {problem !== '' && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
    </div>
  );
}

interface DraftRowProps {
  readonly draft: Draft;
  readonly table: TableInfo;
  readonly onEdit: (part: Partial<Draft>) => void;
  readonly onApply: (part: Partial<Draft>) => void;
  readonly onRemove: () => void;
}

function DraftRow({ draft, table, onEdit, onApply, onRemove }: DraftRowProps): preact.JSX.Element {
  const compared = comparedIn(table, draft.field);
  const { type, oneOf } = compared;
  const takesValue = draft.operator !== 'null' && draft.operator !== 'not null';
  const choices =
    type === 'boolean'
      ? ['true', 'false']
      : oneOf !== undefined && !takesList(draft.operator)
        ? oneOf.map(String)
        : undefined;
  const changeField = (name: string): void => {
    const next = comparedIn(table, name);
    const operators = operatorsOf(next);
    const operator = operators.find(([each]) => each === draft.operator)?.[0] ?? operators[0]?.[0] ?? '=';
    onApply({ field: name, operator, ...(next.type !== type && { text: '', second: '' }) });
  };
  const input = (name: 'text' | 'second', label: string): preact.JSX.Element => (
    <input
      type="text"
      aria-label={label}
      placeholder={hintOf(type, draft.operator)}
      value={draft[name]}
      spellcheck={false}
      autocomplete="off"
      onInput={(event) => onEdit({ [name]: event.currentTarget.value })}
      onBlur={(event) => onApply({ [name]: event.currentTarget.value })}
      onKeyDown={(event) => {
        if (event.key === 'Enter') onApply({ [name]: event.currentTarget.value });
      }}
    />
  );
  return (
    <div class="condition">
      <FieldChoice label="Field" table={table} field={draft.field} onChange={changeField} />
      <Select
        label={`How ${draft.field} is compared`}
        options={operatorsOf(compared)}
        value={draft.operator}
        onChange={(operator) => onApply({ operator })}
      />
      {takesValue &&
        (choices === undefined ? (
          input('text', `Value of ${draft.field}`)
        ) : (
          <Select
            label={`Value of ${draft.field}`}
            options={[['', '…'], ...choices.map((each) => [each, each] as const)]}
            value={draft.text}
            onChange={(text) => onApply({ text })}
          />
        ))}
      {draft.operator === 'BETWEEN' && input('second', `Last value of ${draft.field}`)}
      <Button kind="quiet" icon="close" label={`Remove the condition on ${draft.field}`} onClick={onRemove} />
    </div>
  );
}
