/** The API key of this tab, where the server asks for one. It is kept until the tab is closed. */

const NAME = 'turnloom.key';

export function signIn(key: string): void {
  sessionStorage.setItem(NAME, key);
}

export function signOut(): void {
  sessionStorage.removeItem(NAME);
}

/** The headers that say who asks. */
export function credentials(): Record<string, string> {
  const key = sessionStorage.getItem(NAME);
  return key === null ? {} : { Authorization: `Bearer ${key}` };
}
