/** All runs, the latest first; on top the questions that wait for the reader. */

import { useInfiniteQuery } from '@tanstack/react-query';
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useMemo, useRef, useState } from 'react';
import { Link } from 'wouter';

import { api } from '../api/client';
import type { RunSummary } from '../api/explanations';
import { Copy } from '../shared/Copy';
import { CostNote } from '../shared/CostNote';
import { ago, clock, counted, duration } from '../shared/format';
import { mayExplain, mayWrite, useMe } from '../shared/me';
import { useNarrow } from '../shared/narrow';
import { Empty, Failed, Loading } from '../shared/States';
import { Status } from '../shared/Status';
import { Bulk } from './Bulk';
import { Filters } from './Filters';
import { useAsked, Waiting } from './Waiting';
import { commandOf, held, useListing } from './filters';
import { MOST, useLive } from './live';
import './runs.css';

const REFRESH = 3000;

export default function Runs() {
  const [listing, setListing] = useListing();
  const { data: me } = useMe();
  const [isLive, setLive] = useState(false);
  const runs = useInfiniteQuery({
    queryKey: ['runs', listing],
    queryFn: ({ pageParam }) => api.runs(listing, pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
    placeholderData: (before) => before,
    refetchInterval: (query) =>
      isLive || (query.state.data?.pages.length ?? 0) > 4 ? false : REFRESH,
  });
  const pages = runs.data?.pages;
  const shown = useMemo(() => (pages ?? []).flatMap((page) => page.items), [pages]);
  useLive(listing, shown, setLive);
  const isFiltered = Object.keys(listing).length > 0;
  return (
    <div className="runs">
      <Waiting />
      <div className="runs-head">
        <h1>Runs</h1>
        <Filters listing={listing} set={setListing} />
      </div>
      <Reading runs={runs} isHere={pages !== undefined} />
      {pages !== undefined && shown.length === 0 && !runs.hasNextPage && (
        <NoRuns isFiltered={isFiltered} />
      )}
      {isLive && shown.length > MOST && (
        <p className="soft small follows" role="note">
          The latest {MOST} runs are live; those below are as they were at{' '}
          {clock(new Date(runs.dataUpdatedAt).toISOString())}.{' '}
          <button type="button" className="link" onClick={() => void runs.refetch()}>
            Read them again
          </button>
        </p>
      )}
      {shown.length > 0 && <Rows runs={shown} explains={mayExplain(me)} writes={mayWrite(me)} />}
      <More
        load={() => void runs.fetchNextPage()}
        has={runs.hasNextPage}
        isIdle={!runs.isFetching && !runs.isError}
      />
      {mayExplain(me) && (
        <p className="list-foot">
          <Copy text={commandOf(listing)} className="button quiet">
            Copy as command
          </Copy>
        </p>
      )}
    </div>
  );
}

interface ReadingProps {
  runs: { isError: boolean; isPending: boolean; error: unknown; refetch: () => unknown };
  isHere: boolean;
}

/** That the list is read, or cannot be. */
function Reading({ runs, isHere }: ReadingProps) {
  if (runs.isPending) return <Loading />;
  if (!runs.isError) return null;
  if (!isHere) return <Failed problem={runs.error} retry={() => void runs.refetch()} />;
  return (
    <p className="soft" role="status">
      The server does not answer. This list is as it was.
    </p>
  );
}

function NoRuns({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered) {
    return (
      <Empty title="No run is like that">
        <p>
          <Link href="/runs">Show all runs</Link>
        </p>
      </Empty>
    );
  }
  return (
    <Empty title="No runs yet">
      <p>Start one here, or with a command: </p>
      <p>
        <code>turnloom run workflows/Interview</code>
      </p>
      <Link className="button primary" href="/start">
        Start a workflow
      </Link>
    </Empty>
  );
}

interface MoreProps {
  load: () => void;
  has: boolean;
  /** Whether the list may be asked for more now: it is not being read, and could be. */
  isIdle: boolean;
}

/** Loads the next page as long as the end of the list is in sight: reading the list again may cut
    such a page off. */
function More({ load, has, isIdle }: MoreProps) {
  const end = useRef<HTMLButtonElement>(null);
  const [isSeen, setSeen] = useState(false);
  const latest = useRef(load);
  useEffect(() => {
    latest.current = load;
  });
  useEffect(() => {
    const element = end.current;
    if (element === null) return;
    const watcher = new IntersectionObserver((seen) => {
      setSeen(seen.at(-1)?.isIntersecting === true);
    });
    watcher.observe(element);
    return () => watcher.disconnect();
  }, [has]);
  useEffect(() => {
    if (isSeen && has && isIdle) latest.current();
  }, [isSeen, has, isIdle]);
  if (!has) return null;
  return (
    <button ref={end} type="button" className="button more" onClick={load}>
      More runs
    </button>
  );
}

const ROW = 45;
const TALL_ROW = 68;

interface RowsProps {
  runs: readonly RunSummary[];
  explains: boolean;
  writes: boolean;
}

function Rows({ runs, explains, writes }: RowsProps) {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 5000);
    return () => clearInterval(timer);
  }, []);
  const [top, setTop] = useState(0);
  const height = useNarrow() ? TALL_ROW : ROW;
  const rows = useWindowVirtualizer({
    count: runs.length,
    estimateSize: () => height,
    overscan: 12,
    scrollMargin: top,
  });
  const toggle = (run: string) => {
    const next = new Set(chosen);
    if (!next.delete(run)) next.add(run);
    setChosen(next);
  };
  return (
    <>
      {chosen.size > 0 && (
        <Bulk runs={runs.filter((run) => chosen.has(run.run))} clear={() => setChosen(new Set())} />
      )}
      <ul
        className="run-list"
        ref={(list) => {
          if (list !== null) setTop(list.offsetTop);
        }}
        style={{ height: runs.length * height }}
        aria-label="Runs, the latest first"
      >
        {rows.getVirtualItems().map((item) => {
          const run = runs[item.index];
          if (run === undefined) return null;
          const place = item.index * height;
          return (
            <li key={run.run} style={{ transform: `translateY(${place}px)`, height }}>
              {writes && (
                <label className="choose">
                  <input
                    type="checkbox"
                    checked={chosen.has(run.run)}
                    onChange={() => toggle(run.run)}
                  />
                  <span className="hidden-text">
                    Choose the run {run.run} of {run.workflow}
                  </span>
                </label>
              )}
              <Row run={run} now={now} explains={explains} />
            </li>
          );
        })}
      </ul>
    </>
  );
}

interface RowProps {
  run: RunSummary;
  now: number;
  explains: boolean;
}

function Row({ run, now, explains }: RowProps) {
  const asked = useAsked(run);
  const took = (Date.parse(run.latest) - Date.parse(run.started)) / 1000;
  return (
    <>
      <Link className="run-link" href={`/runs/${run.run}/chat`}>
        <b className="cut">{run.workflow}</b>
        <code className="faint">{run.run.slice(0, 10)}</code>
      </Link>
      <span className="run-status">
        <Status summary={run} />
        <span className="soft small cut" title={run.reason || undefined}>
          {held(run, now, asked)}
        </span>
      </span>
      <span className="soft cut run-user">{run.user}</span>
      <span className="soft numbers run-size">{counted(run.events, 'event')}</span>
      <span className="soft numbers run-took">{duration(took)}</span>
      {explains && (
        <span className="soft run-cost">
          <CostNote run={run} />
        </span>
      )}
      <time className="soft numbers run-when" dateTime={run.started} title={run.started}>
        {ago(run.started, now)}
      </time>
      {explains && (
        <Link className="small run-why" href={`/runs/${run.run}/context`}>
          Context
        </Link>
      )}
    </>
  );
}
