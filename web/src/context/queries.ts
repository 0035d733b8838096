/** What the inspector asks the server for. What is on record does not change, so it is kept. */

import { useQuery } from '@tanstack/react-query';
import { useEffect, useMemo, useState } from 'react';

import { api, type OtherTurn } from '../api/client';
import { isStart, type LogEvent } from '../api/events';
import type { TurnExplained } from '../api/explanations';
import { money } from '../shared/cost';
import { modelCalls } from './pieces';
import type { Declared } from './sources';

const FOREVER = { staleTime: Infinity } as const;

/** A turn that is still taken is read again with each of its events. */
export function useTurn(run: string, turn: number | null, lastSeq: number, isOpen: boolean) {
  return useQuery<TurnExplained>({
    ...FOREVER,
    queryKey: ['turn', run, turn, isOpen ? lastSeq : 'done'],
    queryFn: ({ signal }) => api.turn(run, turn ?? 1, signal),
    enabled: turn !== null,
    placeholderData: (before) => (before?.run === run ? before : undefined),
  });
}

/** What a turn cost, in words; empty if it called no model that has a price. */
export function useTurnCost(turn: TurnExplained): string {
  const { data } = useQuery({
    ...FOREVER,
    queryKey: ['cost', turn.run, 'turn', turn.turn, modelCalls(turn).length, turn.steps.length],
    queryFn: () => api.cost(turn.run, turn.turn),
    enabled: modelCalls(turn).some((each) => (each.model ?? '') !== ''),
  });
  return data?.cost?.dollars == null ? '' : `The turn cost ${money(data.cost)}.`;
}

export function useDiff(run: string, turn: number | null, other: OtherTurn | null) {
  return useQuery({
    ...FOREVER,
    queryKey: ['diff', run, turn, other],
    queryFn: () => api.diff(run, turn ?? 1, other ?? {}),
    enabled: turn !== null && other !== null,
  });
}

export function useVariable(run: string, name: string | null, at: number) {
  return useQuery({
    ...FOREVER,
    queryKey: ['variable', run, name, at],
    queryFn: () => api.variable(run, name ?? '', at),
    enabled: name !== null && at > 0,
  });
}

export function useRoute(run: string, seq: number | null) {
  return useQuery({
    ...FOREVER,
    queryKey: ['route', run, seq],
    queryFn: () => api.route(run, seq ?? 1),
    enabled: seq !== null,
  });
}

/** Texts of fewer characters are not searched for. */
export const SHORTEST = 8;

export function useBlame(run: string, text: string | null, events: number) {
  return useQuery({
    ...FOREVER,
    queryKey: ['blame', run, text, events],
    queryFn: () => api.blame(run, text ?? ''),
    enabled: text !== null && text.trim().length >= SHORTEST,
    placeholderData: (before) => (before?.text === text ? before : undefined),
  });
}

/** The files of the run's workflow, if it is a folder. */
export function useFiles(events: readonly LogEvent[]): Record<string, string> | null {
  const first = events[0];
  return useMemo(() => (first !== undefined && isStart(first) ? first.data.files : null), [first]);
}

type Find = (sources: typeof import('./sources')) => Declared | null;

/** The line of a declaration; the parser is loaded when it is first needed. */
export function useDeclared(find: Find, key: string): Declared | null {
  const [found, setFound] = useState<{ key: string; declared: Declared | null } | null>(null);
  useEffect(() => {
    let isCurrent = true;
    void import('./sources').then((sources) => {
      if (isCurrent) setFound({ key, declared: find(sources) });
    });
    return () => {
      isCurrent = false;
    };
    // `key` stands for what `find` closes over.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [key]);
  return found?.key === key ? found.declared : null;
}
