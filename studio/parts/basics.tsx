/** Small parts of all pages: icons, buttons, notices, dialogs, bars. */
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { CallProgress } from '../../src/studio/messages.ts';
import type { CallFailure } from '../model/api.ts';
import { countText } from '../model/format.ts';
import { announce } from '../model/state.ts';

const paths = {
  tables: 'M2 3h12v10H2zM2 6.5h12M6 6.5V13',
  query: 'M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zM10.5 10.5 14 14',
  storage: 'M2 2.5h7v11H2zM9 2.5h5v6H9zM9 8.5h5v5H9z',
  time: 'M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2zM8 4.5V8l2.5 1.8',
  health: 'M1.5 8.5h3l2-5 3 9 2-4h3',
  bill: 'M3.5 1.5h9v13l-2.2-1.4L8 14.5l-2.3-1.4-2.2 1.4zM6 5h4M6 8h4',
  key: 'M5.5 6.5a3 3 0 1 1 0 3zM8.4 8H14v2M11.5 8v1.5',
  up: 'M8 13V3.5M4 7l4-4 4 4',
  down: 'M8 3v9.5M4 9l4 4 4-4',
  close: 'M3.5 3.5l9 9M12.5 3.5l-9 9',
  plus: 'M8 3v10M3 8h10',
  moon: 'M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5z',
  sun: 'M8 5a3 3 0 1 1 0 6 3 3 0 0 1 0-6zM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1',
  auto: 'M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2zM8 2v12M8 5h4.5M8 8h6M8 11h4.5',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  download: 'M8 2v8M4.5 7 8 10.5 11.5 7M2.5 13.5h11',
  right: 'M6 3.5 10.5 8 6 12.5',
  left: 'M10 3.5 5.5 8 10 12.5',
  help: 'M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2zM6.2 6.3a1.9 1.9 0 1 1 2.6 1.8c-.6.3-.8.6-.8 1.2M8 11.3v.4',
} as const;

export type IconName = keyof typeof paths;

/** A picture that says nothing by itself. */
export function Icon({ name }: { readonly name: IconName }): preact.JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={paths[name]} />
    </svg>
  );
}

export interface ButtonProps {
  readonly children?: ComponentChildren;
  readonly icon?: IconName;
  /** What a screen reader says; needed where there is a picture only. */
  readonly label?: string;
  readonly kind?: 'primary' | 'danger' | 'quiet';
  readonly isPressed?: boolean;
  readonly isDisabled?: boolean;
  readonly isExpanded?: boolean;
  readonly onClick: () => void;
}

export function Button(props: ButtonProps): preact.JSX.Element {
  const { children, icon, label, kind, isPressed, isDisabled, isExpanded, onClick } = props;
  return (
    <button
      type="button"
      class={`button${kind === undefined ? '' : ` ${kind}`}${children === undefined ? ' square' : ''}`}
      aria-label={label}
      title={label}
      aria-pressed={isPressed}
      aria-expanded={isExpanded}
      disabled={isDisabled}
      onClick={onClick}
    >
      {icon !== undefined && <Icon name={icon} />}
      {children}
    </button>
  );
}

/** Buttons of which one is chosen. */
export function Choice<T extends string>({ label, options, value, onChange }: ChoiceProps<T>): preact.JSX.Element {
  return (
    <div class="choice" role="group" aria-label={label}>
      {options.map(([name, text]) => (
        <button key={name} type="button" aria-pressed={name === value} onClick={() => onChange(name)}>
          {text}
        </button>
      ))}
    </div>
  );
}

export interface ChoiceProps<T extends string> {
  readonly label: string;
  readonly options: readonly (readonly [value: T, text: string])[];
  readonly value: T;
  readonly onChange: (value: T) => void;
}

/** A list to choose from. */
export function Select<T extends string>({ label, options, value, onChange }: ChoiceProps<T>): preact.JSX.Element {
  return (
    <select aria-label={label} value={value} onChange={(event) => onChange(event.currentTarget.value as T)}>
      {options.map(([name, text]) => (
        <option key={name} value={name} selected={name === value}>
          {text}
        </option>
      ))}
    </select>
  );
}

