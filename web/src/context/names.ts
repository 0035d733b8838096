/** Pieces by the names that people know them by. */

import type { Piece } from './pieces';
import { nounOf } from './kinds';

const HEADINGS: Record<string, string> = {
  'heads the variables': 'Heading of the variables',
  'heads what was gathered': 'Heading of the context',
  'heads the context': 'Heading of the context',
  'heads what the turn is about': 'Heading of the input',
};

/** The part of an origin after its last known prefix. */
function bare(origin: string): string {
  return origin.replace(
    /^(context_variables\.agents|context_variables|agents|tools|structured_outputs|steps|hooks|threads)\./,
    '',
  );
}

const SCORED = /^(.+) scores (\S+)/;
const ARTIFACT = /^artifact (\S+?)(;|$)/;

/** The search result that a piece shows, and its score. */
export function scoreOf(piece: Piece): { source: string; score: number } | null {
  const found = SCORED.exec(piece.reason);
  if (found === null || piece.letter !== 'R') return null;
  return { source: found[1] ?? '', score: Number(found[2]) };
}

const TYPE = /"type":"(?:[^"]*\.)?([^".]+)"/;
const PRODUCER = /"produced_by":"([^"]+)"/;

/** The type of an artifact, without its module. */
function typeOf(piece: Piece): string {
  return TYPE.exec(piece.text)?.[1] ?? 'Artifact';
}

type Namer = (piece: Piece) => string;

const NAMERS: Record<string, Namer> = {
  variable: (piece) => bare(piece.origin),
  message: (piece) => piece.author ?? bare(piece.origin),
  retrieval: (piece) => scoreOf(piece)?.source ?? piece.origin,
  artifact: (piece) => `${typeOf(piece)} ${ARTIFACT.exec(piece.reason)?.[1] ?? ''}`.trim(),
  input: (piece) => `${typeOf(piece)} of ${PRODUCER.exec(piece.text)?.[1] ?? 'the board'}`,
  instruction: (piece) => `Instructions of ${bare(piece.origin)}`,
  tool: (piece) => `Tool ${bare(piece.origin)}`,
  output: (piece) => `Form of the answer: ${bare(piece.origin)}`,
  prompt: (piece) => `What ${bare(piece.origin)} asks`,
  exchange: (piece) => `Earlier ${piece.origin}`,
  engine: () => 'Added by engine',
};

/** A short name of a piece. */
export function nameOf(piece: Piece): string {
  const heading = HEADINGS[piece.reason];
  if (heading !== undefined) return heading;
  const bareKind = piece.kind.replace(/^context\./, '');
  const name = NAMERS[bareKind]?.(piece) ?? `${nounOf(piece.kind)} ${piece.origin}`;
  return name;
}

/** The variable that a piece shows, if it shows one. */
export function variableOf(piece: Piece): string | null {
  return piece.letter === 'V' && piece.origin.startsWith('context_variables.')
    ? bare(piece.origin)
    : null;
}
