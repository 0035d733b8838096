import { expect, test } from 'vitest';

import { declaredAt, ruleAt } from '../src/context/sources';
import events from './fixtures/events.json';

const files = events[0]?.data.files as unknown as Record<string, string>;

const lineOf = (file: string, line: number) => files[file]?.split('\n')[line - 1];

test('a variable is exposed at a line of its file', () => {
  const found = declaredAt(files, 'PlanArchitect', 'context_variables.interview_complete');
  expect(found?.file).toBe('context_variables.yaml');
  expect(lineOf('context_variables.yaml', found?.line ?? 0)).toContain('interview_complete]');
});

test('an agent and a rule have their lines', () => {
  const agent = declaredAt(files, 'PlanArchitect', 'agents.PlanArchitect');
  expect(lineOf('agents.yaml', agent?.line ?? 0)).toContain('system_message');
  expect(lineOf('handoffs.yaml', ruleAt(files, 3)?.line ?? 0)).toContain('PlanArchitect');
});

test('a tool has the line of its entry for the agent', () => {
  const tools = 'tools:\n  - { agent: A, function: look }\n  - { agent: [B, C], function: look }\n';
  const lineFor = (agent: string) => declaredAt({ 'tools.yaml': tools }, agent, 'tools.look')?.line;
  expect([lineFor('A'), lineFor('C'), lineFor('D')]).toEqual([2, 3, undefined]);
});

test('what no file declares has no line', () => {
  expect(declaredAt(files, 'X', 'context[0] from_literal')).toBeNull();
  expect(declaredAt({}, 'X', 'agents.X')).toBeNull();
  expect(declaredAt({ 'agents.yaml': '{{' }, 'X', 'agents.X')).toBeNull();
});
