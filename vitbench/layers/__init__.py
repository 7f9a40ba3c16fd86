"""Running: one file per operator, under the operator's name; its module, the inner attention injected."""
