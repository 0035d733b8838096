"""What everything else is made of: JSON values, digests, derived ids, documents with places."""
