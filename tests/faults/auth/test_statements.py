"""Each statement of the specification about authorization that a server keeps has an attack.

So has each published vulnerability of other servers of MCP that concerns their callers. A row
names the tests; a test that is renamed or removed fails here.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from trunkline.spec.requirements import requirements

HERE = "tests/faults/auth"
GATE, TWO, LOGIN = f"{HERE}/test_gate.py", f"{HERE}/test_two_principals.py", f"{HERE}/test_login.py"
CHALLENGES, SCOPES = f"{HERE}/test_challenges.py", f"{HERE}/test_scope_challenges.py"
BYPASSES, PROOFS = f"{HERE}/test_bypasses.py", f"{HERE}/test_dpop_urls.py"
CANARIES, GUARDS = f"{HERE}/test_canaries.py", "tests/unit/server/access/test_guards.py"
JWT, JWKS = (
    "tests/unit/auth/server/verifiers/test_jwt_bearer.py",
    "tests/unit/auth/server/verifiers/test_jwks.py",
)

STATEMENTS: dict[str, list[tuple[str, str]]] = {
    "SEC-04": [(GATE, "test_unauthenticated_requests_get_the_same_answer_on_every_route")],
    "SEC-06": [
        (TWO, "test_session_of_another_principal_is_not_found"),
        (f"{HERE}/test_envelope_sessions.py", "test_a_session_belongs_to_the_first_principal"),
    ],
    "SEC-10": [
        (GATE, "test_the_same_head_is_decided_each_time"),
        (TWO, "test_session_of_another_principal_is_not_found"),
    ],
    "SEC-11": [
        (GATE, "test_a_token_for_another_server_is_refused"),
        (JWT, "test_a_token_for_another_audience_is_refused"),
        (
            "tests/unit/auth/server/test_config.py",
            "test_tokens_of_other_servers_are_accepted_only_if_the_file_says_so",
        ),
    ],
    "SEC-12": [
        (f"{HERE}/test_passthrough.py", "test_a_client_inside_a_handler_does_not_send_the_token")
    ],
    "SEC-13": [
        (GATE, "test_unauthenticated_requests_get_the_same_answer_on_every_route"),
        (f"{HERE}/test_expiry.py", "test_a_stream_opened_by_get_ends"),
    ],
    "SEC-14": [(GATE, "test_a_token_elsewhere_than_in_the_header_is_not_read")],
    "SEC-15": [(GATE, "test_unauthenticated_requests_get_the_same_answer_on_every_route")],
    "SEC-16": [(LOGIN, "test_a_server_that_does_not_announce_pkce_is_not_used")],
    "SEC-17": [(LOGIN, "test_metadata_of_another_resource_ends_the_login")],
    "SEC-18": [
        (LOGIN, "test_metadata_of_another_issuer_is_not_used"),
        (JWKS, "test_metadata_of_another_issuer_is_void"),
    ],
    "SEC-19": [(LOGIN, "test_a_response_of_another_issuer_is_not_acted_on")],
    "SEC-20": [(LOGIN, "test_a_server_that_names_another_issuer_does_not_get_the_secret")],
    "SEC-21": [(LOGIN, "test_an_endpoint_of_a_bad_url_is_not_asked")],
    "SEC-22": [(LOGIN, "test_the_listener_takes_one_response_with_the_right_state")],
    "SEC-23": [(LOGIN, "test_a_credential_is_in_no_recording_of_the_traffic")],
    "SEC-26": [(LOGIN, "test_a_public_server_cannot_send_the_client_into_a_private_network")],
    "SEC-27": [(LOGIN, "test_a_bad_url_is_not_handed_to_a_browser")],
    "SEC-28": [
        (SCOPES, "test_missing_scopes_are_403_with_all_scopes_of_the_operation_at_once"),
        (LOGIN, "test_a_server_that_is_never_content_gets_few_logins"),
    ],
    "SEC-29": [
        (
            "tests/unit/auth/server/test_resource_server.py",
            "test_settings_that_make_no_sense_are_refused",
        )
    ],
    "SEC-30": [
        (SCOPES, "test_scopes_that_suffice_and_that_imply_others_are_served"),
        (GUARDS, "test_a_scope_that_implies_others_suffices"),
    ],
    "SEC-31": [(TWO, "test_request_state_of_another_principal_is_refused_like_a_forged_one")],
    "SEC-32": [(TWO, "test_request_state_of_another_principal_is_refused_like_a_forged_one")],
    "SEC-34": [
        (TWO, "test_a_task_does_not_exist_for_another"),
        (SCOPES, "test_a_retry_with_its_state_is_checked_again"),
    ],
    "SEC-35": [
        (TWO, "test_result_cache_is_separate_for_each_principal"),
        (BYPASSES, "test_a_cached_result_is_not_for_a_token_without_the_scopes"),
        (GUARDS, "test_a_guarded_resource_is_never_cached_by_shared_caches"),
    ],
    "SEC-36": [(TWO, "test_a_task_of_a_session_does_not_exist_for_another")],
    "SEC-37": [
        (TWO, "test_a_task_does_not_exist_for_another"),
        (TWO, "test_the_question_of_a_task_is_not_answered_by_another"),
    ],
    "SEC-41": [
        (GUARDS, "test_a_caller_without_the_scopes_is_refused_before_the_handler"),
        (f"{HERE}/test_tenants.py", "test_a_rate_of_a_tenant_is_429_for_all_of_its_principals"),
    ],
    "SEC-44": [
        (BYPASSES, "test_a_template_that_does_not_take_a_name_does_not_open_that_of_another")
    ],
    "SEC-46": [(GUARDS, "test_allow_of_a_prompt_and_of_a_raw_tool_get_their_arguments")],
    "SEC-47": [(SCOPES, "test_a_completion_and_a_stream_of_changes_follow_the_same_rules")],
    "SEC-48": [
        (CANARIES, "test_tokens_keys_and_proofs_are_shown_nowhere"),
        (CANARIES, "test_a_token_in_the_envelope_of_a_message_is_shown_nowhere"),
    ],
    "SEC-57": [(TWO, "test_a_question_in_a_session_is_not_answered_by_another")],
    "SEC-58": [(TWO, "test_a_question_in_a_session_is_not_answered_by_another")],
    "SEC-60": [(TWO, "test_session_accepts_another_token_of_its_principal")],
}
# What does not belong to a server or a client of this library, and why.
ELSEWHERE = {
    "SEC-24": "it has no authorization server that acts for others: there is no consent to skip",
    "SEC-25": "the same",
}
# Of other implementations, by the identifier they were published under.
ADVISORIES: dict[str, list[tuple[str, str]]] = {
    "CVE-2026-52869": [(TWO, "test_session_of_another_principal_is_not_found")],
    "CVE-2026-52870": [
        (TWO, "test_a_task_does_not_exist_for_another"),
        (TWO, "test_a_task_of_a_session_does_not_exist_for_another"),
    ],
    "CVE-2026-59950": [(GATE, "test_a_websocket_passes_the_same_gate")],
    "CVE-2026-25536": [
        (TWO, "test_cancels_responses_and_event_ids_reach_only_their_own_session"),
        (TWO, "test_a_websocket_has_the_principal_of_its_handshake"),
    ],
    "CVE-2025-53366": [(CHALLENGES, "test_a_verifier_cannot_break_the_header_with_its_words")],
    "GHSA-5h2m-4q8j-pqpj": [(GATE, "test_a_token_for_another_server_is_refused")],
    "GHSA-c2jp-c369-7pvx": [
        (f"{HERE}/test_passthrough.py", "test_a_client_inside_a_handler_does_not_send_the_token")
    ],
    "python-sdk #3358": [(LOGIN, "test_an_open_redirect_does_not_carry_the_token")],
    "CVE-2025-6514": [(LOGIN, "test_the_browser_gets_the_url_as_one_argument")],
    "CVE-2025-58444": [(LOGIN, "test_a_bad_url_is_not_handed_to_a_browser")],
    "CVE-2026-32871": [(LOGIN, "test_a_public_server_cannot_send_the_client_into_a_private")],
    # Attacks on tokens that have no number of their own.
    "JWT key confusion": [
        (JWT, "test_a_public_key_is_never_a_shared_secret"),
        (JWT, "test_keys_and_urls_in_the_header_are_ignored"),
        (JWT, "test_a_token_without_an_asymmetric_signature_is_refused"),
    ],
    "oversized key sets": [(JWKS, "test_an_oversized_key_set_makes_the_verifier_unavailable")],
    "floods of unknown keys": [
        (JWKS, "test_a_flood_of_unknown_keys_causes_a_bounded_number_of_fetches")
    ],
    "replayed and stolen proofs": [
        (PROOFS, "test_a_proof_is_accepted_once_and_alone"),
        (PROOFS, "test_without_a_proxy_the_url_is_that_of_the_host_header"),
    ],
    "timing of API keys": [
        ("tests/unit/auth/server/verifiers/test_api_keys.py", "test_only_the_hash_of_a_key_is_kept")
    ],
    "header injection": [(CHALLENGES, "test_scopes_that_a_handler_passes_on_cannot_break")],
}
ROWS = [(name, row) for table in (STATEMENTS, ADVISORIES) for name, row in table.items()]


@pytest.mark.parametrize(("name", "row"), ROWS, ids=[name for name, _ in ROWS])
def test_the_attacks_of_a_row_exist(name: str, row: list[tuple[str, str]]) -> None:
    assert row
    for path, test in row:
        text = (Path(__file__).parents[3] / path).read_text()
        assert text.count(f"def {test}") == 1, (path, test)


def test_every_statement_about_authorization_has_a_row_or_a_reason() -> None:
    wanted = {f"SEC-{number:02}" for number in (*range(10, 33), *range(34, 38))}
    assert wanted == {id for id in (*STATEMENTS, *ELSEWHERE) if "SEC-10" <= id <= "SEC-37"}
    assert not STATEMENTS.keys() & ELSEWHERE.keys()
    for id in (*STATEMENTS, *ELSEWHERE):
        assert requirements(ref=id), id
