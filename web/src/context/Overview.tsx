/** A long run at a glance: the tokens of every turn as one line, and a slider to any of them. */

import { useMemo } from 'react';

import type { Frames } from './frames';

interface Props {
  frames: Frames;
  /** The index of the turn that is open; -1 for none. */
  selected: number;
  choose: (turn: number) => void;
}

export function Overview({ frames, selected, choose }: Props) {
  const { rows, largest } = frames;
  const shape = useMemo(() => outline(rows, largest), [rows, largest]);
  const row = rows[selected];
  return (
    <div className="overview">
      <svg viewBox={`0 0 ${rows.length} 1`} preserveAspectRatio="none" aria-hidden="true">
        <path d={shape} />
      </svg>
      <input
        type="range"
        aria-label="Turn"
        min={0}
        max={rows.length - 1}
        value={Math.max(selected, 0)}
        aria-valuetext={row === undefined ? 'none' : `turn ${row.turn}, ${row.agent}`}
        onChange={(event) => {
          const next = rows[event.target.valueAsNumber];
          if (next !== undefined) choose(next.turn);
        }}
      />
    </div>
  );
}

/** The outline of all columns: one unit wide each, and as high as their share of the largest. */
function outline(rows: Frames['rows'], largest: number): string {
  const steps = rows.map(
    (row, n) => `V${(1 - row.tokens / Math.max(largest, 1)).toFixed(3)}H${n + 1}`,
  );
  return `M0 1${steps.join('')}V1Z`;
}
