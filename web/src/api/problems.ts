/** What went wrong with a request: an RFC 9457 problem, or no answer at all. */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }

  /** Whether the server did not answer. */
  get offline(): boolean {
    return this.status === 0;
  }

  /** Whether the server does not know who asks. */
  get unknownPerson(): boolean {
    return this.status === 401;
  }
}

interface Details {
  title?: string;
  detail?: string;
  code?: string;
}

/** The problem that an unsuccessful response describes. */
export async function problemOf(response: Response): Promise<Problem> {
  const details = (await response.json().catch(() => ({}))) as Details;
  const message = details.detail ?? details.title ?? `The server answered ${response.status}.`;
  return new Problem(response.status, details.code ?? '', message);
}

/** The problem of a request that got no response. */
export function unreachable(): Problem {
  return new Problem(0, 'offline', 'The server does not answer.');
}
