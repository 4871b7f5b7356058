"""Headers by which a node signs a request, as Flower's own node makes them."""

from cryptography.hazmat.primitives.asymmetric import ec
from flwr.supercore.primitives.asymmetric import public_key_to_bytes
from flwr.supernode.node_auth_http_interceptor import NodeAuthHttpInterceptor
from httpx import Request

KEY = ec.generate_private_key(ec.SECP256R1())
PUBLIC = public_key_to_bytes(KEY.public_key())


def signed(key=KEY, **more) -> list[tuple[bytes, bytes]]:
    """The headers of a request of ``key``, as an ASGI server gives them, and others."""

    class Context:
        request = Request("POST", "https://localhost/")

    NodeAuthHttpInterceptor(key, key.public_key()).intercept(Context, lambda _: None)
    made = {name: value for name, value in Context.request.headers.items() if name not in ("content-length", "host")}
    return [(name.replace("_", "-").encode(), str(value).encode()) for name, value in (made | more).items()]
