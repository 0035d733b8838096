/** Two prompts: what changed, word by word, and because of which event. */

import { useMemo, useState } from 'react';

import type { OtherTurn } from '../api/client';
import type { SegmentChange, TurnDiff, WordChange } from '../api/explanations';
import { Failed, Loading } from '../shared/States';
import { counted, number, oneLine } from '../shared/format';
import type { FrameRow, Frames } from './frames';
import { becauseOf, comparisonRows, keyOf } from './comparison';
import { letterOf } from './kinds';
import { nameOf } from './names';
import { EventLink } from './parts';
import type { Piece } from './pieces';
import { parseOther, writeOther } from './place';
import { useDiff } from './queries';

interface Props {
  run: string;
  row: FrameRow;
  frames: Frames;
  pieces: readonly Piece[];
  other: OtherTurn;
  choose: (other: OtherTurn | null) => void;
}

export function Compare({ run, row, frames, pieces, other, choose }: Props) {
  const isFirst = other.turn === undefined && row.previous < 0;
  const { data, error } = useDiff(run, row.turn, isFirst ? null : other);
  return (
    <div className="compare">
      <Against row={row} frames={frames} other={other} choose={choose} />
      {isFirst && (
        <p className="soft">
          This is the first turn of {row.agent}. Name another turn to compare it with.
        </p>
      )}
      {error !== null && <Failed problem={error} />}
      {!isFirst && error === null && data === undefined && <Loading lines={4} />}
      {data !== undefined && <Changes diff={data} row={row} frames={frames} pieces={pieces} />}
    </div>
  );
}

function Against({ row, frames, other, choose }: Omit<Props, 'run' | 'pieces'>) {
  const before = frames.rows[row.previous];
  const [text, setText] = useState(writeOther(other));
  const parsed = parseOther(text.trim() === '' ? 'previous' : text.trim());
  return (
    <form
      className="against"
      onSubmit={(event) => {
        event.preventDefault();
        if (parsed !== null) choose(parsed);
      }}
    >
      <label>
        Compared with turn{' '}
        <input
          className="field mono"
          value={text}
          list="turns"
          aria-invalid={parsed === null}
          onChange={(event) => setText(event.target.value)}
        />
      </label>
      <datalist id="turns">
        {before !== undefined && (
          <option value="previous">{`${row.agent}, turn ${before.turn}`}</option>
        )}
        {frames.rows.slice(-200).map((each) => (
          <option key={each.turn} value={each.turn}>
            {each.agent}
          </option>
        ))}
      </datalist>
      <button type="submit" className="button" disabled={parsed === null}>
        Compare
      </button>
      <span className="soft small">
        a number, <code>previous</code>, or <code>RUN:5</code> of another run
      </span>
      <button type="button" className="button quiet end" onClick={() => choose(null)}>
        Close <kbd>d</kbd>
      </button>
    </form>
  );
}

interface ChangesProps {
  diff: TurnDiff;
  row: FrameRow;
  frames: Frames;
  pieces: readonly Piece[];
}

function Changes({ diff, row, frames, pieces }: ChangesProps) {
  const before = frames.rows[row.previous];
  const isPrevious = before?.turn === diff.before.turn && diff.before.run === diff.after.run;
  const kept = isPrevious ? row.kept : null;
  const rows = useMemo(() => comparisonRows(pieces, diff, kept), [pieces, diff, kept]);
  const elsewhere =
    diff.before.run === diff.after.run ? '' : ` of run ${diff.before.run.slice(0, 8)}`;
  return (
    <>
      <p className="summary">
        From{' '}
        <b>
          {diff.before.agent}, turn {diff.before.turn}
        </b>
        {elsewhere} to{' '}
        <b>
          {diff.after.agent}, turn {diff.after.turn}
        </b>
        : {summaryOf(diff)} {number(diff.tokens_before)} → {counted(diff.tokens_after, 'token')}.
      </p>
      <ol className="changes">
        {rows.map((each, n) => {
          if (each.type === 'same') return <Same key={n} pieces={each.pieces} />;
          if (each.type === 'cache') return <CacheLine key={n} row={row} diff={diff} />;
          return <Change key={n} change={each.change} piece={each.piece} />;
        })}
      </ol>
      {diff.reordered && <p className="soft">Unchanged pieces stand in another order.</p>}
    </>
  );
}

