"""Messages of DAP and their encryption, beside RFC 9180 and the draft, written again here."""

import hashlib
import hmac
import struct

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from turnout import _core
from turnout.errors import CorruptDataError, InvalidValueError

TASK_ID = bytes(range(32))
IDS = [bytes([number] * 16) for number in range(1, 5)]


def opaque(bytes_of_length: int, data: bytes) -> bytes:
    return len(data).to_bytes(bytes_of_length, "big") + data


def extract(salt: bytes, secret: bytes) -> bytes:
    return hmac.digest(salt or bytes(32), secret, "sha256")


def expand(key: bytes, info: bytes, length: int) -> bytes:
    blocks = b""
    block = b""
    for number in range(1, -(-length // 32) + 1):
        block = hmac.digest(key, block + info + bytes([number]), "sha256")
        blocks += block
    return blocks[:length]


def key_and_nonce(shared: bytes, enc: bytes, public: bytes, info: bytes) -> tuple[bytes, bytes]:
    """The key schedule of RFC 9180, sections 4.1 and 5.1, in base mode."""

    def labeled(suite: bytes):
        def extracting(salt: bytes, label: bytes, secret: bytes) -> bytes:
            return extract(salt, b"HPKE-v1" + suite + label + secret)

        def expanding(key: bytes, label: bytes, info: bytes, length: int) -> bytes:
            return expand(
                key, struct.pack(">H", length) + b"HPKE-v1" + suite + label + info, length
            )

        return extracting, expanding

    extracting, expanding = labeled(b"KEM\x00\x20")
    secret = expanding(extracting(b"", b"eae_prk", shared), b"shared_secret", enc + public, 32)
    extracting, expanding = labeled(b"HPKE\x00\x20\x00\x01\x00\x01")
    context = b"\0" + extracting(b"", b"psk_id_hash", b"") + extracting(b"", b"info_hash", info)
    secret = extracting(secret, b"secret", b"")
    return expanding(secret, b"key", context, 16), expanding(secret, b"base_nonce", context, 12)


def opened(key: _core.HpkeKey, ciphertext: bytes, info: bytes, aad: bytes) -> bytes:
    private = X25519PrivateKey.from_private_bytes(key.private_key())
    public = private.public_key().public_bytes_raw()
    assert key.config == bytes([key.config_id]) + bytes.fromhex("002000010001") + opaque(2, public)
    assert ciphertext[0] == key.config_id
    enc, payload = ciphertext[3:35], ciphertext[39:]
    assert ciphertext[1:3] == b"\0\x20"
    assert ciphertext[35:39] == struct.pack(">I", len(payload))
    shared = private.exchange(X25519PublicKey.from_public_bytes(enc))
    secret, nonce = key_and_nonce(shared, enc, public, info)
    return AESGCM(secret).decrypt(nonce, payload, aad)


def sealed(key: _core.HpkeKey, plaintext: bytes, info: bytes, aad: bytes) -> bytes:
    private, public = X25519PrivateKey.generate(), key.config[-32:]
    enc = private.public_key().public_bytes_raw()
    shared = private.exchange(X25519PublicKey.from_public_bytes(public))
    secret, nonce = key_and_nonce(shared, enc, public, info)
    payload = AESGCM(secret).encrypt(nonce, plaintext, aad)
    return bytes([key.config_id]) + opaque(2, enc) + opaque(4, payload)


@pytest.fixture(scope="module")
def keys() -> list[_core.HpkeKey]:
    return [_core.HpkeKey.generate(config_id) for config_id in (10, 11, 12)]


@pytest.fixture(scope="module")
def task() -> _core.DapTask:
    return a_task()


def a_task(batch_mode: str = "time_interval") -> _core.DapTask:
    return _core.DapTask(
        TASK_ID,
        leader="https://leader.example/",
        helper="https://helper.example/dap/",
        time_precision=300,
        min_batch_size=100,
        batch_mode=batch_mode,
        vdaf_type=5,
        vdaf_configuration=_core.write_vdaf_configuration(
            5, length=30, chunk_length=6, max_weight=1
        ),
        task_info=b"lunch",
        interval=(1000, 50),
    )


def configuration(mode: int) -> bytes:
    return (
        opaque(1, b"lunch")
        + opaque(2, b"https://leader.example/")
        + opaque(2, b"https://helper.example/dap/")
        + struct.pack(">QQB", 300, 100, mode)
        + opaque(2, b"")
        + struct.pack(">I", 5)
        + opaque(2, struct.pack(">IIQ", 30, 6, 1))
        + opaque(2, struct.pack(">H", 1) + opaque(2, struct.pack(">QQ", 1000, 50)))
    )


def metadata(report_id: bytes, time: int, extensions: bytes = b"") -> bytes:
    return report_id + struct.pack(">Q", time) + opaque(2, extensions)


def input_share_aad(
    report_id: bytes, time: int, public_share: bytes, extensions: bytes = b""
) -> bytes:
    return (
        TASK_ID + configuration(1) + metadata(report_id, time, extensions) + opaque(4, public_share)
    )


def upload(task: _core.DapTask, keys: list[_core.HpkeKey]) -> bytes:
    count = len(IDS)
    return _core.seal_reports(
        task,
        keys[0].config,
        keys[1].config,
        ids=IDS,
        times=[1000 + number for number in range(count)],
        public_shares=[b"public"] * count,
        leader_shares=[b"leader's %d" % number for number in range(count)],
        helper_shares=[b"helper's %d" % number for number in range(count)],
    )


def test_a_task_is_what_its_fields_say(task):
    for mode, name in ((1, "time_interval"), (2, "leader_selected")):
        other = a_task(name)
        assert other.to_bytes() == configuration(mode)
        again = _core.DapTask.read(TASK_ID, configuration(mode))
        assert again == other
        assert (again == task) == (mode == 1)
    assert (task.id, task.leader, task.helper) == (
        TASK_ID,
        "https://leader.example/",
        "https://helper.example/dap/",
    )
    assert (task.time_precision, task.min_batch_size, task.task_info) == (300, 100, b"lunch")
    assert (task.batch_mode, task.interval) == ("time_interval", (1000, 50))
    assert task.context == b"dap-18" + TASK_ID
    parameters = _core.read_vdaf_configuration(task.vdaf_type, task.vdaf_configuration)
    assert parameters == {"length": 30, "chunk_length": 6, "max_weight": 1}


def test_reports_are_encoded_and_encrypted_as_the_draft_says(task, keys):
    data = upload(task, keys)
    reports = _core.DapReports(data)
    assert len(reports) == 4
    assert reports.ids == IDS
    assert reports.times == [1000, 1001, 1002, 1003]
    assert reports.public_shares == [b"public"] * 4
    assert reports.leader_config_ids == [10] * 4
    assert b"".join(reports.encoded) == data
    for number, (report, time) in enumerate(zip(reports.encoded, reports.times, strict=True)):
        head = metadata(IDS[number], time) + opaque(4, b"public")
        assert report.startswith(head)
        aad = input_share_aad(IDS[number], time, b"public")
        rest = report.removeprefix(head)
        length = 39 + 16 + 6 + len(b"leader's 0")
        for key, role, share, ciphertext in (
            (keys[0], 2, b"leader's %d" % number, rest[:length]),
            (keys[1], 3, b"helper's %d" % number, rest[length:]),
        ):
            info = b"dap-18 input share\x01" + bytes([role])
            assert opened(key, ciphertext, info, aad) == opaque(2, b"") + opaque(4, share)


def test_shares_that_others_encrypted_open(task, keys):
    aad = input_share_aad(IDS[0], 1049, b"p")
    plaintext = opaque(2, b"") + opaque(4, b"share")
    parts = [
        sealed(key, plaintext, b"dap-18 input share\x01" + role, aad)
        for key, role in zip(keys, (b"\x02", b"\x03"), strict=False)
    ]
    reports = _core.DapReports(metadata(IDS[0], 1049) + opaque(4, b"p") + b"".join(parts))
    assert reports.open(task, keys) == [b"share"]
    request = reports.aggregation_job_init_req([b"first"], key_id=0, batch_id=None)
    assert _core.AggregationJobInitReq(request).open(task, keys[::-1]) == [b"share"]


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ((999, b"", b"", b"share"), "task_not_started"),
        ((1050, b"", b"", b"share"), "task_expired"),
        ((1001, b"\0\x05\0\0", b"", b"share"), "invalid_message"),
        ((1001, b"", b"\xff\0\0\0", b"share"), "invalid_message"),
        ((1001, b"", b"", b""), "invalid_message"),
    ],
)
def test_a_report_is_refused_for_what_it_says(task, keys, said, error):
    time, public, private, share = said
    aad = input_share_aad(IDS[0], time, b"p", public)
    plaintext = opaque(2, private) + opaque(4, share)
    leader = sealed(keys[0], plaintext, b"dap-18 input share\x01\x02", aad)
    data = metadata(IDS[0], time, public) + opaque(4, b"p") + leader + leader
    assert _core.DapReports(data).open(task, keys) == [_core.DAP_REPORT_ERRORS[error]]


