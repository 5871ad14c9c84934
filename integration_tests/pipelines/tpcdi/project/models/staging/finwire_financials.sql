-- record type FIN
select
    make_date(cast(substring(line, 1, 4) as int), cast(substring(line, 5, 2) as int), cast(substring(line, 7, 2) as int)) as posted_date,
    cast(trim(substring(line, 19, 4)) as int) as fi_year,
    cast(trim(substring(line, 23, 1)) as int) as fi_qtr,
    make_date(cast(substring(line, 24, 4) as int), cast(substring(line, 28, 2) as int), cast(substring(line, 30, 2) as int)) as fi_qtr_start_date,
    cast(trim(substring(line, 40, 17)) as decimal(15, 2)) as fi_revenue,
    cast(trim(substring(line, 57, 17)) as decimal(15, 2)) as fi_net_earn,
    cast(trim(substring(line, 74, 12)) as decimal(10, 2)) as fi_basic_eps,
    cast(trim(substring(line, 86, 12)) as decimal(10, 2)) as fi_dilut_eps,
    cast(trim(substring(line, 98, 12)) as decimal(10, 2)) as fi_margin,
    cast(trim(substring(line, 110, 17)) as decimal(15, 2)) as fi_inventory,
    cast(trim(substring(line, 127, 17)) as decimal(15, 2)) as fi_assets,
    cast(trim(substring(line, 144, 17)) as decimal(15, 2)) as fi_liability,
    cast(trim(substring(line, 161, 13)) as bigint) as fi_out_basic,
    cast(trim(substring(line, 174, 13)) as bigint) as fi_out_dilut,
    trim(substring(line, 187, 60)) as company_ref
from {{ source('raw', 'finwire') }}
where substring(line, 16, 3) = 'FIN'
