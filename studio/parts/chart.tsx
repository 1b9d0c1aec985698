/** Groups as bars or as a line. A table beside it has the same figures, so it is a picture for screen readers. */
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { look } from '../model/state.ts';

export interface ChartProps {
  readonly kind: 'bar' | 'line';
  readonly label: string;
  readonly names: readonly string[];
  readonly values: readonly (number | null)[];
}

/** More than these cannot be told from each other. */
export const mostPoints = 500;
const height = 320;

function optionsOf({ kind, label, names }: ChartProps, width: number, box: HTMLElement): uPlot.Options {
  const style = getComputedStyle(box);
  const [text, line, accent] = ['--dim', '--line', '--accent'].map((name) => style.getPropertyValue(name).trim());
  const axis = {
    stroke: text ?? '',
    grid: { stroke: line ?? '', width: 1 },
    ticks: { stroke: line ?? '', width: 1 },
    font: '12px system-ui, sans-serif',
  };
  const short = (name: string): string => (name.length > 14 ? `${name.slice(0, 13)}…` : name);
  const bars = uPlot.paths.bars?.({ size: [0.7, 64] });
  return {
    width,
    height,
    legend: { show: false },
    cursor: { drag: { x: false, y: false } },
    scales: {
      x: { time: false, range: [-0.6, names.length - 0.4] },
      y: { range: (_, low, high) => [Math.min(0, low), Math.max(0, high) * 1.05 || 1] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        space: 70,
        // Only whole numbers are groups.
        incrs: [1, 2, 5, 10, 20, 50, 100],
        values: (_, places) => places.map((place) => short(names[place] ?? '')),
      },
      { ...axis, size: 70 },
    ],
    series: [
      {},
      {
        label,
        stroke: accent ?? '',
        ...(kind === 'bar'
          ? { fill: accent ?? '', ...(bars && { paths: bars }), points: { show: false } }
          : { width: 2 }),
      },
    ],
  };
}

export function Chart(props: ChartProps): preact.JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const theme = look.value;
  const { kind, label, names, values } = props;
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const data: uPlot.AlignedData = [names.map((_, i) => i), [...values]];
    const plot = new uPlot(optionsOf(props, element.clientWidth, element), data, element);
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [kind, label, names, values, theme]);
  return (
    <div
      ref={box}
      class="chart"
      role="img"
      aria-label={`${kind === 'bar' ? 'Bars' : 'A line'} of ${label} for ${names.length} groups. The table has the same figures.`}
    />
  );
}
