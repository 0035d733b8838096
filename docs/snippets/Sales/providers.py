"""Context providers of this workflow."""

from turnloom import FilterConfig, FilteredContextProvider, RedactingProvider, TagFilter

won = FilterConfig(types={"PitchResult"}, tags=TagFilter(include={"deal_won"}))
recent_wins = RedactingProvider(FilteredContextProvider(won, limit=3), keys=["private_notes"])
