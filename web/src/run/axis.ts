/** Where a moment stands on the time line: idle stretches are short, so that work is seen. */

import type { TimelineRow } from '../api/explanations';

export interface Interval {
  start: number;
  end: number;
  /** Whether something was done, not only waited for. */
  isBusy: boolean;
}

// The most that a stretch without work takes, as a part of all work.
const IDLE = 0.04;

const ENDS = new Set(['finished', 'failed', 'cancelled']);

/** The interval of a row, in seconds since the first. */
export function intervalOf(row: TimelineRow, first: number): Interval {
  const start = (Date.parse(row.at) - first) / 1000;
  // The row of the end has the duration of the whole run.
  const seconds = ENDS.has(row.what) ? 0 : (row.seconds ?? 0);
  return { start, end: start + seconds, isBusy: row.what !== 'question' };
}

/** A function from seconds to a share between 0 and 1. */
export function axisOf(intervals: readonly Interval[]): (seconds: number) => number {
  const edges = [...new Set(intervals.flatMap((each) => [each.start, each.end]))].sort(
    (a, b) => a - b,
  );
  const busy = coverage(intervals, edges);
  const work = edges.reduce(
    (sum, edge, n) => (busy[n] === true ? sum + (edges[n + 1] ?? edge) - edge : sum),
    0,
  );
  const most = work === 0 ? Infinity : work * IDLE;
  const places: number[] = [];
  let at = 0;
  edges.forEach((edge, n) => {
    places.push(at);
    const length = (edges[n + 1] ?? edge) - edge;
    at += busy[n] === true ? length : Math.min(length, most);
  });
  const whole = at === 0 ? 1 : at;
  return (seconds) => {
    const n = before(edges, seconds);
    const [from, to] = [edges[n] ?? 0, edges[n + 1]];
    const place = places[n] ?? 0;
    if (to === undefined) return place / whole;
    const part = Math.min(1, Math.max(0, (seconds - from) / (to - from)));
    return (place + part * ((places[n + 1] ?? place) - place)) / whole;
  };
}

/** For each stretch between two edges, whether a busy interval covers it. */
function coverage(intervals: readonly Interval[], edges: readonly number[]): boolean[] {
  const changes = new Map<number, number>();
  for (const each of intervals) {
    if (!each.isBusy || each.end <= each.start) continue;
    changes.set(each.start, (changes.get(each.start) ?? 0) + 1);
    changes.set(each.end, (changes.get(each.end) ?? 0) - 1);
  }
  let open = 0;
  return edges.map((edge) => {
    open += changes.get(edge) ?? 0;
    return open > 0;
  });
}

/** The index of the last edge at or before a moment. */
function before(edges: readonly number[], seconds: number): number {
  let [low, high] = [0, edges.length - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((edges[middle] ?? 0) <= seconds) low = middle;
    else high = middle - 1;
  }
  return low;
}
