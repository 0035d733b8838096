/** What the agent made of its prompt: text, output, tool calls, changes; in the order of the log. */

import type { ReactNode } from 'react';

import type { Step, TurnExplained } from '../api/explanations';
import { counted, duration, oneLine, preview } from '../shared/format';
import { EventLink } from './parts';
import { Secrets } from './Text';

interface Entry {
  seq: number;
  label: string;
  text: ReactNode;
}

export function Answer({ turn }: { turn: TurnExplained }) {
  const entries = turn.steps.flatMap(entriesOf);
  if (entries.length === 0) return null;
  return (
    <section className="answer" aria-labelledby="answer">
      <h3 id="answer">
        What {turn.agent} did
        {turn.seconds === null ? '' : ` in ${duration(turn.seconds)}`}
      </h3>
      <ol>
        {entries.map((entry, n) => (
          <li key={`${entry.seq} ${n}`}>
            <span className="label">{entry.label}</span>
            <div className="text">{entry.text}</div>
            <span className="small">
              <EventLink run={turn.run} seq={entry.seq} />
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}

/** A type without its module. */
const bareType = (name: string): string => name.split('.').at(-1) ?? name;

type Inner = Step | NonNullable<Extract<Step, { within?: unknown }>['within']>[number];

function entriesOf(step: Inner): Entry[] {
  const inner = 'within' in step ? ((step.within as Inner[] | undefined) ?? []) : [];
  const own = ownEntry(step);
  return [...(own === null ? [] : [own]), ...inner.flatMap(entriesOf)];
}

const entry = (seq: number, label: string, text: ReactNode): Entry => ({ seq, label, text });

// eslint-disable-next-line complexity -- one case per kind of step
function ownEntry(step: Inner): Entry | null {
  switch (step.type) {
    case 'text':
      return entry(
        step.seq,
        step.hidden ? 'said, unseen by the user' : 'said',
        <Secrets text={step.text} />,
      );
    case 'output':
      return entry(
        step.seq,
        `gave ${bareType(step.model)}`,
        <Secrets text={preview(step.output, 600)} />,
      );
    case 'refused output':
      return entry(step.seq, 'was refused', <Secrets text={step.problem} />);
    case 'model call':
      return step.outcome === 'failed'
        ? entry(step.seq, 'failed', <Secrets text={step.error} />)
        : null;
    case 'tool':
      return entry(step.seq, 'called', <ToolText step={step} />);
    case 'question':
      return entry(
        step.seq,
        'asked',
        <Secrets
          text={`${step.prompt || step.tool} → ${step.status === 'answered' ? preview(step.value, 200) : step.status}`}
        />,
      );
    case 'change':
      return entry(
        step.seq,
        'changed',
        <Secrets
          text={`${step.name}: ${preview(step.previous, 80)} → ${step.removed === true ? 'removed' : preview(step.value, 200)}`}
        />,
      );
    case 'refused write':
      return entry(step.seq, 'could not set', <Secrets text={`${step.name}: ${step.reason}`} />);
    case 'hook':
      return entry(
        step.seq,
        'hook',
        <Secrets
          text={`${step.hook} (${step.trigger}): ${step.status}${step.error ? `, ${step.error}` : ''}`}
        />,
      );
    case 'context':
      return entry(
        step.seq,
        'was given',
        `${counted(step.items, 'item')} by ${step.provider} in ${duration(step.seconds)}`,
      );
    case 'failed provider':
      return entry(
        step.seq,
        'was not given',
        <Secrets text={`${step.provider} failed: ${step.message}`} />,
      );
    case 'transfer':
      return entry(step.seq, 'handed over', `to ${step.target}`);
    case 'retry':
      return entry(step.seq, 'failed', <Secrets text={`attempt ${step.n}: ${step.message}`} />);
    case 'artifact':
      return entry(step.seq, step.made ? 'made' : 'published', bareType(step.artifact.type));
    default:
      return null;
  }
}

function ToolText({ step }: { step: Extract<Step, { type: 'tool' }> }) {
  const gave = step.outcome === 'failed' ? step.error : preview(step.result, 300);
  return (
    <>
      <b>{step.tool}</b> <Secrets text={preview(step.arguments, 200)} /> →{' '}
      {step.outcome === 'open' ? 'no result yet' : <Secrets text={oneLine(gave, 300)} />}{' '}
      <span className="soft">{duration(step.seconds)}</span>
    </>
  );
}