def test_a_report_for_another_task_or_key_does_not_open(task, keys):
    reports = _core.DapReports(upload(task, keys))
    refused = [_core.DAP_REPORT_ERRORS["hpke_decrypt_error"]] * 4
    assert reports.open(_core.DapTask.read(bytes(32), task.to_bytes()), keys) == refused
    assert reports.open(a_task("leader_selected"), keys) == refused
    assert reports.open(task, keys[1:]) == refused
    assert reports.open(task, [_core.HpkeKey.generate(10)]) == refused


@pytest.mark.parametrize("dialect", ["dap-18", "janus"])
@pytest.mark.parametrize("batch_id", [None, bytes(range(100, 132))])
def test_an_aggregation_job_is_encoded_as_leader_and_helper_expect(task, keys, dialect, batch_id):
    reports = _core.DapReports(upload(task, keys))
    payloads = [b"first", None, b"third", None]
    request = reports.aggregation_job_init_req(
        payloads, key_id=7, batch_id=batch_id, dialect=dialect
    )
    inits = b""
    for number in (0, 2):
        share = reports.encoded[number]
        head = len(metadata(IDS[0], 0) + opaque(4, b"public"))
        length = 39 + 16 + 6 + len(b"leader's 0")
        inits += share[:head] + share[head + length :] + opaque(4, payloads[number] or b"")
    if dialect == "janus":
        mode = b"\x01" if batch_id is None else b"\x02"
        expected = b"\x07" + opaque(4, b"") + mode + opaque(2, batch_id or b"") + opaque(4, inits)
    else:
        extensions = b"" if batch_id is None else b"\0\x01" + opaque(2, batch_id)
        expected = b"\x07" + opaque(4, b"") + opaque(2, extensions) + inits
    assert request == expected

    read = _core.AggregationJobInitReq(request, dialect=dialect)
    assert (len(read), read.key_id, read.batch_id) == (2, 7, batch_id)
    assert read.aggregation_parameter == b""
    assert read.unsupported_extensions == []
    assert read.ids == [IDS[0], IDS[2]]
    assert read.times == [1000, 1002]
    assert read.public_shares == [b"public"] * 2
    assert read.payloads == [b"first", b"third"]
    assert read.open(task, keys) == [b"helper's 0", b"helper's 2"]

    results = [b"second", None, 6]
    answer = _core.write_aggregation_job_resp(IDS[:3], results, dialect=dialect)
    listed = IDS[0] + b"\0" + opaque(4, b"second") + IDS[1] + b"\x01" + IDS[2] + b"\x02\x06"
    assert answer == (opaque(4, listed) if dialect == "janus" else listed)
    assert _core.read_aggregation_job_resp(answer, dialect=dialect) == (IDS[:3], results)

    more = _core.write_aggregation_job_continue_req(1, IDS[:1], [b"next"], dialect=dialect)
    listed = IDS[0] + opaque(4, b"next")
    assert more == b"\0\x01" + (opaque(4, listed) if dialect == "janus" else listed)
    read_more = _core.read_aggregation_job_continue_req(more, dialect=dialect)
    assert read_more == (1, IDS[:1], [b"next"])


