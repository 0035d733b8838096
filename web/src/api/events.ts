/** Events of a run's log, as `turnloom log --json` prints them: the kinds that the pages read. */

import type { Json, Usage, Withheld } from './explanations';

export interface LogEvent<K extends string = string, D = Record<string, unknown>> {
  id: string;
  run: string;
  seq: number;
  at: string;
  kind: K;
  actor: string;
  data: D;
  cause?: number;
}

export interface ListedSegment {
  kind: string;
  origin: string;
  digest: string;
  tokens: number;
  reason?: string;
  text?: string | null;
}

export interface Span {
  first: number;
  last: number;
  count: number;
  tokens: number;
  digest: string;
}

export interface FrameAssembled {
  turn: number;
  agent: string;
  view: string;
  history: Span;
  tokens: number;
  counter: string;
  digest: string;
  as_in?: number;
  segments?: ListedSegment[];
  withheld?: Withheld[];
}

export interface FoundResult {
  digest: string;
  score: number;
  source_id: string;
  chunk?: number;
  metadata?: Record<string, Json>;
  text?: string | null;
}

export interface RetrievalSearched {
  turn: number;
  agent: string;
  collection: string;
  query: string;
  top_k: number;
  min_relevance: number;
  results: FoundResult[];
  micros: number;
}

export interface RunStarted {
  workflow: string;
  files?: Record<string, string>;
  root?: string;
}

export interface ModelAnswered {
  turn: number;
  agent: string;
  usage: Usage;
}

export type FrameEvent = LogEvent<'frame.assembled', FrameAssembled>;
export type SearchEvent = LogEvent<'retrieval.searched', RetrievalSearched>;
export type StartEvent = LogEvent<'run.started', RunStarted>;

export const isFrame = (event: LogEvent): event is LogEvent & FrameEvent =>
  event.kind === 'frame.assembled';
export const isSearch = (event: LogEvent): event is LogEvent & SearchEvent =>
  event.kind === 'retrieval.searched';
export const isStart = (event: LogEvent): event is LogEvent & StartEvent =>
  event.kind === 'run.started';
