/** A run in the browser, as its log or its chat: read once, then followed from its last position. */

import { useEffect, useMemo, useSyncExternalStore } from 'react';

import { ROOT } from './client';
import type { ChatEvent, LogEvent } from './events';
import { Problem, unreachable } from './problems';
import { readStream, type Sent } from './sse';

/** `reading` until the stored events are here, `live` while more may come, `ended` after the last. */
export type Connection = 'reading' | 'live' | 'ended' | 'offline' | 'failed';

/** The text of an answer in progress. */
export interface Draft {
  turn: number;
  agent: string;
  call: number;
  text: string;
}

/** An event of a stream: of the log, or what the chat shows of it. */
export interface Streamed {
  seq: number;
  kind: string;
  turn?: number;
  data?: Record<string, unknown>;
}

export interface LogState<E extends Streamed = LogEvent> {
  readonly events: readonly E[];
  readonly count: number;
  readonly drafts: ReadonlyMap<number, Draft>;
  readonly connection: Connection;
  readonly problem: Problem | null;
}

interface Delta {
  turn: number;
  agent: string;
  call: number;
  offset: number;
  text: string;
}

interface StreamedEvent<E> {
  run: string;
  event: E;
}

// What takes the place of the text that was streamed.
const SAID = new Set(['agent.text', 'agent.output', 'turn.finished']);
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 10_000;

/** A call, since the compiler takes a signal for constant between two reads. */
const isAborted = (signal: AbortSignal): boolean => signal.aborted;

/** A run's events and drafts; tells its listeners at most once per frame. */
export class RunLog<E extends Streamed = LogEvent> {
  private readonly events: E[] = [];
  private drafts = new Map<number, Draft>();
  private connection: Connection = 'reading';
  private problem: Problem | null = null;
  private state: LogState<E>;
  private readonly listeners = new Set<() => void>();
  private scheduled = false;
  private controller: AbortController | null = null;
  private pause = FIRST_PAUSE;

  constructor(readonly url: (after: number) => string) {
    this.state = this.snapshot();
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    if (this.controller === null) void this.follow();
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size === 0) this.stop();
    };
  };

  readonly current = (): LogState<E> => this.state;

  /** Connect again at once, as after the network is back. */
  readonly reconnect = (): void => {
    this.stop();
    if (this.listeners.size > 0) void this.follow();
  };

  private stop(): void {
    this.controller?.abort();
    this.controller = null;
  }

  private get position(): number {
    return this.events.at(-1)?.seq ?? 0;
  }

  private async follow(): Promise<void> {
    const controller = new AbortController();
    this.controller = controller;
    for (;;) {
      try {
        await readStream(this.url(this.position), this.receive, controller.signal);
        if (!this.isEnded) this.fail(unreachable());
      } catch (error) {
        if (isAborted(controller.signal)) return;
        this.fail(error);
      }
      this.tell();
      if (this.isEnded || this.connection === 'failed') return;
      await this.wait(controller.signal);
      if (isAborted(controller.signal)) return;
    }
  }

  private get isEnded(): boolean {
    return this.connection === 'ended';
  }

  private fail(error: unknown): void {
    this.problem = error instanceof Problem ? error : unreachable();
    const passes =
      this.problem.offline || this.problem.status >= 500 || this.problem.status === 429;
    this.connection = passes ? 'offline' : 'failed';
  }

  private wait(signal: AbortSignal): Promise<void> {
    const pause = this.pause;
    this.pause = Math.min(this.pause * 2, LONGEST_PAUSE);
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, pause);
      signal.addEventListener('abort', () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  private readonly receive = (sent: Sent[]): void => {
    this.pause = FIRST_PAUSE;
    this.connection = 'live';
    this.problem = null;
    for (const each of sent) this.take(each);
    this.schedule();
  };

  private take(sent: Sent): void {
    if (sent.event === 'delta' || sent.event === 'reset') {
      this.draft(JSON.parse(sent.data) as Delta);
    } else if (sent.event === 'end') {
      this.connection = 'ended';
    } else if (sent.id !== '') {
      const { event } = JSON.parse(sent.data) as StreamedEvent<E>;
      if (event.seq <= this.position) return;
      this.events.push(event);
      if (SAID.has(event.kind)) this.undraft(event.turn ?? event.data?.turn);
    }
  }

  /** A delta adds its text at its offset; a reset has offset 0, and so replaces all. */
  private draft({ turn, agent, call, offset, text }: Delta): void {
    const before = this.drafts.get(turn);
    const kept = before?.call === call ? before.text.slice(0, offset) : '';
    this.drafts = new Map(this.drafts).set(turn, { turn, agent, call, text: kept + text });
  }

  private undraft(turn: unknown): void {
    if (typeof turn !== 'number' || !this.drafts.has(turn)) return;
    this.drafts = new Map(this.drafts);
    this.drafts.delete(turn);
  }

  private schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    setTimeout(() => {
      this.scheduled = false;
      this.tell();
    }, 16);
  }

  private tell(): void {
    this.state = this.snapshot();
    for (const listener of this.listeners) listener();
  }

  private snapshot(): LogState<E> {
    return {
      events: this.events,
      count: this.events.length,
      drafts: this.drafts,
      connection: this.connection,
      problem: this.problem,
    };
  }
}

