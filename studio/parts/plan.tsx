/** A plan as a picture: its steps as boxes, the plans that were not taken, and the index that is missing. */
import type { Explained } from '../../src/studio/messages.ts';
import { bytesText, countText, dollarsText, estimateText } from '../model/format.ts';
import { Copy } from './basics.tsx';

type Explanation = Explained['explanation'];
type Step = Explanation['steps'][number];

const stepNames: Readonly<Record<Step['step'], string>> = {
  index: 'Index',
  table: 'Table',
  filter: 'Filter',
  sort: 'Sort',
  result: 'Result',
};

function accessText({ access, index, indexes }: Pick<Explanation, 'access' | 'index' | 'indexes'>): string {
  if (access === 'search' && index !== undefined) return `by the words of index ${index}`;
  if (index !== undefined) return `by index ${index}`;
  if (indexes !== undefined) return `by indexes ${indexes.join(' and ')}`;
  const texts: Readonly<Record<string, string>> = {
    nothing: 'without reading',
    keys: 'by primary keys',
    table: 'by reading the table',
    union: 'by several ways together',
  };
  return texts[access] ?? access;
}

const figures: readonly (readonly [name: 'rows' | 'blocks' | 'requests' | 'dollars', label: string])[] = [
  ['rows', 'Rows'],
  ['blocks', 'Blocks'],
  ['requests', 'Requests'],
  ['dollars', 'Dollars'],
];

function figureText(name: string, value: number): string {
  return name === 'dollars' ? dollarsText(value) : estimateText(value);
}

function StepBox({ step, mostRows }: { readonly step: Step; readonly mostRows: number }): preact.JSX.Element {
  const rows = (step.actual ?? step.estimated).rows;
  return (
    <li class="step">
      <div class="step-head">
        <strong>{stepNames[step.step]}</strong>
        <span class="meter" aria-hidden="true">
          <span style={{ width: `${Math.max(1, (rows / Math.max(1, mostRows)) * 100)}%` }} />
        </span>
      </div>
      <p>{step.description}</p>
      <div class="table-box">
        <table class="plain small">
          <thead>
            <tr>
              <td />
              {figures.map(([name, label]) => (
                <th key={name} scope="col" class="number">
                  {label}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            <tr>
              <th scope="row">estimated</th>
              {figures.map(([name]) => (
                <td key={name} class="number">
                  {figureText(name, step.estimated[name])}
                </td>
              ))}
            </tr>
            {step.actual !== undefined && (
              <tr>
                <th scope="row">actual</th>
                {figures.map(([name]) => (
                  <td key={name} class="number">
                    {figureText(name, step.actual?.[name] ?? 0)}
                  </td>
                ))}
              </tr>
            )}
          </tbody>
        </table>
      </div>
      {step.actual !== undefined && step.actual.bytes > 0 && <p class="dim">{bytesText(step.actual.bytes)} read</p>}
    </li>
  );
}

export function Plan({ explained }: { readonly explained: Explained }): preact.JSX.Element {
  const { explanation, indexLine } = explained;
  const { steps, alternatives, missingIndex, indexesBeingAdded, readsBeforePlanning } = explanation;
  const mostRows = Math.max(...steps.map(({ estimated, actual }) => (actual ?? estimated).rows), 1);
  const mostCost = Math.max(...alternatives.map(({ relativeCost }) => relativeCost), 1);
  return (
    <div class="plan">
      <p>
        Reads <strong>{explanation.table}</strong> {accessText(explanation)}
        {explanation.descending && ', backwards'}
        {explanation.indexOnly && '; the index has all that is needed'}.
      </p>
      <ol class="steps">
        {steps.map((step, at) => (
          <StepBox key={`${at} ${step.step}`} step={step} mostRows={mostRows} />
        ))}
      </ol>
      {readsBeforePlanning && <p class="dim">When it runs, it reads a few blocks first, to choose better.</p>}
      {missingIndex !== undefined && (
        <div class="notice missing">
          <p>
            An index on <strong>{missingIndex.join(', ')}</strong> would spare most of the work.
          </p>
          {indexLine !== undefined && (
            <div class="copy-line">
              <pre tabIndex={0} role="group" aria-label="The line that creates the index">
                {indexLine}
              </pre>
              <Copy text={indexLine} label="Copy the line that creates the index" />
            </div>
          )}
        </div>
      )}
      {indexesBeingAdded !== undefined && (
        <p class="dim">Being added, and not used yet: {indexesBeingAdded.join(', ')}.</p>
      )}
      {alternatives.length > 0 && (
        <>
          <h3>Not taken</h3>
          <ul class="alternatives">
            {alternatives.map((alternative, at) => (
              <li key={`${at} ${alternative.access}`}>
                <span>{accessText(alternative)}</span>
                <span class="meter" aria-hidden="true">
                  <span style={{ width: `${Math.max(1, (alternative.relativeCost / mostCost) * 100)}%` }} />
                </span>
                <span class="figures">
                  {alternative.relativeCost >= 100
                    ? countText(alternative.relativeCost)
                    : estimateText(alternative.relativeCost)}
                  × the cost
                </span>
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}
