/** A chat, folded from what its user sees: messages, questions, whose turn it is. */

import type { ChatEvent } from '../api/events';
import type { Question } from '../api/explanations';
import type { Fold } from '../api/log';

/** A message of a person or an agent; `output` is a structured answer. */
export interface Message {
  seq: number;
  at: string;
  author: string;
  mine: boolean;
  turn: number;
  text: string;
  output: unknown;
}

export interface OpenQuestion {
  seq: number;
  question: Question;
  /** The turn that asks, and its agent, if one does. */
  turn: number;
  agent: string;
}

export interface Talk {
  messages: readonly Message[];
  questions: readonly OpenQuestion[];
  /** Agents whose turns are open, by turn. */
  speaking: ReadonlyMap<number, string>;
  status: string;
}

class TalkFold implements Fold<Talk, ChatEvent> {
  private messages: Message[] = [];
  private readonly questions = new Map<string, OpenQuestion>();
  private readonly speaking = new Map<number, string>();
  private status = 'running';

  push(event: ChatEvent): void {
    if (event.kind.startsWith('run.')) this.run(event);
    else if (event.kind === 'turn.started') this.speaking.set(event.turn ?? 0, event.agent ?? '');
    else if (event.kind === 'turn.finished') this.speaking.delete(event.turn ?? 0);
    else if (event.kind.startsWith('question.')) this.question(event);
    else if (event.kind === 'user.text') this.say(event, event.by ?? 'user', true);
    else if (event.kind.startsWith('agent.')) this.say(event, event.agent ?? '', false);
  }

  value(): Talk {
    return {
      messages: this.messages.slice(),
      questions: [...this.questions.values()],
      speaking: new Map(this.speaking),
      status: this.status,
    };
  }

  private run(event: ChatEvent): void {
    if (event.status !== undefined && event.status !== '') this.status = event.status;
    for (const [first, last] of event.voided ?? []) {
      this.messages = this.messages.filter((each) => each.seq < first || each.seq > last);
    }
    if (['finished', 'failed', 'cancelled'].includes(this.status)) {
      this.questions.clear();
      this.speaking.clear();
    }
  }

  private question(event: ChatEvent): void {
    const asked = event.question;
    if (asked != null) {
      const [turn, agent] = [...this.speaking].at(-1) ?? [0, ''];
      this.questions.set(asked.id, { seq: event.seq, question: asked, turn, agent });
      return;
    }
    const id = event.question_id ?? '';
    const open = this.questions.get(id);
    if (event.kind === 'question.answered' || event.kind === 'question.expired') {
      this.questions.delete(id);
      if (open !== undefined && isForm(open.question)) this.answered(event, open);
    }
  }

  /** An answer to a form is no text of its own, so it is shown with what was asked. */
  private answered(event: ChatEvent, { question, turn, agent }: OpenQuestion): void {
    if (question.prompt) {
      const author = agent || (question.tool ?? '');
      const asked = messageOf(event, author, false, question.prompt, null);
      this.messages.push({ ...asked, turn });
    }
    const isGiven = event.kind === 'question.answered';
    const said = isGiven ? (event.value ?? 'answered') : 'no answer in time';
    this.messages.push(messageOf(event, event.by ?? '', true, '', said));
  }

  private say(event: ChatEvent, author: string, mine: boolean): void {
    this.messages.push(messageOf(event, author, mine, event.text ?? '', event.output ?? null));
  }
}

function messageOf(
  event: ChatEvent,
  author: string,
  mine: boolean,
  text: string,
  output: unknown,
): Message {
  return { seq: event.seq, at: event.at, author, mine, turn: event.turn ?? 0, text, output };
}

/** Whether a question wants more than a line of text. */
export function isForm(question: Question): boolean {
  return question.schema != null || (question.tool ?? '') !== '';
}

export const makeTalk = (): Fold<Talk, ChatEvent> => new TalkFold();
