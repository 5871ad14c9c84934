"""dbt-tests-adapter, area utils: the macros that packages build on."""

import pytest
from dbt.tests.adapter.utils import fixture_get_intervals_between
from dbt.tests.adapter.utils.data_types import test_type_float, test_type_int
from dbt.tests.adapter.utils.data_types.test_type_bigint import BaseTypeBigInt
from dbt.tests.adapter.utils.data_types.test_type_boolean import BaseTypeBoolean
from dbt.tests.adapter.utils.data_types.test_type_float import BaseTypeFloat
from dbt.tests.adapter.utils.data_types.test_type_int import BaseTypeInt
from dbt.tests.adapter.utils.data_types.test_type_numeric import BaseTypeNumeric
from dbt.tests.adapter.utils.data_types.test_type_string import BaseTypeString
from dbt.tests.adapter.utils.data_types.test_type_timestamp import BaseTypeTimestamp
from dbt.tests.adapter.utils.test_any_value import BaseAnyValue
from dbt.tests.adapter.utils.test_array_append import BaseArrayAppend
from dbt.tests.adapter.utils.test_array_concat import BaseArrayConcat
from dbt.tests.adapter.utils.test_array_construct import BaseArrayConstruct
from dbt.tests.adapter.utils.test_bool_or import BaseBoolOr
from dbt.tests.adapter.utils.test_cast import BaseCast
from dbt.tests.adapter.utils.test_cast_bool_to_text import BaseCastBoolToText
from dbt.tests.adapter.utils.test_concat import BaseConcat
from dbt.tests.adapter.utils.test_current_timestamp import BaseCurrentTimestampAware
from dbt.tests.adapter.utils.test_date import BaseDate
from dbt.tests.adapter.utils.test_date_spine import BaseDateSpine
from dbt.tests.adapter.utils.test_date_trunc import BaseDateTrunc
from dbt.tests.adapter.utils.test_dateadd import BaseDateAdd
from dbt.tests.adapter.utils.test_datediff import BaseDateDiff
from dbt.tests.adapter.utils.test_equals import BaseEquals
from dbt.tests.adapter.utils.test_escape_single_quotes import BaseEscapeSingleQuotesBackslash
from dbt.tests.adapter.utils.test_except import BaseExcept
from dbt.tests.adapter.utils.test_generate_series import BaseGenerateSeries
from dbt.tests.adapter.utils.test_get_intervals_between import BaseGetIntervalsBetween
from dbt.tests.adapter.utils.test_get_powers_of_two import BaseGetPowersOfTwo
from dbt.tests.adapter.utils.test_hash import BaseHash
from dbt.tests.adapter.utils.test_intersect import BaseIntersect
from dbt.tests.adapter.utils.test_last_day import BaseLastDay
from dbt.tests.adapter.utils.test_length import BaseLength
from dbt.tests.adapter.utils.test_listagg import BaseListagg
from dbt.tests.adapter.utils.test_null_compare import BaseMixedNullCompare, BaseNullCompare
from dbt.tests.adapter.utils.test_position import BasePosition
from dbt.tests.adapter.utils.test_replace import BaseReplace
from dbt.tests.adapter.utils.test_right import BaseRight
from dbt.tests.adapter.utils.test_safe_cast import BaseSafeCast
from dbt.tests.adapter.utils.test_source_freshness_custom_info import BaseCalculateFreshnessMethod
from dbt.tests.adapter.utils.test_split_part import BaseSplitPart
from dbt.tests.adapter.utils.test_string_literal import BaseStringLiteral
from dbt.tests.adapter.utils.test_timestamps import BaseCurrentTimestamps
from dbt.tests.adapter.utils.test_validate_sql import BaseValidateSqlMethod


def column_type(column: str, type_text: str) -> str:
    """Properties of the seed `expected`."""
    return f"seeds: [{{name: expected, config: {{column_types: {{{column}: {type_text}}}}}}}]"


class TestTypeBigInt(BaseTypeBigInt):
    """TypeBigInt."""


class TestTypeBoolean(BaseTypeBoolean):
    """TypeBoolean."""


class TestTypeFloat(BaseTypeFloat):
    """type_float(); a seed's fractions are double unless column_types says otherwise."""

    @pytest.fixture(scope="class")
    def seeds(self):
        """With the type that is compared."""
        return {
            "expected.csv": test_type_float.seeds__expected_csv,
            "expected.yml": column_type("float_col", "float"),
        }


