/** The server asks for a key. */

import { useState } from 'react';

import { signIn } from '../api/session';
import { Page } from './Page';

export function SignIn() {
  const [key, setKey] = useState('');
  return (
    <Page title="Sign in">
      <form
        className="note sign-in"
        onSubmit={(event) => {
          event.preventDefault();
          signIn(key.trim());
          window.location.reload();
        }}
      >
        <h2>This server asks for a key</h2>
        <p>
          Make one with <code>turnloom keys create</code>. It is kept until this tab is closed.
        </p>
        <label>
          <span className="hidden-text">Key</span>
          <input
            className="field mono"
            type="password"
            autoComplete="off"
            value={key}
            onChange={(event) => setKey(event.target.value)}
          />
        </label>
        <button type="submit" className="button primary" disabled={key.trim() === ''}>
          Sign in
        </button>
      </form>
    </Page>
  );
}
