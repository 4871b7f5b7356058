from tests.engines.network.conftest import _quick_disk
from tests.engines.network.courses.conftest import silent

__all__ = ["_quick_disk", "silent"]