const logs = new Map<string, RunLog<Streamed>>();
const KEPT = 6;

function logOf(run: string, stream: 'events' | 'chat'): RunLog<Streamed> {
  const path = `${ROOT}/runs/${encodeURIComponent(run)}/${stream}`;
  let log = logs.get(path);
  if (log === undefined) {
    log = new RunLog<Streamed>((after) => `${path}?after=${after}`);
    logs.set(path, log);
    const oldest = logs.keys().next().value;
    if (logs.size > KEPT && oldest !== undefined) logs.delete(oldest);
  }
  return log;
}

export type Followed<E extends Streamed = LogEvent> = LogState<E> & { reconnect: () => void };

function useStream(run: string, stream: 'events' | 'chat'): Followed<Streamed> {
  const log = useMemo(() => logOf(run, stream), [run, stream]);
  const state = useSyncExternalStore(log.subscribe, log.current);
  useEffect(() => {
    window.addEventListener('online', log.reconnect);
    return () => window.removeEventListener('online', log.reconnect);
  }, [log]);
  return useMemo(() => ({ ...state, reconnect: log.reconnect }), [state, log]);
}

/** The log of a run, followed while the component is mounted; for those who may explain runs. */
export function useRunLog(run: string): Followed {
  return useStream(run, 'events') as Followed;
}

/** What the chat shows of a run, followed while the component is mounted. */
export function useChat(run: string): Followed<ChatEvent> {
  return useStream(run, 'chat') as Followed<ChatEvent>;
}

/** Folds events into a value, each event once. */
export interface Fold<T, E extends Streamed = LogEvent> {
  push: (event: E) => void;
  value: () => T;
}

interface Folded {
  fold: Fold<unknown, never>;
  taken: number;
  value: unknown;
}

const folds = new WeakMap<readonly Streamed[], Map<unknown, Folded>>();

/** The value of a fold over a log; `make` must be one function, not made at each rendering. */
export function folded<T, E extends Streamed>(events: readonly E[], make: () => Fold<T, E>): T {
  const known = folds.get(events) ?? new Map<unknown, Folded>();
  folds.set(events, known);
  const entry = known.get(make) ?? { fold: make(), taken: -1, value: undefined };
  known.set(make, entry);
  if (entry.taken < events.length) {
    const fold = entry.fold as Fold<T, E>;
    for (const event of events.slice(Math.max(entry.taken, 0))) fold.push(event);
    entry.taken = events.length;
    entry.value = fold.value();
  }
  return entry.value as T;
}
