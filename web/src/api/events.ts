/** Events of a run's log, as `turnloom log --json` prints them: the kinds that the pages read. */

import type { components } from './schema';

type Schemas = components['schemas'];

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

/** What a user sees of an event. */
export type ChatEvent = Schemas['ChatEvent'];

export type ListedSegment = Schemas['Segment'];
export type FrameAssembled = Schemas['FrameAssembled'];
export type FoundResult = Schemas['FoundResult'];
export type RetrievalSearched = Schemas['RetrievalSearched'];
export type RunStarted = Schemas['RunStarted'];

export type FrameEvent = LogEvent<'frame.assembled', FrameAssembled>;
export type SearchEvent = LogEvent<'retrieval.searched', RetrievalSearched>;
export type StartEvent = LogEvent<'run.started', RunStarted>;

export const isFrame = (event: LogEvent): event is LogEvent & FrameEvent =>
  event.kind === 'frame.assembled';
export const isSearch = (event: LogEvent): event is LogEvent & SearchEvent =>
  event.kind === 'retrieval.searched';
export const isStart = (event: LogEvent): event is LogEvent & StartEvent =>
  event.kind === 'run.started';
