/** The list of runs, followed in one stream: it is read again when a run begins or moves. */

import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';

import { listAddress, type RunFilter } from '../api/client';
import type { RunSummary } from '../api/explanations';
import { readStream, type Sent } from '../api/sse';

// The most runs that are followed, and the pauses, in milliseconds.
const MOST = 200;
const LEAST = 50;
const SETTLE = 150;
const AGAIN = 3000;

/** Follows the listed runs and those to come, and says whether it can: if not, the list is polled. */
export function useLive(
  listing: RunFilter,
  runs: readonly RunSummary[],
  setLive: (isLive: boolean) => void,
): void {
  const queries = useQueryClient();
  const shown = useRef(runs);
  useEffect(() => {
    shown.current = runs;
  });
  const size = Math.min(Math.max(Math.ceil(runs.length / LEAST) * LEAST, LEAST), MOST);
  const address = listAddress(listing, size);
  useEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const receive = (sent: Sent[]) => {
      if (!sent.some((each) => isNews(each, shown.current))) return;
      clearTimeout(timer);
      timer = setTimeout(() => {
        void queries.invalidateQueries({ queryKey: ['runs'] });
        void queries.invalidateQueries({ queryKey: ['waiting'] });
      }, SETTLE);
    };
    const follow = async (): Promise<void> => {
      while (!stop.signal.aborted) {
        await readStream(address, receive, stop.signal, () => setLive(true)).catch(() => undefined);
        setLive(false);
        await new Promise((resolve) => setTimeout(resolve, AGAIN));
      }
    };
    void follow();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [address, queries, setLive]);
}

/** Whether what was sent differs from what is listed. */
function isNews({ event, data }: Sent, listed: readonly RunSummary[]): boolean {
  if (event === 'gone') return true;
  if (event !== 'message') return false;
  const run = JSON.parse(data) as RunSummary;
  const here = listed.find((each) => each.run === run.run);
  return here?.events !== run.events || here.status !== run.status || here.reason !== run.reason;
}