def test_an_aggregation_job_with_a_report_twice_or_a_short_batch_is_refused(task, keys):
    one = _core.DapReports(upload(task, keys)).encoded[0]
    twice = _core.DapReports(one + one)
    request = twice.aggregation_job_init_req([b"x", b"x"], key_id=0, batch_id=None)
    with pytest.raises(CorruptDataError, match="a report is duplicated"):
        _core.AggregationJobInitReq(request)
    head = b"\0" + opaque(4, b"")
    for extensions, reason in (
        (b"\0\x01" + opaque(2, b"short"), "a batch ID must have 32 bytes"),
        (b"\0\x02\0\0" + b"\0\x01" + opaque(2, bytes(32)), "increasing"),
    ):
        with pytest.raises(CorruptDataError, match=reason):
            _core.AggregationJobInitReq(head + opaque(2, extensions))
    read = _core.AggregationJobInitReq(head + opaque(2, b"\0\x09\0\0"))
    assert read.unsupported_extensions == [9]
    assert len(read) == 0


@pytest.mark.parametrize("interval", [None, (1000, 5)])
def test_a_collection_job_is_encoded_and_encrypted_as_the_draft_says(keys, interval):
    task = a_task("leader_selected" if interval is None else "time_interval")
    request = _core.CollectionJobReq.of(interval)
    times = b"" if interval is None else struct.pack(">QQ", *interval)
    mode = b"\x02" if interval is None else b"\x01"
    asked = mode + opaque(2, times) + opaque(4, b"") + opaque(2, b"")
    assert request.to_bytes() == asked
    read = _core.CollectionJobReq(asked)
    assert (read.interval, read.batch_mode) == (interval, task.batch_mode)
    assert read.aggregation_parameter == b""
    assert read.extensions == []

    batch = bytes(range(32)) if interval is None else (1001, 2)
    chosen = batch if isinstance(batch, bytes) else struct.pack(">QQ", *batch)
    checksum = _core.report_checksum(IDS)
    share_request = _core.AggregateShareReq.of(request, batch, 4, checksum)
    sent = asked + mode + opaque(2, chosen) + struct.pack(">Q", 4) + checksum
    assert share_request.to_bytes() == sent
    got = _core.AggregateShareReq(sent)
    assert got.collection_job_req.to_bytes() == asked
    assert got.batch == batch
    assert (got.report_count, got.checksum, got.consistent) == (4, checksum, True)

    aad = TASK_ID + task.to_bytes() + asked
    shares = {}
    for role, code in (("leader", b"\x02"), ("helper", b"\x03")):
        info = b"dap-18 aggregate share" + code + b"\0"
        shares[role] = _core.seal_aggregate_share(task, role, keys[2].config, request, b"sums")
        assert _core.ciphertext_config_id(shares[role]) == 12
        assert opened(keys[2], shares[role], info, aad) == b"sums"
        other = sealed(keys[2], b"of others", info, aad)
        found = _core.open_aggregate_share(task, role, keys[2], request, other)
        assert found == b"of others"
    with pytest.raises(CorruptDataError, match="does not open"):
        _core.open_aggregate_share(task, "leader", keys[2], request, shares["helper"])

    answer = _core.write_collection_job_resp(4, (1000, 3), shares["leader"], shares["helper"])
    assert answer == struct.pack(">QQQ", 4, 1000, 3) + shares["leader"] + shares["helper"]
    found = _core.read_collection_job_resp(answer)
    assert found == (4, (1000, 3), shares["leader"], shares["helper"])


