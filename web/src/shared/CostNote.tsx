/** What a run cost so far, or nothing if no model was called. */

import type { RunSummary } from '../api/explanations';
import { isOpen } from './Status';
import { money, unpriced, useCost } from './cost';

export function CostNote({ run, label = '' }: { run: RunSummary; label?: string }) {
  const cost = useCost(run, isOpen(run));
  if (cost === null) return null;
  return (
    <span className="numbers" title={unpriced(cost) || undefined}>
      {label === '' ? <span className="hidden-text">Cost </span> : `${label} `}
      {money(cost)}
    </span>
  );
}