export interface CheckProps {
  readonly label: string;
  readonly title: string;
  readonly isChecked: boolean;
  readonly isDisabled?: boolean;
  readonly onChange: (isChecked: boolean) => void;
}

/** A choice between yes and no. */
export function Check({ label, title, isChecked, isDisabled, onChange }: CheckProps): preact.JSX.Element {
  return (
    <label class="check" title={title}>
      <input
        type="checkbox"
        checked={isChecked}
        disabled={isDisabled}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      {label}
    </label>
  );
}

/** Says what went wrong, and offers to try again. */
export function Failure({ failure, onRetry }: FailureProps): preact.JSX.Element | null {
  if (failure === undefined) return null;
  return (
    <div class="notice bad" role="alert">
      <p>
        {failure.message} <span class="dim">({failure.code})</span>
      </p>
      {onRetry !== undefined && <Button onClick={onRetry}>Try again</Button>}
    </div>
  );
}

export interface FailureProps {
  readonly failure: CallFailure | undefined;
  readonly onRetry?: () => void;
}

/** How far a call is, and a button that stops it. */
export function Progress({ progress, onStop, label }: ProgressProps): preact.JSX.Element | null {
  if (progress === undefined) return null;
  const { done, total, what } = progress;
  return (
    <div class="progress">
      <progress aria-label={label} max={total ?? 1} {...(total === undefined ? {} : { value: done })} />
      <span class="figures">
        {what}
        {done > 0 && `: ${countText(done)}${total === undefined ? '' : ` of ${countText(total)}`}`}
      </span>
      {onStop !== undefined && <Button onClick={onStop}>Stop</Button>}
    </div>
  );
}

export interface ProgressProps {
  readonly progress: CallProgress | undefined;
  readonly onStop?: () => void;
  readonly label: string;
}

/** A button that copies a text. */
export function Copy({ text, label }: { readonly text: string; readonly label: string }): preact.JSX.Element {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
      announce('Copied.');
      setTimeout(() => setCopied(false), 1500);
    } catch {
      announce('The browser did not allow to copy.');
    }
  };
  return (
    <Button icon="copy" label={label} onClick={() => void copy()}>
      {isCopied ? 'Copied' : 'Copy'}
    </Button>
  );
}

export interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  readonly isWide?: boolean;
}

/** A dialog: the browser keeps the focus in it, and Escape closes it. */
export function Dialog({ title, onClose, children, isWide }: DialogProps): preact.JSX.Element {
  const element = useRef<HTMLDialogElement>(null);
  // Before the browser paints: keys that are typed at once go to the dialog.
  useLayoutEffect(() => {
    const dialog = element.current;
    const before = document.activeElement;
    if (dialog?.open === false) dialog.showModal();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={element}
      class={isWide === true ? 'wide' : ''}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <header class="dialog-head">
        <h2>{title}</h2>
        <Button kind="quiet" icon="close" label="Close" onClick={onClose} />
      </header>
      {children}
    </dialog>
  );
}

/** What stands where there is nothing to show: in place of a whole page, or of a part of one. */
export function Empty({ title, isPage, children }: EmptyProps): preact.JSX.Element {
  return (
    <div class="empty">
      {isPage === true ? <h1>{title}</h1> : <h2>{title}</h2>}
      {children}
    </div>
  );
}

export interface EmptyProps {
  readonly title: string;
  readonly isPage?: boolean;
  readonly children?: ComponentChildren;
}

/** A figure with its name. */
export function Figure({ name, children, note }: FigureProps): preact.JSX.Element {
  return (
    <div class="figure">
      <dt>{name}</dt>
      <dd>{children}</dd>
      {note !== undefined && <dd class="dim">{note}</dd>}
    </div>
  );
}

export interface FigureProps {
  readonly name: string;
  readonly children: ComponentChildren;
  readonly note?: ComponentChildren;
}
