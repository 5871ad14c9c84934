"""Which jars are Hadoop's S3 connector for a pyspark."""

from __future__ import annotations

import pytest

from tablestore_engine.devservers.hadoop_jars import hadoop_release, s3_bundle
from tablestore_engine.errors import FixRequest


def test_connector_fits_the_hadoop_of_the_installed_pyspark() -> None:
    """The release is read from pyspark's own client jar, and the connector is of just that release."""
    bundle = s3_bundle(hadoop_release())
    assert ("org.apache.hadoop", "hadoop-aws", hadoop_release()) in bundle.modules
    assert bundle.folder.name == f"hadoop-aws-{hadoop_release()}"
    assert ("software.amazon.awssdk", "bundle") in bundle.left_out


def test_unknown_release_of_hadoop_is_refused_before_a_download() -> None:
    """A connector of another release would fail in the middle of a query: TS1943 says what to add by hand."""
    with pytest.raises(FixRequest, match="TS1943") as caught:
        s3_bundle("2.7.1")
    assert "hadoop-aws:2.7.1" in caught.value.fix
