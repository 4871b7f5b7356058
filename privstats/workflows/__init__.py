"""Choose, simulate, score and report on a plan before deployment.

No party or server of a real session needs this.
"""
