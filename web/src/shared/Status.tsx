/** How a run stands, in a word and a colour, with its reason. */

import type { RunSummary } from '../api/explanations';

const TONES: Record<string, string> = {
  finished: 'good',
  failed: 'bad',
  broken: 'bad',
  stranded: 'bad',
  cancelled: '',
  running: 'live',
  paused: 'warn',
  waiting: 'warn',
  limited: 'warn',
  collecting: 'warn',
};

/** Whether a run can still go on, and be stopped. */
export const isOpen = (run: RunSummary): boolean =>
  !['finished', 'failed', 'cancelled', 'broken'].includes(run.status);

export function standing(summary: RunSummary): string {
  if (summary.collected !== null && summary.wanted !== null) {
    return `${summary.status} ${summary.collected} of ${summary.wanted}`;
  }
  return summary.status === 'limited' ? 'waiting for limit' : summary.status;
}

export function Status({ summary }: { summary: RunSummary }) {
  const tone = TONES[summary.status.split(' ')[0] ?? ''] ?? '';
  return (
    <span className={`pill ${tone}`} title={summary.reason || undefined}>
      <span className="dot" aria-hidden="true" />
      {standing(summary)}
    </span>
  );
}
