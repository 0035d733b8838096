/** What a run cost so far, or nothing if no model was called. */

import type { RunSummary } from '../api/explanations';
import { isOpen } from './Status';
import { money, unpriced, useCost } from './cost';

export function CostNote({ run, label = '' }: { run: RunSummary; label?: string }) {
  const cost = useCost(run, isOpen(run));
  if (cost === null) return null;
  const isKnown = cost.dollars != null;
  return (
    <span className="numbers" title={unpriced(cost) || undefined}>
      {label === '' && isKnown ? <span className="hidden-text">Cost </span> : `${label || 'cost'} `}
      {money(cost)}
    </span>
  );
}
