{{ config(unique_key=['company_id', 'effective_date'], affected_key='company_id') }}
select
    f.company_id * 10000 + row_number() over (partition by f.company_id order by f.effective_date) as sk_company_id,
    f.company_id, s.st_name as status, f.name, i.in_name as industry, f.sp_rating,
    f.sp_rating not like 'A%' and f.sp_rating not like 'BBB%' as is_low_grade,
    f.ceo, f.address_line1, f.address_line2, f.postal_code, f.city, f.state_province, f.country, f.description,
    f.founding_date, f.effective_date,
    lead(f.effective_date) over (partition by f.company_id order by f.effective_date) is null as is_current,
    coalesce(lead(f.effective_date) over (partition by f.company_id order by f.effective_date), date '9999-12-31')
        as end_date
from {{ ref('finwire_companies') }} f
join {{ ref('status_type') }} s on s.st_id = f.status_id
join {{ ref('industry') }} i on i.in_id = f.industry_id
