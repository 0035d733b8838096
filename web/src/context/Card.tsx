/** One piece in sentences: what it is, why it is here, since when, and what it costs. */

import { useState, type ReactNode } from 'react';

import type { LogEvent } from '../api/events';
import type { Withheld } from '../api/explanations';
import { Copy } from '../shared/Copy';
import { counted, excerpt, oneLine, preview } from '../shared/format';
import { BecauseOfVariable, variableLines } from './CardOfVariable';
import { History } from './History';
import { messageCost, shownSince } from './frames';
import { nounOf } from './kinds';
import { shortName } from './leftOut';
import { nameOf, scoreOf, variableOf } from './names';
import { EventLink, Lines, type CardContext, type Line } from './parts';
import type { Piece } from './pieces';
import { useDeclared, useVariable } from './queries';
import { Secrets } from './Text';

interface Props {
  piece: Piece;
  context: CardContext;
  command: string;
  find: (text: string) => void;
  compare: () => void;
}

export function Card({ piece, context, command, find, compare }: Props) {
  const { run, row } = context;
  // By its piece: the card stays in the page from piece to piece, and keeps the focus.
  const [told, setTold] = useState('');
  const history = told === piece.key;
  const variable = variableOf(piece);
  const { data: explained } = useVariable(run, variable, row.seq);
  const lines = [
    ...becauseLines(piece, context),
    ...(explained === undefined ? sinceLines(piece, context) : variableLines(explained, context)),
    ...costLines(piece, context),
  ];
  return (
    <section className="card" aria-labelledby="card-title" id="card" tabIndex={-1}>
      <h3>{nounOf(piece.kind)}</h3>
      <h2 id="card-title" className={variable === null ? '' : 'mono'}>
        {variable === null ? nameOf(piece) : `${variable} = ${valueOf(piece, explained?.value)}`}
      </h2>
      {variable === null && (
        <blockquote>
          <Secrets text={excerpt(piece.text, 280)} />
        </blockquote>
      )}
      <Lines lines={lines} />
      <div className="buttons">
        <button
          type="button"
          className="button"
          aria-pressed={history}
          onClick={() => setTold(history ? '' : piece.key)}
        >
          History
        </button>
        <button type="button" className="button" onClick={() => find(sentenceOf(piece.text))}>
          Find everywhere
        </button>
        <button type="button" className="button" onClick={compare}>
          Compare <kbd>d</kbd>
        </button>
        <Copy text={window.location.href}>Link</Copy>
        <Copy text={command}>Copy as command</Copy>
      </div>
      {history && <History piece={piece} context={context} variable={explained} />}
    </section>
  );
}

/** The value as the prompt shows it, which is masked where it must be. */
function valueOf(piece: Piece, value: unknown): string {
  const shown = /^\s*-?\s*[\w.]+:\s*(.*)$/s.exec(piece.text)?.[1];
  return oneLine(shown ?? preview(value), 160);
}

/** Something to search for: the first line that is long enough. */
export function sentenceOf(text: string): string {
  const lines = text.split('\n').map((each) => each.trim());
  return (lines.find((each) => each.length >= 8) ?? text.trim()).slice(0, 160);
}

const GIVERS: Partial<Record<string, string>> = {
  instruction: 'The workflow itself.',
  context: 'The frame itself.',
  literal: 'The declaration itself: it is always the same.',
  message: 'The log of this run.',
  tool: 'The agent’s declared tools.',
  output: 'The agent’s declared output.',
  state: 'The state of the flow.',
  prompt: 'The step itself.',
  exchange: 'An earlier model call of this turn.',
};

/** Which provider furnished the piece. */
function giverOf(piece: Piece): ReactNode {
  const kind = piece.kind.replace(/^context\./, '');
  if (kind === 'artifact' && !piece.origin.startsWith('context[')) {
    return <>Provider {piece.origin}.</>;
  }
  const score = scoreOf(piece);
  if (score !== null) {
    const collection = /\(([^)]*)\)/.exec(piece.origin)?.[1];
    return `The collection ${collection ?? piece.origin}: it scored ${score.score.toFixed(2)}.`;
  }
  if (kind === 'input') return 'The board: it woke the agent.';
  if (kind === 'engine') return `The engine ${piece.origin}.`;
  return GIVERS[kind] ?? piece.origin;
}

function becauseLines(piece: Piece, context: CardContext): Line[] {
  const lines = [{ label: 'Here because', text: <Because piece={piece} context={context} /> }];
  if (variableOf(piece) !== null) return lines;
  return [...lines, { label: 'Given by', text: giverOf(piece) }];
}

