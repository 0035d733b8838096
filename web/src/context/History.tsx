/** How a piece came to be what it is: each text it had, and in which turns. */

import type { VariableExplained } from '../api/explanations';
import { counted, preview } from '../shared/format';
import { EventLink, type CardContext } from './parts';
import type { FrameRow } from './frames';
import type { Piece } from './pieces';

interface Props {
  piece: Piece;
  context: CardContext;
  variable: VariableExplained | undefined;
}

export function History({ piece, context, variable }: Props) {
  if (variable !== undefined) return <ValueHistory variable={variable} run={context.run} />;
  const spans = spansOf(context.frames.rows, piece.origin);
  if (piece.seq !== undefined) {
    const later = context.frames.rows.filter((row) => row.history.last >= (piece.seq ?? 0));
    return <p className="history soft">In {counted(later.length, 'prompt')} of this run.</p>;
  }
  return (
    <ol className="history">
      {spans.map((span) => (
        <li key={span.from}>
          <b>{span.from === span.to ? `Turn ${span.from}` : `Turns ${span.from}–${span.to}`}</b>{' '}
          {counted(span.tokens, 'token')}
          {span.digest === piece.digest ? ', this text' : ', another text'}
        </li>
      ))}
    </ol>
  );
}

interface TextSpan {
  from: number;
  to: number;
  digest: string;
  tokens: number;
}

/** Runs of frames in which an origin had one text. */
export function spansOf(rows: readonly FrameRow[], origin: string): TextSpan[] {
  const spans: TextSpan[] = [];
  for (const row of rows) {
    const found = row.segments.find((each) => each.origin === origin);
    if (found === undefined) continue;
    const last = spans.at(-1);
    if (last?.digest === found.digest) last.to = row.turn;
    else spans.push({ from: row.turn, to: row.turn, digest: found.digest, tokens: found.tokens });
  }
  return spans;
}

function ValueHistory({ variable, run }: { variable: VariableExplained; run: string }) {
  return (
    <ol className="history">
      <li>
        <code>{preview(variable.first)}</code> at first
      </li>
      {variable.changes.map((change) => (
        <li key={change.seq}>
          <code>{change.removed === true ? 'removed' : preview(change.value)}</code> by{' '}
          {change.writer} (<EventLink run={run} seq={change.seq} />)
          {change.causes.slice(0, 3).map((cause) => (
            <div key={cause.seq} className="because">
              because {cause.says} (<EventLink run={run} seq={cause.seq} />)
            </div>
          ))}
        </li>
      ))}
      {variable.refused.map((each) => (
        <li key={each.seq}>
          A write by {each.writer} was refused: {each.reason} (
          <EventLink run={run} seq={each.seq} />)
        </li>
      ))}
    </ol>
  );
}
