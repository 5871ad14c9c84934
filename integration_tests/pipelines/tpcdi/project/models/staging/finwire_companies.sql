-- record type CMP of the fixed-width FINWIRE lines
select
    make_date(cast(substring(line, 1, 4) as int), cast(substring(line, 5, 2) as int), cast(substring(line, 7, 2) as int)) as effective_date,
    trim(substring(line, 19, 60)) as name,
    cast(trim(substring(line, 79, 10)) as bigint) as company_id,
    trim(substring(line, 89, 4)) as status_id,
    trim(substring(line, 93, 2)) as industry_id,
    trim(substring(line, 95, 4)) as sp_rating,
    case when trim(substring(line, 99, 8)) <> '' then make_date(cast(substring(line, 99, 4) as int), cast(substring(line, 103, 2) as int), cast(substring(line, 105, 2) as int)) end as founding_date,
    trim(substring(line, 107, 80)) as address_line1,
    trim(substring(line, 187, 80)) as address_line2,
    trim(substring(line, 267, 12)) as postal_code,
    trim(substring(line, 279, 25)) as city,
    trim(substring(line, 304, 20)) as state_province,
    trim(substring(line, 324, 24)) as country,
    trim(substring(line, 348, 46)) as ceo,
    trim(substring(line, 394, 150)) as description
from {{ source('raw', 'finwire') }}
where substring(line, 16, 3) = 'CMP'
