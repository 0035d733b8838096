/** Explanations as the server sends them, equal to `turnloom explain … --json`. */

import type { components } from './schema';

type Schemas = components['schemas'];

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export type Usage = Schemas['Usage'];

export type ShownMessage = Schemas['ShownMessage'];
export type ShownSegment = Schemas['ShownSegment'];
export type Withheld = Schemas['Withheld'];
export type NextMove = Schemas['NextMove'];
export type Exchange = Schemas['Exchange'];
export type WakeReason = Schemas['WakeReason'];
export type Artifact = Schemas['Artifact'];
export type ArtifactName = Schemas['ArtifactName'];
export type PartExplained = Schemas['PartExplained'];
export type ShownFrame = Pick<
  TurnExplained,
  'seq' | 'segments' | 'withheld' | 'tokens' | 'counter' | 'digest' | 'prompt'
>;
export type TurnExplained = Required<Schemas['TurnExplained']>;
export type Step = TurnExplained['steps'][number];
export type ModelCallStep = Schemas['ModelCallEntry'];
export type ArtifactStep = Schemas['ArtifactEntry'];

export type Cause = Schemas['Cause'];
export type TurnPlace = Schemas['TurnPlace'];
export type WordChange = Schemas['WordChange'];
export type ChangeCause = Schemas['ChangeCause'];
export type SegmentChange = Schemas['SegmentChange'];
export type TurnDiff = Schemas['TurnDiff'];
export type WhatIf = Schemas['WhatIf'];

export type FailedPart = Schemas['FailedPart'];
export type ChangedValue = Schemas['ChangedValue'];
export type WeighedRule = Schemas['WeighedRule'];
export type RouteExplained = Schemas['RouteExplained'];
export type FlowRouteExplained = Schemas['FlowRouteExplained'];
export type OfferEntry = Schemas['OfferEntry'];
export type OfferExplained = Schemas['OfferExplained'];
export type ConsumptionExplained = Schemas['ConsumptionExplained'];
export type RouteExplanation =
  RouteExplained | FlowRouteExplained | OfferExplained | ConsumptionExplained;

export type VariableChange = Schemas['VariableChange'];
export type VariableExplained = Schemas['VariableExplained'];

export type TextOrigin = Schemas['TextOrigin'];
export type TextPlace = Schemas['TextPlace'];
export type BlameExplained = Schemas['BlameExplained'];

export type Cost = Schemas['Cost'];
export type TimelineRow = Schemas['TimelineRow'];
export type Timeline = Required<Schemas['Timeline']>;

export type VariableValue = Schemas['VariableValue'];
export type StateExplained = Required<Schemas['StateExplained']>;

export type Question = Schemas['Question'];
export type WaitingQuestion = Schemas['WaitingQuestion'];
export type RunSummary = Required<Schemas['RunSummary']>;
export type ServedWorkflow = Schemas['ServedWorkflow'];
export type Delivered = Schemas['Delivered'];
export type Me = Schemas['Me'];
export type Feedback = Schemas['Feedback'];
