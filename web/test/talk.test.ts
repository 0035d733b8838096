import { expect, test } from 'vitest';

import type { ChatEvent } from '../src/api/events';
import { folded } from '../src/api/log';
import { makeTalk } from '../src/chat/talk';
import { simplified, uiOf } from '../src/chat/ui';
import { validator } from '../src/chat/validator';
import { commandOf, held, isResumable, parseListing, writeListing } from '../src/runs/filters';
import { standing } from '../src/shared/Status';
import { axisOf } from '../src/run/axis';

let seq = 0;
const event = (kind: string, rest: Partial<ChatEvent> = {}): ChatEvent => {
  seq += 1;
  return { seq, at: '2026-11-17T04:00:00Z', kind, ...rest };
};

const choice = {
  type: 'object',
  properties: {
    decision: { type: 'string', enum: ['approve', 'reject'] },
    why: { type: 'string' },
    on: { type: 'string', format: 'date' },
  },
  required: ['decision'],
};

test('a chat: who speaks, what is asked, what was said', () => {
  const events = [
    event('run.started', { status: 'running', workflow: 'W' }),
    event('turn.started', { turn: 1, agent: 'Clerk' }),
    event('question.asked', { question: { id: 'q1', prompt: 'May I?', schema: choice } }),
    event('question.asked', { question: { id: 'q2', to: 'ann' } }),
  ];
  const open = folded(events, makeTalk);
  expect(open.questions.map((each) => [each.question.id, each.agent])).toEqual([
    ['q1', 'Clerk'],
    ['q2', 'Clerk'],
  ]);
  expect([...open.speaking.values()]).toEqual(['Clerk']);
  events.push(
    event('question.answered', { question_id: 'q1', by: 'ann', value: { decision: 'approve' } }),
    event('question.answered', { question_id: 'q2', by: 'ann', value: 'Yes.' }),
    event('user.text', { by: 'ann', text: 'Yes.' }),
    event('agent.text', { turn: 1, agent: 'Clerk', text: 'Done.' }),
    event('turn.finished', { turn: 1, agent: 'Clerk' }),
    event('run.finished', { status: 'finished' }),
  );
  const over = folded(events, makeTalk);
  expect(over.messages.map((each) => [each.author, each.mine, each.text])).toEqual([
    ['Clerk', false, 'May I?'],
    ['ann', true, ''],
    ['ann', true, 'Yes.'],
    ['Clerk', false, 'Done.'],
  ]);
  expect(over.questions).toEqual([]);
  expect(over.speaking.size).toBe(0);
});

test('what a retry voids is gone', () => {
  const said = event('agent.text', { turn: 1, agent: 'A', text: 'Wrong.' });
  const events = [
    said,
    event('run.retried', { status: 'running', voided: [[said.seq, said.seq]] }),
  ];
  expect(folded(events, makeTalk).messages).toEqual([]);
});

test('a form is validated without compiled code, also where it refers and nests', () => {
  const schema = {
    type: 'object',
    $defs: { day: { type: 'string', enum: ['mon', 'tue'] } },
    properties: { day: { $ref: '#/$defs/day' }, n: { type: 'integer', minimum: 1 } },
    required: ['day'],
  } as const;
  const bad = validator.validateFormData({ n: 0 }, schema as never);
  expect(bad.errors.map((each) => each.property).sort()).toEqual(['.day', '.n']);
  expect(validator.validateFormData({ day: 'mon', n: 1 }, schema as never).errors).toEqual([]);
  expect(validator.isValid({ $ref: '#/$defs/day' }, 'mon', schema as never)).toBe(true);
});

test('few choices are radio buttons, and texts have room', () => {
  const ui = uiOf(choice as never);
  expect(ui).toMatchObject({
    decision: { 'ui:widget': 'radio' },
    why: { 'ui:widget': 'textarea' },
    on: {},
  });
});

test('a listing survives its address', () => {
  expect(writeListing(parseListing('find=a+b&status=failed&other=1'))).toBe(
    'find=a+b&status=failed',
  );
});

test('a listing has a command', () => {
  expect(commandOf(parseListing('find=it%27s&status=open'))).toBe(
    "turnloom runs --find 'it'\\''s' --unfinished",
  );
  expect(commandOf(parseListing('status=failed&since=1h'))).toBe(
    "turnloom runs --status 'failed' --since '1h'",
  );
});

test('a run that waits says for what and how long, and a lost one can be resumed', () => {
  const run = (status: string, reason = '') =>
    ({
      status,
      reason,
      latest: '2026-11-17T04:00:00Z',
      collected: null,
      wanted: null,
    }) as never;
  const now = Date.parse('2026-11-17T04:05:00Z');
  expect(held(run('waiting'), now, [])).toContain('5 min');
  const ask = (to: string) => ({ run: undefined, user: 'ann', question: { id: 'q', to } }) as never;
  expect(held(run('waiting'), now, [ask('')])).toBe('for ann, 5 min');
  expect(held(run('waiting'), now, [ask('bob'), ask('role:admin')])).toContain(
    'bob and a person of the role admin',
  );
  expect(held(run('collecting'), now, [])).toContain('5 min');
  expect(held(run('unfinished'), now, [])).toContain('5 min');
  expect(held(run('unfinished'), now - 299_000, [])).toBe('');
  expect(held(run('stranded', 'no worker has its code'), now, [])).toMatch(/5 min.*no worker/);
  expect(held(run('limited', '2 of gpt'), now, [])).toBe('5 min: 2 of gpt');
  expect(standing(run('limited'))).toBe('waiting for limit');
  expect(held(run('finished'), now, [])).toBe('');
  expect(['unfinished', 'stranded', 'finished'].map((each) => isResumable(run(each)))).toEqual([
    true,
    true,
    false,
  ]);
});

test('idle stretches are short, and the order of moments is kept', () => {
  const axis = axisOf([
    { start: 0, end: 1, isBusy: true },
    { start: 1, end: 1001, isBusy: false },
    { start: 1001, end: 1002, isBusy: true },
  ]);
  const places = [0, 1, 500, 1001, 1002].map(axis);
  expect(places).toEqual([...places].sort((a, b) => a - b));
  expect(places[0]).toBe(0);
  expect(places[4]).toBe(1);
  expect((places[3] ?? 1) - (places[1] ?? 0)).toBeLessThan(0.1);
  expect(axisOf([])(3)).toBe(0);
});

test('what may be null may be left empty', () => {
  const nullable = { anyOf: [{ type: 'string' }, { type: 'null' }], default: null };
  const schema = { properties: { a: nullable, b: nullable }, required: ['b'] };
  expect(simplified(schema as never).properties).toEqual({ a: { type: 'string' }, b: nullable });
});
