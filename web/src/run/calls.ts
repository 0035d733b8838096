/** The calls of models inside turns, as rows of the timeline. */

import type { LogEvent } from '../api/events';
import type { TimelineRow, Usage } from '../api/explanations';
import { counted, usedTokens } from '../shared/format';

interface ModelData {
  turn?: number;
  engine?: string;
  model?: string;
  error?: string;
  calls?: unknown[];
  usage?: Usage;
}

/** The rows, and in each turn those of its model calls, where they began. */
export function withCalls(
  rows: readonly TimelineRow[],
  events: readonly LogEvent[],
): readonly TimelineRow[] {
  const calls = byTurn(rows, callsOf(events));
  const all: TimelineRow[] = [];
  const open: { depth: number; calls: TimelineRow[] }[] = [];
  const put = (turn: { depth: number; calls: TimelineRow[] }, before: number) => {
    while ((turn.calls[0]?.seq ?? Infinity) < before) {
      const call = turn.calls.shift();
      if (call !== undefined) all.push({ ...call, depth: turn.depth + 1 });
    }
  };
  for (const row of rows) {
    const depth = row.depth ?? 0;
    for (let turn = open.at(-1); turn !== undefined && turn.depth >= depth; turn = open.at(-1)) {
      put(turn, Infinity);
      open.pop();
    }
    const around = open.at(-1);
    if (around?.depth === depth - 1) put(around, row.seq);
    all.push(row);
    const own = calls.get(row.seq);
    if (own !== undefined) open.push({ depth, calls: own });
  }
  for (const turn of open.reverse()) put(turn, Infinity);
  return all;
}

interface Call extends TimelineRow {
  turn: number;
}

/** Calls by the position of the row of their turn; those that have a row of their own are left out. */
function byTurn(rows: readonly TimelineRow[], calls: readonly Call[]): Map<number, TimelineRow[]> {
  const shown = new Set(rows.map((row) => row.seq));
  const turns = new Map<string, number[]>();
  for (const { what, seq } of rows) turns.set(what, [...(turns.get(what) ?? []), seq]);
  const found = new Map<number, TimelineRow[]>();
  for (const { turn, ...row } of calls) {
    // A turn that was retried has several rows.
    const place = turns.get(`turn ${turn}`)?.findLast((seq) => seq < row.seq);
    if (place === undefined || shown.has(row.seq)) continue;
    found.set(place, [...(found.get(place) ?? []), row]);
  }
  return found;
}

function callsOf(events: readonly LogEvent[]): Call[] {
  const calls: Call[] = [];
  const open = new Map<number, { call: Call; retries: number }>();
  for (const event of events) {
    if (!event.kind.startsWith('model.')) continue;
    const data: ModelData = event.data;
    const turn = data.turn ?? 0;
    if (event.kind === 'model.called') {
      const call = { seq: event.seq, what: 'model', who: data.engine ?? '', at: event.at, turn };
      calls.push(call);
      open.set(turn, { call, retries: 0 });
    }
    const current = open.get(turn);
    if (current === undefined) continue;
    if (event.kind === 'model.retried') current.retries += 1;
    if (event.kind !== 'model.answered' && event.kind !== 'model.failed') continue;
    const { call, retries } = current;
    call.seconds = (Date.parse(event.at) - Date.parse(call.at)) / 1000;
    if (data.model) call.who = data.model;
    call.note = noteOf(data, retries);
    open.delete(turn);
  }
  return calls;
}

function noteOf({ error, calls, usage }: ModelData, retries: number): string {
  const notes = [
    error === undefined ? '' : `failed ${error}`,
    usedTokens(usage),
    calls?.length ? counted(calls.length, 'tool call') : '',
    retries > 0 ? counted(retries, 'retry', 'retries') : '',
  ];
  return notes.filter(Boolean).join(', ');
}

/** What the first opening shows: what failed first, or else the beginning. */
export function firstToSee(rows: readonly TimelineRow[]): TimelineRow | undefined {
  return rows.find((row) => row.note?.startsWith('failed') === true) ?? rows[0];
}

/** The rows that have all of some words, whatever their case. */
export function matching<Row extends TimelineRow>(rows: readonly Row[], words: string): Row[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter((row) => {
    const line = `${row.what} ${row.who} ${row.note ?? ''}`.toLowerCase();
    return wanted.every((each) => line.includes(each));
  });
}
