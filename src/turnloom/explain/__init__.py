"""Why an agent saw what it saw, why a value is what it is, why the work went where it went."""
