"""First bytes of what privstats hashes, derives, signs and stores: domains, labels, salts and names of formats.

Stored files hold digests and signatures over these bytes, so a value never changes; what is hashed anew in another way
has another value. Values look like paths of modules and follow no move of code. No other module holds such bytes:
``tests/test_domains.py`` checks that, and stored files of earlier versions hold the values.
"""

from __future__ import annotations

from typing import Final

# Files: the name in a file's header, and what its checksum and its signature begin with.
RELEASE_FILE: Final = "privstats-release"
RELEASE_FILE_3: Final = b"privstats-release/3"
HEAD_FILE: Final = "privstats-head"
HEAD_FILE_3: Final = b"privstats-head/3"
PERSONAL_HEAD_FILE: Final = "privstats-personal-head"
PERSONAL_HEAD_FILE_2: Final = b"privstats-personal-head/2"
PUBLISHED_FILE: Final = "privstats-published"
PUBLISHED_FILE_1: Final = b"privstats/published/file/1"
PUBLISHED_FILE_2: Final = b"privstats/published/file/2"
SIGNATURE_FILE: Final = "privstats-signature"
DOCUMENT: Final = b"privstats/document/1"
SPLITS_FILE: Final = "privstats-splits"
ROSTER_FILE: Final = b"\x93privstats roster 1\n"
LEDGER_FILE: Final = 0x70734C64
"""The application id of a ledger's SQLite file: "psLd"."""

# Digests that ledgers, releases, heads and courses name.
LEDGER: Final = b"privstats/ledger/2"
LEDGER_MOVED: Final = b"privstats/dp/ledger/2"
"""Some commits of 1.0.0rc1 wrote this in place of ``LEDGER``. It is read, and no new ledger has it."""
RELEASE: Final = b"privstats/release/2\0"
COURSE: Final = b"privstats/course\0"
COURSE_KIND: Final = b"privstats/course/%b\0"
COURSE_ROUND: Final = b"privstats/course/node\0"
CLIENT_UPDATES: Final = b"privstats/client updates/1\0"
VALUES: Final = b"privstats/values/1\0"
PUBLISHED: Final = b"privstats/published/1\0"
PUBLIC_ROWS: Final = b"privstats/public\0"
PROOF: Final = "proof/1"

# Public choices that follow from a seed or a salt.
SPLIT_PERSONS: Final = b"privstats/split/persons\0"
SPLIT_RECORDS: Final = b"privstats/split/records/2\0"
"""A split of version 1 hashed no label."""
SYNTHETIC_BUCKET: Final = b"privstats/synthetic/bucket\0%b\0%b"
RANDOM_MAP: Final = b"privstats|%b|%d"
REPRODUCIBLE: Final = b"privstats: reproducible, not private: %d"

# Masking: suites, and the first part of each label of a statement or a derived key.
SECAGG: Final = b"privstats/secagg/2/"
"""Versions 3 and 4 have it, too: the suite in the parameters' digest separates them. This version does not speak
version 3."""
SECAGG_PARAMETERS: Final = b"privstats/secagg/parameters"
SECAGG_4: Final = b"privstats/secagg/4 X25519 ML-KEM-768 Ed25519 HKDF-SHA256 AES-256-GCM"
UPLOAD: Final = b"privstats/upload/1/"
UPLOAD_KEYS: Final = b"privstats/upload/"
UPLOAD_PARAMETERS: Final = b"privstats/upload/parameters"
NOISY_HELPERS: Final = "noisy helpers"
"""A further element of the parameters, if helpers add noise."""
UPLOAD_3: Final = b"privstats/upload/3 X-Wing Ed25519 HKDF-SHA256 AES-256-GCM"
UPLOAD_4: Final = b"privstats/upload/4 X-Wing Ed25519 HKDF-SHA256 AES-256-GCM AES-256-CTR F(2^61-1)"
ROSTER_FINGERPRINT: Final = b"privstats roster fingerprint"

# Stored noise, each bound to the sum that it hides.
HELPER_NOISE: Final = b"privstats/upload/noise/1"
JOURNAL_NOISE: Final = b"privstats/journal/noise/2"
"""The noise of version 1 was the seed's own, not bound to the sum."""
STREAM_NOISE: Final = b"privstats/stream/noise/2"
"""The noise of version 1 was bound to the epoch's number and not to the sums."""
STREAM_SAMPLED: Final = b"privstats/stream/drawn/2"

# Journals and registries.
JOURNAL_MARK: Final = b"privstats/journal/mark"
JOURNAL_RELEASE: Final = b"privstats/journal/release\0"
JOURNAL_RUN: Final = b"privstats/journal/run"
REGISTRY_SECRET: Final = b"privstats/flower/holding"
REGISTRY_CHECK: Final = b"privstats/holding/check\0"
REGISTRY_RECORD: Final = b"privstats/holding/record\0"
REGISTRY_ROWS: Final = b"privstats/holding/rows\0"

# Between machines, and devices.
REPLY: Final = b"privstats/flower/1/word\0"
ENDED: Final = b"privstats/flower/1/over\0"
ANNOUNCEMENT: Final = b"privstats/flower/2/brief\0"
HELPER_QUESTION: Final = b"privstats/http/1/exchange\0"
DEVICE_IDENTITY: Final = b"privstats/devices/1/identity"
DEVICE_STUDY: Final = b"privstats/devices/1/study\0"
DEVICE_LINK: Final = b"privstats/devices/1/link\0"
DEVICE_ROSTER: Final = b"privstats/devices/1/roster\0"
