/** A row in full, beside the list: its values, and with a writable Studio the forms that change, insert and delete it. */
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Cell, FieldInfo, Moment, Row, TableInfo } from '../../src/studio/messages.ts';
import { call, failureOf } from '../model/api.ts';
import type { CallFailure } from '../model/api.ts';
import { cellText } from '../model/format.ts';
import { announce, stateText } from '../model/state.ts';
import { useCall } from '../model/use-call.ts';
import { editText, NoValue, parseValue } from '../model/values.ts';
import { Button, Dialog, Failure } from '../parts/basics.tsx';
import { ValueView } from '../parts/value.tsx';

export interface RowPanelProps {
  readonly table: TableInfo;
  /** The key of the row; undefined for a row that is to be inserted. */
  readonly rowKey: readonly Cell[] | undefined;
  readonly at: Moment | undefined;
  readonly isWritable: boolean;
  readonly onClose: () => void;
  /** Is told after a change, with the key of the row that is to be shown next. */
  readonly onSaved: (key: readonly Cell[] | undefined) => void;
}

/** Returns the key of a row. */
export function keyOf(table: Pick<TableInfo, 'primaryKey'>, row: Row): readonly Cell[] {
  return table.primaryKey.map((name) => row[name]);
}

export function RowPanel(props: RowPanelProps): preact.JSX.Element {
  const { table, rowKey, at, isWritable, onClose, onSaved } = props;
  const [isEditing, setEditing] = useState(false);
  const panel = useRef<HTMLElement>(null);
  const key = JSON.stringify([table.name, rowKey, at]);
  const answer = useCall(
    `${key} ${at === undefined ? stateText.value : ''}`,
    rowKey === undefined
      ? undefined
      : (signal) => call('row', { table: table.name, key: rowKey, ...(at && { at }) }, signal),
  );
  useLayoutEffect(() => setEditing(false), [key]);
  const row = answer.value?.row;
  const isNew = rowKey === undefined;
  const title = isNew ? `New row of ${table.name}` : rowKey.map((part) => cellText(null, part)).join(', ');
  const mayEdit = isWritable && at === undefined;
  return (
    <aside
      class="panel"
      ref={panel}
      aria-label={isNew ? title : `Row ${title}`}
      onKeyDown={(event) => {
        if (event.key === 'Escape' && !isEditing && !isNew) onClose();
      }}
    >
      <header class="panel-head">
        <h2>{title}</h2>
        {mayEdit && row !== null && row !== undefined && !isEditing && (
          <Button onClick={() => setEditing(true)}>Edit</Button>
        )}
        <Button kind="quiet" icon="close" label="Close the row" onClick={onClose} />
      </header>
      <div class="panel-body">
        <Failure failure={answer.failure} onRetry={answer.retry} />
        {!isNew && row === null && <p class="notice">This row is not there (any more).</p>}
        {(isNew || (isEditing && row !== null && row !== undefined)) && (
          <RowForm
            key={key}
            table={table}
            row={isNew ? null : (row as Row)}
            onCancel={() => (isNew ? onClose() : setEditing(false))}
            onSaved={(next) => {
              setEditing(false);
              answer.retry();
              onSaved(next === null ? undefined : keyOf(table, next));
            }}
          />
        )}
        {!isNew && !isEditing && row !== null && row !== undefined && (
          <dl class="fields">
            {table.fields.map(({ name, type }) => (
              <div key={name}>
                <dt>
                  {name} <span class="dim">{type}</span>
                </dt>
                <dd>
                  <ValueView
                    type={type}
                    value={row[name]}
                    {...(type === 'blob' && { blob: { table: table.name, key: rowKey, field: name, at } })}
                  />
                </dd>
              </div>
            ))}
          </dl>
        )}
      </div>
    </aside>
  );
}

/** What takes the focus when a form opens: its first field that can be changed. */
const firstOfForm = 'input:read-write, textarea, select:enabled';

/** Values as they are typed: null, or a text. */
type Typed = Readonly<Record<string, string | null>>;

interface RowFormProps {
  readonly table: TableInfo;
  readonly row: Row | null;
  readonly onCancel: () => void;
  readonly onSaved: (row: Row | null) => void;
}

