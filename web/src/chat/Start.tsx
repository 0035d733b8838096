/** Start a workflow: one click for a conversation, a form of its state for a flow. */

import type { RJSFSchema } from '@rjsf/utils';
import { useMutation, useQuery } from '@tanstack/react-query';
import { lazy, Suspense, useState } from 'react';
import { useLocation } from 'wouter';

import { api } from '../api/client';
import type { Json, ServedWorkflow } from '../api/explanations';
import { Problem } from '../api/problems';
import { Empty, Failed, Loading } from '../shared/States';
import { unique } from '../shared/unique';
import './chat.css';

const SchemaForm = lazy(() => import('./SchemaForm'));

const FORMS: [form: string, title: string, about: string][] = [
  ['conversation', 'Conversations', 'Agents talk with you, and hand over to each other.'],
  ['flow', 'Flows', 'Steps with a typed state, which you begin with.'],
  ['reaction', 'Boards', 'Publish an artifact to wake the agents on a board.'],
];

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
      {FORMS.map(([form, title, about]) => {
        const served = data.items.filter((each) => each.form === form);
        if (served.length === 0) return null;
        return (
          <section key={form} aria-label={title}>
            <h2>
              {title} <span className="soft">{about}</span>
            </h2>
            <ul>
              {served.map((workflow) => (
                <Startable key={workflow.name} workflow={workflow} />
              ))}
            </ul>
          </section>
        );
      })}
    </div>
  );
}

function Startable({ workflow }: { workflow: ServedWorkflow }) {
  const [, navigate] = useLocation();
  // A repeated click is the same start.
  const [key] = useState(unique);
  const starting = useMutation({
    mutationFn: (input: Json | undefined) => api.start(workflow.name, key, input),
    onSuccess: (run) => navigate(`/runs/${run.run}/chat`),
  });
  const start = (input?: Json) => starting.mutate(input);
  return (
    <li>
      <h3>{workflow.name}</h3>
      {workflow.form === 'reaction' && (
        <code className="soft small">turnloom board publish {workflow.name}</code>
      )}
      {workflow.form === 'conversation' && (
        <button
          type="button"
          className="button primary"
          disabled={starting.isPending}
          onClick={() => start()}
        >
          {starting.isPending ? 'Starting …' : 'Start'}
        </button>
      )}
      {workflow.form === 'flow' && (
        <Input workflow={workflow.name} isSending={starting.isPending} send={start} />
      )}
      {starting.error !== null && (
        <p className="problem" role="alert">
          {starting.error instanceof Problem ? starting.error.message : String(starting.error)}
        </p>
      )}
    </li>
  );
}

interface InputProps {
  workflow: string;
  isSending: boolean;
  send: (input: Json) => void;
}

/** What a run of a flow begins with, as a form of its state. */
function Input({ workflow, isSending, send }: InputProps) {
  const [isOpen, setOpen] = useState(false);
  const { data, error, refetch } = useQuery({
    queryKey: ['input', workflow],
    queryFn: () => api.inputOf(workflow),
    enabled: isOpen,
  });
  if (!isOpen) {
    return (
      <button type="button" className="button" onClick={() => setOpen(true)}>
        Fill in
      </button>
    );
  }
  if (error !== null) return <Failed problem={error} retry={() => void refetch()} />;
  if (data === undefined) return <Loading lines={2} />;
  return (
    <Suspense fallback={<Loading lines={2} />}>
      <SchemaForm
        name={workflow}
        schema={data.input as RJSFSchema}
        words={['Start', 'Starting …']}
        isSending={isSending}
        send={send}
      />
    </Suspense>
  );
}
