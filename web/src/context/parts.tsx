/** What cards, comparisons and routes are made of. */

import type { ReactNode } from 'react';
import { Link } from 'wouter';

import type { LogEvent } from '../api/events';
import type { WakeReason } from '../api/explanations';
import type { FrameRow, Frames } from './frames';

export interface CardContext {
  run: string;
  row: FrameRow;
  frames: Frames;
  events: readonly LogEvent[];
  files: Record<string, string> | null;
  woken: WakeReason | null;
  /** What the turn cost, in a sentence; empty if that is not known. */
  turnCost: string;
}

export interface Line {
  label: string;
  text: ReactNode;
}

/** A link to an event of the run. */
export function EventLink({ run, seq }: { run: string; seq: number }) {
  return <Link href={`/runs/${run}/timeline?at=${seq}`}>event {seq}</Link>;
}

export function Lines({ lines }: { lines: readonly Line[] }) {
  return (
    <dl className="lines">
      {lines.map((line) => (
        <div key={line.label}>
          <dt>{line.label}</dt>
          <dd>{line.text}</dd>
        </div>
      ))}
    </dl>
  );
}
