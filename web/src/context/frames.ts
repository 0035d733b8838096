/** Every frame of a run, folded from its log: sizes by kind, what is new, what it cost. */

import { isFrame, type FrameAssembled, type ListedSegment, type LogEvent } from '../api/events';
import type { Fold } from '../api/log';
import { letterOf, type Letter } from './kinds';

/** One frame, as the strip shows it. `segments` is shared between frames of the same view. */
export interface FrameRow {
  turn: number;
  agent: string;
  seq: number;
  tokens: number;
  byKind: Partial<Record<Letter, number>>;
  segments: readonly ListedSegment[];
  history: FrameAssembled['history'];
  leftOut: number;
  /** Tokens at the beginning that equal the agent's previous prompt, which a cache can reuse. */
  kept: number;
  /** The agent's previous frame, by index; -1 for its first. */
  previous: number;
}

/** What a piece cost over a run: tokens, frames, and the first frame that had this text. */
export interface PieceCost {
  tokens: number;
  frames: number;
}

export interface Frames {
  rows: readonly FrameRow[];
  byTurn: ReadonlyMap<number, number>;
  /** By origin. */
  costs: ReadonlyMap<string, PieceCost>;
  largest: number;
}

// Kinds that are sent after the history.
const AFTER = /^(context(\.|$)|artifact$|message$|input$|prompt$|tool$|output$)/;

/** Tokens that two frames of an agent have in common from the beginning on. */
export function keptTokens(before: FrameRow, after: Omit<FrameRow, 'kept' | 'previous'>): number {
  const sent = (row: { segments: readonly ListedSegment[] }, late: boolean) =>
    row.segments.filter((each) => AFTER.test(each.kind) === late);
  const same = (a: readonly ListedSegment[], b: readonly ListedSegment[]) => {
    let tokens = 0;
    for (const [n, each] of a.entries()) {
      if (b[n]?.digest !== each.digest) return { tokens, whole: false };
      tokens += each.tokens;
    }
    return { tokens, whole: a.length === b.length };
  };
  const early = same(sent(before, false), sent(after, false));
  if (!early.whole || before.history.first !== after.history.first) return early.tokens;
  const grown = before.history.count < after.history.count;
  const history = before.history.digest === after.history.digest || grown;
  if (!history) return early.tokens;
  const upTo = early.tokens + before.history.tokens;
  return grown ? upTo : upTo + same(sent(before, true), sent(after, true)).tokens;
}

/** Whether the beginning of the agent's previous prompt changed, so that a cache breaks there. */
export function breaksCache(rows: readonly FrameRow[], row: FrameRow): boolean {
  const before = rows[row.previous];
  if (before === undefined) return false;
  const late = before.segments.reduce(
    (sum, each) => (AFTER.test(each.kind) ? sum + each.tokens : sum),
    0,
  );
  return row.kept < before.tokens - late;
}

class FrameFold implements Fold<Frames> {
  private readonly rows: FrameRow[] = [];
  private readonly byTurn = new Map<number, number>();
  private readonly byAgent = new Map<string, number>();
  private readonly lists = new Map<number, FrameAssembled>();
  private readonly sums = new Map<readonly ListedSegment[], Partial<Record<Letter, number>>>();
  private readonly costs = new Map<string, PieceCost>();
  private largest = 0;

  push(event: LogEvent): void {
    if (!isFrame(event)) return;
    const listed = this.listed(event.seq, event.data);
    if (this.byTurn.has(event.data.turn)) return; // a further engine of the turn
    const segments = listed.segments ?? [];
    const { turn, agent, tokens, history } = event.data;
    const leftOut = (listed.withheld ?? []).length;
    const byKind = { ...this.sum(segments) };
    if (history.tokens > 0) byKind.H = (byKind.H ?? 0) + history.tokens;
    const base = { turn, agent, seq: event.seq, tokens, byKind, segments, history, leftOut };
    const previous = this.byAgent.get(agent) ?? -1;
    const before = this.rows[previous];
    const kept = before === undefined ? 0 : keptTokens(before, base);
    this.byTurn.set(turn, this.rows.length);
    this.byAgent.set(agent, this.rows.length);
    this.rows.push({ ...base, kept, previous });
    this.largest = Math.max(this.largest, tokens);
    for (const each of segments) this.charge(each.origin, each.tokens);
    if (history.tokens > 0) this.charge('history', history.tokens);
  }

  value(): Frames {
    return {
      rows: this.rows.slice(),
      byTurn: this.byTurn,
      costs: this.costs,
      largest: this.largest,
    };
  }

  /** The frame that lists the segments: this one, or the earlier one that it refers to. */
  private listed(seq: number, data: FrameAssembled): FrameAssembled {
    const known = this.lists.get(data.as_in ?? 0) ?? data;
    this.lists.set(seq, known);
    return known;
  }

  private sum(segments: readonly ListedSegment[]): Partial<Record<Letter, number>> {
    const known = this.sums.get(segments);
    if (known !== undefined) return known;
    const sums: Partial<Record<Letter, number>> = {};
    for (const each of segments) {
      const letter = letterOf(each.kind);
      sums[letter] = (sums[letter] ?? 0) + each.tokens;
    }
    this.sums.set(segments, sums);
    return sums;
  }

  private charge(origin: string, tokens: number): void {
    const before = this.costs.get(origin) ?? { tokens: 0, frames: 0 };
    this.costs.set(origin, { tokens: before.tokens + tokens, frames: before.frames + 1 });
  }
}

export const makeFrames = (): Fold<Frames> => new FrameFold();

/** What a message costs over a run: it is in every prompt whose history includes its event. */
export function messageCost(frames: Frames, seq: number, tokens: number): PieceCost {
  const shown = frames.rows.filter(
    ({ history }) => history.count > 0 && history.first <= seq && seq <= history.last,
  );
  return { tokens: tokens * shown.length, frames: shown.length };
}

/** The first turn since which this agent has been shown a text without a break, or null. */
export function shownSince(frames: Frames, row: FrameRow, digest: string): FrameRow | null {
  let since: FrameRow | null = null;
  let each: FrameRow | undefined = row;
  while (each?.segments.some((segment) => segment.digest === digest) === true) {
    since = each;
    each = frames.rows[each.previous];
  }
  return since;
}