function RowForm({ table, row, onCancel, onSaved }: RowFormProps): preact.JSX.Element {
  // The row as it was when the form was opened, whatever others do meanwhile.
  const [before, setBefore] = useState(row);
  const typedOf = (from: Row | null): Typed =>
    Object.fromEntries(
      table.fields.map(({ name, type }) => {
        const value = from?.[name];
        return [name, value === null || value === undefined ? null : editText(type, value)];
      }),
    );
  const [typed, setTyped] = useState<Typed>(() => typedOf(row));
  const [problem, setProblem] = useState('');
  const [failure, setFailure] = useState<CallFailure | undefined>(undefined);
  const [isSaving, setSaving] = useState(false);
  const [isDeleting, setDeleting] = useState(false);
  const [conflict, setConflict] = useState<{ stored: Row | null; after: Row | null } | undefined>(undefined);
  const form = useRef<HTMLFormElement>(null);
  // Before the browser paints: a focus that moves later takes the text away that is typed into another field meanwhile.
  useLayoutEffect(() => {
    const first = form.current?.querySelector<HTMLElement>(firstOfForm) ?? form.current?.querySelector('button');
    first?.focus();
  }, []);
  const save = async (from: Row | null, after: Row | null): Promise<void> => {
    setSaving(true);
    setFailure(undefined);
    setConflict(undefined);
    try {
      const saved = await call('save', { table: table.name, before: from, after });
      if (saved.status === 'saved') {
        announce(after === null ? 'The row is deleted.' : 'The row is saved.');
        onSaved(saved.row);
      } else setConflict({ stored: saved.stored, after });
    } catch (error) {
      setFailure(failureOf(error));
    }
    setSaving(false);
  };
  const submit = (): void => {
    try {
      const after: Record<string, Cell> = {};
      for (const { name, type, hasDefault, required } of table.fields) {
        if (type === 'blob') {
          if (before !== null) after[name] = before[name];
          continue;
        }
        const text = typed[name] ?? null;
        const isKey = table.primaryKey.includes(name);
        if (text === null && (required || isKey) && !(before === null && hasDefault))
          throw new NoValue(`${name} needs a value.`);
        if (text === null && before === null) continue;
        // What was not touched stays as it is: a text may say less than its value.
        const old = before?.[name];
        after[name] =
          text === null
            ? null
            : before !== null && old !== null && editText(type, old) === text
              ? old
              : parseValue(type, text, name);
      }
      setProblem('');
      void save(before, after);
    } catch (error) {
      if (!(error instanceof NoValue)) throw error;
      setProblem(error.message);
    }
  };
  return (
    <form
      ref={form}
      class="row-form"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
      onKeyDown={(event) => {
        if (event.key === 'Escape') onCancel();
      }}
    >
      {table.fields.map((field) => (
        <FieldInput
          key={field.name}
          field={field}
          isFixed={before !== null && table.primaryKey.includes(field.name)}
          text={typed[field.name] ?? null}
          onChange={(text) => setTyped({ ...typed, [field.name]: text })}
        />
      ))}
      {problem !== '' && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      <Failure failure={failure} />
      <div class="buttons">
        <button type="submit" class="button primary" disabled={isSaving}>
          {before === null ? 'Insert' : 'Save'}
        </button>
        <Button onClick={onCancel}>Cancel</Button>
        {before !== null && (
          <Button kind="danger" onClick={() => setDeleting(true)}>
            Delete…
          </Button>
        )}
      </div>
      {isDeleting && (
        <Dialog title="Delete this row?" onClose={() => setDeleting(false)}>
          <p>The row of {table.name} goes, unless somebody has changed it meanwhile.</p>
          <div class="buttons">
            <Button
              kind="danger"
              onClick={() => {
                setDeleting(false);
                void save(before, null);
              }}
            >
              Delete
            </Button>
            <Button onClick={() => setDeleting(false)}>Keep it</Button>
          </div>
        </Dialog>
      )}
      {conflict !== undefined && (
        <Conflict
          table={table}
          before={before}
          mine={conflict.after}
          stored={conflict.stored}
          onClose={() => setConflict(undefined)}
          onMine={() => void save(conflict.stored, conflict.after)}
          onTheirs={() => {
            setConflict(undefined);
            if (conflict.stored === null) onSaved(null);
            else {
              setBefore(conflict.stored);
              setTyped(typedOf(conflict.stored));
            }
          }}
        />
      )}
    </form>
  );
}

interface FieldInputProps {
  readonly field: FieldInfo;
  readonly isFixed: boolean;
  readonly text: string | null;
  readonly onChange: (text: string | null) => void;
}

function FieldInput({ field, isFixed, text, onChange }: FieldInputProps): preact.JSX.Element {
  const { name, type, required, oneOf, hasDefault, maxLength } = field;
  const id = `field-${name}`;
  const choices = type === 'boolean' ? ['true', 'false'] : oneOf?.map(String);
  // Decided once: another element would take the focus away while one types.
  const [isLong] = useState(() => type === 'json' || (type === 'varchar' && (text?.length ?? 0) > 60));
  const hint = type === 'bytes' ? 'hexadecimal digits' : type === 'timestamp' ? 'a time in UTC' : type;
  const notes = [hint, required ? undefined : 'may be null', hasDefault ? 'has a default' : undefined];
  const control = ((): preact.JSX.Element => {
    if (type === 'blob') return <p class="dim">{text ?? 'null'} (blobs stay as they are)</p>;
    if (choices !== undefined) {
      return (
        <select
          id={id}
          disabled={isFixed}
          value={text ?? ''}
          onChange={(event) => onChange(event.currentTarget.value === '' ? null : event.currentTarget.value)}
        >
          <option value="">{required ? '…' : 'null'}</option>
          {choices.map((each) => (
            <option key={each} value={each}>
              {each}
            </option>
          ))}
        </select>
      );
    }
    const shared = {
      id,
      value: text ?? '',
      placeholder: text === null ? 'null' : '',
      readOnly: isFixed,
      spellcheck: false,
      autocomplete: 'off',
      ...(type === 'varchar' && maxLength !== undefined && { maxLength }),
    };
    return isLong ? (
      <textarea {...shared} rows={type === 'json' ? 6 : 4} onInput={(event) => onChange(event.currentTarget.value)} />
    ) : (
      <input {...shared} type="text" onInput={(event) => onChange(event.currentTarget.value)} />
    );
  })();
  return (
    <div class="field">
      <label for={type === 'blob' ? undefined : id}>
        {name} <span class="dim">{notes.filter((note) => note !== undefined).join(', ')}</span>
      </label>
      <div class="field-control">
        {control}
        {!required && !isFixed && text !== null && type !== 'blob' && choices === undefined && (
          <Button kind="quiet" label={`Set ${name} to null`} onClick={() => onChange(null)}>
            null
          </Button>
        )}
      </div>
    </div>
  );
}

interface ConflictProps {
  readonly table: TableInfo;
  readonly before: Row | null;
  readonly mine: Row | null;
  readonly stored: Row | null;
  readonly onClose: () => void;
  readonly onMine: () => void;
  readonly onTheirs: () => void;
}

/** Shows what is stored beside what was to be saved. */
function Conflict({ table, before, mine, stored, onClose, onMine, onTheirs }: ConflictProps): preact.JSX.Element {
  const text = (row: Row | null, { name, type }: FieldInfo): string => (row === null ? '–' : cellText(type, row[name]));
  return (
    <Dialog title="Somebody changed this row meanwhile" isWide onClose={onClose}>
      <p>
        {stored === null
          ? 'It was deleted.'
          : before === null
            ? 'A row with this key is there already.'
            : 'Nothing was written.'}{' '}
        Fields that differ are marked.
      </p>
      <div class="table-box" tabIndex={0} role="group" aria-label="Table">
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">Field</th>
              {before !== null && <th scope="col">When you opened it</th>}
              <th scope="col">Stored now</th>
              <th scope="col">Yours</th>
            </tr>
          </thead>
          <tbody>
            {table.fields.map((field) => {
              const [theirs, ours] = [text(stored, field), text(mine, field)];
              return (
                <tr key={field.name} class={theirs === ours ? '' : 'differs'}>
                  <th scope="row">{field.name}</th>
                  {before !== null && <td>{text(before, field)}</td>}
                  <td>{theirs}</td>
                  <td>{mine === null ? 'deleted' : ours}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      <div class="buttons">
        <Button kind="primary" onClick={onTheirs}>
          Take what is stored
        </Button>
        <Button kind="danger" onClick={onMine}>
          Save mine over it
        </Button>
        <Button onClick={onClose}>Go on editing</Button>
      </div>
    </Dialog>
  );
}
