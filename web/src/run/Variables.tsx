/** The state of a run at any event: variables, position, questions, artifacts. */

import { useQuery } from '@tanstack/react-query';
import { useDeferredValue, useMemo } from 'react';
import { Link } from 'wouter';

import { api } from '../api/client';
import type { StateExplained, VariableValue } from '../api/explanations';
import { Command } from '../shared/Copy';
import { clock, counted, preview } from '../shared/format';
import { useKeys } from '../shared/keys';
import { Prose } from '../shared/Prose';
import { Failed, Loading } from '../shared/States';
import type { RunViewProps } from '../shell/RunPage';
import { useAt, useWord } from './TimelineView';
import { Story } from './Story';
import './run.css';

export default function Variables({ run, log }: RunViewProps) {
  const last = log.events.at(-1)?.seq ?? 0;
  const [given, choose] = useAt(run, 'variables');
  const at = Math.min(given ?? last, Math.max(last, 1));
  const asked = useDeferredValue(at);
  const { data, error, refetch } = useQuery({
    queryKey: ['state', run, asked],
    queryFn: () => api.state(run, asked),
    enabled: last > 0,
    staleTime: Infinity,
    placeholderData: (before: StateExplained | undefined) => before,
  });
  const changes = useMemo(
    () => log.events.filter((each) => each.kind.startsWith('context.')).map((each) => each.seq),
    // The list of events is one array that grows.
    // eslint-disable-next-line react-hooks/exhaustive-deps
    [log.events, log.count],
  );
  const before = changes.findLast((seq) => seq < at);
  const after = changes.find((seq) => seq > at);
  const step = (to: number | undefined) => {
    if (to !== undefined && to >= 1 && to <= last) choose(to);
  };
  useKeys({
    ArrowLeft: () => step(at - 1),
    ArrowRight: () => step(at + 1),
    'Shift+ArrowLeft': () => step(before),
    'Shift+ArrowRight': () => step(after),
  });
  if (error !== null) return <Failed problem={error} retry={() => void refetch()} />;
  if (data === undefined) return <Loading lines={9} />;
  return (
    <div className="variables">
      <div className="scrubber">
        <label htmlFor="scrubber">
          After event <b className="numbers">{at}</b> of <span className="numbers">{last}</span>:{' '}
          {data.kind}, {clock(data.time)}
        </label>
        <input
          id="scrubber"
          type="range"
          min={1}
          max={Math.max(last, 1)}
          value={at}
          onChange={(event) => choose(Number(event.target.value))}
        />
        <div className="scrubber-row">
          <button
            type="button"
            className="button"
            disabled={before === undefined}
            onClick={() => step(before)}
          >
            Change before
          </button>
          <button
            type="button"
            className="button"
            disabled={after === undefined}
            onClick={() => step(after)}
          >
            Change after
          </button>
          <Link href={`/runs/${run}/timeline?at=${at}`}>This event</Link>
          <span className="end">
            <Command text={`turnloom show state ${run} --at ${at}`} />
          </span>
        </div>
      </div>
      <State state={data} run={run} />
    </div>
  );
}

function State({ state, run }: { state: StateExplained; run: string }) {
  const own = state.variables.filter((each) => each.writer !== 'base');
  const base = state.variables.filter((each) => each.writer === 'base');
  return (
    <>
      {state.failure !== '' && <p className="problem">{state.failure}</p>}
      <h2>Variables</h2>
      {own.length === 0 && <p className="soft">This run has declared none.</p>}
      <ul className="values">
        {own.map((each) => (
          <Value key={each.name} value={each} state={state} run={run} />
        ))}
      </ul>
      {state.absent.length > 0 && (
        <ul className="values">
          {state.absent.map((each) => (
            <li key={each.name}>
              <span className="name mono soft">{each.name}</span>
              <span className="soft">absent: {each.reason}</span>
            </li>
          ))}
        </ul>
      )}
      {base.length > 0 && (
        <details>
          <summary className="soft">{counted(base.length, 'value')} of the run itself</summary>
          <ul className="values">
            {base.map((each) => (
              <Value key={each.name} value={each} state={state} run={run} />
            ))}
          </ul>
        </details>
      )}
      <Elsewhere state={state} />
    </>
  );
}

function Value({
  value,
  state,
  run,
}: {
  value: VariableValue;
  state: StateExplained;
  run: string;
}) {
  const [told, tell] = useWord(run, 'variables', 'name');
  const open = told === value.name;
  const isNow = value.since === state.at;
  return (
    <li className={isNow ? 'now' : ''}>
      <button
        type="button"
        className="link name mono"
        aria-expanded={open}
        onClick={() => tell(open ? '' : value.name)}
      >
        {value.name}
      </button>
      <code className="value">{preview(value.value, 400)}</code>
      <span className="soft small">
        {isNow && <b>changed here, </b>}
        since <Link href={`/runs/${run}/timeline?at=${value.since}`}>event {value.since}</Link>
        {value.writer ? `, by ${value.writer}` : ''}
      </span>
      {open && <Story run={run} name={value.name} at={state.at} />}
    </li>
  );
}

/** What else is open then: the position, questions, artifacts, work. */
function Elsewhere({ state }: { state: StateExplained }) {
  return (
    <>
      {state.strands.map((strand) => (
        <section key={strand.id}>
          <h2>
            {strand.id === '' ? 'The flow' : `Path ${strand.id}`}: {strand.place || 'the end'},{' '}
            {strand.status}
          </h2>
          <ul className="values">
            {Object.entries(strand.state ?? {}).map(([name, value]) => (
              <li key={name}>
                <span className="name mono">{name}</span>
                <code className="value">{preview(value, 400)}</code>
              </li>
            ))}
          </ul>
        </section>
      ))}
      {state.questions.length > 0 && (
        <section>
          <h2>Open questions</h2>
          <ul className="values">
            {state.questions.map((each) => (
              <li key={each.id}>
                <span className="name">{each.to ?? ''}</span>
                <span className="value">{each.prompt ?? each.tool ?? each.id}</span>
              </li>
            ))}
          </ul>
        </section>
      )}
      {state.artifacts.length > 0 && (
        <section>
          <h2>Artifacts</h2>
          <ul className="values">
            {state.artifacts.map((each) => (
              <li key={each.id}>
                <span className="name">{each.type.split('.').at(-1)}</span>
                <span className="value soft">
                  by {each.produced_by}, {each.id}
                </span>
              </li>
            ))}
          </ul>
        </section>
      )}
      {state.missing.map((each) => (
        <p key={each} className="soft missing">
          Missing: <Prose text={each} />
        </p>
      ))}
    </>
  );
}
