"""Client settings in Java's spelling, in librdkafka's, misspelt: what they become, what is refused, what is hidden."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablestore_engine.errors import FixRequest
from tablestore_engine.log.kafka.client_config import ClientConfig
from tablestore_engine.log.kafka.client_keys import KNOWN, SAME_AS, is_client_key
from tablestore_engine.log.kafka.client_translation import check_log_in, parse_jaas, translate_settings
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.log.message_envelope import ChangelogMode
from tablestore_engine.spi import client_settings

SECRET = "S3cr3t/+x9"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=20)


def translate(**settings: str) -> dict[str, str]:
    """Without the prefix, with underscores for dots."""
    given = {"kafka." + key.replace("_", "."): value for key, value in settings.items()}
    found = translate_settings(given, "the test")
    return {key.removeprefix("kafka."): value for key, value in found.items()}


def test_a_file_of_a_java_client() -> None:
    """User, password, trust and sizes of a usual client.properties."""
    assert translate(
        security_protocol="SASL_SSL",
        sasl_mechanism="SCRAM-SHA-512",
        sasl_jaas_config=f'{SCRAM} required username="me" password="{SECRET}";',
        ssl_truststore_type="PEM",
        ssl_truststore_location="/etc/ca.pem",
        ssl_endpoint_identification_algorithm="",
        max_request_size="2000000",
        fetch_max_wait_ms="50",
        send_buffer_bytes="-1",
    ) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "me",
        "sasl.password": SECRET,
        "ssl.ca.location": "/etc/ca.pem",
        "ssl.endpoint.identification.algorithm": "none",
        "message.max.bytes": "2000000",
        "fetch.wait.max.ms": "50",
        "socket.send.buffer.bytes": "0",
    }


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"ssl_truststore_location": "/a/ca.crt"}, {"ssl.ca.location": "/a/ca.crt"}),
        ({"ssl_truststore_type": "PEM", "ssl_truststore_certificates": "C"}, {"ssl.ca.pem": "C"}),
        (
            {"ssl_keystore_type": "PEM", "ssl_keystore_location": "/a/me.pem", "ssl_key_password": "p"},
            {
                "ssl.certificate.location": "/a/me.pem",
                "ssl.key.location": "/a/me.pem",
                "ssl.key.password": "p",
            },
        ),
        (
            {"ssl_keystore_type": "PEM", "ssl_keystore_key": "K", "ssl_keystore_certificate_chain": "C"},
            {"ssl.key.pem": "K", "ssl.certificate.pem": "C"},
        ),
        (
            {
                "ssl_keystore_type": "PKCS12",
                "ssl_keystore_location": "/a/me.p12",
                "ssl_keystore_password": "p",
            },
            {"ssl.keystore.location": "/a/me.p12", "ssl.keystore.password": "p"},
        ),
        ({"ssl_keystore_location": "/a/me.p12"}, {"ssl.keystore.location": "/a/me.p12"}),
        ({"sasl_mechanisms": "PLAIN"}, {"sasl.mechanism": "PLAIN"}),
        (
            {
                "sasl_jaas_config": "x.OAuthBearerLoginModule required clientId='i' clientSecret='s' scope='r';",
                "sasl_oauthbearer_token_endpoint_url": "https://h/t",
            },
            {
                "sasl.oauthbearer.client.id": "i",
                "sasl.oauthbearer.client.secret": "s",
                "sasl.oauthbearer.scope": "r",
                "sasl.oauthbearer.token.endpoint.url": "https://h/t",
                "sasl.oauthbearer.method": "oidc",
            },
        ),
        (
            {
                "sasl_jaas_config": 'com.sun.Krb5LoginModule required useKeyTab=true keyTab="/k" principal="p@R";'
            },
            {"sasl.kerberos.keytab": "/k", "sasl.kerberos.principal": "p@R"},
        ),
    ],
)
def test_what_can_be_translated_is(given: dict[str, str], wanted: dict[str, str]) -> None:
    """Stores in PEM and PKCS#12, log-ins of four kinds, second names."""
    assert translate(**given) == wanted


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        ({"ssl_truststore_location": "/a/trust.jks"}, "TS1755", "keytool -exportcert -rfc -keystore /a/trust.jks"),
        ({"ssl_truststore_location": "/a/t", "ssl_truststore_type": "PKCS12"}, "TS1755", "kafka.ssl.ca.location"),
        ({"ssl_truststore_type": "JKS"}, "TS1755", "kafka.ssl.ca.location"),
        ({"ssl_truststore_password": SECRET}, "TS1755", "leave it out"),
        ({"ssl_keystore_location": "/a/me.jks"}, "TS1755", "-deststoretype PKCS12"),
        ({"ssl_keystore_location": "/a/me", "ssl_keystore_type": "JKS"}, "TS1755", "-deststoretype PKCS12"),
        ({"ssl_keystore_type": "PEM", "ssl_keystore_password": SECRET}, "TS1755", "kafka.ssl.key.password"),
        ({"value_serializer": "x.Y"}, "TS1755", "log.format"),
        ({"sasl_login_callback_handler_class": "x.Y"}, "TS1755", "sasl.oauthbearer.method=oidc"),
        ({"sasl_pasword": SECRET}, "TS1754", "kafka.sasl.password"),
        ({"SASL.Password": SECRET}, "TS1754", "kafka.sasl.password"),
        ({"securty_protocol": "SSL"}, "TS1754", "kafka.security.protocol"),
        ({"error_cb": "x"}, "TS1754", "nearest"),
        ({"sasl_jaas_config": f"{SCRAM} required username=me password={SECRET}"}, "TS1756", "sasl.username"),
        ({"sasl_jaas_config": f'{SCRAM} required password="{SECRET};'}, "TS1756", "sasl.username"),
        ({"sasl_jaas_config": f'x.AwsModule required awsSecret="{SECRET}";'}, "TS1756", "AwsModule"),
        ({"sasl_jaas_config": SECRET}, "TS1756", "not shown"),
        ({"sasl_jaas_config": f'{SCRAM} required {SECRET}="x";'}, "TS1755", "not shown"),
        (
            {"sasl_jaas_config": f'{SCRAM} required password="{SECRET}";', "sasl_mechanism": "PLAIN"},
            "TS1757", "SCRAM-SHA-512",
        ),
        (
            {"sasl_jaas_config": f'{SCRAM} required password="{SECRET}";', "sasl_password": "other"},
            "TS1757", "say it once",
        ),
        ({"max_request_size": "1", "message_max_bytes": "2"}, "TS1757", "twice"),
    ],
)  # fmt: skip
def test_what_cannot_be_translated_is_refused(given: dict[str, str], code: str, said: str) -> None:
    """By its code, with where it stands and what to write instead, and without a value that may be a secret."""
    with pytest.raises(FixRequest) as refused:
        translate(**given)
    assert refused.value.code == code
    assert said in f"{refused.value.why} {refused.value.fix}"
    assert "the test" in refused.value.what
    assert SECRET not in str(refused.value)
    assert SECRET not in repr(refused.value)