def test_the_checksum_is_that_of_the_draft():
    def xor(one: bytes, other: bytes) -> bytes:
        return bytes(left ^ right for left, right in zip(one, other, strict=True))

    expected = bytes(32)
    for report_id in IDS:
        expected = xor(expected, hashlib.sha256(report_id).digest())
    assert _core.report_checksum(IDS) == expected
    parts = _core.report_checksum(IDS[:1]), _core.report_checksum(IDS[1:])
    assert xor(*parts) == expected
    assert _core.report_checksum(IDS[1:], parts[0]) == expected


def test_upload_errors_and_keys_are_encoded_as_the_draft_says(keys):
    errors = [(IDS[0], 2), (IDS[3], 11)]
    data = IDS[0] + b"\x02" + IDS[3] + b"\x0b"
    assert _core.write_upload_errors(errors) == data
    assert _core.read_upload_errors(data) == errors
    unknown = b"\x01\0\x21\0\x01\0\x01" + opaque(2, bytes(56))
    configs = [unknown, keys[0].config, keys[1].config]
    data = _core.write_hpke_configs(configs)
    assert data == opaque(2, b"".join(configs))
    assert _core.read_hpke_configs(data) == configs
    assert _core.choose_hpke_config(data) == keys[0].config
    with pytest.raises(InvalidValueError, match="KEM 0x0021"):
        _core.choose_hpke_config(_core.write_hpke_configs([unknown]))


