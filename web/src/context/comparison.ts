/** A comparison in the order of the later prompt: changes in their places, the rest folded. */

import type { ChangeCause, SegmentChange, TurnDiff } from '../api/explanations';
import type { Piece } from './pieces';

export type ComparisonRow =
  | { type: 'same'; pieces: Piece[] }
  | { type: 'change'; change: SegmentChange; piece: Piece | null }
  | { type: 'cache' };

/** The key of the piece that a change is about: messages are named with their author. */
export function keyOf(change: SegmentChange): string {
  return /^(event \d+) \(/.exec(change.origin)?.[1] ?? change.origin;
}

/**
 * Rows of a comparison. `kept` are the tokens at the beginning that equal the other prompt; the
 * row of the cache stands where they end, or nowhere if it is null.
 */
export function comparisonRows(
  pieces: readonly Piece[],
  diff: TurnDiff,
  kept: number | null,
): ComparisonRow[] {
  const rows: ComparisonRow[] = [];
  let at = 0;
  let tokens = 0;
  let isCached = kept !== null;
  const breakCache = () => {
    if (isCached) rows.push({ type: 'cache' });
    isCached = false;
  };
  const take = (end: number) => {
    for (; at < end; at += 1) {
      const piece = pieces[at];
      if (piece === undefined) continue;
      if (tokens >= (kept ?? 0)) breakCache();
      tokens += piece.tokens;
      const last = rows.at(-1);
      if (last?.type === 'same') last.pieces.push(piece);
      else rows.push({ type: 'same', pieces: [piece] });
    }
  };
  for (const change of diff.changes) {
    const key = keyOf(change);
    const place = pieces.findIndex((each, n) => n >= at && each.key === key);
    if (change.change !== 'gone' && place >= 0) take(place);
    breakCache();
    const piece = change.change === 'gone' || place < 0 ? null : (pieces[place] ?? null);
    if (piece !== null) at = place + 1;
    rows.push({ type: 'change', change, piece });
  }
  take(pieces.length);
  breakCache();
  return rows;
}

const SAID = /^said by (.+)$/;

/** The cause of a change, as the end of a sentence that begins with `because`. */
export function becauseOf(cause: ChangeCause): string {
  const author = SAID.exec(cause.says)?.[1];
  return author === undefined ? cause.says : `${author} said it`;
}
