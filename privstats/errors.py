"""List every error that privstats raises on purpose, and which one to catch.

::

    PrivstatsError                base class; a service catches it, logs the sentence and stops
      SchemaError                 correct the schema
      PlanError                   correct the plan; no data was read
      DataError                   correct one party's records
        RecordError               mend the record, or measure without it
      ReleaseError                request the release file again
      HeadError                   correct a head's parameters, or request its file again
      MissingStatisticError       choose another head, or release the statistic
      MissingExtraError           install the extra (also an ImportError)
      LedgerError                 nothing was released: a person decides, no program retries
      RandomnessError             pass no generator, or make one in this process
      ProtocolError               one aggregation; catch this around a session
        AggregationError          start a new run, under a new name
        TooFewAnswersError        run it again: nothing is lost
        RemoteProtocolError       a client ends, a server goes on without the peer
        LocalProtocolError        correct the program
          NothingToResumeError    create the journal
          InUseError              wait: another process has the journal
          RestoredError           its operator decides whether it may go on
          SessionEndedError       start a new run

    AssumedPublicWarning          make it an error where no person reads warnings
    BrokenPackageWarning          mend or uninstall the package that it names
    ClippedWarning                for the data holder alone
    UnevenSplitWarning            for the data holder alone
    UnreadableRecordsWarning      for the data holder alone

Errors about schemas, plans, data, releases, heads and statistics are ``ValueError`` too. A message names the field, the
bound and the remedy, and never a data value or a secret.
"""

from __future__ import annotations


class PrivstatsError(Exception):
    """Base class of every error that privstats raises on purpose.

    Example:
        >>> try:
        ...     ps.ClassSchema(classes=1, features=2, statistics="NA", clip_norm=1.0)
        ... except ps.PrivstatsError as error:
        ...     print(type(error).__name__)
        ...
        SchemaError
    """


class SchemaError(PrivstatsError, ValueError):
    """A schema that cannot be measured: an unknown statistic, one class, one feature, a grid too fine.

    Example:
        >>> ps.ClassSchema(classes=1, features=2, statistics="NA", clip_norm=1.0)
        Traceback (most recent call last):
            ...
        privstats.errors.SchemaError: classes must be at least 2, got 1: one class has nothing to separate: set
        two or more
    """


class DataError(PrivstatsError, ValueError):
    """Records that do not fit the schema: wrong dimension, NaN, a label out of range.

    Example:
        >>> ps.measure(ps.ClassSchema(2, 2, "NA", clip_norm=1.0), np.array([[0.1, np.nan]]), np.array([0]))
        Traceback (most recent call last):
            ...
        privstats.errors.RecordError: X holds NaN, infinite or overflowing entries; remove or impute them first (first
        unreadable record: position 0, counted from 0)
    """


class RecordError(DataError):
    """A record that cannot be read: NaN among its features, a label that is no class, a value without a cell.

    Under a promise a refusal would reveal that record, so parties measure with ``unreadable="leave out"``. The text is
    for the data holder: a session sends the server a code in its place.

    Attributes:
        position: index of the first unreadable record among those that were passed, counted from 0, over all batches;
            None where it is unknown.

    Example:
        >>> schema = ps.CountSchema((ps.Categories("sex", ("f", "m")),), (("sex",),))
        >>> try:
        ...     ps.measure(schema, {"sex": ["f", "?"]})
        ... except ps.errors.RecordError:
        ...     print("one of them cannot be counted")
        ...
        one of them cannot be counted
    """

    position: int | None = None

    def at(self, position: int) -> RecordError:
        """Return the error with the record's position, which its sentence states too.

        Example:
            >>> error = ps.errors.RecordError("y has labels outside 0..1").at(12)
            >>> print(error)
            y has labels outside 0..1 (first unreadable record: position 12, counted from 0)
            >>> error.position
            12
        """
        stated = f" at position {position} " in str(self)
        where = "" if stated else f" (first unreadable record: position {position}, counted from 0)"
        error = type(self)(f"{self}{where}")
        error.position = position
        return error


class PlanError(PrivstatsError, ValueError):
    """A plan that contradicts itself, would overflow, or cannot meet its budget.

    Example:
        >>> ps.Cohort(clients=3, min_survivors=4, max_records=100)
        Traceback (most recent call last):
            ...
        privstats.errors.PlanError: cohort.min_survivors=4 exceeds cohort.clients=3; lower min_survivors
    """


class ReleaseError(PrivstatsError, ValueError):
    """A release file that is corrupt, tampered with, foreign, or from another version.

    Example:
        >>> _ = open("old.release", "wb").write(b"no release")
        >>> ps.Release.load("old.release")
        Traceback (most recent call last):
            ...
        privstats.errors.ReleaseError: old.release is not a privstats release; give a file written by Release.save
    """


