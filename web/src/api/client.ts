/** The one place that calls `/api/v1`. */

import type {
  Artifact,
  BlameExplained,
  Cost,
  Delivered,
  Feedback,
  Json,
  Me,
  Question,
  RouteExplanation,
  RunSummary,
  ServedWorkflow,
  StateExplained,
  Timeline,
  TurnDiff,
  TurnExplained,
  VariableExplained,
  WaitingQuestion,
  WhatIf,
} from './explanations';
import { problemOf, unreachable } from './problems';
import { credentials } from './session';

export const ROOT = '/api/v1';

type Query = Record<string, string | number | boolean | undefined>;

function address(path: string, query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text === '' ? ROOT + path : `${ROOT}${path}?${text}`;
}

interface Given {
  body?: unknown;
  headers?: Record<string, string> | undefined;
  signal?: AbortSignal | undefined;
}

async function call(method: string, url: string, given: Given = {}): Promise<Response> {
  const { body, signal } = given;
  const headers: Record<string, string> = {
    Accept: 'application/json',
    ...credentials(),
    ...given.headers,
  };
  const request: RequestInit = { method, headers, credentials: 'same-origin' };
  if (body !== undefined) {
    headers['Content-Type'] = 'application/json';
    request.body = JSON.stringify(body);
  }
  if (signal !== undefined) request.signal = signal;
  const response = await fetch(url, request).catch((error: unknown) => {
    throw signal?.aborted === true ? error : unreachable();
  });
  if (!response.ok) throw await problemOf(response);
  return response;
}

async function read<T>(path: string, query?: Query, signal?: AbortSignal): Promise<T> {
  return (await (await call('GET', address(path, query), { signal })).json()) as T;
}

async function send<T>(path: string, body: unknown, headers?: Record<string, string>): Promise<T> {
  const response = await call('POST', address(path), { body, headers });
  const text = await response.text();
  return (text === '' ? undefined : JSON.parse(text)) as T;
}

const at = (run: string): string => `/runs/${encodeURIComponent(run)}`;

/** A turn to compare with: of this run, or of another. */
export interface OtherTurn {
  turn?: number | undefined;
  run?: string | undefined;
}

export interface PageOf<T> {
  items: T[];
  next: string | null;
}

export interface RunFilter {
  status?: string | undefined;
  workflow?: string | undefined;
  user?: string | undefined;
  since?: string | undefined;
  feedback?: string | undefined;
  find?: string | undefined;
}

/** Stands for every status of a run that has not ended. */
export const OPEN = 'open';

function listQuery({ status, ...filter }: RunFilter): Query {
  return { ...filter, ...(status === OPEN ? { unfinished: true } : { status }) };
}

/** Where the first so many runs of a list can be followed. */
export const listAddress = (filter: RunFilter, limit: number): string =>
  address('/runs', { ...listQuery(filter), limit });

export const api = {
  runs: (filter: RunFilter, cursor?: string) =>
    read<PageOf<RunSummary>>('/runs', { ...listQuery(filter), cursor }),
  run: (run: string) => read<RunSummary>(at(run)),
  workflows: () => read<{ items: ServedWorkflow[] }>('/workflows'),
  inputOf: (workflow: string) =>
    read<{ input: Json }>(`/workflows/${encodeURIComponent(workflow)}/schema`),
  start: (workflow: string, key: string, input?: Json) =>
    send<RunSummary>('/runs', { workflow, input: input ?? null }, { 'Idempotency-Key': key }),
  cancel: (run: string, reason: string) => send<unknown>(`${at(run)}/cancel`, { reason }),
  resume: (run: string) => send<RunSummary>(`${at(run)}/resume`, undefined),
  retry: (run: string) => send<RunSummary>(`${at(run)}/retry`, {}),

  artifacts: (run: string) => read<PageOf<Artifact>>('/board/artifacts', { run, limit: 100 }),

  me: () => read<Me>('/me'),
  feedback: (run: string) => read<{ items: Feedback[] }>(`${at(run)}/feedback`),
  giveFeedback: (run: string, turn: number, score: number, comment: string) =>
    send<Feedback>(`${at(run)}/feedback`, { name: 'thumbs', turn, score, comment }),

  waiting: () => read<PageOf<WaitingQuestion>>('/questions'),
  questions: (run: string) => read<{ items: Question[] }>(`${at(run)}/questions`),
  answer: (run: string, question: string, value: Json) =>
    send<Delivered>(`${at(run)}/answers`, { question, value }),

  turn: (run: string, turn: number, signal?: AbortSignal) =>
    read<TurnExplained>(`${at(run)}/turns/${turn}`, {}, signal),
  diff: (run: string, turn: number, other: OtherTurn) =>
    read<TurnDiff>(`${at(run)}/turns/${turn}/diff`, { against: other.turn, other_run: other.run }),
  whatIf: (run: string, turn: number, search: number, threshold: number, signal?: AbortSignal) =>
    read<WhatIf>(`${at(run)}/turns/${turn}/what-if`, { search, min_relevance: threshold }, signal),
  variable: (run: string, name: string, seq?: number) =>
    read<VariableExplained>(`${at(run)}/variables/${encodeURIComponent(name)}`, { at: seq }),
  route: (run: string, seq: number) => read<RouteExplanation>(`${at(run)}/routes/${seq}`),
  blame: (run: string, text: string) => read<BlameExplained>(`${at(run)}/blame`, { text }),
  cost: (run: string, turn?: number) => read<{ cost: Cost | null }>(`${at(run)}/cost`, { turn }),
  timeline: (run: string) => read<Timeline>(`${at(run)}/timeline`),
  state: (run: string, seq?: number) => read<StateExplained>(`${at(run)}/state`, { at: seq }),
  page: async (run: string) => (await call('GET', address(`${at(run)}/page`))).blob(),
};
