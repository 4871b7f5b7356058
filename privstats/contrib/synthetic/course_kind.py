"""Announce the counts for synthetic rows as a kind of course."""

from privstats.course.kinds import CourseKind

KIND = CourseKind(
    "synthetic",
    "counts for synthetic rows",
    "privstats.contrib.synthetic.course:Synthetic",
    why="The first session counts each column, the next all pairs of columns roughly; the last counts the "
    "pairs that go together most. Rows of no real person are drawn from these counts.",
    asked="synthetic",
    draws="rows",
)
