"""Who gets in, and who did what: API keys, tokens of an identity provider, the audit trail."""
