"""On paper: one file per operator; its parameters, closed-form cost and refusals."""
