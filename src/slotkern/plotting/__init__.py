"""Pictures of slots, windows and steps."""
