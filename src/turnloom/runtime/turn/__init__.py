"""Take turns: frames, context, model calls, tools, answers."""
