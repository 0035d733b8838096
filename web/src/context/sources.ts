/** Where a workflow's files declare what a prompt shows: file and line. */

import {
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  type Document,
  type YAMLMap,
} from 'yaml';

export interface Declared {
  file: string;
  line: number;
}

interface Parsed {
  name: string;
  document: Document;
  lines: LineCounter;
}

const parsedFiles = new WeakMap<Record<string, string>, Map<string, Parsed | null>>();

/** The file of a stem, as `agents.yaml` or `agents.json`, parsed once. */
function fileOf(files: Record<string, string>, stem: string): Parsed | null {
  const known = parsedFiles.get(files) ?? new Map<string, Parsed | null>();
  parsedFiles.set(files, known);
  const before = known.get(stem);
  if (before !== undefined) return before;
  const name = Object.keys(files).find((each) => /^(.*)\.(ya?ml|json)$/.exec(each)?.[1] === stem);
  const text = name === undefined ? undefined : files[name];
  let parsed: Parsed | null = null;
  if (name !== undefined && text !== undefined) {
    const lines = new LineCounter();
    parsed = { name, document: parseDocument(text, { lineCounter: lines }), lines };
  }
  known.set(stem, parsed);
  return parsed;
}

function lineAt(parsed: Parsed, node: unknown): Declared | null {
  if (!isNode(node) || node.range == null) return null;
  return { file: parsed.name, line: parsed.lines.linePos(node.range[0]).line };
}

function at(parsed: Parsed, path: (string | number)[]): Declared | null {
  return lineAt(parsed, parsed.document.getIn(path, true));
}

/** The line of an agent's list of variables that names one. */
function exposure(files: Record<string, string>, agent: string, variable: string): Declared | null {
  const parsed = fileOf(files, 'context_variables');
  if (parsed === null) return null;
  for (const root of [
    ['context_variables', 'agents', agent],
    ['agents', agent],
  ]) {
    const list = parsed.document.getIn([...root, 'variables']) ?? parsed.document.getIn(root);
    if (!isSeq(list)) continue;
    const item = list.items.find((each) => isScalar(each) && each.value === variable);
    return lineAt(parsed, item ?? list);
  }
  return null;
}

function named(files: Record<string, string>, stem: string, name: string): Declared | null {
  const parsed = fileOf(files, stem);
  if (parsed === null) return null;
  return at(parsed, [stem, name]) ?? at(parsed, [name]);
}

/** The entry of the tools that gives an agent a tool, by its name or that of its function. */
function tool(files: Record<string, string>, agent: string, name: string): Declared | null {
  const parsed = fileOf(files, 'tools');
  const list = parsed?.document.get('tools');
  if (parsed === null || !isSeq(list)) return null;
  const item = list.items.find((each) => {
    if (!isMap(each)) return false;
    const called = each.get('name') ?? each.get('function');
    return called === name && isFor(each, agent);
  });
  return lineAt(parsed, item);
}

/** Whether an entry names an agent, alone or in a list. */
function isFor(entry: YAMLMap, agent: string): boolean {
  const named = entry.get('agent');
  if (!isSeq(named)) return named === agent;
  return named.items.some((each) => isScalar(each) && each.value === agent);
}

/** The declaration behind an origin of a prompt that an agent was shown. */
export function declaredAt(
  files: Record<string, string>,
  agent: string,
  origin: string,
): Declared | null {
  const [head, ...rest] = origin.split('.');
  const name = rest.join('.');
  if (head === 'context_variables') {
    return name.startsWith('agents.')
      ? named(files, 'context_variables', name)
      : exposure(files, agent, name);
  }
  if (head === 'tools') return tool(files, agent, name);
  if (head === 'agents' || head === 'structured_outputs') return named(files, head, name);
  return null;
}

/** The line of a handoff rule; rules are counted from 1. */
export function ruleAt(files: Record<string, string>, rule: number): Declared | null {
  const parsed = fileOf(files, 'handoffs');
  return parsed === null ? null : at(parsed, ['handoff_rules', rule - 1]);
}
