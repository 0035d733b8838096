/** Listed runs that have not ended, followed in one stream: the list is read again when one moves. */

import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useMemo, useRef } from 'react';

import { ROOT } from '../api/client';
import type { RunSummary } from '../api/explanations';
import { readStream, type Sent } from '../api/sse';
import { isOpen } from './filters';

// The most runs that are followed, and the pauses, in milliseconds.
const MOST = 50;
const SETTLE = 150;
const AGAIN = 3000;

/** Follows those of these runs that have not ended, as long as they are listed. */
export function useLive(runs: readonly RunSummary[]): void {
  const queries = useQueryClient();
  const open = useMemo(() => runs.filter(isOpen).slice(0, MOST), [runs]);
  const ids = open.map((run) => run.run).join();
  const positions = useRef<readonly RunSummary[]>(open);
  useEffect(() => {
    positions.current = open;
  });
  useEffect(() => {
    if (ids === '') return;
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const refresh = () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        void queries.invalidateQueries({ queryKey: ['runs'] });
        void queries.invalidateQueries({ queryKey: ['waiting'] });
      }, SETTLE);
    };
    const follow = async (): Promise<void> => {
      while (!stop.signal.aborted) {
        const receive = (sent: Sent[]) => {
          if (sent.some(({ event }) => event === 'message' || event === 'end')) refresh();
        };
        await readStream(address(positions.current), receive, stop.signal).catch(() => undefined);
        await new Promise((resolve) => setTimeout(resolve, AGAIN));
      }
    };
    void follow();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [ids, queries]);
}

/** The chats of these runs, from where the list has them: every role may follow chats. */
function address(runs: readonly RunSummary[]): string {
  const query = new URLSearchParams({ chat: 'true' });
  for (const { run, events } of runs) query.append('run', `${run}=${events}`);
  return `${ROOT}/events?${query.toString()}`;
}
