/** Who uses the pages, and what they may do. */

import { useQuery } from '@tanstack/react-query';

import { api } from '../api/client';
import type { Me } from '../api/explanations';

export function useMe() {
  return useQuery({ queryKey: ['me'], queryFn: api.me, staleTime: Infinity });
}

/** Whether they see more than chats: variables, prompts, routes. */
export const mayExplain = (me: Me | undefined): boolean => me?.scopes.includes('explain') === true;

/** Whether they start, answer and stop runs. */
export const mayWrite = (me: Me | undefined): boolean => me?.scopes.includes('runs:write') === true;
