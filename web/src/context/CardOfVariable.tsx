/** What a card says about a variable: its source, its last change, who else reads it. */

import type { LogEvent } from '../api/events';
import type { Cause, VariableChange, VariableExplained } from '../api/explanations';
import { counted, oneLine, preview } from '../shared/format';
import { EventLink, type CardContext, type Line } from './parts';
import type { FrameRow } from './frames';
import type { Declared } from './sources';

export function BecauseOfVariable({ declared, row }: { declared: Declared | null; row: FrameRow }) {
  if (declared === null) return <>it is exposed to {row.agent}.</>;
  return (
    <>
      <code>{`${declared.file}:${declared.line}`}</code> exposes it to {row.agent}.
    </>
  );
}

const SOURCES: Record<string, string> = {
  static: 'A fixed value of the workflow',
  environment: 'The environment',
  database: 'The database',
  derived: 'Its triggers',
  base: 'The run itself',
};

/** Where its value comes from, in words. */
function sourceOf(variable: VariableExplained): string {
  const source = SOURCES[variable.source] ?? `The source ${variable.source}`;
  const place = variable.place === '' ? '' : ` (${variable.place.replace(/^env /, '')})`;
  const unset = variable.defaulted && variable.changes.length === 0;
  return `${source}${place}${unset ? ': nothing set it, so it has its default' : ''}.`;
}

/** Who wrote a value: `its trigger`, `tool search`, `hook tidy`. */
export function writerOf(writer: string, name: string): string {
  const [kind, rest] = writer.split(':', 2);
  if (rest === undefined) return writer;
  if (kind === 'trigger') return rest.startsWith(name) ? 'its trigger' : `trigger ${rest}`;
  return `${kind ?? ''} ${rest}`;
}

/** What an event of the log says, as the end of a sentence that begins with `when`. */
export function whenOf(cause: Cause, events: readonly LogEvent[]): string {
  const data = events.find((each) => each.seq === cause.seq)?.data ?? {};
  if (cause.kind === 'agent.text' || cause.kind === 'user.text') {
    const author = data.agent ?? data.author;
    if (typeof author === 'string' && typeof data.text === 'string') {
      return `${author} said “${oneLine(data.text, 60)}”`;
    }
  }
  if (cause.kind === 'question.answered' && typeof data.by === 'string') {
    const value = data.value;
    const said = typeof value === 'string' ? `“${oneLine(value, 60)}”` : preview(value, 60);
    return `${data.by} answered ${said}`;
  }
  return cause.says;
}

export function variableLines(variable: VariableExplained, context: CardContext): Line[] {
  const last = variable.changes.findLast((change) => change.seq <= context.row.seq);
  const rules = new Set(variable.conditions.map((each) => `${each.source} ${each.rule}`));
  const frames = variable.frames.filter((each) => each.withheld === '');
  return [
    ...(variable.source === '' ? [] : [{ label: 'Given by', text: sourceOf(variable) }]),
    { label: 'Since', text: <Since last={last} name={variable.name} context={context} /> },
    ...(last === undefined
      ? []
      : [
          {
            label: 'Before',
            text: last.absent === true ? 'absent.' : `${preview(last.previous)}.`,
          },
        ]),
    {
      label: 'Read by',
      text: `${counted(rules.size, 'rule')} and ${counted(frames.length, 'prompt')} so far.`,
    },
  ];
}

interface SinceProps {
  last: VariableChange | undefined;
  name: string;
  context: CardContext;
}

function Since({ last, name, context }: SinceProps) {
  if (last === undefined) return <>the beginning of the run.</>;
  const row = context.frames.rows.findLast((each) => each.seq < last.seq);
  const cause = last.causes[0];
  return (
    <>
      {row === undefined ? '' : `turn ${row.turn}, `}
      {cause !== undefined && (
        <>
          when {whenOf(cause, context.events)} (<EventLink run={context.run} seq={cause.seq} />
          );{' '}
        </>
      )}
      {writerOf(last.writer, name)} set it (<EventLink run={context.run} seq={last.seq} />
      ).
    </>
  );
}
