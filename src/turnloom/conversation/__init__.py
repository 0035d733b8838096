"""A roster of agents and handoff rules that decide who speaks next."""
