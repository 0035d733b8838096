/** Two prompts: what changed, word by word, and because of which event. */

import { useState } from 'react';

import type { OtherTurn } from '../api/client';
import type { SegmentChange, TurnDiff, WordChange } from '../api/explanations';
import { Failed, Loading } from '../shared/States';
import { counted, number } from '../shared/format';
import type { FrameRow, Frames } from './frames';
import { letterOf } from './kinds';
import { EventLink } from './parts';
import { parseOther, writeOther } from './place';
import { useDiff } from './queries';

interface Props {
  run: string;
  row: FrameRow;
  frames: Frames;
  other: OtherTurn;
  choose: (other: OtherTurn | null) => void;
}

export function Compare({ run, row, frames, other, choose }: Props) {
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
      {data !== undefined && <Changes diff={data} row={row} frames={frames} />}
    </div>
  );
}

function Against({ row, frames, other, choose }: Omit<Props, 'run'>) {
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

function Changes({ diff, row, frames }: { diff: TurnDiff; row: FrameRow; frames: Frames }) {
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
      <CacheLine row={row} frames={frames} diff={diff} />
      <ol className="changes">
        {diff.changes.map((change, n) => (
          <Change key={`${change.origin} ${n}`} change={change} />
        ))}
      </ol>
      {diff.same > 0 && (
        <p className="fold">
          {counted(diff.same, 'unchanged piece')}
          {diff.reordered ? ', in another order' : ''}
        </p>
      )}
    </>
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

/** How much of the previous prompt a provider's cache can reuse, and where that ends. */
function CacheLine({ row, frames, diff }: { row: FrameRow; frames: Frames; diff: TurnDiff }) {
  const before = frames.rows[row.previous];
  if (before?.turn !== diff.before.turn || diff.before.run !== diff.after.run) return null;
  const first = diff.changes[0];
  const why =
    row.kept >= before.tokens || first === undefined
      ? 'the whole previous prompt begins this one'
      : `${first.origin} ${first.change === 'added' ? 'comes' : first.change === 'gone' ? 'is gone' : 'changed'} after that`;
  return (
    <p className="cache">
      A prompt cache reaches over the first {counted(row.kept, 'token')} of {number(row.tokens)}:{' '}
      {why}.
    </p>
  );
}

const VERBS = { added: 'Added', gone: 'Gone', changed: 'Changed' } as const;

function Change({ change }: { change: SegmentChange }) {
  const letter = letterOf(change.kind);
  const tokens =
    change.change === 'changed'
      ? `${number(change.tokens_before)} → ${counted(change.tokens_after, 'token')}`
      : counted(change.tokens_after || change.tokens_before, 'token');
  return (
    <li className={`change kind-${letter} ${change.change}`}>
      <p className="change-head">
        <span className="kind-letter" aria-hidden="true">
          {letter}
        </span>
        <b>{VERBS[change.change]}</b> {change.origin}
        <span className="soft numbers end">{tokens}</span>
      </p>
      <div className="text">
        <Words words={change.words} />
      </div>
      <p className="because">
        because {change.cause.says} (<EventLink run={change.cause.run} seq={change.cause.seq} />)
        {change.withheld !== undefined &&
          change.withheld !== '' &&
          `; it is left out now: ${change.withheld}`}
        {(change.cause.causes ?? []).slice(0, 3).map((cause) => (
          <span key={cause.seq} className="link-of-chain">
            ← {cause.says} (<EventLink run={change.cause.run} seq={cause.seq} />)
          </span>
        ))}
      </p>
    </li>
  );
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