class HeadError(PrivstatsError, ValueError):
    """A corrupt or foreign head file, or a head that cannot be built or exported.

    Example:
        >>> _ = open("old.head", "wb").write(b"no head")
        >>> ps.heads.load("old.head")
        Traceback (most recent call last):
            ...
        privstats.errors.HeadError: old.head is not a privstats head; give a file written by save
    """


class MissingStatisticError(PrivstatsError, ValueError):
    """A head was requested from a release without the statistic it needs.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> moments = ps.measure(schema, np.array([[0.1, 0.2], [0.3, 0.4]]), np.array([0, 1]))
        >>> ps.heads.LDA().fit_release(ps.Release.exact(schema, moments))
        Traceback (most recent call last):
            ...
        privstats.errors.MissingStatisticError: LDA needs statistic B, which the release lacks; no head works from N
        and A alone, or name it in the schema's statistics
    """


class LedgerError(PrivstatsError):
    """The privacy ledger refused: cap reached, file locked, unreadable, or from a newer version.

    Example:
        >>> ps.dp.Ledger("nowhere.ledger").account("clinic")
        Traceback (most recent call last):
            ...
        privstats.errors.LedgerError: there is no ledger at nowhere.ledger: name the file that releases are recorded
        in, or make a new one with `privstats ledger open nowhere.ledger` (Ledger.create) if nothing was ever released
        from this data
    """


class RandomnessError(PrivstatsError):
    """A generator that is unsafe here: made before a fork, or reproducible where noise and keys are secret.

    Example:
        >>> from privstats import randomness
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> schema, X, y = ps.ClassSchema(2, 2, "NA", clip_norm=1.0), np.array([[0.1, 0.2]]), np.array([0])
        >>> ps.private_release(schema, privacy, X, y, ledger="uncharged", rng=randomness.seeded(0))
        Traceback (most recent call last):
            ...
        privstats.errors.RandomnessError: rng is reproducible, so anyone who knows its seed can remove the noise and
        the masks; leave rng out, or pass allow_reproducible=True in a test
    """


class MissingExtraError(PrivstatsError, ImportError):
    """A missing optional dependency; the message names the extra that installs it.

    Example:
        >>> from privstats.optional_dependencies import require
        >>> require("json", by="this example")  # nothing is missing
        >>> issubclass(ps.MissingExtraError, ImportError)
        True
    """


class AssumedPublicWarning(UserWarning):
    """A value that must be public was computed from private records; the message has the remedy.

    Example:
        >>> import warnings
        >>> promise = {"epsilon": 1.0, "delta": 1e-5, "adjacency": "add-remove", "clip_norm": 1.0}
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     _ = ps.heads.LDA().fit_private([[0.1, 0.2], [0.3, 0.4]], ["ill", "well"], ledger="uncharged", **promise)
        ...
        >>> caught[0].category.__name__  # classes were read off the labels; give classes=("ill", "well")
        'AssumedPublicWarning'
    """


class BrokenPackageWarning(UserWarning):
    """A row of another package is broken, or has the name of another row: lists leave it out.

    Example:
        >>> import warnings
        >>> from privstats.workflows.tables import READERS
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("error", ps.errors.BrokenPackageWarning)  # stop at a broken package
        ...     "ols" in READERS.rows()
        ...
        True
    """


class ClippedWarning(UserWarning):
    """The bounds clip nearly all rows or many targets, or many values are beyond their bins.

    The share in the message is exact and private.

    Example:
        >>> import warnings
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=3.0)
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     _ = ps.measure(schema, [[61.0, 170.0], [45.0, 182.0]], [0, 1])  # years and centimetres
        ...
        >>> [each.category.__name__ for each in caught]
        ['ClippedWarning']
    """


class CopiedFilesWarning(UserWarning):
    """Two files of one table have equal bytes, so their records count twice.

    Example:
        >>> import warnings
        >>> from pathlib import Path
        >>> from privstats.moments import RecordFile
        >>> Path("copied").mkdir()
        >>> for name in ("a.csv", "a (1).csv"):
        ...     _ = Path("copied", name).write_text("age,ill\\n50,0\\n")
        ...
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     records = RecordFile("copied", "ill").read()
        ...
        >>> caught[0].category.__name__, len(records.y)
        ('CopiedFilesWarning', 2)
    """


class ProtocolError(PrivstatsError):
    """Base class of the errors between the parties of one aggregation.

    Example:
        >>> issubclass(ps.AggregationError, ps.errors.ProtocolError)
        True
        >>> issubclass(ps.LedgerError, ps.errors.ProtocolError)
        False
    """