/** Unchanged pieces, folded to one line. */
function Same({ pieces }: { pieces: readonly Piece[] }) {
  const [open, setOpen] = useState(false);
  const tokens = pieces.reduce((sum, each) => sum + each.tokens, 0);
  return (
    <li className="fold">
      <button type="button" className="link" aria-expanded={open} onClick={() => setOpen(!open)}>
        {counted(pieces.length, 'unchanged piece')}
      </button>
      , {counted(tokens, 'token')}
      {open && (
        <ul className="unchanged">
          {pieces.map((piece) => (
            <li key={piece.key} className={`kind-${piece.letter}`}>
              <span className="kind-letter" aria-hidden="true">
                {piece.letter}
              </span>
              <b className="nowrap">{nameOf(piece)}</b>
              <span className="cut">{oneLine(piece.text)}</span>
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}

function summaryOf(diff: TurnDiff): string {
  const count = (kind: SegmentChange['change']) =>
    diff.changes.filter((change) => change.change === kind).length;
  const parts = [
    count('added') > 0 ? `${count('added')} added` : '',
    count('gone') > 0 ? `${count('gone')} gone` : '',
    count('changed') > 0 ? `${count('changed')} changed` : '',
  ].filter((each) => each !== '');
  return parts.length === 0 ? 'nothing changed.' : `${parts.join(', ')}.`;
}

/** Where a provider's prompt cache ends, and why. */
function CacheLine({ row, diff }: { row: FrameRow; diff: TurnDiff }) {
  const first = diff.changes[0];
  const isWhole = row.kept >= diff.tokens_before || first === undefined;
  const why = isWhole
    ? 'the whole previous prompt begins this one'
    : `from here on it is different, since ${keyOf(first)} ${ENDS[first.change]}`;
  return (
    <li className="cache">
      <span>
        A prompt cache reaches to here, {counted(row.kept, 'token')} of {number(row.tokens)}: {why}.
      </span>
    </li>
  );
}

const ENDS = { added: 'was added', gone: 'is gone', changed: 'changed' } as const;

const VERBS = { added: 'Added', gone: 'Gone', changed: 'Changed' } as const;

function Change({ change, piece }: { change: SegmentChange; piece: Piece | null }) {
  const letter = letterOf(change.kind);
  const cause = change.cause;
  return (
    <li className={`change kind-${letter} ${change.change}`}>
      <p className="change-head">
        <span className="kind-letter" aria-hidden="true">
          {letter}
        </span>
        <b>{VERBS[change.change]}</b> {piece === null ? change.origin : nameOf(piece)}
        <span className="soft numbers end">{sizeOf(change, piece)}</span>
      </p>
      <div className="text">
        <Words words={change.words} />
      </div>
      <p className="because">
        because {becauseOf(cause)} (<EventLink run={cause.run} seq={cause.seq} />)
        {change.withheld !== undefined &&
          change.withheld !== '' &&
          `; left out: ${change.withheld}`}
        {(cause.causes ?? []).slice(0, 3).map((each) => (
          <span key={each.seq} className="link-of-chain">
            ← {each.says} (<EventLink run={cause.run} seq={each.seq} />)
          </span>
        ))}
      </p>
    </li>
  );
}

function sizeOf(change: SegmentChange, piece: Piece | null): string {
  if (change.change === 'changed') {
    return `${number(change.tokens_before)} → ${counted(change.tokens_after, 'token')}`;
  }
  return counted(piece?.tokens ?? (change.tokens_after || change.tokens_before), 'token');
}

const AROUND = 160;

function Words({ words }: { words: readonly WordChange[] }) {
  return words.map((each, n) => {
    if (each.change === 'added') return <ins key={n}>{each.text}</ins>;
    if (each.change === 'gone') return <del key={n}>{each.text}</del>;
    return <span key={n}>{shortened(each.text, n > 0, n < words.length - 1)}</span>;
  });
}

/** An unchanged stretch without its middle. */
function shortened(text: string, hasBefore: boolean, hasAfter: boolean): string {
  if (text.length <= 3 * AROUND) return text;
  const head = hasBefore ? text.slice(0, AROUND) : '';
  const tail = hasAfter ? text.slice(-AROUND) : '';
  return `${head} … ${tail}`;
}
