{{ config(unique_key=['company_id', 'fi_year', 'fi_qtr'], affected_key='company_id') }}
-- earnings per share of the four quarters before each
select
    company_id, fi_year, fi_qtr, fi_qtr_start_date,
    sum(fi_basic_eps) over (
        partition by company_id order by fi_qtr_start_date rows between 4 preceding and 1 preceding
    ) as eps_of_year
from {{ ref('financial') }}
