"""Choose, simulate, score and report on a plan before deployment; no party or server of a real session needs this."""
