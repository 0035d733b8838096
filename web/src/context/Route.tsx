/** Where the work went after the turn, and why it did not go elsewhere. */

import { useState, type ReactNode } from 'react';

import type {
  ArtifactStep,
  FlowRouteExplained,
  RouteExplained,
  RouteExplanation,
  TurnExplained,
  WeighedRule,
} from '../api/explanations';
import { counted, preview } from '../shared/format';
import { EventLink } from './parts';
import { useDeclared, useRoute } from './queries';

interface Props {
  turn: TurnExplained;
  files: Record<string, string> | null;
}

export function Route({ turn, files }: Props) {
  const { data } = useRoute(turn.run, turn.onward?.seq ?? null);
  const published = turn.steps.filter((step) => step.type === 'artifact');
  return (
    <section className="route" aria-label="What came next">
      {turn.onward === null && published.length === 0 && (
        <span className="soft">
          {turn.status === 'open' ? 'The turn is not over yet.' : 'Nothing followed this turn.'}
        </span>
      )}
      {turn.onward === null &&
        published.map((step) => <Published key={step.seq} step={step} run={turn.run} />)}
      {turn.onward !== null &&
        (data === undefined ? (
          <Sentence>
            {turn.onward.target || turn.onward.kind}, because {turn.onward.reason}
          </Sentence>
        ) : (
          <Explained route={data} turn={turn} files={files} />
        ))}
    </section>
  );
}

function Sentence({ children }: { children: ReactNode }) {
  return (
    <p>
      <b>Then</b> {children}.
    </p>
  );
}

function Explained({ route, turn, files }: { route: RouteExplanation } & Props) {
  if ('target' in route) return <Handoff route={route} files={files} />;
  if ('decided' in route) return <FlowRoute route={route} />;
  return (
    <Sentence>
      {turn.onward?.reason ?? ''} (<EventLink run={turn.run} seq={route.seq} />)
    </Sentence>
  );
}

function Handoff({
  route,
  files,
}: {
  route: RouteExplained;
  files: Record<string, string> | null;
}) {
  const fired = route.rules.find((rule) => rule.fired);
  const declared = useDeclared(
    (sources) => (files === null || fired === undefined ? null : sources.ruleAt(files, fired.rule)),
    `${route.run} ${route.seq}`,
  );
  return (
    <>
      <Sentence>
        <b>{named(route.target)}</b>, because <Reason rule={fired} route={route} /> (
        {declared !== null && (
          <>
            <code>{`${declared.file}:${declared.line}`}</code>,{' '}
          </>
        )}
        <EventLink run={route.run} seq={route.seq} />)
      </Sentence>
      {route.doubt !== '' && <p className="doubt">{route.doubt}</p>}
      <DidNotFire rules={route.rules.filter((rule) => !rule.fired)} source={route.source} />
    </>
  );
}

const named = (target: string): string =>
  ({ user: 'the user', terminate: 'the end of the run' })[target] ?? target;

function Reason({ rule, route }: { rule: WeighedRule | undefined; route: RouteExplained }) {
  if (rule === undefined)
    return <>{route.picked === null ? route.reason : `${route.picked.by} picked it`}</>;
  const saw = Object.entries(rule.saw).map(([name, value]) => `${name} = ${preview(value)}`);
  if (saw.length > 0) return <code>{saw.join(', ')}</code>;
  if (rule.model) return <>its model chose so</>;
  return (
    <>
      rule {rule.rule} hands over after every turn of {route.source || 'the start'}
    </>
  );
}

/** The rules that did not fire, each with what failed and what would have sufficed. */
function DidNotFire({ rules, source }: { rules: readonly WeighedRule[]; source: string }) {
  const [open, setOpen] = useState(false);
  if (rules.length === 0) return null;
  return (
    <div className="not-fired">
      <button type="button" className="link" aria-expanded={open} onClick={() => setOpen(!open)}>
        {counted(rules.length, 'rule')} did not fire {open ? '▾' : '▸'}
      </button>
      {open && (
        <ul>
          {rules.map((rule) => (
            <li key={rule.rule}>
              {source || 'start'} → {named(rule.target)}: <WhyNot rule={rule} />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

type Failing = Pick<WeighedRule, 'failed' | 'needed'> & { why_not: string };

function WhyNot({ rule }: { rule: Failing }) {
  const failed = (rule.failed ?? []).map((part) =>
    part.absent === undefined || part.absent === ''
      ? `${part.variable} was ${preview(part.was)}, not ${preview(part.wanted)}`
      : `${part.variable} was absent (${part.absent})`,
  );
  const needed = (rule.needed ?? []).map((change) =>
    change.anything_else === true
      ? `${change.variable} = anything else`
      : `${change.variable} = ${preview(change.becomes)}`,
  );
  return (
    <>
      {failed.length > 0 ? failed.join('; ') : rule.why_not}.{' '}
      {needed.length > 0 ? (
        <>
          <b>{needed.join(' and ')}</b> would have sufficed.
        </>
      ) : (
        <span className="faint">No single change would have sufficed.</span>
      )}
    </>
  );
}

function FlowRoute({ route }: { route: FlowRouteExplained }) {
  return (
    <>
      <Sentence>
        {route.decided} (<EventLink run={route.run} seq={route.seq} />)
      </Sentence>
      <DidNotFire rules={(route.rules ?? []).filter((rule) => !rule.fired)} source={route.place} />
    </>
  );
}

/** An artifact that the turn published, and what the subscriptions made of it. */
function Published({ step, run }: { step: ArtifactStep; run: string }) {
  const { artifact, within } = step;
  const took = within.filter(
    (offer) => (offer.failed ?? []).length === 0 && !offer.what.startsWith('no'),
  );
  const refused = within.filter((offer) => !took.includes(offer));
  const type = artifact.type.split('.').at(-1) ?? artifact.type;
  const effect =
    took.length === 0
      ? 'no subscription took it'
      : took.map((o) => `${o.subscription} ${o.what}`).join(', ');
  return (
    <>
      <Sentence>
        it published <b>{type}</b> (<EventLink run={run} seq={step.seq} />
        ); {effect}
      </Sentence>
      {refused.map((offer) => (
        <p key={offer.subscription} className="not-fired">
          {offer.subscription}: <WhyNot rule={{ ...offer, why_not: offer.what }} />
        </p>
      ))}
    </>
  );
}
