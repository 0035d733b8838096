import { expect, test } from 'vitest';

import type { LogEvent } from '../src/api/events';
import type { TimelineRow } from '../src/api/explanations';
import { firstToSee, matching, withCalls } from '../src/run/calls';

const at = (second: number): string => `2026-11-17T04:00:0${second}Z`;
const event = (seq: number, kind: string, data: Record<string, unknown>): LogEvent => ({
  id: `e${seq}`,
  run: 'r',
  seq,
  at: at(seq),
  kind,
  actor: 'driver',
  data,
});
const row = (seq: number, what: string, depth = 0): TimelineRow => ({
  seq,
  what,
  who: 'A',
  at: at(seq),
  depth,
});

test('model calls stand in their turns, before and after the tools between them', () => {
  const rows = [row(1, 'turn 1'), row(4, 'tool', 1), row(5, 'question', 2), row(8, 'route')];
  const events = [
    event(2, 'model.called', { turn: 1, agent: 'A', engine: 'E' }),
    event(3, 'model.answered', { turn: 1, model: 'm-1', calls: [{}], usage: { input_tokens: 9 } }),
    event(6, 'model.called', { turn: 1, agent: 'A', engine: 'E' }),
    event(7, 'model.failed', { turn: 1, error: 'Timeout' }),
  ];
  const shown = withCalls(rows, events);
  expect(shown.map((each) => [each.seq, each.what, each.depth])).toEqual([
    [1, 'turn 1', 0],
    [2, 'model', 1],
    [4, 'tool', 1],
    [5, 'question', 2],
    [6, 'model', 1],
    [8, 'route', 0],
  ]);
  expect(shown[1]).toMatchObject({
    who: 'm-1',
    seconds: 1,
    note: '9 tokens in, 0 out, 1 tool call',
  });
  expect(shown[4]).toMatchObject({ who: 'E', seconds: 1, note: 'failed Timeout' });
});

test('a call stands in the last row of a turn that was retried, and a pick stands once', () => {
  const rows = [row(1, 'turn 1'), row(3, 'turn 1'), row(5, 'pick', 1)];
  const calls = [2, 4, 5].map((seq) => event(seq, 'model.called', { turn: 1, engine: 'E' }));
  expect(withCalls(rows, calls).map((each) => each.seq)).toEqual([1, 2, 3, 4, 5]);
  expect(withCalls(rows, [])).toEqual(rows);
});

test('a timeline opens at what failed first, or at its beginning', () => {
  const row = (seq: number, note = '') => ({ seq, what: 'step', who: 'ship', at: '', note });
  expect(firstToSee([row(3), row(5, 'failed: NoCourier'), row(7, 'failed')])?.seq).toBe(5);
  expect(firstToSee([row(3), row(5)])?.seq).toBe(3);
  expect(firstToSee([])).toBeUndefined();
});

test('rows are found by words of their line, in any order and case', () => {
  const rows = [row(1, 'turn 1'), { ...row(2, 'tool'), note: 'returned "Lamp"' }, row(3, 'tool')];
  const seqs = (words: string) => matching(rows, words).map((each) => each.seq);
  expect(seqs('TOOL')).toEqual([2, 3]);
  expect(seqs('lamp  tool')).toEqual([2]);
  expect(seqs(' ')).toEqual([1, 2, 3]);
  expect(seqs('kettle')).toEqual([]);
});
