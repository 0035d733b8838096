/** What is open, as the address says: turn, call, piece, comparison, search. */

import { useCallback, useMemo } from 'react';
import { useLocation, useSearch } from 'wouter';

import type { OtherTurn } from '../api/client';

export interface Place {
  turn: number | null;
  call: number;
  piece: string | null;
  /** The turn to compare with; an empty one is the agent's previous turn. */
  against: OtherTurn | null;
  find: string | null;
}

const asNumber = (text: string | null): number | null => {
  const value = Number(text);
  return text !== null && Number.isInteger(value) && value > 0 ? value : null;
};

/** `previous`, `5` or `RUN:5`. */
export function parseOther(text: string | null): OtherTurn | null {
  if (text === null) return null;
  if (text === 'previous') return {};
  const colon = text.lastIndexOf(':');
  const turn = asNumber(text.slice(colon + 1));
  if (turn === null) return null;
  return colon < 0 ? { turn } : { turn, run: text.slice(0, colon) };
}

export function writeOther(other: OtherTurn): string {
  if (other.turn === undefined) return 'previous';
  return other.run === undefined ? `${other.turn}` : `${other.run}:${other.turn}`;
}

export function parsePlace(search: string): Place {
  const given = new URLSearchParams(search);
  return {
    turn: asNumber(given.get('turn')),
    call: asNumber(given.get('call')) ?? 1,
    piece: given.get('piece'),
    against: parseOther(given.get('against')),
    find: given.get('find'),
  };
}

export function writePlace(place: Place): string {
  const words = new URLSearchParams();
  if (place.turn !== null) words.set('turn', String(place.turn));
  if (place.call > 1) words.set('call', String(place.call));
  if (place.piece !== null) words.set('piece', place.piece);
  if (place.against !== null) words.set('against', writeOther(place.against));
  if (place.find !== null) words.set('find', place.find);
  return words.toString();
}

/** The place, and a way to move: steps between turns are kept in the browser's history. */
export function usePlace(run: string): [Place, (next: Partial<Place>, replace?: boolean) => void] {
  const search = useSearch();
  const [, navigate] = useLocation();
  const place = useMemo(() => parsePlace(search), [search]);
  const move = useCallback(
    (next: Partial<Place>, replace = false) => {
      const words = writePlace({ ...parsePlace(window.location.search), ...next });
      navigate(`/runs/${run}/context?${words}`, { replace });
    },
    [navigate, run],
  );
  return [place, move];
}
