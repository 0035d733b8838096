/** Explanations as the server sends them, equal to `turnloom explain … --json`. */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export interface Usage {
  input_tokens?: number;
  output_tokens?: number;
  cached_tokens?: number;
}

export interface ShownMessage {
  seq: number;
  author: string;
  text: string;
}

export interface ShownSegment {
  kind: string;
  origin: string;
  reason: string;
  tokens: number;
  share: number;
  digest: string;
  text: string;
  messages?: ShownMessage[];
}

export interface Withheld {
  origin: string;
  reason: string;
  detail: string;
}

export interface NextMove {
  seq: number;
  kind: string;
  target: string;
  reason: string;
}

export interface ToolCall {
  id?: string;
  tool: string;
  arguments: Json;
}

export interface Exchange {
  text: string;
  calls: ToolCall[];
  results: Json[];
  problem: string;
}

/** A step of a turn; `type` tells which, and the fields that all have are typed. */
export interface Step {
  type: string;
  seq: number;
  within?: Step[];
  [field: string]: unknown;
}

export interface ModelCallStep extends Step {
  type: 'model call';
  n: number;
  engine: string;
  given: number;
  outcome: string;
  seconds: number | null;
  usage: Usage;
  calls: ToolCall[];
  error: string;
  within: Step[];
  part: string;
  model: string;
}

export interface ArtifactName {
  seq: number;
  id: string;
  type: string;
  produced_by: string;
  run: string;
  parents: string[];
}

export interface WakeReason {
  seq: number;
  subscription: string;
  artifacts: ArtifactName[];
  retry_of: number;
}

export interface ShownFrame {
  seq: number;
  as_in: number;
  segments: ShownSegment[];
  withheld: Withheld[];
  tokens: number;
  counter: string;
  digest: string;
  prompt: string;
}

export interface PartExplained {
  name: string;
  frame: ShownFrame | null;
  exchanges: Exchange[];
}

export interface TurnExplained extends ShownFrame {
  run: string;
  turn: number;
  agent: string;
  status: string;
  error: string;
  verified: boolean;
  doubts: string[];
  exchanges: Exchange[];
  steps: Step[];
  usage: Usage;
  seconds: number | null;
  onward: NextMove | null;
  woken: WakeReason | null;
  parts: PartExplained[];
}

export interface Cause {
  seq: number;
  kind: string;
  actor: string;
  says: string;
}

export interface TurnPlace {
  run: string;
  turn: number;
  agent: string;
  seq: number;
}

export interface WordChange {
  change: 'same' | 'added' | 'gone';
  text: string;
}

export interface ChangeCause {
  run: string;
  seq: number;
  kind: string;
  says: string;
  causes: Cause[];
}

export interface SegmentChange {
  change: 'added' | 'gone' | 'changed';
  kind: string;
  origin: string;
  before: string;
  after: string;
  tokens_before: number;
  tokens_after: number;
  words: WordChange[];
  cause: ChangeCause;
  withheld: string;
}

export interface TurnDiff {
  before: TurnPlace;
  after: TurnPlace;
  changes: SegmentChange[];
  same: number;
  reordered: boolean;
  tokens_before: number;
  tokens_after: number;
}

export interface FailedPart {
  variable: string;
  wanted: Json;
  was: Json;
  absent?: string;
}

export interface ChangedValue {
  variable: string;
  was: Json;
  becomes: Json;
  anything_else?: boolean;
  absent?: boolean;
}

export interface WeighedRule {
  rule: number;
  target: string;
  condition: string;
  saw: Record<string, Json>;
  fired: boolean;
  why_not: string;
  model: boolean;
  pre: boolean;
  offered: string;
  description: string;
  failed: FailedPart[];
  needed: ChangedValue[];
}

export interface RouteExplained {
  run: string;
  seq: number;
  asked: number;
  source: string;
  target: string;
  reason: string;
  rules: WeighedRule[];
  picked: { seq: number; by: string; picked: string; among: string[] } | null;
  otherwise: { says: string }[];
  doubt: string;
}