def test_a_client_setting_without_the_prefix_is_not_passed_over() -> None:
    """In a profile `security.protocol` would be ignored, and rows sent in clear: TS1754 says how it is written."""
    with pytest.raises(FixRequest, match="TS1754") as refused:
        client_settings({}, profile={"security.protocol": "SSL"})
    assert "kafka.security.protocol" in refused.value.fix
    assert "profile" in refused.value.what
    assert client_settings({}, profile={"registry.url": "x"}) == {"registry.url": "x"}


def test_a_later_source_wins_under_whatever_name(tmp_path: object) -> None:
    """The profile has Java's spelling, the call librdkafka's: one setting each, the call's."""
    profile = {
        "kafka.sasl.jaas.config": f'{SCRAM} required username="a" password="b";',
        "kafka.max.request.size": "1000",
        "kafka.sasl.mechanisms": "SCRAM-SHA-256",
    }
    said = {
        "kafka.sasl.password": "c",
        "kafka.message.max.bytes": "2000",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
    }
    assert client_settings({}, profile=profile, said=said) == {
        "kafka.sasl.username": "a",
        "kafka.sasl.password": "c",
        "kafka.message.max.bytes": "2000",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
    }


@given(st.dictionaries(st.sampled_from(sorted({*KNOWN, *SAME_AS})), TEXT))
def test_translating_twice_is_translating_once(settings: dict[str, str]) -> None:
    """The adapter hands its settings to an engine, which translates them again."""
    try:
        once = translate_settings({f"kafka.{key}": value for key, value in settings.items()}, "x")
    except FixRequest:
        return
    assert translate_settings(once, "x") == once