class LocalProtocolError(ProtocolError):
    """The caller misused a protocol machine: wrong order, used twice, wrong plan.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> parties = ps.session.local_parties(plan, [ps.measure(schema, [[0.1, 0.2]], [0])] * 2)
        >>> _ = parties.server.start()
        >>> parties.server.start()
        Traceback (most recent call last):
            ...
        privstats.errors.LocalProtocolError: the session has already started: a server serves one session
    """


class NothingToResumeError(LocalProtocolError):
    """No journal is at this path: its session never began here, or the journal was removed.

    Example:
        >>> from privstats.engines.journal import JournaledServer
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> server, bonn, ulm = (ps.secagg.Identity.generate(os.urandom) for _ in range(3))
        >>> roster = ps.secagg.Roster((ulm.public, bonn.public), server=server.public, run=b"hips in May")
        >>> run = {"parameters": plan.masking, "roster": roster, "identity": server}
        >>> JournaledServer.resume("session", os.urandom(32), **run)
        Traceback (most recent call last):
            ...
        privstats.errors.NothingToResumeError: .../session/snapshot holds no session to resume
    """


class InUseError(LocalProtocolError):
    """Another process or object has this journal open.

    Example:
        >>> from privstats.engines.journal import JournaledClient
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> parties = ps.session.local_parties(plan, [ps.measure(plan.schema, [[0.1, 0.2]], [0])] * 2)
        >>> first = JournaledClient.create("ulm.journal", os.urandom(32), parties.clients[0])
        >>> JournaledClient.create("ulm.journal", os.urandom(32), parties.clients[1])
        Traceback (most recent call last):
            ...
        privstats.errors.InUseError: .../ulm.journal.lock is in use by another process or object: let it end or
        close it
    """


class RestoredError(LocalProtocolError):
    """The journal was restored from a backup or copied, so another copy of its machine may have answered."""


class SessionEndedError(LocalProtocolError):
    """The journal's session has ended and must not come back."""


class TooFewAnswersError(ProtocolError):
    """A deadline passed with too few answers: nothing is lost, and the next run continues.

    Example:
        >>> issubclass(ps.errors.TooFewAnswersError, ps.AggregationError)  # the session has not ended
        False
    """


class RemoteProtocolError(ProtocolError):
    """A peer broke the protocol.

    Attributes:
        peer: a client's index, ``"server"``, or another name.
        proven: False if the peer may be honest, because another party may have lied.

    Example:
        >>> error = ps.RemoteProtocolError(3, "mask", "bad-signature")
        >>> error.peer, error.step, error.code
        (3, 'mask', 'bad-signature')
        >>> str(error)
        "client 3 broke the protocol at step 'mask': bad-signature"
    """

    def __init__(self, peer: int | str, step: str, code: str, detail: str = "", *, proven: bool = True) -> None:
        self.peer, self.step, self.code, self.detail, self.proven = peer, step, code, detail, proven
        who = "the server" if peer == "server" else peer if isinstance(peer, str) else f"client {peer}"
        did = "broke the protocol" if proven else "may have broken the protocol, which is unproven,"
        super().__init__(f"{who} {did} at step '{step}': {code}" + (f" ({detail})" if detail else ""))


class AggregationError(ProtocolError):
    """The session ended without a sum; ``step`` and ``code`` show where and why.

    Example:
        >>> error = ps.AggregationError("mask", "too-few-survivors", "2 of 3 clients")
        >>> error.step, error.code
        ('mask', 'too-few-survivors')
    """

    def __init__(self, step: str, code: str, detail: str) -> None:
        self.step, self.code = step, code
        super().__init__(f"aggregation aborted at step '{step}' ({code}): {detail}")


class UnevenSplitWarning(UserWarning):
    """A split holds out another share of the records, or of a class, than was asked for.

    The numbers are exact, for the data holder alone.

    Example:
        >>> import warnings
        >>> from privstats.moments import Records
        >>> ids = np.r_[np.zeros(5000, int), 1:1001]  # one person has five rows in six
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     parts = Records(np.ones((6000, 1)), np.zeros(6000), persons=ids).split(0.25, seed=1)
        ...
        >>> [each.category.__name__ for each in caught]
        ['UnevenSplitWarning']
    """


class UnreadableRecordsWarning(UserWarning):
    """Some records or values could not be read. The number is for the data holder alone.

    Example:
        >>> import warnings
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     moments = ps.measure(schema, [[0.5, 0.0], [None, 0.1]], [0, 1], unreadable="leave out")
        ...
        >>> caught[0].category.__name__, moments.records
        ('UnreadableRecordsWarning', 1)
    """