def test_the_words_are_those_of_the_draft():
    assert _core.DAP_VERSION == "dap-18"
    assert _core.DAP_MEDIA_TYPES["upload-req"] == "application/ppm-dap;message=upload-req"
    assert len(_core.DAP_MEDIA_TYPES) == 10
    urn = "urn:ietf:params:ppm:dap:error:batchMismatch"
    assert _core.DAP_PROBLEMS["batchMismatch"] == urn
    assert len(_core.DAP_PROBLEMS) == 11
    assert list(_core.DAP_REPORT_ERRORS.values()) == list(range(1, 12))


def test_bytes_that_are_no_message_are_refused(task, keys):
    data = upload(task, keys)
    for wrong in (data[:-1], data + b"\0", b"\xff" * 40):
        with pytest.raises(
            CorruptDataError, match=r"not a valid UploadRequest: .* \(at byte \d+\)"
        ):
            _core.DapReports(wrong)
    with pytest.raises(CorruptDataError, match="unknown batch mode"):
        _core.CollectionJobReq(b"\x03\0\0\0\0\0\0\0\0")
    with pytest.raises(CorruptDataError, match="2\\^64"):
        _core.CollectionJobReq(b"\x01" + opaque(2, b"\xff" * 16) + opaque(4, b"") + opaque(2, b""))
    with pytest.raises(CorruptDataError, match="bytes are left over"):
        _core.CollectionJobReq(b"\x02" + opaque(2, b"x") + opaque(4, b"") + opaque(2, b""))
    with pytest.raises(CorruptDataError, match="list is empty"):
        _core.read_hpke_configs(b"\0\0")
    with pytest.raises(CorruptDataError, match="field is empty"):
        _core.ciphertext_config_id(b"\0\0\0\0\0\0\0")


def test_arguments_that_are_wrong_are_named(task, keys):
    with pytest.raises(InvalidValueError, match="task_id must have 32 bytes, got 3"):
        _core.DapTask.read(b"abc", task.to_bytes())
    with pytest.raises(InvalidValueError, match="batch_mode must be 'time_interval' or"):
        a_task("weekly")
    with pytest.raises(InvalidValueError, match="times must have as many entries as ids, 1, got 0"):
        _core.seal_reports(
            task,
            keys[0].config,
            keys[1].config,
            ids=IDS[:1],
            times=[],
            public_shares=[b""],
            leader_shares=[b"x"],
            helper_shares=[b"x"],
        )
    with pytest.raises(InvalidValueError, match="dialect must be 'dap-18' or 'janus', got 'dap-9'"):
        _core.read_aggregation_job_resp(b"", dialect="dap-9")
    request = _core.CollectionJobReq.of(None)
    with pytest.raises(InvalidValueError, match="role must be 'leader' or 'helper'"):
        _core.seal_aggregate_share(task, "collector", keys[0].config, request, b"x")
    with pytest.raises(InvalidValueError, match="a report error must be 1 to 11, got 12"):
        _core.write_upload_errors([(IDS[0], 12)])
    with pytest.raises(InvalidValueError, match=r"vdaf_type must be 1 \(no parameter\)"):
        _core.write_vdaf_configuration(5, length=3)


def test_private_keys_are_not_shown_and_belong_to_their_configuration(keys):
    key = keys[0]
    assert repr(key) == "HpkeKey(config_id=10, secret)"
    again = _core.HpkeKey(key.config, key.private_key())
    assert (again.config_id, again.config) == (10, key.config)
    with pytest.raises(InvalidValueError, match="private key of its configuration") as refused:
        _core.HpkeKey(key.config, keys[1].private_key())
    assert keys[1].private_key().hex() not in str(refused.value)