@given(st.text(max_size=30))
def test_every_name_has_an_answer(key: str) -> None:
    """Known, translated, or refused with a name that is known: never anything else."""
    found, refused = {}, None
    try:
        found = translate_settings({f"kafka.{key}": "1"}, "x")
    except FixRequest as error:
        refused = error
    assert set(found) <= {f"kafka.{name}" for name in KNOWN}
    if refused is not None and refused.code == "TS1754":
        assert is_client_key(refused.fix.partition("kafka.")[2].partition(",")[0])


def _quoted(text: str, mark: str) -> str:
    for char in ("\\", mark):
        text = text.replace(char, "\\" + char)
    return mark + text + mark


@given(
    st.dictionaries(st.from_regex(r"[a-zA-Z]{1,8}", fullmatch=True), TEXT, max_size=4), st.sampled_from("\"'")
)
def test_a_jaas_text_gives_back_what_was_quoted(options: dict[str, str], mark: str) -> None:
    """Whatever stands in quotes, with quotes and backslashes escaped."""
    told = " ".join(f"{key}={_quoted(value, mark)}" for key, value in options.items())
    module = parse_jaas(f"a.b.M required {told} ;\n")
    assert module is not None
    assert (module.name, dict(module.options)) == ("M", options)
    assert all(value not in repr(module) for value in options.values() if len(value) > 3)


@given(st.text(max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    """A module or None."""
    module = parse_jaas(text)
    assert module is None or module.name == module.name.rpartition(".")[2]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('M required a="x\\ty\\101\\"";', {"a": 'x\tyA"'}),
        ("M REQUIRED a=b.c/d+e;", {"a": "b.c/d+e"}),
        ("M required;", {}),
        ("M required a=b", None),
        ("M required a=b; N required;", None),
        ("M required a=;", None),
        ("M required a=b a=c;", None),
        ("M sometimes a=b;", None),
        ("", None),
        (";", None),
    ],
)
def test_jaas_texts(text: str, wanted: dict[str, str] | None) -> None:
    """As Java reads them; two modules, or a half one, are none."""
    module = parse_jaas(text)
    assert (None if module is None else dict(module.options)) == wanted


@pytest.mark.parametrize("protocol", ["SASL_SSL", "sasl_plaintext"])
def test_a_log_in_without_a_mechanism(protocol: str) -> None:
    """librdkafka would try Kerberos: TS1757 names the mechanisms."""
    with pytest.raises(FixRequest, match="TS1757") as refused:
        check_log_in({"security.protocol": protocol})
    assert "SCRAM-SHA-512" in refused.value.fix
    check_log_in({"security.protocol": protocol, "sasl.mechanism": "PLAIN"})
    check_log_in({"security.protocol": "SSL"})


@given(
    st.sampled_from(
        sorted(key for key in KNOWN if any(w in key for w in ("pass", "secret", "key.pem", "private")))
    )
)
def test_no_credential_survives_redaction(key: str) -> None:
    """Every setting of the client that holds a secret is taken out of texts, and none is in a repr."""
    settings = LogSettings("t", "u", "t", 1, ChangelogMode.UPSERT, ClientConfig({key: SECRET}))
    is_file = key.endswith((".file", ".location"))
    assert is_file or SECRET not in settings.client.redact(f"the client said {SECRET}.")
    assert SECRET not in repr(settings)
