import { expect, test } from 'vitest';

import type { LogEvent } from '../src/api/events';
import { folded } from '../src/api/log';
import { breaksCache, makeFrames, messageCost, shownSince } from '../src/context/frames';
import events from './fixtures/events.json';

const log = events as unknown as LogEvent[];

test('a frame per turn, its tokens by kind adding up to the whole', () => {
  const { rows, byTurn, largest } = folded(log, makeFrames);
  expect(rows.map((row) => [row.turn, row.agent, row.tokens])).toEqual([
    [1, 'InterviewAgent', 88],
    [2, 'InterviewAgent', 112],
    [3, 'InterviewAgent', 141],
    [4, 'InterviewAgent', 167],
    [5, 'PlanArchitect', 173],
    [6, 'PlanArchitect', 247],
    [7, 'PlanArchitect', 330],
  ]);
  for (const row of rows) {
    expect(Object.values(row.byKind).reduce((sum, each) => sum + each, 0)).toBe(row.tokens);
  }
  expect(largest).toBe(330);
  expect(byTurn.get(6)).toBe(5);
});

test('a frame that refers to an earlier one has its segments', () => {
  const { rows } = folded(log, makeFrames);
  expect(rows[1]?.segments).toBe(rows[0]?.segments);
  expect(rows[4]?.previous).toBe(-1);
  expect(rows[5]?.previous).toBe(4);
});

test('a history that only grows keeps a prompt cache', () => {
  const { rows } = folded(log, makeFrames);
  expect(rows[5]?.kept).toBe(173);
  expect(rows.some((row) => breaksCache(rows, row))).toBe(false);
});

test('costs are summed by origin, and a text is known since its first turn', () => {
  const frames = folded(log, makeFrames);
  expect(frames.costs.get('context_variables.interview_complete')).toEqual({
    tokens: 21,
    frames: 3,
  });
  const last = frames.rows[6];
  const digest = last?.segments[0]?.digest ?? '';
  expect(last && shownSince(frames, last, digest)?.turn).toBe(5);
});

test('a message costs its tokens in every prompt that has it', () => {
  const frames = folded(log, makeFrames);
  const first = frames.rows[0]?.history.first ?? 0;
  expect(messageCost(frames, first, 17)).toEqual({ tokens: 7 * 17, frames: 7 });
  const last = frames.rows[6]?.history.last ?? 0;
  expect(messageCost(frames, last, 20)).toEqual({ tokens: 20, frames: 1 });
});

test('a log that grows is folded further, not again', () => {
  const growing = log.slice(0, 40);
  expect(folded(growing, makeFrames).rows).toHaveLength(3);
  growing.push(...log.slice(40));
  expect(folded(growing, makeFrames).rows).toHaveLength(7);
});

test('a changed beginning breaks the cache', () => {
  const changed = structuredClone(log);
  const frame = changed.find((each) => each.id === 't6/frame');
  if (frame === undefined) throw new Error('the fixture has changed');
  frame.data.as_in = 0;
  frame.data.segments = [{ kind: 'instruction', origin: 'hooks.X', digest: 'x', tokens: 71 }];
  const { rows } = folded(changed, makeFrames);
  expect(rows[5]?.kept).toBe(0);
  expect(rows[5] && breaksCache(rows, rows[5])).toBe(true);
});
