"""The OpenAPI document, as programs of others read it: a fuzzer, and a generator of clients."""

from __future__ import annotations

import importlib
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.broker import ADMIN_TOKEN

pytestmark = pytest.mark.hermesd("the HTTP API")

TOOLS = Path(sys.executable).parent

# A folder and a client that exist, so that no route is left at its first error. Not every request
# that fits the document is taken where a query may hold a space, which the fuzzer writes as `+`,
# and where a schema cannot say that the order in the body must be that of the path, or that bounds
# are for publishers alone, nor that a key belongs to one message, nor which times are still to come,
# nor what an IP address is, nor that a broker has users and rules, nor that a push has at least one
# tag, and a change of tags none twice, nor that a query asks about a topic or a message,
# nor that a page of this run of the broker gave a cursor.
SCHEMATHESIS = """
[parameters]
directory = {directory}
id = {client}
tag = "store-17"

[[operations]]
include-path-regex = "^/v1/(publish|messages|arrivals|devices(/(resume|retry))?|wakes|clients(/.*/(tags|device|device/(test|resume|retry)|explain))?|tags.*|pushes|tokens|bans|lockouts|users.*|access-rules|retained.*|receivers|config|orders/.*|scheduled.*|subscriptions)$"
checks.positive_data_acceptance.enabled = false
"""


@pytest.mark.timeout(210)
def test_every_route_behaves_as_the_document_says(start_broker, client, names, tmp_path):
    """Requests that fit the document, and some that do not quite, and every answer compared with it.

    The fuzzer cannot write the lines of a batch or an import (application/x-ndjson), and waits for
    the end of an answer, which GET /v1/events has none of and GET /v1/trace a late one.
    """
    # It tries each route with a wrong token.
    broker = start_broker(environment={"HERMES_ADMIN_MAX_FAILURES": "1000"})
    client("phone", broker, clean_session=False).disconnect()
    configuration = tmp_path / "schemathesis.toml"
    configuration.write_text(SCHEMATHESIS.format(
        directory=json.dumps(str(broker.data.parent / "copy")),
        client=json.dumps(names.client("phone")),
    ))
    done = subprocess.run(
        [TOOLS / "schemathesis", "--config-file", configuration, "--no-color", "run",
         f"{broker.admin_url}/v1/openapi.json", "--header", f"Authorization: Bearer {ADMIN_TOKEN}",
         "--generation-deterministic", "--phases", "coverage,fuzzing", "--max-examples", "10",
         "--max-time", "80", "--request-timeout", "30",
         # During a drain /readyz answers 503, as it shall.
         "--exclude-path-regex", "/(batch|import|trace|events|drain)$"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    selected = re.search(r"Selected: (\d+)/", done.stdout)
    assert selected and int(selected[1]) >= 26, done.stdout
    assert f"Tested: {selected[1]}\n" in done.stdout, done.stdout


def test_a_generated_client_publishes(broker, api, client, names, tmp_path, monkeypatch):
    """A Python client that a generator made from the document, without a word about Hermes."""
    document = tmp_path / "openapi.json"
    document.write_bytes(api.request("GET", "/v1/openapi.json").body)
    configuration = tmp_path / "generator.yaml"
    configuration.write_text("post_hooks: []\n")
    done = subprocess.run(
        [TOOLS / "openapi-python-client", "generate", "--path", document, "--config", configuration,
         "--meta", "none", "--output-path", tmp_path / "generated_client"],
        capture_output=True, text=True, check=False, timeout=50,
        env={**os.environ, "PYTHONUTF8": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    monkeypatch.syspath_prepend(str(tmp_path))
    generated = importlib.import_module("generated_client")
    routes = {
        name: importlib.import_module(f"generated_client.api.default.{name}")
        for name in ("publish", "publish_message", "publish_order_status", "list_clients",
                     "create_token", "revoke_token", "get_status")
    }
    models = importlib.import_module("generated_client.models")
    types = importlib.import_module("generated_client.types")

    subscriber = client("sub")
    subscriber.subscribe((names.topic("#"), 1))
    caller = generated.AuthenticatedClient(base_url=broker.admin_url, token=ADMIN_TOKEN)
    raw = routes["publish"].sync(
        client=caller, topic=names.topic("raw"), qos=1,
        body=types.File(payload=io.BytesIO(b"\x00raw")),
    )
    assert raw.matched == 1, raw
    message = subscriber.take_message()
    assert (message.topic, message.payload) == (names.topic("raw"), b"\x00raw")

    body = models.MessageRequestType0.from_dict({"topic": names.topic("json"), "payload": "hello"})
    result = routes["publish_message"].sync(client=caller, body=body)
    assert (result.matched, result.durability) == (1, "sync"), result
    assert subscriber.take_message().payload == b"hello"

    wrong = models.MessageRequestType0.from_dict({"topic": "a/#", "payload": "hello"})
    problem = routes["publish_message"].sync(client=caller, body=wrong)
    assert problem.type_ == "urn:hermes:problem:invalid-topic" and problem.fix, problem
    assert routes["get_status"].sync(client=caller).connections >= 1
