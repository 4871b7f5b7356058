from tests.heads.conftest import blobs, digits

__all__ = ["blobs", "digits"]
