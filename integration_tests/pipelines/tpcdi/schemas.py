"""Columns and keys of the tables that daily files are loaded into."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

_NUMBER, _TEXT, _DAY, _MOMENT, _YES = pa.int64(), pa.string(), pa.date32(), pa.timestamp("us"), pa.bool_()
_MONEY, _RATE = pa.decimal128(10, 2), pa.decimal128(6, 5)

CUSTOMER_COLUMNS: Mapping[str, pa.DataType] = {
    "tax_id": _TEXT, "last_name": _TEXT, "first_name": _TEXT, "middle_name": _TEXT, "gender": _TEXT, "tier": _NUMBER,
    "dob": _DAY, "address_line1": _TEXT, "address_line2": _TEXT, "postal_code": _TEXT, "city": _TEXT,
    "state_prov": _TEXT, "country": _TEXT, "phone": _TEXT, "email": _TEXT, "lcl_tx_id": _TEXT, "nat_tx_id": _TEXT,
}  # fmt: skip

COLUMNS: Mapping[str, Mapping[str, pa.DataType]] = {
    "batch_date": {"batch_id": _NUMBER, "batch_date": _DAY},
    "calendar": {
        "sk_date_id": _NUMBER, "date_value": _DAY, "calendar_year": _NUMBER, "calendar_qtr": _NUMBER,
        "calendar_month": _NUMBER, "day_of_week": _NUMBER, "is_holiday": _YES,
    },
    "clock": {
        "sk_time_id": _NUMBER, "hour_id": _NUMBER, "minute_id": _NUMBER, "is_market_hours": _YES,
        "is_office_hours": _YES,
    },
    "industry": {"in_id": _TEXT, "in_name": _TEXT, "in_sc_id": _TEXT},
    "status_type": {"st_id": _TEXT, "st_name": _TEXT},
    "tax_rate": {"tx_id": _TEXT, "tx_name": _TEXT, "tx_rate": _RATE},
    "trade_type": {"tt_id": _TEXT, "tt_name": _TEXT, "tt_is_sell": _NUMBER, "tt_is_mrkt": _NUMBER},
    "hr": {
        "employee_id": _NUMBER, "manager_id": _NUMBER, "first_name": _TEXT, "last_name": _TEXT,
        "middle_initial": _TEXT, "job_code": _NUMBER, "branch": _TEXT, "office": _TEXT, "phone": _TEXT,
    },
    "finwire": {"line_id": _NUMBER, "batch_id": _NUMBER, "line": _TEXT},
    "customer_mgmt": {
        "action_id": _NUMBER, "action_type": _TEXT, "action_date": _DAY, "c_id": _NUMBER, **CUSTOMER_COLUMNS,
        "ca_id": _NUMBER, "ca_b_id": _NUMBER, "ca_name": _TEXT, "ca_tax_st": _NUMBER,
    },
    "customer": {
        "cdc_dsn": _NUMBER, "cdc_flag": _TEXT, "batch_id": _NUMBER, "c_id": _NUMBER, "st_id": _TEXT,
        **CUSTOMER_COLUMNS,
    },
    "account": {
        "cdc_dsn": _NUMBER, "cdc_flag": _TEXT, "batch_id": _NUMBER, "ca_id": _NUMBER, "ca_b_id": _NUMBER,
        "ca_c_id": _NUMBER, "ca_name": _TEXT, "ca_tax_st": _NUMBER, "ca_st_id": _TEXT,
    },
    "trade": {
        "t_id": _NUMBER, "t_dts": _MOMENT, "t_st_id": _TEXT, "t_tt_id": _TEXT, "t_is_cash": _YES, "t_s_symb": _TEXT,
        "t_qty": _NUMBER, "t_bid_price": _MONEY, "t_ca_id": _NUMBER, "t_exec_name": _TEXT, "t_trade_price": _MONEY,
        "t_chrg": _MONEY, "t_comm": _MONEY, "t_tax": _MONEY,
    },
    "trade_history": {"th_t_id": _NUMBER, "th_dts": _MOMENT, "th_st_id": _TEXT},
    "cash_transaction": {
        "ct_id": _NUMBER, "ct_ca_id": _NUMBER, "ct_dts": _MOMENT, "ct_amt": _MONEY, "ct_name": _TEXT,
    },
    "holding_history": {
        "hh_h_t_id": _NUMBER, "hh_t_id": _NUMBER, "hh_before_qty": _NUMBER, "hh_after_qty": _NUMBER,
    },
    "watch_history": {"w_c_id": _NUMBER, "w_s_symb": _TEXT, "w_dts": _MOMENT, "w_action": _TEXT},
    "daily_market": {
        "dm_date": _DAY, "dm_s_symb": _TEXT, "dm_close": _MONEY, "dm_high": _MONEY, "dm_low": _MONEY,
        "dm_vol": _NUMBER,
    },
    "prospect": {
        "agency_id": _TEXT, "last_name": _TEXT, "first_name": _TEXT, "address_line1": _TEXT, "postal_code": _TEXT,
        "gender": _TEXT, "income": _NUMBER, "number_cars": _NUMBER, "number_children": _NUMBER, "age": _NUMBER,
        "credit_rating": _NUMBER, "own_or_rent": _TEXT, "net_worth": _NUMBER,
    },
}  # fmt: skip

KEYS: Mapping[str, tuple[str, ...]] = {
    **{name: (next(iter(columns)),) for name, columns in COLUMNS.items()},
    "trade_history": ("th_t_id", "th_st_id"),
    "holding_history": ("hh_h_t_id", "hh_t_id"),
    "watch_history": ("w_c_id", "w_s_symb", "w_action"),
    "daily_market": ("dm_s_symb", "dm_date"),
}


def rows_of(table: str, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Rows as Python has them; a column that a row lacks is NULL."""
    found = list(rows)
    columns = COLUMNS[table]
    arrays = [pa.array([row.get(name) for row in found], type_) for name, type_ in columns.items()]
    return pa.table(arrays, names=list(columns))


def rows_of_tuples(table: str, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """The same of tuples, in the order of the columns."""
    columns = COLUMNS[table]
    arrays = [pa.array([row[at] for row in rows], type_) for at, type_ in enumerate(columns.values())]
    return pa.table(arrays, names=list(columns))
