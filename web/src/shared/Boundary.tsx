/** What is shown instead of a view that broke, or could not be loaded. */

import { Component, type ReactNode } from 'react';

import { Empty } from './States';

interface Props {
  /** Where the reader is: at another address, the view is tried anew. */
  address: string;
  children: ReactNode;
}

export class Boundary extends Component<Props, { error: unknown }> {
  override state: { error: unknown } = { error: null };

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override componentDidUpdate(before: Props) {
    const { error } = this.state;
    if (error !== null && before.address !== this.props.address) this.setState({ error: null });
  }

  override render() {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <main role="alert">
        <Empty title="This page broke">
          <p>{error instanceof Error ? error.message : 'It cannot be shown.'}</p>
          <p>
            What is stored is safe. If the server was updated, its pages need to be loaded again.
          </p>
          <button type="button" className="button" onClick={() => window.location.reload()}>
            Load the page again
          </button>
        </Empty>
      </main>
    );
  }
}