export interface FlowRouteExplained {
  run: string;
  seq: number;
  asked: number;
  kind: string;
  place: string;
  decided: string;
  went_by: string[];
  causes: Cause[];
  came_of: string[];
  rules: WeighedRule[];
}

export interface OfferEntry {
  seq: number;
  subscription: string;
  verdict: string;
  what: string;
  failed: FailedPart[];
  needed: ChangedValue[];
  unknown: string;
}

export interface OfferExplained {
  run: string;
  seq: number;
  asked: number;
  artifact: ArtifactName;
  offered: boolean;
  to: OfferEntry[];
}

export interface ConsumptionExplained {
  run: string;
  seq: number;
  asked: number;
  agent: string;
  subscription: string;
  turn: number;
  opened: string;
  cause: number;
  because: string;
}

export type RouteExplanation =
  RouteExplained | FlowRouteExplained | OfferExplained | ConsumptionExplained;

export interface VariableChange {
  seq: number;
  at: string;
  previous: Json;
  value: Json;
  writer: string;
  causes: Cause[];
  absent?: boolean;
  removed?: boolean;
  ephemeral?: boolean;
}

export interface VariableExplained {
  run: string;
  name: string;
  description: string;
  at: number;
  present: boolean;
  value: Json;
  ephemeral: boolean;
  undeclared: boolean;
  source: string;
  place: string;
  raw: string | null;
  first: Json;
  defaulted: boolean;
  note: string;
  suppressed: string;
  changes: VariableChange[];
  refused: { seq: number; at: string; writer: string; reason: string; causes: Cause[] }[];
  missed: { seq: number; at: string; tool: string; key: string; value: Json; causes: Cause[] }[];
  frames: { seq: number; turn: number; agent: string; text: string; withheld: string }[];
  conditions: {
    seq: number;
    source: string;
    target: string;
    rule: number;
    condition: string;
    value: Json;
    fired: boolean;
    why_not: string;
  }[];
  hooks: { seq: number; hook: string; ran: boolean; why_not: string }[];
}

export interface TextOrigin {
  run: string;
  seq: number;
  kind: string;
  actor: string;
  where: string;
  says: string;
  artifact?: string;
  from_run?: string;
  earlier?: TextOrigin[];
  note?: string;
}

export interface TextPlace {
  seq: number;
  kind: string;
  where: string;
  origin: number;
  entered: number;
  exact: boolean;
  excerpt: string;
  turn?: number;
  agent?: string;
  reason?: string;
  messages?: number;
}

export interface BlameExplained {
  run: string;
  text: string;
  places: TextPlace[];
  entries: TextOrigin[];
}

export interface TimelineRow {
  seq: number;
  what: string;
  who: string;
  at: string;
  seconds: number | null;
  tokens: number | null;
  usage: Usage | null;
  note: string;
  depth: number;
}

export interface Timeline {
  run: string;
  workflow: string;
  version: string;
  status: string;
  user: string;
  tenant: string;
  started: string;
  seconds: number;
  events: number;
  turns: number;
  usage: Usage;
  rows: TimelineRow[];
  correlation: string;
  parents: string[];
  collects: string;
  spent: string;
  collected: number | null;
  wanted: number | null;
}

export interface VariableValue {
  name: string;
  value: Json;
  since: number;
  writer?: string;
  ephemeral?: boolean;
}

export interface StateExplained {
  run: string;
  workflow: string;
  form: string;
  at: number;
  kind: string;
  time: string;
  events: number;
  status: string;
  turns: number;
  failure: string;
  variables: VariableValue[];
  absent: { name: string; reason: string; since: number }[];
  questions: Question[];
  work: { what: string; number: number; who: string; since: number; attempt?: number }[];
  timers: Record<string, string>;
  strands: {
    id: string;
    place: string;
    status: string;
    failure?: string;
    state?: Record<string, Json>;
  }[];
  queued: { use: string; who: string; artifacts: string[]; until?: string }[];
  artifacts: ArtifactName[];
  spent: string;
  missing: string[];
}

export interface Question {
  id: string;
  prompt?: string;
  to?: string;
  tool?: string;
  payload?: Json;
  component?: string;
  display?: string;
  schema?: Json;
  due?: string | null;
  seq?: number;
}
