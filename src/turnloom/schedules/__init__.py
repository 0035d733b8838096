"""When runs start by themselves: schedules, and starts planned for an instant."""
