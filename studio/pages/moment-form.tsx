/** Chooses a moment: a generation, a time or a snapshot. */
import { useState } from 'preact/hooks';
import type { Moment, Moments } from '../../src/studio/messages.ts';
import { NoValue, parseValue } from '../model/values.ts';
import { Button, Select } from '../parts/basics.tsx';

export interface MomentFormProps {
  readonly label: string;
  readonly moments: Moments | undefined;
  readonly button: string;
  readonly onChoose: (at: Moment) => void;
}

export type MomentKind = 'generation' | 'time';

/** Returns the moment that was typed. Throws {@link NoValue}. */
export function parseMoment(kind: MomentKind, text: string): Moment {
  if (kind === 'generation') {
    const generation = Number(text.replaceAll(',', ''));
    if (!/^[\d,]+$/.test(text.trim()) || !Number.isSafeInteger(generation))
      throw new NoValue('A generation is a whole number.');
    return { generation };
  }
  return { time: String(parseValue('timestamp', text, 'The field')) };
}

export interface MomentInputProps {
  readonly label: string;
  readonly kind: MomentKind;
  readonly text: string;
  readonly onChange: (kind: MomentKind, text: string) => void;
  readonly onEnter?: () => void;
}

export function MomentInput({ label, kind, text, onChange, onEnter }: MomentInputProps): preact.JSX.Element {
  return (
    <span class="moment-input">
      <Select
        label={`${label}: kind`}
        options={[
          ['time', 'Time (UTC)'],
          ['generation', 'Generation'],
        ]}
        value={kind}
        onChange={(next) => onChange(next, '')}
      />
      <input
        type="text"
        aria-label={label}
        placeholder={kind === 'time' ? '2026-01-31 12:00' : '1'}
        value={text}
        onInput={(event) => onChange(kind, event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter') onEnter?.();
        }}
      />
    </span>
  );
}

export function MomentForm({ label, moments, button, onChoose }: MomentFormProps): preact.JSX.Element {
  const [[kind, text], setTyped] = useState<readonly [MomentKind, string]>(['time', '']);
  const [problem, setProblem] = useState('');
  const choose = (): void => {
    try {
      const at = parseMoment(kind, text);
      if (moments !== undefined && 'generation' in at && at.generation > moments.generation) {
        throw new NoValue(`The newest generation is ${moments.generation}.`);
      }
      setProblem('');
      onChoose(at);
    } catch (error) {
      if (!(error instanceof NoValue)) throw error;
      setProblem(error.message);
    }
  };
  return (
    <div class="parts">
      <MomentInput label={label} kind={kind} text={text} onChange={(...typed) => setTyped(typed)} onEnter={choose} />
      <Button onClick={choose}>{button}</Button>
      {problem !== '' && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
    </div>
  );
}
