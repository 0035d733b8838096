/** Which runs are listed, as the address says. */

import { useCallback, useMemo } from 'react';
import { useLocation, useSearch } from 'wouter';

import { OPEN, type RunFilter } from '../api/client';
import type { RunSummary, WaitingQuestion } from '../api/explanations';
import { duration, listed, quoted } from '../shared/format';

export type Listing = RunFilter;

const NAMES = ['find', 'status', 'workflow', 'user', 'since', 'feedback'] as const;

export function parseListing(search: string): Listing {
  const given = new URLSearchParams(search);
  return Object.fromEntries(
    NAMES.map((name) => [name, given.get(name) ?? '']).filter(([, value]) => value !== ''),
  ) as Listing;
}

export function writeListing(listing: Listing): string {
  const words = new URLSearchParams();
  for (const name of NAMES) if (listing[name]) words.set(name, listing[name]);
  return words.toString();
}

/** The command that lists the same runs. */
export function commandOf(listing: Listing): string {
  const words = NAMES.flatMap((name) => {
    const value = listing[name];
    if (!value) return [];
    return name === 'status' && value === OPEN ? ['--unfinished'] : [`--${name} ${quoted(value)}`];
  });
  return ['turnloom runs', ...words].join(' ');
}

export function useListing(): [Listing, (next: Listing) => void] {
  const search = useSearch();
  const [, navigate] = useLocation();
  const listing = useMemo(() => parseListing(search), [search]);
  const set = useCallback(
    (next: Listing) => {
      const words = writeListing({ ...parseListing(window.location.search), ...next });
      navigate(words === '' ? '/runs' : `/runs?${words}`, { replace: true });
    },
    [navigate],
  );
  return [listing, set];
}

/** Runs that can be tried again, and those that may have lost their process. */
export const isRetriable = (run: RunSummary): boolean =>
  ['failed', 'cancelled'].includes(run.status);
export const isResumable = (run: RunSummary): boolean =>
  ['unfinished', 'stranded'].includes(run.status);

// Seconds after which a run that works without a new event is worth a word.
const QUIET = 60;

/** Whom an open question of a run is put to: a person, the holders of a role, or the run's user. */
export function addressee({ user, question }: WaitingQuestion): string {
  const to = question.to ?? '';
  return to.startsWith('role:') ? `a person of the role ${to.slice(5)}` : to || user;
}

/** What a run waits for, and how long it has; empty for one that ended or works. */
export function held(run: RunSummary, now: number, asked: readonly WaitingQuestion[]): string {
  const seconds = Math.max(0, (now - Date.parse(run.latest)) / 1000);
  const age = duration(seconds);
  switch (run.status) {
    case 'waiting':
      return `for ${whom(run, asked)}, ${age}`;
    case 'collecting':
      return `for artifacts, ${age}`;
    case 'stranded':
    case 'limited':
      return `${age}: ${run.reason}`;
    case 'unfinished':
      return seconds < QUIET ? '' : `nothing happened for ${age}`;
    default:
      return run.reason;
  }
}

function whom({ run }: RunSummary, asked: readonly WaitingQuestion[]): string {
  const names = new Set(asked.filter((each) => each.run === run).map(addressee));
  return names.size === 0 ? 'an answer' : listed([...names]);
}
