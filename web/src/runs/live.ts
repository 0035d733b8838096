/** The list of runs, followed in one stream: a run that moves is put in its place, and the list is
    read again when one begins or leaves it. */

import { useQueryClient, type InfiniteData } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';

import { listAddress, type PageOf, type RunFilter } from '../api/client';
import type { RunSummary } from '../api/explanations';
import { readStream, type Sent } from '../api/sse';

// The most runs that are followed, and the pauses, in milliseconds.
export const MOST = 200;
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
      const news = sent.filter((each) => isNews(each, shown.current));
      if (news.length === 0) return;
      const moved = news.flatMap((each) => movedOf(each, shown.current));
      const key = ['runs', listing];
      const updatedAt = queries.getQueryState(key)?.dataUpdatedAt ?? 0;
      queries.setQueryData<Listed>(key, (before) => withMoved(before, moved), { updatedAt });
      // What is being read now may be older than what was sent.
      const isRead = queries.isFetching({ queryKey: key }) === 0;
      if (isRead && moved.length === news.length) {
        void queries.invalidateQueries({ queryKey: ['waiting'] });
        return;
      }
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
    // `address` stands for `listing`.
    // eslint-disable-next-line react-hooks/exhaustive-deps
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

type Listed = InfiniteData<PageOf<RunSummary>>;

/** The run that was sent, if it is listed already. */
function movedOf({ event, data }: Sent, listed: readonly RunSummary[]): RunSummary[] {
  if (event !== 'message') return [];
  const run = JSON.parse(data) as RunSummary;
  return listed.some((each) => each.run === run.run) ? [run] : [];
}

/** The list with runs as they are now. */
export function withMoved(
  before: Listed | undefined,
  moved: readonly RunSummary[],
): Listed | undefined {
  if (before === undefined || moved.length === 0) return before;
  const now = new Map(moved.map((each) => [each.run, each]));
  const pages = before.pages.map((page) => ({
    ...page,
    items: page.items.map((each) => now.get(each.run) ?? each),
  }));
  return { ...before, pages };
}
