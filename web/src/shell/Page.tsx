/** The frame of a page: where one is, and how it looks. */

import * as Menu from '@radix-ui/react-dropdown-menu';
import { useEffect, type ReactNode } from 'react';
import { Link } from 'wouter';

import { useTheme, type Theme } from '../shared/theme';
import { Mark } from './Mark';
import './shell.css';

export function Page(props: { title: string; children: ReactNode; about?: ReactNode }) {
  useEffect(() => {
    document.title = `${props.title} · Turnloom`;
  }, [props.title]);
  return (
    <>
      <a className="skip" href="#main">
        Skip to the content
      </a>
      <header className="top">
        <Link className="brand" href="/runs">
          <Mark />
          Turnloom
        </Link>
        {props.about ?? <span className="grow" />}
        <Link className="button new-run" href="/start" aria-label="New run">
          <span aria-hidden="true">+</span> <span className="words">New run</span>
        </Link>
        <ThemeMenu />
      </header>
      <main id="main" tabIndex={-1}>
        {props.children}
      </main>
    </>
  );
}

const THEMES: Record<Theme, string> = { system: 'As the system', light: 'Light', dark: 'Dark' };

function ThemeMenu() {
  const [theme, choose] = useTheme();
  return (
    <Menu.Root modal={false}>
      <Menu.Trigger className="button quiet" aria-label="Colours">
        <svg width="15" height="15" viewBox="0 0 16 16" aria-hidden="true">
          <circle cx="8" cy="8" r="6.2" fill="none" stroke="currentColor" strokeWidth="1.5" />
          <path d="M8 1.8a6.2 6.2 0 0 1 0 12.4z" fill="currentColor" />
        </svg>
      </Menu.Trigger>
      <Menu.Portal>
        <Menu.Content className="menu" align="end" sideOffset={4}>
          <Menu.RadioGroup value={theme} onValueChange={(value) => choose(value as Theme)}>
            {Object.entries(THEMES).map(([name, label]) => (
              <Menu.RadioItem key={name} className="menu-item" value={name}>
                <span className="tick">{theme === name ? '✓' : ''}</span>
                {label}
              </Menu.RadioItem>
            ))}
          </Menu.RadioGroup>
        </Menu.Content>
      </Menu.Portal>
    </Menu.Root>
  );
}
