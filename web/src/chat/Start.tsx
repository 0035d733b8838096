/** Start a workflow: one click for a conversation, a form of its state for a flow. */

import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useLocation } from 'wouter';

import { api } from '../api/client';
import type { Json, ServedWorkflow } from '../api/explanations';
import { Problem } from '../api/problems';
import { Empty, Failed, Loading } from '../shared/States';
import './chat.css';

const FORMS: Record<string, string> = {
  conversation: 'A conversation: agents talk with you and hand over to each other.',
  flow: 'A flow: steps with a typed state.',
  reaction: 'A board: publish an artifact to wake its agents.',
};

export default function Start() {
  const { data, error, refetch } = useQuery({ queryKey: ['workflows'], queryFn: api.workflows });
  if (error !== null) return <Failed problem={error} retry={() => void refetch()} />;
  if (data === undefined) return <Loading />;
  if (data.items.length === 0) {
    return (
      <Empty title="This server has no workflows">
        <p>
          Make one with <code>turnloom new</code>, then <code>turnloom serve --workflows DIR</code>.
        </p>
      </Empty>
    );
  }
  return (
    <div className="start">
      <h1>Start a workflow</h1>
      <ul>
        {data.items.map((workflow) => (
          <Startable key={workflow.name} workflow={workflow} />
        ))}
      </ul>
    </div>
  );
}

function Startable({ workflow }: { workflow: ServedWorkflow }) {
  const [, navigate] = useLocation();
  const [input, setInput] = useState('');
  // A repeated click is the same start.
  const [key] = useState(() => crypto.randomUUID());
  const isFlow = workflow.form === 'flow';
  const starting = useMutation({
    mutationFn: () => api.start(workflow.name, key, parsed(input)),
    onSuccess: (run) => navigate(`/runs/${run.run}/chat`),
  });
  const isValid = !isFlow || isObject(input);
  return (
    <li>
      <div>
        <h2>{workflow.name}</h2>
        <p className="soft">{FORMS[workflow.form]}</p>
      </div>
      {isFlow && (
        <label>
          <span className="soft small">Its state, as JSON</span>
          <textarea
            className="field mono"
            rows={3}
            placeholder="{}"
            value={input}
            aria-invalid={!isValid}
            onChange={(event) => setInput(event.target.value)}
          />
        </label>
      )}
      {workflow.form === 'reaction' ? (
        <code className="soft small">turnloom board publish {workflow.name}</code>
      ) : (
        <button
          type="button"
          className="button primary"
          disabled={!isValid || starting.isPending}
          onClick={() => starting.mutate()}
        >
          {starting.isPending ? 'Starting …' : 'Start'}
        </button>
      )}
      {starting.error !== null && (
        <p className="problem" role="alert">
          {starting.error instanceof Problem ? starting.error.message : String(starting.error)}
        </p>
      )}
    </li>
  );
}

function isObject(text: string): boolean {
  try {
    return text.trim() === '' || typeof parsed(text) === 'object';
  } catch {
    return false;
  }
}

const parsed = (text: string): Json | undefined =>
  text.trim() === '' ? undefined : (JSON.parse(text) as Json);
