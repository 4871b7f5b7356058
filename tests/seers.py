"""Select README's tests: ``python -m pytest -m seer`` runs what sees a planted bug, and what a user meets."""

MARK = "seer"

MET = (
    # a session, from clipped records to a head, on real data
    "tests/test_first_light.py::test_digits_without_noise_are_within_a_point_of_scikit_learn",
    # the first command, and what it refuses
    "tests/cli/test_try.py::test_what_is_taken_for_public_comes_first",
    "tests/cli/test_try.py::test_what_cannot_be_tried_is_one_sentence_and_no_file",
    # the privacy officer's page
    "tests/workflows/report/test_privacy_report.py::test_the_page_says_what_is_and_what_is_not_promised",
    # this machine's kernels
    "tests/numerics/test_kernels.py::test_what_claims_the_same_bits_has_them_on_this_machine",
    # the program that checks certificates
    "tests/review/test_certificate.py::test_a_plan_of_every_kind_is_certified",
    "tests/review/test_forged_certificate.py::test_a_forged_claim_is_refused_by_its_name",
    # files: of other programs, of earlier versions, and those whose writing is interrupted
    "tests/exports/test_exports.py::test_what_a_program_exports_is_read_as_it_was_meant",
    "tests/files/test_envelope.py::test_a_vector_of_every_version_is_read_and_written_again_as_it_was",
    "tests/files/test_atomic.py",
    # what a schema sends
    "tests/schema/test_schema.py",
)
"""What no planted bug needs, and a first run should show: a room or two each, as a user meets them."""


def nodes() -> frozenset[str]:
    """Return each test, or whole file, that must fail where a bug of the catalogue is planted, and those of ``MET``.

    The catalogue imports the rooms in which bugs are planted, which takes two seconds: it is read where it is needed.
    """
    from tests.mutation.catalogue import MUTANTS

    return frozenset([*MET, *(node.partition("[")[0] for mutant in MUTANTS.values() for node in mutant.tests)])
