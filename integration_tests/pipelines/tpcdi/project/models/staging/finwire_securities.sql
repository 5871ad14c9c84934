-- record type SEC
select
    make_date(cast(substring(line, 1, 4) as int), cast(substring(line, 5, 2) as int), cast(substring(line, 7, 2) as int)) as effective_date,
    trim(substring(line, 19, 15)) as symbol,
    trim(substring(line, 34, 6)) as issue_type,
    trim(substring(line, 40, 4)) as status_id,
    trim(substring(line, 44, 70)) as name,
    trim(substring(line, 114, 6)) as exchange_id,
    cast(trim(substring(line, 120, 13)) as bigint) as shares_outstanding,
    make_date(cast(substring(line, 133, 4) as int), cast(substring(line, 137, 2) as int), cast(substring(line, 139, 2) as int)) as first_trade_date,
    cast(trim(substring(line, 149, 12)) as decimal(10, 2)) as dividend,
    trim(substring(line, 161, 60)) as company_ref
from {{ source('raw', 'finwire') }}
where substring(line, 16, 3) = 'SEC'
