"""The schedules of ``test_schedules`` as a state machine: Hypothesis chooses what happens, and shrinks what fails.

Nine hundred in the nightly profile, forty-five in CI, and every night some where reports carry proofs. The
invariants are those of the schedules, after every message; at the end the exact sum or a named abort.
"""

from random import Random
from typing import ClassVar
from unittest.mock import patch

import pytest
from hypothesis import event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from privstats.secagg.machines import ENDS
from privstats.secagg.upload import batching
from tests.lengths import sized
from tests.secagg.upload.inside import inside
from tests.secagg.upload.test_schedules import ACTIONS, Schedule, script

MISCHIEF = sorted(set(ACTIONS) - {"deliver", "resend", "close", "restart_leader", "restart_helper"})


class Uploading(RuleBasedStateMachine):
    """Messages in flight are two bags; rules take from them in any order, or put back what does not belong."""

    proofs: ClassVar[bool] = False

    @initialize(random=st.randoms(use_true_random=False))
    def begin(self, random: Random) -> None:
        size = script(2, self.proofs).run.parameters.upload_bytes
        self.small_parts = patch.multiple(batching, PART_BYTES=2 * size, IN_FLIGHT=2)
        self.small_parts.start()
        self.schedule = Schedule(random, self.proofs)

    def running(self) -> bool:
        return self.schedule.leader.step not in ENDS

    @rule(count=st.integers(1, 12))
    def deliver(self, count: int) -> None:
        """Also after the end: whatever is late is refused, and changes nothing."""
        for _ in range(count):
            self.schedule.deliver()

    @rule(action=st.sampled_from(MISCHIEF))
    def interfere(self, action: str) -> None:
        event(action)
        getattr(self.schedule, action)()

    @rule()
    def send_again(self) -> None:
        self.schedule.resend()

    @rule(patience=st.integers(0, 3))
    def time_is_up(self, patience: int) -> None:
        """Mostly after everything has arrived, now and then while messages are still on their way."""
        while patience and (self.schedule.up or self.schedule.down):
            self.schedule.deliver()
        if self.running():
            self.schedule.close()

    @rule()
    def restart_the_leader(self) -> None:
        if self.running():
            self.schedule.restart_leader()

    @rule()
    def restart_a_helper(self) -> None:
        self.schedule.restart_helper()

    @invariant()
    def no_sum_is_ever_wrong(self) -> None:
        if hasattr(self, "schedule") and self.schedule.leader.step == "done":
            self.schedule.check_the_sum()

    @invariant()
    def who_has_answered_has_no_key(self) -> None:
        for helper in self.schedule.helpers if hasattr(self, "schedule") else ():
            assert helper.step not in ENDS or (bytes(inside(helper).secret) == bytes(32) and not inside(helper).pieces)

    def teardown(self) -> None:
        """Whatever has happened, playing on honestly ends the run."""
        if not hasattr(self, "schedule"):
            return
        self.schedule.random = Random(0)  # whatever Hypothesis would still have to choose with
        try:
            event(f"the run is {self.schedule.finish()} {self.schedule.aborted}")
        finally:
            self.small_parts.stop()


TestUploading = Uploading.TestCase
TestUploading.settings = settings(max_examples=sized(45, 900), stateful_step_count=20)


class Proving(Uploading):
    """The same where reports carry proofs, and some prove false sums."""

    proofs: ClassVar[bool] = True


TestProving = pytest.mark.nightly(Proving.TestCase)
TestProving.settings = settings(max_examples=max(8, settings.default.max_examples // 4), stateful_step_count=20)
