/** The prompt of one model call as a list of pieces, in the order in which they were sent. */

import type {
  Exchange,
  ModelCallStep,
  ShownFrame,
  ShownSegment,
  Step,
  TurnExplained,
} from '../api/explanations';
import type { FrameRow } from './frames';
import { letterOf, type Letter } from './kinds';

/** One piece of a prompt. `key` names it in addresses, and is the same in other turns. */
export interface Piece {
  key: string;
  letter: Letter;
  kind: string;
  origin: string;
  reason: string;
  tokens: number;
  digest: string;
  text: string;
  /** The event that holds it, for a message of the history. */
  seq?: number;
  author?: string;
}

/** A model call of a turn: what it was given beside the frame, and what it used. */
export interface Call {
  number: number;
  of: number;
  step: ModelCallStep | null;
  pieces: Piece[];
  frame: ShownFrame;
}

const isCall = (step: Step): step is ModelCallStep => step.type === 'model call';

/** All model calls of a turn; a turn without any still has its frame. */
export function modelCalls(turn: TurnExplained): ModelCallStep[] {
  return turn.steps.filter(isCall);
}

/** What the model saw in the `number`th call of a turn. */
export function callOf(turn: TurnExplained, number: number): Call {
  const calls = modelCalls(turn);
  const at = Math.min(Math.max(number, 1), Math.max(calls.length, 1));
  const step = calls[at - 1] ?? null;
  const part = turn.parts.find((each) => each.name === step?.part);
  const frame = part?.frame ?? turn;
  const exchanges = part?.exchanges ?? turn.exchanges;
  const pieces = [
    ...framePieces(frame.segments),
    ...exchanges.slice(0, step?.given ?? 0).map(exchangePiece),
    ...addedPieces(step),
  ];
  return { number: at, of: Math.max(calls.length, 1), step, pieces: withKeys(pieces), frame };
}

type Unnamed = Omit<Piece, 'key'>;

function framePieces(segments: readonly ShownSegment[]): Unnamed[] {
  return segments.flatMap((each) =>
    each.messages === undefined || each.messages.length === 0
      ? [segmentPiece(each)]
      : messagePieces(each),
  );
}

function segmentPiece(each: ShownSegment): Unnamed {
  const { kind, origin, reason, tokens, digest, text } = each;
  return { letter: letterOf(kind), kind, origin, reason, tokens, digest, text };
}

/** The messages of a history; its tokens are shared out by length, so that their sum is kept. */
function messagePieces(history: ShownSegment): Unnamed[] {
  const messages = history.messages ?? [];
  const lengths = messages.map((each) => each.author.length + each.text.length + 4);
  const whole = lengths.reduce((sum, each) => sum + each, 0);
  let given = 0;
  let length = 0;
  return messages.map((each, n) => {
    length += lengths[n] ?? 0;
    const tokens = Math.round((history.tokens * length) / whole) - given;
    given += tokens;
    return {
      letter: 'H',
      kind: 'message',
      origin: `event ${each.seq}`,
      reason: history.reason,
      tokens,
      digest: `event ${each.seq}`,
      text: each.text,
      seq: each.seq,
      author: each.author,
    };
  });
}

// Characters per token, as the default counter estimates.
const PER_TOKEN = 4;

function exchangePiece(exchange: Exchange, n: number): Unnamed {
  const said = exchange.text ? [exchange.text] : [];
  const calls = (exchange.calls ?? []).map((call, at) => {
    const result = exchange.results?.[at];
    const came = result === undefined ? '' : ` → ${result.error ?? JSON.stringify(result.value)}`;
    return `${call.tool} ${JSON.stringify(call.arguments)}${came}`;
  });
  const problem = exchange.problem ? [`refused: ${exchange.problem}`] : [];
  const text = [...said, ...calls, ...problem].join('\n');
  return {
    letter: 'X',
    kind: 'exchange',
    origin: `call ${n + 1}`,
    reason: `what call ${n + 1} of this turn answered, and what came of it`,
    tokens: Math.ceil(text.length / PER_TOKEN),
    digest: `exchange ${n + 1}`,
    text,
  };
}

function addedPieces(step: ModelCallStep | null): Unnamed[] {
  const added = (step?.within ?? []).filter((each) => each.type === 'added by engine');
  const texts = added.flatMap((each) => each.texts);
  return texts.map((text) => ({
    letter: 'E',
    kind: 'engine',
    origin: step?.engine ?? 'engine',
    reason: 'the engine added it to what it was given',
    tokens: Math.ceil(text.length / PER_TOKEN),
    digest: text,
    text,
  }));
}

/** Pieces with keys: the origin, numbered where several have the same. */
function withKeys(pieces: readonly Unnamed[]): Piece[] {
  const seen = new Map<string, number>();
  return pieces.map((each) => {
    const n = (seen.get(each.origin) ?? 0) + 1;
    seen.set(each.origin, n);
    return { ...each, key: n === 1 ? each.origin : `${each.origin} (${n})` };
  });
}

/** Whether a piece is new: the agent's previous frame did not have this text. */
export function isNew(piece: Piece, before: FrameRow | undefined): boolean {
  if (before === undefined) return false;
  if (piece.seq !== undefined) return piece.seq > before.history.last;
  return !before.segments.some((each) => each.digest === piece.digest);
}

/** What to look at first: the largest piece that is new, or else the largest one. */
export function firstToSee(
  pieces: readonly Piece[],
  before: FrameRow | undefined,
): Piece | undefined {
  const fresh = pieces.filter((each) => isNew(each, before));
  const among = fresh.length > 0 ? fresh : pieces;
  return among.reduce<Piece | undefined>(
    (best, each) => (best === undefined || each.tokens > best.tokens ? each : best),
    undefined,
  );
}

/** A block of the minimap: one piece, or several small ones beside each other. */
export interface Block {
  from: number;
  to: number;
  letter: Letter;
  tokens: number;
}

/** Blocks for a bar of `width` pixels; pieces narrower than 4 pixels join their neighbours. */
export function blocksOf(pieces: readonly Piece[], width: number): Block[] {
  const whole = pieces.reduce((sum, each) => sum + each.tokens, 0);
  const least = whole === 0 || width === 0 ? 0 : (4 * whole) / width;
  const blocks: Block[] = [];
  let small: Block | null = null;
  pieces.forEach((each, n) => {
    if (each.tokens >= least) {
      blocks.push({ from: n, to: n, letter: each.letter, tokens: each.tokens });
      small = null;
    } else if (small?.letter !== each.letter) {
      small = { from: n, to: n, letter: each.letter, tokens: each.tokens };
      blocks.push(small);
    } else {
      small.to = n;
      small.tokens += each.tokens;
    }
  });
  return joined(blocks, least);
}

/** Runs of blocks that are still too narrow become one, whatever their kinds. */
function joined(blocks: readonly Block[], least: number): Block[] {
  const result: Block[] = [];
  for (const each of blocks) {
    const last = result.at(-1);
    if (last !== undefined && each.tokens < least && last.tokens < least) {
      last.to = each.to;
      last.tokens += each.tokens;
    } else {
      result.push({ ...each });
    }
  }
  return result;
}
