/** The pages by address; each view is loaded when it is first opened. */

import { lazy, Suspense } from 'react';
import { Redirect, Route, Switch, useLocation } from 'wouter';

import { Problem } from './api/problems';
import { Boundary } from './shared/Boundary';
import { useMe } from './shared/me';
import { Empty, Loading } from './shared/States';
import { Page } from './shell/Page';
import { RunPage } from './shell/RunPage';
import { SignIn } from './shell/SignIn';

const Runs = lazy(() => import('./runs/Runs'));
const Start = lazy(() => import('./chat/Start'));

export function App() {
  const { error } = useMe();
  const [address] = useLocation();
  if (error instanceof Problem && error.unknownPerson) return <SignIn />;
  return (
    <Boundary address={address}>
      <Pages />
    </Boundary>
  );
}

function Pages() {
  return (
    <Suspense fallback={<Loading />}>
      <Switch>
        <Route path="/">
          <Redirect to="/runs" replace />
        </Route>
        <Route path="/runs">
          <Page title="Runs">
            <Runs />
          </Page>
        </Route>
        <Route path="/start">
          <Page title="Start a workflow">
            <Start />
          </Page>
        </Route>
        <Route path="/runs/:run/:view?">
          {({ run, view }) => <RunPage run={run} view={view ?? 'chat'} />}
        </Route>
        <Route>
          <Page title="Not found">
            <Empty title="There is no such page">
              <p>
                <a href="/runs">All runs</a> are a place to start.
              </p>
            </Empty>
          </Page>
        </Route>
      </Switch>
    </Suspense>
  );
}
