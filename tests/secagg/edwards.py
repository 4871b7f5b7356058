"""Points of Ed25519's curve in the plainest way, for keys that no honest program makes. Nothing here is a secret."""

P = 2**255 - 19
D = -121665 * pow(121666, -1, P) % P
Point = tuple[int, int]

EIGHTH = 2707385501144840649318225287225658788936804267575313519463743609750303402022
"""One y of a point of order 8; that of the others is P less it."""


def add(a: Point, b: Point) -> Point:
    """The sum of two points (RFC 8032, 5.1.4, without its shortcuts)."""
    product = D * a[0] * b[0] * a[1] * b[1] % P
    x = (a[0] * b[1] + a[1] * b[0]) * pow(1 + product, -1, P)
    y = (a[1] * b[1] + a[0] * b[0]) * pow(1 - product, -1, P)
    return x % P, y % P


def decoded(data: bytes) -> Point:
    """The point that 32 bytes write (RFC 8032, 5.1.3); its y may be P or more."""
    y = int.from_bytes(data, "little") & (1 << 255) - 1
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    assert (x * x - square) % P == 0, "no point has this y"
    return (x if x % 2 == data[31] >> 7 else P - x if x else 0), y % P


def encoded(point: Point) -> bytes:
    """The 32 bytes that write a point."""
    return (point[1] | (point[0] & 1) << 255).to_bytes(32, "little")


def order(point: Point) -> int:
    """How often a point must be added to itself, at most 8 times, to give the neutral one; 0 for more."""
    total = point
    for times in range(1, 9):
        if total == (0, 1):
            return times
        total = add(total, point)
    return 0


def x25519_low_order_encodings() -> dict[str, bytes]:
    """All 32-byte strings that X25519 reads as a u of order 1, 2, 4 or 8, on the curve or its twist.

    The curve has u = (1 + y) / (1 - y) for y of these orders, except that of the neutral point, and the twist adds
    u = -1. A second form has u + p, and X25519 ignores the highest bit.
    """
    curve = {(1 + y) * pow(1 - y, -1, P) % P for y in (0, P - 1, EIGHTH, P - EIGHTH)}
    forms = [u + over for u in sorted(curve | {P - 1}) for over in (0, P) if u + over < 1 << 255]
    return {
        f"u = {'p + ' if form >= P else ''}...{str(form % P)[-4:]}, high bit {high}": (form | high << 255).to_bytes(
            32, "little"
        )
        for form in forms
        for high in (0, 1)
    }


def low_order_encodings() -> dict[str, bytes]:
    """All 32-byte strings that write a point of order 1, 2, 4 or 8, also with a second y, and a sign where x = 0."""
    values = {y + over: y for y in (0, 1, P - 1, EIGHTH, P - EIGHTH) for over in (0, P) if y + over < 1 << 255}
    return {
        f"y = {'p + ' if y >= P else ''}{reduced if reduced < 2 else '...' + str(reduced)[-4:]}, sign {sign}": (
            y | sign << 255
        ).to_bytes(32, "little")
        for y, reduced in values.items()
        for sign in (0, 1)
    }
