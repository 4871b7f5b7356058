"""What a reviewer is told of an effect's outcomes, missing ones among them, and subgroups."""

from __future__ import annotations

import math

from privstats.schema import EffectSchema, Schema

__all__ = ["effect_facts"]


def effect_facts(schema: Schema) -> list[str]:
    """What outcomes and subgroups cost; nothing of other schemas, or of one outcome that every record has.

    Example:
        >>> from privstats.plan.effect_facts import effect_facts
        >>> outcome = {"relapse": (0, 1), "death": (0, 1)}
        >>> schema = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome=outcome, probability=0.5)
        >>> effect_facts(schema)
        ['the outcomes relapse, death share the budget: each has about sqrt(2) times the noise of one']
    """
    if not isinstance(schema, EffectSchema):
        return []
    outcomes, parts = schema.outcomes, math.prod(schema.crossed)
    names, apart = schema.outcome_names or (), [each.name for each in schema.subgroups or ()]
    shared = f"the outcomes {', '.join(names)} share the budget: each has about sqrt({outcomes}) times the noise of one"
    divided = (
        f"the records are divided into {parts} subgroups by {', '.join(apart)}: each has the noise of one sum on its "
        f"own records, and all together sqrt({parts}) times as much; what is not declared in a course is exploratory"
    )
    gaps = (
        "outcomes may be missing: whether a record has one is summed, too, in rounds before the last session, and the "
        "table holds where nothing but the arm and the columns decides it, which no sum can test"
    )
    return [*([gaps] if schema.missing else []), *([shared] if outcomes > 1 else []), *([divided] if parts > 1 else [])]
