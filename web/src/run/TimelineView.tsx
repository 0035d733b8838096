/** What happened in a run, when, and how long it took: a waterfall, and each event. */

import { useQuery } from '@tanstack/react-query';
import { useVirtualizer } from '@tanstack/react-virtual';
import { Fragment, useCallback, useEffect, useMemo, useRef, type ReactNode } from 'react';
import { Link, useLocation, useSearch } from 'wouter';

import { api } from '../api/client';
import type { Cost, Timeline, TimelineRow } from '../api/explanations';
import { Command } from '../shared/Copy';
import { money, unpriced } from '../shared/cost';
import { counted, duration, number, usedTokens } from '../shared/format';
import { useKeys } from '../shared/keys';
import { Empty, Failed, Loading } from '../shared/States';
import type { RunViewProps } from '../shell/RunPage';
import { EventPanel } from './EventPanel';
import { ExportButton } from './ExportButton';
import { axisOf, intervalOf } from './axis';
import { firstToSee, matching, withCalls } from './calls';
import './run.css';

export default function TimelineView({ run, log }: RunViewProps) {
  const ended = log.connection === 'ended';
  const { data, error, refetch } = useQuery({
    queryKey: ['timeline', run, ended ? 'ended' : Math.floor(log.count / 8)],
    queryFn: () => api.timeline(run),
    placeholderData: (before: Timeline | undefined) => before,
  });
  if (error !== null) return <Failed problem={error} retry={() => void refetch()} />;
  if (data === undefined) return <Loading lines={9} />;
  return <Waterfall timeline={data} run={run} log={log} />;
}

/** A word of the address, and how to change it; the others stay. */
export function useWord(run: string, view: string, name: string): [string, (word: string) => void] {
  const search = useSearch();
  const [, navigate] = useLocation();
  const write = useCallback(
    (word: string) => {
      const words = new URLSearchParams(window.location.search);
      if (word === '') words.delete(name);
      else words.set(name, word);
      navigate(`/runs/${run}/${view}?${words}`, { replace: true });
    },
    [navigate, run, view, name],
  );
  return [new URLSearchParams(search).get(name) ?? '', write];
}

/** The selected event, which stands in the address. */
export function useAt(run: string, view: string): [number | null, (seq: number) => void] {
  const [word, write] = useWord(run, view, 'at');
  const given = Number(word);
  const choose = useCallback((seq: number) => write(String(seq)), [write]);
  return [Number.isInteger(given) && given > 0 ? given : null, choose];
}

const ROW = 28;

function Waterfall({
  timeline,
  run,
  log,
}: { timeline: Timeline; run: string } & Pick<RunViewProps, 'log'>) {
  const [given, choose] = useAt(run, 'timeline');
  const scroller = useRef<HTMLDivElement>(null);
  const { events, count } = log;
  const all = useMemo(
    () => withCalls(timeline.rows, events.slice(0, count)),
    [timeline.rows, events, count],
  );
  const [words, setWords] = useWord(run, 'timeline', 'only');
  const rows = useMemo(() => matching(all, words), [all, words]);
  const at = given ?? firstToSee(rows)?.seq ?? null;
  const first = Date.parse(timeline.started);
  const axis = useMemo(() => axisOf(rows.map((row) => intervalOf(row, first))), [rows, first]);
  const selected = at === null ? -1 : rows.findLastIndex((row) => row.seq <= at);
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW,
    overscan: 16,
  });
  useEffect(() => {
    if (selected >= 0) list.scrollToIndex(selected, { align: 'auto' });
  }, [list, selected]);
  const step = (by: number) => {
    const next = rows[Math.min(Math.max(selected + by, 0), rows.length - 1)];
    if (next !== undefined) choose(next.seq);
  };
  useKeys({
    j: () => step(1),
    k: () => step(-1),
    ArrowDown: () => step(1),
    ArrowUp: () => step(-1),
  });
  return (
    <div className="timeline">
      <Totals timeline={timeline} run={run}>
        <label className="only">
          <input
            type="search"
            className="field"
            placeholder="Only rows with …"
            aria-label="Only rows with these words"
            value={words}
            onChange={(event) => setWords(event.target.value)}
          />
          {words !== '' && (
            <span className="soft small numbers" role="status">
              {number(rows.length)} of {number(all.length)}
            </span>
          )}
        </label>
      </Totals>
      <div className="timeline-body">
        {rows.length === 0 ? (
          <Empty title={words === '' ? 'Nothing happened yet' : 'No row has these words'} />
        ) : (
          <div className="waterfall" ref={scroller}>
            <ol style={{ height: list.getTotalSize() }} aria-label="What happened, in order">
              {list.getVirtualItems().map((item) => {
                const row = rows[item.index];
                return row === undefined ? null : (
                  <li
                    key={`${row.seq} ${item.index}`}
                    style={{ transform: `translateY(${item.start}px)` }}
                  >
                    <Row
                      row={row}
                      axis={axis}
                      first={first}
                      isOn={item.index === selected}
                      choose={choose}
                    />
                  </li>
                );
              })}
            </ol>
          </div>
        )}
        <EventPanel run={run} seq={at} events={log.events} choose={choose} />
      </div>
    </div>
  );
}

