"""A whole course between machines: node after node in the folders of one study, each an ordinary session.

What a session is stays with the modules above this room; here is which one comes next, who is told of it and on what
grounds it is admitted.
"""

from privstats.engines.network.courses.folder import COURSE, CourseFolder, NodeFolder
from privstats.engines.network.courses.host import CourseEnded, CourseHost
from privstats.engines.network.courses.party import CourseParty

__all__ = ["COURSE", "CourseEnded", "CourseFolder", "CourseHost", "CourseParty", "NodeFolder"]