function Because({ piece, context }: { piece: Piece; context: CardContext }) {
  const { files, row } = context;
  const key = `${context.run} ${row.agent} ${piece.origin}`;
  const declared = useDeclared(
    (sources) => (files === null ? null : sources.declaredAt(files, row.agent, piece.origin)),
    key,
  );
  if (variableOf(piece) !== null) return <BecauseOfVariable declared={declared} row={row} />;
  const where = declared === null ? null : <code>{`${declared.file}:${declared.line}`}</code>;
  if (piece.seq !== undefined) return <>{row.agent} is shown the conversation so far.</>;
  if (where !== null) {
    return (
      <>
        {where} declares it: {piece.reason}.
      </>
    );
  }
  if (piece.origin.startsWith('context[')) {
    return (
      <>
        <code>{piece.origin}</code> is declared for {row.agent}; {piece.reason}.
      </>
    );
  }
  if (piece.kind === 'input' && context.woken !== null) {
    const by = context.woken.subscription || 'it was given to the agent directly';
    return (
      <>
        it woke {row.agent} by {by} (<EventLink run={context.run} seq={context.woken.seq} />
        ).
      </>
    );
  }
  return <>{piece.reason}.</>;
}

function sinceLines(piece: Piece, { run, row, frames, events }: CardContext): Line[] {
  if (piece.seq !== undefined) {
    const event = events.find((each) => each.seq === piece.seq);
    const turn = event?.data.turn;
    const when = typeof turn === 'number' ? `in turn ${turn}` : 'between turns';
    const text = (
      <>
        {piece.author} said it {when} (<EventLink run={run} seq={piece.seq} />
        ).
      </>
    );
    return [{ label: 'Since', text }];
  }
  const since = shownSince(frames, row, piece.digest);
  if (since === null) return [];
  const text =
    since.turn === row.turn ? (
      <>
        this turn{row.previous < 0 ? `, the first of ${row.agent}` : ''}: {row.agent} had not seen
        it before.
      </>
    ) : (
      <>
        turn {since.turn}, in every prompt of {row.agent} since (
        <EventLink run={run} seq={since.seq} />
        ).
      </>
    );
  return [{ label: 'Since', text }];
}

function costLines(piece: Piece, { frames, row, turnCost }: CardContext): Line[] {
  const share = row.tokens === 0 ? 0 : (100 * piece.tokens) / row.tokens;
  const here = `${counted(piece.tokens, 'token')}, ${share < 1 ? '< 1' : Math.round(share)} % of this prompt`;
  const over =
    piece.seq === undefined
      ? frames.costs.get(piece.origin)
      : messageCost(frames, piece.seq, piece.tokens);
  const whole =
    over === undefined || over.frames < 2
      ? ''
      : `; ${counted(over.tokens, 'token')} over this run, in ${counted(over.frames, 'prompt')}`;
  return [{ label: 'Costs', text: `${here}${whole}. ${turnCost}`.trim() }];
}

/** A piece that was left out, in the same sentences. */
export function LeftOutCard({
  withheld,
  context,
  command,
}: {
  withheld: Withheld;
  context: CardContext;
  command: string;
}) {
  const lines: Line[] = [
    {
      label: 'Left out',
      text: `${withheld.reason.replace(/_/g, ' ')}${withheld.detail === undefined || withheld.detail === '' ? '' : `: ${withheld.detail}`}.`,
    },
    { label: 'Declared', text: <code>{withheld.origin.split(': ')[0]}</code> },
    { label: 'In', text: `the prompt of ${context.row.agent}, turn ${context.row.turn}.` },
  ];
  const text = foundText(withheld, context.events);
  return (
    <section className="card out" aria-labelledby="card-title" id="card" tabIndex={-1}>
      <h3>Left out</h3>
      <h2 id="card-title">{shortName(withheld.origin)}</h2>
      {text !== null && (
        <blockquote>
          <Secrets text={oneLine(text, 400)} />
        </blockquote>
      )}
      <Lines lines={lines} />
      <div className="buttons">
        <Copy text={window.location.href}>Link</Copy>
        <Copy text={command}>Copy as command</Copy>
      </div>
    </section>
  );
}

interface SearchData {
  results?: { digest: string; source_id: string; chunk?: number; text?: string | null }[];
}

/** The text of a search result that was left out, from the search on record. */
function foundText(withheld: Withheld, events: readonly LogEvent[]): string | null {
  const name = shortName(withheld.origin);
  let digest = '';
  for (const event of events) {
    if (event.kind !== 'retrieval.searched') continue;
    for (const each of (event.data as SearchData).results ?? []) {
      const isIt = `${each.source_id}#${each.chunk ?? 0}` === name || each.digest === digest;
      if (!isIt) continue;
      if (each.text != null) return each.text;
      digest = each.digest;
    }
  }
  return null;
}