interface TotalsProps {
  timeline: Timeline;
  run: string;
  children: ReactNode;
}

function Totals({ timeline, run, children }: TotalsProps) {
  const used = usedTokens(timeline.usage);
  return (
    <header className="totals">
      <p>
        {timeline.turns > 0 && <>{counted(timeline.turns, 'turn')} and </>}
        {counted(timeline.events, 'event')} in {duration(timeline.seconds)}.{' '}
        {used !== '' && <>{used}. </>}
        {timeline.cost !== null && <>{costSentence(timeline.cost)} </>}
        {timeline.spent !== '' && <>Budget used: {timeline.spent}. </>}
        {timeline.parents.length > 0 && (
          <>
            From {counted(timeline.parents.length, 'run')}:{' '}
            {timeline.parents.map((each, n) => (
              <Fragment key={each}>
                {n > 0 && ', '}
                <Link href={`/runs/${each}/timeline`}>{each.slice(0, 14)}</Link>
              </Fragment>
            ))}
            .{' '}
          </>
        )}
        <span className="faint">Stretches without work are drawn short.</span>
      </p>
      <div className="totals-side">
        {children}
        <Command text={`turnloom explain ${run}`} />
        <ExportButton run={run} />
      </div>
    </header>
  );
}

function costSentence(cost: Cost): string {
  const why = unpriced(cost);
  return `Cost: ${money(cost)}.${why === '' ? '' : ` ${why}.`}`;
}

interface RowProps {
  row: TimelineRow;
  axis: (seconds: number) => number;
  first: number;
  isOn: boolean;
  choose: (seq: number) => void;
}

function Row({ row, axis, first, isOn, choose }: RowProps) {
  const { start, end } = intervalOf(row, first);
  const left = axis(start);
  const width = Math.max(axis(end) - left, 0);
  const kind = row.what.split(' ')[0] ?? '';
  return (
    <button
      type="button"
      className={`happened ${kind}`}
      aria-current={isOn ? 'true' : undefined}
      tabIndex={isOn ? 0 : -1}
      onClick={() => choose(row.seq)}
    >
      <span className="what" style={{ paddingLeft: (row.depth ?? 0) * 14 }}>
        <span className="soft">{row.what}</span> <b>{row.who}</b>
      </span>
      <span className="track" aria-hidden="true">
        <i style={{ left: `${left * 100}%`, width: `${width * 100}%` }} />
      </span>
      <span className="soft numbers took">{duration(row.seconds)}</span>
      <span className="soft numbers tokens">
        {row.tokens == null ? '' : `${number(row.tokens)} tok`}
        {row.cost?.dollars == null ? '' : ` · ${money(row.cost)}`}
      </span>
      <span className="soft cut about-row">{row.note}</span>
    </button>
  );
}