class TestTypeInt(BaseTypeInt):
    """type_int(); a seed's whole numbers are bigint unless column_types says otherwise."""

    @pytest.fixture(scope="class")
    def seeds(self):
        """With the type that is compared."""
        return {
            "expected.csv": test_type_int.seeds__expected_csv,
            "expected.yml": column_type("int_col", "int"),
        }


class TestTypeNumeric(BaseTypeNumeric):
    """TypeNumeric."""


class TestTypeString(BaseTypeString):
    """TypeString."""


class TestTypeTimestamp(BaseTypeTimestamp):
    """TypeTimestamp."""


class TestAnyValue(BaseAnyValue):
    """AnyValue."""


class TestArrayAppend(BaseArrayAppend):
    """ArrayAppend."""


class TestArrayConcat(BaseArrayConcat):
    """ArrayConcat."""


class TestArrayConstruct(BaseArrayConstruct):
    """ArrayConstruct."""


class TestBoolOr(BaseBoolOr):
    """BoolOr."""


class TestCast(BaseCast):
    """Cast."""


class TestCastBoolToText(BaseCastBoolToText):
    """CastBoolToText."""


class TestConcat(BaseConcat):
    """Concat."""


class TestCurrentTimestampAware(BaseCurrentTimestampAware):
    """CurrentTimestampAware."""


class TestDate(BaseDate):
    """Date."""


class TestDateSpine(BaseDateSpine):
    """DateSpine."""


class TestDateTrunc(BaseDateTrunc):
    """DateTrunc."""


class TestDateAdd(BaseDateAdd):
    """DateAdd."""


class TestDateDiff(BaseDateDiff):
    """DateDiff."""


class TestEquals(BaseEquals):
    """Equals."""


class TestEscapeSingleQuotesBackslash(BaseEscapeSingleQuotesBackslash):
    """EscapeSingleQuotesBackslash."""


class TestExcept(BaseExcept):
    """Except."""


class TestGenerateSeries(BaseGenerateSeries):
    """GenerateSeries."""


class TestGetIntervalsBetween(BaseGetIntervalsBetween):
    """get_intervals_between()."""

    @pytest.fixture(scope="class")
    def models(self):
        """Dates as Spark reads them: '09/01/2023' is no date there, in no mode."""
        iso = fixture_get_intervals_between.models__test_get_intervals_between_sql
        iso = iso.replace("'09/01/2023'", "'2023-09-01'").replace("'09/12/2023'", "'2023-09-12'")
        return {
            "test_get_intervals_between.yml": fixture_get_intervals_between.models__test_get_intervals_between_yml,
            "test_get_intervals_between.sql": iso,
        }


class TestGetPowersOfTwo(BaseGetPowersOfTwo):
    """GetPowersOfTwo."""


class TestHash(BaseHash):
    """Hash."""


class TestIntersect(BaseIntersect):
    """Intersect."""


class TestLastDay(BaseLastDay):
    """LastDay."""


class TestLength(BaseLength):
    """Length."""


class TestListagg(BaseListagg):
    """Listagg."""


class TestMixedNullCompare(BaseMixedNullCompare):
    """MixedNullCompare."""


class TestNullCompare(BaseNullCompare):
    """NullCompare."""


class TestPosition(BasePosition):
    """Position."""


class TestReplace(BaseReplace):
    """Replace."""


class TestRight(BaseRight):
    """Right."""


class TestSafeCast(BaseSafeCast):
    """SafeCast."""


class TestCalculateFreshnessMethod(BaseCalculateFreshnessMethod):
    """CalculateFreshnessMethod."""


class TestSplitPart(BaseSplitPart):
    """SplitPart."""


class TestStringLiteral(BaseStringLiteral):
    """StringLiteral."""


class TestCurrentTimestamps(BaseCurrentTimestamps):
    """The SQL and the types of the three macros."""

    @pytest.fixture(scope="class")
    def expected_sql(self):
        """Spark's function."""
        return """
            select current_timestamp() as current_timestamp,
                   current_timestamp::timestamp as current_timestamp_in_utc_backcompat,
                   current_timestamp::timestamp as current_timestamp_backcompat
        """

    @pytest.fixture(scope="class")
    def expected_schema(self):
        """Spark's type."""
        names = ("current_timestamp", "current_timestamp_in_utc_backcompat", "current_timestamp_backcompat")
        return dict.fromkeys(names, "timestamp")


class TestValidateSqlMethod(BaseValidateSqlMethod):
    """ValidateSqlMethod."""
