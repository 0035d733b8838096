/** What model calls cost, in words. */

import { useQuery } from '@tanstack/react-query';

import { api } from '../api/client';
import type { Cost, RunSummary } from '../api/explanations';
import { listed } from './format';

/** `$1.25`, `at least $0.42`, or `unknown`; small amounts keep two digits that say something. */
export function money({ dollars, unpriced }: Cost): string {
  if (dollars === null || dollars === undefined) return 'unknown';
  const digits = dollars >= 1 || dollars === 0 ? 2 : Math.max(2, 1 - exponent(dollars));
  const amount = dollars.toLocaleString('en', {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
  return `${unpriced?.length ? 'at least ' : ''}$${amount}`;
}

const exponent = (amount: number): number => Number(amount.toExponential().split('e')[1]);

/** Why a cost is not known, or not all of it; empty if it is. */
export function unpriced(cost: Cost): string {
  return cost.unpriced?.length ? `No price for ${listed(cost.unpriced)}` : '';
}

// Costs of runs that go on are read again after this many events.
const STRIDE = 20;

/** The cost of a run; null if no model was called, or while it is not known. */
export function useCost(run: RunSummary, isOpen: boolean): Cost | null {
  const at = isOpen ? Math.floor(run.events / STRIDE) : run.events;
  const { data } = useQuery({
    queryKey: ['cost', run.run, isOpen, at],
    queryFn: () => api.cost(run.run),
    staleTime: Infinity,
    placeholderData: (before) => before,
    enabled: run.status !== 'broken',
  });
  return data?.cost ?? null;
}
